# SPDX-License-Identifier: MIT
"""Client: settings, errors, fork, end of the interpreter."""

import os
import re
import subprocess
import sys
import threading
import time

import pytest

import libredlock
from conftest import PATIENT, SERVERS, wait_until

NOBODY_THERE = ["127.0.0.1:1,127.0.0.1:2", "127.0.0.1:3"]


def test_no_quorum_names_the_servers():
    with libredlock.Client(NOBODY_THERE) as client:
        for timeout in (0, 0.05):
            with pytest.raises(libredlock.NoQuorumError, match="all 3 servers: |127.0.0.1:") as raised:
                client.lock("a", timeout=1, blocking_timeout=timeout).acquire()
            assert raised.value.name == "REDLOCK_ENOQUORUM" and raised.value.retriable
        with pytest.raises(libredlock.NoQuorumError):
            client.wait_ready(0.05)
        with pytest.raises(libredlock.NoQuorumError):
            client.lock("a").locked()


@pytest.mark.parametrize(
    "settings", [{"servers": "a:99999"}, {"max_ttl": 0.001}, {"owner": "a b"}, {"password": ""}, {"retry_delay": (2, 1)}]
)
def test_refused_settings_say_why(settings):
    with pytest.raises(libredlock.RedlockError) as raised:
        libredlock.Client(**{"servers": "127.0.0.1:1", **settings})
    assert raised.value.name == "REDLOCK_EINVAL" and len(str(raised.value)) > len("invalid argument")


def test_refused_arguments(client):
    for name in ("", "x" * 513):
        with pytest.raises(libredlock.RedlockError):
            client.lock(name, timeout=1).acquire(blocking=False)
    with pytest.raises(ValueError, match="NUL"):
        client.lock("a\0b")
    with pytest.raises(ValueError, match="duration"):
        client.lock("a", timeout=-1).acquire()
    for blocking in (False, True):
        with pytest.raises(libredlock.RedlockError, match="30000"):  # max_ttl
            client.lock("a", timeout=31).acquire(blocking=blocking)


WRONG = [42, 3_000_000_000, None, 1.5, ["a"], object()]  # as a text
TEXTS = ["key_prefix", "owner", "user", "password", "fence_key", "tls_cacert", "tls_cert", "tls_key", "tls_sni"]


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_types_are_refused(client, wrong):
    """Before anything is allocated: bytes() of a number makes so many bytes."""
    lock = client.lock("a", timeout=10)
    calls = [
        lambda: client.lock(wrong),
        lambda: client.async_lock(wrong),
        lambda: client.lock("a", also=["b", wrong]),
        lambda: client.break_lock(wrong),
        lambda: client.inspect(wrong),
        lambda: client.shard_of(wrong),
        lambda: client.release_token("a", wrong),
        lambda: client.release_token([wrong], "b"),
        lambda: client.prometheus({"a": wrong}),
        lambda: lock.adopt(wrong),
        lambda: libredlock.Client(["127.0.0.1:1", wrong]),
    ]
    if wrong is not None:  # else the default
        calls.append(lambda: lock.acquire(blocking=False, token=wrong))
    for name in TEXTS:
        if wrong is not None or name == "key_prefix":
            calls.append(lambda name=name: libredlock.Client("127.0.0.1:1", **{name: wrong}))
    for number, call in enumerate(calls):
        with pytest.raises(TypeError, match=f"must be str or bytes, not {type(wrong).__name__}"):
            call()
            pytest.fail(f"call {number}")
    assert lock.acquire(blocking=False)


def test_one_text_is_no_list(client):
    """Its letters or bytes would be taken for names."""
    for wrong in ("bc", b"bc", bytearray(b"bc")):
        with pytest.raises(TypeError, match="list of names"):
            client.lock("a", also=wrong)
    for wrong in (b"127.0.0.1:1", bytearray(b"127.0.0.1:1"), 42):
        with pytest.raises(TypeError):
            libredlock.Client(wrong)
    with pytest.raises(libredlock.LockNotOwnedError):
        client.release_token(bytearray(b"a"), b"another")


def test_texts_may_be_bytes(client, servers):
    for kind in (bytes, bytearray, memoryview):
        with client.lock(kind(b"a"), timeout=10) as lock:
            assert servers.value("a") == lock.local.token


def test_prefix_and_owner(make_client, servers):
    client = make_client(key_prefix="app:", owner="worker-7", retry_delay=(0.01, 0.1), queue_max=1)
    lock = client.lock("a", timeout=10)
    lock.acquire()
    assert b"worker-7" in servers.value("app:a")
    results = []
    waiter = threading.Thread(target=lambda: results.append(client.lock("a", timeout=10).acquire()))
    waiter.start()
    wait_until(lambda: client.stats()["waiting"] == 1)
    with pytest.raises(libredlock.RedlockError) as raised:
        client.lock("a", timeout=10).acquire()
    assert raised.value.name == "REDLOCK_EQUEUEFULL"
    client.break_lock("a")
    assert lock.owned() is False
    waiter.join(PATIENT)
    assert results == [True]


def test_owner_is_the_process_by_default(make_client, servers):
    client, begin = make_client(), int(time.time())
    pattern = rf"[^/@]+/{os.getpid()}/(\d+)"
    with client.lock("a", timeout=10):
        owner = client.inspect("a").owner
        assert begin - PATIENT <= int(re.fullmatch(pattern, owner)[1]) <= time.time(), owner
    with make_client(owner="").lock("a", timeout=10) as lock:
        assert b"@" not in lock.local.token
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with client.lock("a", timeout=10):
                os.write(write, client.inspect("a").owner.encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        assert answer.read().split("/")[1] == str(child)
    os.waitpid(child, 0)


def test_close_releases_and_ends_waits(make_client, servers):
    client = make_client()
    lock = client.lock("a", timeout=20)
    lock.acquire()
    failures = []

    def wait():
        """Waits for the lock until the client is closed."""
        try:
            client.lock("a", timeout=20).acquire()
        except libredlock.RedlockError as failure:
            failures.append(failure.name)

    thread = threading.Thread(target=wait)
    thread.start()
    wait_until(lambda: client.stats()["waiting"] == 1)
    client.close()
    client.close()
    thread.join(PATIENT)
    assert failures == ["REDLOCK_ECLOSED"] and servers.value("a") is None
    assert lock.owned() is False if lock.local.token is None else lock.remaining == 0
    with pytest.raises(libredlock.RedlockError, match="shutting down"):
        client.lock("a").acquire()


def test_fork(client, servers):
    """The child does not hold the locks of its parent, gets connections of its own, and leaves the parent's locks alone
    when it ends."""
    lock = client.lock("a", timeout=20)
    lock.acquire()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            assert lock.owned() is False and lock.remaining == 0
            assert client.lock("a").acquire(blocking=False) is False
            with client.lock("b", timeout=10) as own:
                assert own.owned()
            with pytest.raises(libredlock.LockNotOwnedError):
                lock.release()
            client.close()
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert lock.owned()
    lock.release()


def test_locks_are_released_when_the_interpreter_ends(servers):
    script = "import libredlock, sys; lock = libredlock.Client(sys.argv[1]).lock('a', timeout=30); print(lock.acquire())"
    done = subprocess.run([sys.executable, "-c", script, SERVERS], capture_output=True, text=True, timeout=PATIENT, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("True\n", "", 0)
    assert servers.value("a") is None


def test_interpreter_ends_while_a_thread_waits(servers):
    script = (
        "import libredlock, sys, threading\n"
        "client = libredlock.Client(sys.argv[1])\n"
        "client.lock('a', timeout=30).acquire()\n"
        "lock = client.lock('b', timeout=30); lock.acquire()\n"
        "threading.Thread(target=client.lock('b').acquire, daemon=True).start()\n"
        "while client.stats()['waiting'] == 0: pass\n"
    )
    done = subprocess.run([sys.executable, "-c", script, SERVERS], capture_output=True, text=True, timeout=PATIENT, check=False)
    assert done.returncode == 0, done.stderr
    assert servers.value("a") is None and servers.value("b") is None


def test_version():
    """The wheel has the version of the library that it is made for."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "meson.build"), encoding="utf-8") as file:
        assert f"version: '{libredlock.__version__}'" in file.read()
