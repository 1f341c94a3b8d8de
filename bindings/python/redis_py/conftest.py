# SPDX-License-Identifier: MIT
"""Runs the lock tests of redis-py on this binding: `r.lock(...)` returns a lock of libredlock, and commands go to all
servers of REDLOCK_SERVERS. `./dev python` fetches the tests and puts them beside this file."""

import os
import sys

import pytest
import redis.exceptions

import libredlock

sys.path.insert(0, os.environ["BINDING_TESTS"])
from conftest_servers import PATIENT, SERVERS, SLOW, Servers  # a copy of tests/conftest.py

redis.exceptions.LockError = libredlock.LockError
redis.exceptions.LockNotOwnedError = libredlock.LockNotOwnedError

# What cannot pass, and why. Each of these must fail: the list is kept true by the run.
NO_TTL = "without a timeout redis-py sets a key without a TTL; here every key has one, and is extended"
SLEEPS = "counts the calls of redis-py's own sleep; here a waiter is notified"
STRICTER = {
    "test_lock": NO_TTL,
    "test_lock_token": NO_TTL,
    "test_lock_token_thread_local_false": NO_TTL,
    "test_blocking_timeout": SLEEPS,
    "test_context_manager_blocking_timeout": SLEEPS,
}


def pytest_collection_modifyitems(items):
    """Marks the tests of the list."""
    for item in items:
        if item.name in STRICTER:
            item.add_marker(pytest.mark.xfail(reason=STRICTER[item.name], strict=True, raises=AssertionError))


class Redis:
    """What the tests use of redis-py's client. Reads are those of a majority."""

    make_lock = staticmethod(libredlock.Client.lock)

    def __init__(self, decode=False):
        self.servers = Servers(SERVERS)
        self.servers.all("FLUSHALL")
        self.decode = decode
        self.client = libredlock.Client(SERVERS, **SLOW)
        self.client.wait_ready(PATIENT)

    def get(self, key):
        """Returns the value of a key."""
        value = self.servers.value(key)
        return value.decode() if self.decode and value is not None else value

    def set(self, key, value):
        """Sets a key."""
        self.servers.all("SET", key, value)

    def pexpire(self, key, milliseconds):
        """Sets the TTL of a key."""
        return self.servers.all("PEXPIRE", key, milliseconds) == [1] * len(self.servers.ports)

    def pttl(self, key):
        """Returns the TTL of a key in milliseconds."""
        return self.servers.pttl(key)

    def ttl(self, key):
        """Returns the TTL of a key in seconds, rounded as Redis does."""
        pttl = self.servers.pttl(key)
        return pttl if pttl < 0 else (pttl + 500) // 1000

    def lock(self, name, lock_class=None, **settings):
        """Returns a lock of this binding, or one of a class of the test itself."""
        if lock_class is not None and not lock_class.__module__.startswith("redis."):
            return lock_class(self, name, **settings)
        return self.make_lock(self.client, name, **settings)

    def close(self):
        """Ends the client."""
        self.client.close()


class AsyncRedis(Redis):
    """The same for the tests of redis.asyncio."""

    make_lock = staticmethod(libredlock.Client.async_lock)

    async def get(self, key):
        """Returns the value of a key."""
        return super().get(key)

    async def set(self, key, value):
        """Sets a key."""
        super().set(key, value)

    async def pexpire(self, key, milliseconds):
        """Sets the TTL of a key."""
        return super().pexpire(key, milliseconds)

    async def pttl(self, key):
        """Returns the TTL of a key in milliseconds."""
        return super().pttl(key)

    async def ttl(self, key):
        """Returns the TTL of a key in seconds."""
        return super().ttl(key)

    async def flushall(self):
        """Ends the client; the next one deletes all keys."""
        self.close()


def _get_client(cls, request, decode_responses=False):
    """Returns a client that ends with the test."""
    made = Redis(decode_responses)
    request.addfinalizer(made.close)
    return made


@pytest.fixture()
def r(request):
    """A client, for asyncio in the tests of redis.asyncio."""
    made = AsyncRedis() if "asyncio" in request.node.path.name else Redis()
    yield made
    made.close()


@pytest.fixture()
def create_redis():
    """A function that makes a client for asyncio."""

    async def make(decode_responses=False):
        """Returns a client."""
        return AsyncRedis(decode_responses)

    return make
