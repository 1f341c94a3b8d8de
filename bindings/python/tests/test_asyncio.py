# SPDX-License-Identifier: MIT
"""AsyncLock, in event loops of asyncio.run()."""

import asyncio

import pytest

import libredlock
from conftest import PATIENT, SHORT


def in_loop(function):
    """Runs an async test in a loop of its own."""

    def test(client, servers):
        """Runs the test."""
        asyncio.run(asyncio.wait_for(function(client, servers), PATIENT))

    test.__name__, test.__doc__ = function.__name__, function.__doc__
    return test


async def until(condition):
    """Waits until a condition holds."""
    while not condition():
        await asyncio.sleep(0.005)


async def until_waiting(client, count):
    """Waits until so many acquisitions wait in the client."""
    await until(lambda: client.stats()["waiting"] == count)


@in_loop
async def test_lock(client, servers):
    lock, other = client.async_lock("a", timeout=10), client.async_lock("a", timeout=10)
    assert (await lock.locked(), await lock.owned()) == (False, False)
    async with lock as same:
        assert same is lock and servers.value("a") == lock.local.token
        assert (await lock.locked(), await lock.owned(), await other.owned()) == (True, True, False)
        assert await other.acquire(blocking=False) is False
        assert await other.acquire(blocking_timeout=SHORT) is False
        with pytest.raises(libredlock.LockError, match="within the time"):
            async with client.async_lock("a", blocking_timeout=SHORT):
                pass
        assert await lock.extend(10) is True
        assert 15000 < servers.pttl("a") <= 20000
        assert await lock.reacquire() is True
    assert servers.value("a") is None
    for call in (lock.release(), lock.extend(1), lock.reacquire()):
        with pytest.raises(libredlock.LockError):
            await call


@in_loop
async def test_adopt_and_delayed_release(client, servers):
    lock, other = client.async_lock("a", timeout=10), client.async_lock("a", timeout=20)
    assert await lock.acquire()
    await other.adopt(lock.detach())
    assert await other.owned() and servers.pttl("a") > 10000
    with pytest.raises(libredlock.LockNotOwnedError):
        await lock.adopt("another")
    with pytest.raises(libredlock.RedlockError, match="more than max_ttl"):
        await other.release_after(31)
    await other.release_after(20)
    assert other.local.token is None and await other.locked()


@in_loop
async def test_other_tasks_run_while_one_waits(client, servers):
    """A waiting task gets the lock when another task of the same thread releases it."""
    lock = client.async_lock("a", timeout=20)
    await lock.acquire()
    waiter = asyncio.create_task(client.async_lock("a", timeout=20).acquire())
    await until_waiting(client, 1)
    await lock.release()
    assert await waiter is True


@in_loop
async def test_many_tasks_exclude_each_other(client, servers):
    inside = 0

    async def work():
        """Counts the tasks in the block."""
        nonlocal inside
        async with client.async_lock("a", timeout=20):
            inside += 1
            assert inside == 1
            await asyncio.sleep(0)
            inside -= 1

    await asyncio.gather(*(work() for _ in range(20)))


@in_loop
async def test_cancelled_task_does_not_hold_the_lock(client, servers):
    lock = client.async_lock("a", timeout=20)
    await lock.acquire()
    waiter = asyncio.create_task(client.async_lock("a", timeout=20).acquire())
    await until_waiting(client, 1)
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    await until_waiting(client, 0)
    await lock.release()
    assert servers.value("a") is None
    # Cancelled before the first reply: what may have been set is deleted.
    for _ in range(20):
        task = asyncio.create_task(client.async_lock("b", timeout=20).acquire())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert await client.async_lock("b", timeout=5, blocking_timeout=PATIENT).acquire()


@in_loop
async def test_loss(client, servers):
    lock = client.async_lock("a", timeout=1, auto_extend=True)
    await lock.acquire()
    servers.lose("a")
    await lock.wait_lost()
    with pytest.raises(libredlock.LockNotOwnedError):
        lock.check()
    with pytest.raises(libredlock.LockNotOwnedError):
        await lock.release()
    assert await lock.owned() is False


@pytest.mark.parametrize("ending", [KeyError, SystemExit, KeyboardInterrupt, asyncio.CancelledError])
def test_exception_in_flight_stays_after_a_loss(client, servers, caplog, ending):
    async def work():
        """Loses the lock, and is ended by something else."""
        async with client.async_lock("a", timeout=10):
            servers.lose("a")
            raise ending

    with pytest.raises(ending):
        asyncio.run(work())
    assert "a was not released" in caplog.text


@in_loop
async def test_time_limit_of_a_block_stays_after_a_loss(client, servers):
    """What asyncio.timeout(), wait_for() and cancel() rely on: the task ends as cancelled."""

    async def work():
        """Loses the lock, and goes on for ever."""
        async with client.async_lock("a", timeout=10, permits=1):
            servers.lose("a{#0}")
            await asyncio.Event().wait()

    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(work(), 0.05)
    if hasattr(asyncio, "timeout"):
        with pytest.raises(asyncio.TimeoutError):
            async with asyncio.timeout(0.05):
                await work()
    task = asyncio.create_task(work())
    await until(lambda: client.stats()["held"] == 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@in_loop
async def test_generator_ends_quietly_after_a_loss(client, servers):
    async def work():
        """Holds the lock between two values."""
        async with client.async_lock("a", timeout=10):
            yield

    values = work()
    await values.__anext__()
    servers.lose("a")
    await values.aclose()


@in_loop
async def test_object_is_for_one_task_at_a_time(client, servers):
    """The release of the late task does not reach the lock of the other one."""
    lock = client.async_lock("a", timeout=20)
    await lock.acquire()
    servers.lose("a")  # late: its lock is lost, which it does not know yet

    async def other():
        """Wants the same lock."""
        for call in (lock.acquire, lambda: lock.acquire(blocking=False), lambda: lock.adopt("x")):
            with pytest.raises(libredlock.LockError, match="another task or thread"):
                await call()

    await asyncio.create_task(other())
    with pytest.raises(libredlock.LockNotOwnedError):
        await lock.release()
    assert await asyncio.create_task(lock.acquire()) and await lock.owned()
    await lock.release()


@in_loop
async def test_object_that_acquires_is_refused_to_other_tasks(client, servers):
    lock = client.async_lock("a", timeout=20)
    async with client.async_lock("a", timeout=20):
        waiter = asyncio.create_task(lock.acquire())
        await until_waiting(client, 1)
        with pytest.raises(libredlock.LockError, match="another task or thread"):
            await lock.acquire()
        waiter.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiter
        assert await lock.acquire(blocking=False) is False


@in_loop
async def test_early_release_leaves_the_object_to_its_block(client, servers):
    lock = client.async_lock("a", timeout=20, raise_on_release_error=False)
    async with lock:
        await lock.release()
        with pytest.raises(libredlock.LockError, match="another task or thread"):
            await asyncio.create_task(lock.acquire())
    assert await asyncio.create_task(lock.acquire()) and await lock.owned()


@in_loop
async def test_other_tasks_use_the_lock_of_a_task(client, servers):
    """wait_for() of older Pythons, gather() and task groups make tasks."""
    lock = client.async_lock("a", timeout=20)
    assert await asyncio.create_task(lock.acquire())
    lock.check()
    assert await asyncio.gather(lock.extend(1), lock.owned()) == [True, True]
    await asyncio.create_task(lock.release())
    assert servers.value("a") is None


@in_loop
async def test_token_names_permits(client, servers):
    lock = client.async_lock("{x}:a", timeout=10, also=["{x}:b"])
    assert await lock.acquire(blocking=False, token="mine-3")
    assert servers.value("{x}:b") == b"mine-3"
    await lock.release()
    permit = client.async_lock("s", timeout=10, permits=1)
    assert not await permit.locked()
    async with permit:
        assert permit.slot == 0 and await permit.locked()


def test_client_serves_threads_and_loops(client):
    """One client, a lock of a thread, and event loops one after the other."""

    async def attempt():
        """Tries to acquire the lock."""
        return await client.async_lock("a", timeout=10).acquire(blocking=False)

    with client.lock("a", timeout=10):
        assert asyncio.run(attempt()) is False
    assert asyncio.run(attempt()) is True


def test_no_quorum():
    async def attempt():
        """Tries to acquire a lock without servers."""
        with libredlock.Client("127.0.0.1:1") as client:
            await client.async_lock("a", timeout=1, blocking_timeout=0.05).acquire()

    with pytest.raises(libredlock.NoQuorumError, match="127.0.0.1:1"):
        asyncio.run(attempt())
