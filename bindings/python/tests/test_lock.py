# SPDX-License-Identifier: MIT
"""Lock: acquire, release, extend, ownership, loss, threads, signals."""

import asyncio
import gc
import select
import signal
import subprocess
import sys
import threading
import time

import pytest

import libredlock
from libredlock._lock import Request
from libredlock._native import Operation
from libredlock._redlock import lib
from conftest import PATIENT, SERVERS, SHORT, in_thread, wait_until


def test_excludes_others_while_held(client, servers):
    lock = client.lock("a", timeout=10)
    other = client.lock("a", timeout=10, blocking=False)
    assert lock.acquire() is True
    assert servers.value("a") == lock.local.token
    assert 5 < lock.remaining <= 10 and 5000 < servers.pttl("a") <= 10000
    assert other.acquire() is False and "held" in other.reason
    lock.release()
    assert servers.value("a") is None and lock.local.token is None and lock.remaining == 0
    assert other.acquire() is True
    other.release()


def test_without_a_timeout_it_is_extended(make_client, servers):
    client = make_client(default_timeout=1)
    lock, begin = client.lock("a"), time.monotonic()
    with lock:
        wait_until(lambda: time.monotonic() > begin + 1.5 and client.stats()["extended"] > 1)
        lock.check(margin=0.01)
        assert servers.pttl("a") > 0
        with pytest.raises(libredlock.LockError, match="no timeout"):
            lock.extend(1)


def test_blocking_timeout_ends_the_wait(client):
    with client.lock("a", timeout=10):
        waiter = client.lock("a", timeout=10, blocking_timeout=SHORT)
        begin = time.monotonic()
        assert waiter.acquire() is False
        assert time.monotonic() >= begin + SHORT
        assert waiter.acquire(blocking=False) is False
        with pytest.raises(libredlock.LockError, match="within the time specified.*held") as raised:
            with waiter:
                pass
        assert raised.value.lock_name == "a"


def test_waiter_gets_the_lock_of_another_thread(client):
    lock = client.lock("a", timeout=20)
    lock.acquire()
    results = []
    waiter = threading.Thread(target=lambda: results.append(client.lock("a", timeout=20).acquire()))
    waiter.start()
    wait_until(lambda: client.stats()["waiting"] == 1)
    lock.release()
    waiter.join(PATIENT)
    assert results == [True]


def test_threads_run_while_one_waits(client):
    """A call that blocks does not hold the interpreter."""
    waiting, results = [], []
    with client.lock("a", timeout=20):
        waiter = threading.Thread(target=lambda: results.append(client.lock("a", timeout=20, blocking_timeout=PATIENT).acquire()))
        waiter.start()
        wait_until(lambda: client.stats()["waiting"] == 1)
        for _ in range(6):
            time.sleep(0.001)  # other threads may run
            waiting.append(client.stats()["waiting"])
    waiter.join(PATIENT)
    assert (waiting, results) == ([1] * 6, [True])


def test_threads_have_tokens_of_their_own(client):
    lock = client.lock("a", timeout=20)
    lock.acquire()
    seen = []

    def look():
        """Uses the lock object of the other thread."""
        seen.append(lock.local.token)
        seen.append(lock.owned())
        with pytest.raises(libredlock.LockError):
            lock.release()

    thread = threading.Thread(target=look)
    thread.start()
    thread.join(PATIENT)
    assert seen == [None, False] and lock.owned()
    lock.release()


def test_lock_is_passed_to_another_thread(client):
    lock = client.lock("a", timeout=20, thread_local=False)
    lock.acquire()
    thread = threading.Thread(target=lock.release)
    thread.start()
    thread.join(PATIENT)
    assert lock.local.token is None and not lock.locked()


def test_extend_and_reacquire(client, servers):
    lock = client.lock("a", timeout=10)
    lock.acquire()
    assert lock.extend(10) is True
    assert 15000 < servers.pttl("a") <= 20000
    servers.all("PEXPIRE", "a", 5000)
    assert lock.reacquire() is True
    assert 6000 < servers.pttl("a") <= 20000
    servers.all("PEXPIRE", "a", 5000)
    assert lock.extend(15, replace_ttl=True) is True
    assert 11000 < servers.pttl("a") <= 20000
    lock.release()
    for call in (lambda: lock.extend(1), lock.reacquire, lock.release):
        with pytest.raises(libredlock.LockError):
            call()


def test_an_extension_takes_no_time_away(client, servers):
    """redis-py shortens the TTL here. What check() and `remaining` have promised stays true."""
    lock = client.lock("a", timeout=25)
    lock.acquire()
    lock.check(margin=5)
    assert lock.extend(2, replace_ttl=True) is True
    lock.check(margin=5)
    assert servers.pttl("a") > 5000
    lock.release()
    brief = client.lock("b", timeout=5)
    brief.acquire()
    assert brief.extend(20) is True
    assert brief.reacquire() is True
    assert brief.remaining > 5 and servers.pttl("b") > 5000
    brief.release()


def test_owned_and_locked_ask_the_servers(client, servers):
    lock, other = client.lock("a", timeout=10), client.lock("a", timeout=10)
    assert (lock.owned(), lock.locked()) == (False, False)
    lock.acquire()
    assert (lock.owned(), lock.locked(), other.owned(), other.locked()) == (True, True, False, True)
    servers.all("SET", "a", "another")
    assert (lock.owned(), lock.locked()) == (False, True)
    servers.lose("a")
    assert lock.locked() is False


@pytest.mark.parametrize("call", ["release", "reacquire", "extend"])
def test_lost_lock_is_not_owned(client, servers, call):
    lock = client.lock("a", timeout=10)
    lock.acquire()
    servers.all("SET", "a", "another")
    with pytest.raises(libredlock.LockNotOwnedError) as raised:
        lock.extend(5) if call == "extend" else getattr(lock, call)()
    assert (raised.value.lock_name, raised.value.name) == ("a", "REDLOCK_ELOST")
    assert servers.value("a") == b"another"
    assert call != "release" or lock.local.token is None


def test_loss_is_seen_through_the_descriptor(make_client, servers):
    lock = make_client(default_timeout=0.5).lock("a")
    lock.acquire()
    servers.all("DEL", "a")
    assert select.select([lock.fileno()], [], [], PATIENT)[0]
    with pytest.raises(libredlock.LockNotOwnedError):
        lock.check()
    with pytest.raises(libredlock.LockNotOwnedError):
        lock.release()


def test_block_raises_after_a_loss(client, servers, caplog):
    with pytest.raises(libredlock.LockNotOwnedError):
        with client.lock("a", timeout=10):
            servers.lose("a")
    with client.lock("b", timeout=10, raise_on_release_error=False):
        servers.lose("b")
    assert "b was not released" in caplog.text


def test_block_passes_exceptions_on_and_releases(client):
    with pytest.raises(KeyError):
        with client.lock("a", timeout=10):
            raise KeyError
    assert not client.lock("a").locked()


# What ends a block from outside, besides exceptions of the host.
ENDINGS = [KeyError, SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError]
# Kinds of locks with the name "{a}", and one of their keys.
KINDS = [({}, "{a}"), ({"also": ["{a}b"]}, "{a}b"), ({"permits": 1}, "{a}{#0}")]


@pytest.mark.parametrize("ending", ENDINGS)
def test_exception_in_flight_stays_after_a_loss(client, servers, caplog, ending):
    for kind, key in KINDS:
        with pytest.raises(ending):
            with client.lock("{a}", timeout=10, **kind):
                servers.lose(key)
                raise ending
    assert caplog.text.count("{a} was not released") == len(KINDS)


def test_exception_in_flight_stays_after_close(make_client, caplog):
    """A release can fail for other reasons than a loss."""
    client = make_client()
    with pytest.raises(KeyError):
        with client.lock("a", timeout=10):
            client.close()
            raise KeyError
    assert "a was not released" in caplog.text


def test_generator_ends_quietly_after_a_loss(client, servers):
    def work():
        """Holds the lock between two values."""
        with client.lock("a", timeout=10):
            yield

    values = work()
    next(values)
    servers.lose("a")
    values.close()


def test_program_ends_with_its_own_status_after_a_loss(servers):
    script = (
        "import libredlock, sys\n"
        "with libredlock.Client(sys.argv[1]).lock('a', timeout=0.3) as lock:\n"
        "    while lock.remaining > 0: pass\n"
        "    raise SystemExit(3)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, SERVERS], capture_output=True, text=True, timeout=PATIENT, check=False)
    assert done.returncode == 3 and "Traceback" not in done.stderr, done.stderr


def test_object_is_for_one_thread_at_a_time(client, servers):
    """The release of the late thread does not reach the lock of the other one."""
    lock = client.lock("a", timeout=20, thread_local=False)
    lock.acquire()
    servers.lose("a")  # late: its lock is lost, which it does not know yet
    seen = []

    def other():
        """Wants the same lock."""
        for call in (lock.acquire, lambda: lock.acquire(blocking=False), lambda: lock.adopt("x")):
            with pytest.raises(libredlock.LockError, match="another task or thread"):
                call()
        seen.append(True)

    in_thread(other)
    with pytest.raises(libredlock.LockNotOwnedError):
        lock.release()
    in_thread(lambda: seen.append(lock.acquire()))
    assert seen == [True, True] and lock.owned()
    lock.release()


def test_early_release_leaves_the_object_to_its_block(client):
    lock, seen = client.lock("a", timeout=20, thread_local=False, raise_on_release_error=False), []

    def other():
        """Wants the same lock."""
        with pytest.raises(libredlock.LockError, match="another task or thread"):
            lock.acquire()
        seen.append(True)

    with lock:
        lock.release()
        in_thread(other)
    in_thread(lambda: seen.append(lock.acquire()))
    assert seen == [True, True] and lock.owned()
    lock.release()


def test_thread_acquires_again_after_a_loss(client, servers):
    lock = client.lock("a", timeout=20, thread_local=False)
    for _ in range(2):
        assert lock.acquire(blocking=False) and not lock.acquire(blocking=False)
        servers.lose("a")
    assert not lock.owned()


def test_failed_acquisition_leaves_the_object_free(client):
    lock = client.lock("a", timeout=20, thread_local=False)
    with client.lock("a", timeout=20):
        in_thread(lambda: lock.acquire(blocking=False))
        with pytest.raises(libredlock.LockError, match="blocking=False"):
            lock.acquire(token="x")
    with lock:
        assert lock.owned()


def test_token_of_the_caller(client, servers):
    lock = client.lock("a", timeout=10)
    assert lock.acquire(blocking=False, token="mine-1")
    assert lock.local.token == b"mine-1" == servers.value("a")
    lock.release()
    with pytest.raises(libredlock.LockError, match="one attempt"):
        lock.acquire(token="mine-2")


def test_several_names_are_one_lock(client):
    both = client.lock("{x}:a", timeout=10, also=["{x}:b", b"{x}:c"])
    assert not both.locked()
    with both:
        assert client.lock("{x}:c").acquire(blocking=False) is False
        assert both.locked() and both.owned()
    assert client.lock("{x}:c", timeout=1).acquire(blocking=False) is True


def test_permits(client):
    first, second, third = (client.lock("s", timeout=10, permits=2) for _ in range(3))
    assert first.acquire() and not third.locked()
    assert second.acquire() and third.locked()
    assert {first.slot, second.slot} == {0, 1}
    assert third.acquire(blocking=False) is False
    first.release()
    assert third.acquire(blocking=False) is True


def test_fence_grows(make_client):
    lock = make_client(volatile_fence_records=True).lock("f", timeout=10, fence=True)
    with lock:
        before = lock.fence
    with lock:
        assert lock.fence > before > 0


def test_dropped_lock_is_released(client, servers):
    lock = client.lock("a", timeout=20)
    lock.acquire()
    del lock
    gc.collect()
    assert servers.value("a") is None


def test_acquisition_that_nothing_waits_for_is_released(client, servers):
    """A lock that was won in the moment in which the wait for it ended is released, too."""
    lock = client.lock("a", timeout=20)
    request = Request(lock, 0, None)
    operation = Operation(acquires=True)
    operation.start(lambda done, data: lib.redlock_acquire_start(client.native, b"a", request.opts, done, data))
    assert operation.wait() == 0 and servers.value("a") is not None
    del operation
    gc.collect()
    assert servers.value("a") is None


def test_detached_lock_stays(client, servers):
    lock = client.lock("a", timeout=20)
    lock.acquire()
    assert lock.detach() == servers.value("a")
    assert lock.local.token is None and lock.locked()


def test_lock_is_adopted_by_its_token(make_client, servers):
    lock, other = make_client().lock("a", timeout=10), make_client().lock("a", timeout=20)
    lock.acquire()
    token = lock.detach()
    other.adopt(token)
    assert other.local.token == token == servers.value("a") and other.owned() and servers.pttl("a") > 10000
    with pytest.raises(libredlock.LockNotOwnedError):
        lock.adopt("another")
    other.release()
    assert servers.value("a") is None
    with pytest.raises(libredlock.LockNotOwnedError):
        other.adopt(token)


def test_fence_is_adopted(make_client):
    client = make_client(volatile_fence_records=True)
    lock, other = (client.lock("f", timeout=10, fence=True) for _ in range(2))
    lock.acquire()
    fence = lock.fence
    other.adopt(lock.detach(), fence=fence)
    assert other.fence == fence
    with pytest.raises(libredlock.RedlockError):
        client.lock("f", timeout=10, fence=True).adopt(other.detach())


def test_permit_is_adopted_by_the_name_of_its_slot(client):
    permit = client.lock("s", timeout=10, permits=2)
    permit.acquire()
    name = permit.slot_name
    assert name == f"s{{#{permit.slot}}}"
    token = permit.detach()
    with pytest.raises(libredlock.LockError, match="slot"):
        client.lock("s", permits=2).adopt(token)
    adopted = client.lock(name, timeout=10)
    adopted.adopt(token)
    assert adopted.owned()


def test_keys_stay_after_a_delayed_release(client, servers):
    lock = client.lock("a", timeout=10)
    lock.acquire()
    with pytest.raises(ValueError, match="duration"):
        lock.release_after(-1)
    with pytest.raises(libredlock.RedlockError, match="more than max_ttl"):
        lock.release_after(31)
    assert lock.owned()
    lock.release_after(20)
    assert lock.local.token is None and lock.locked() and servers.pttl("a") > 10000
    client.break_lock("a")
    with pytest.raises(libredlock.LockError):
        lock.release_after(1)


def test_signal_ends_the_wait(client, servers):
    """A handler that raises ends acquire(); the lock is not acquired afterwards."""

    def handler(number, frame):
        """Ends the wait."""
        raise InterruptedError

    def interrupt():
        """Sends the signal as soon as the call waits."""
        wait_until(lambda: client.stats()["waiting"] == 1)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGALRM)

    previous = signal.signal(signal.SIGALRM, handler)
    try:
        holder = client.lock("a", timeout=20)
        holder.acquire()
        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(InterruptedError):
            client.lock("a", timeout=20).acquire()
        thread.join(PATIENT)
    finally:
        signal.signal(signal.SIGALRM, previous)
    wait_until(lambda: client.stats()["waiting"] == 0)
    holder.release()
    assert servers.value("a") is None
