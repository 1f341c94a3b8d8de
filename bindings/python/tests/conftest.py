# SPDX-License-Identifier: MIT
"""Fixtures: a client of the servers in REDLOCK_SERVERS, and the keys on these servers, read and changed without the
library. To be run as `redlock sandbox -n 5 -- python3 -m pytest`."""

import concurrent.futures
import os
import re
import socket
import time

import pytest

import libredlock

SERVERS = os.environ.get("REDLOCK_SERVERS", "")
PATIENT = 30  # time limit, in seconds, of what happens at once on an idle machine
SHORT = 0.5  # time limit of a wait that ends without the lock; long enough for a reply of a busy machine
# A machine that stands still for a moment must not look like a server that does not reply.
SLOW = {"connect_timeout": 2, "node_timeout": 2}


class Servers:
    """The servers, by commands of Redis."""

    def __init__(self, urls):
        self.ports = [int(port) for port in re.findall(r"127\.0\.0\.1:(\d+)", urls)]
        self.majority = len(self.ports) // 2 + 1

    def command(self, port, *words):
        """Sends a command to one server and returns its reply: an int, bytes, or None."""
        data = b"*%d\r\n" % len(words)
        for word in words:
            encoded = word if isinstance(word, bytes) else str(word).encode()
            data += b"$%d\r\n%s\r\n" % (len(encoded), encoded)
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENT) as connection:
            connection.sendall(data)
            with connection.makefile("rb") as replies:
                line = replies.readline()[:-2]
                if line[:1] == b"$" and line != b"$-1":
                    return replies.read(int(line[1:]))
        return int(line[1:]) if line[:1] == b":" else None if line == b"$-1" else line

    def all(self, *words):
        """Sends a command to all servers and returns the replies."""
        return [self.command(port, *words) for port in self.ports]

    def value(self, key):
        """Returns the value that a majority has under the key, or None if a majority has none. Waits for one of them,
        because the library returns when a majority has replied."""
        return self.agreed("GET", key)

    def agreed(self, *words):
        """Returns the reply that a majority gives, as soon as there is one."""
        deadline = time.monotonic() + PATIENT
        while True:
            replies = self.all(*words)
            for reply in replies:
                if replies.count(reply) >= self.majority:
                    return reply
            assert time.monotonic() < deadline, replies

    def lose(self, key):
        """Deletes a key, as soon as the last server has it: its SET may arrive after the acquisition."""
        wait_until(lambda: self.all("EXISTS", key) == [1] * len(self.ports))
        self.all("DEL", key)

    def pttl(self, key):
        """Returns the median of the TTLs of a key in milliseconds; negative: as Redis has it."""
        return sorted(self.all("PTTL", key))[len(self.ports) // 2]


@pytest.fixture()
def servers():
    """The servers, without keys."""
    if not SERVERS:
        pytest.skip("no REDLOCK_SERVERS: run the tests in `redlock sandbox -n 5 --`")
    found = Servers(SERVERS)
    found.all("FLUSHALL")
    yield found


@pytest.fixture()
def client(servers):
    """A client of the servers, connected to all of them."""
    with libredlock.Client(SERVERS, **SLOW) as made:
        wait_until(lambda: all(node["eligible"] for node in made.nodes()))
        yield made


@pytest.fixture()
def make_client(servers):
    """A function that makes further clients."""
    made = []

    def make(**settings):
        """Returns a new client with these settings."""
        made.append(libredlock.Client(**{"servers": SERVERS, **SLOW, **settings}))
        return made[-1]

    yield make
    for each in made:
        each.close()


def in_thread(function):
    """Runs a function in a thread of its own, and raises what it raises."""
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        threads.submit(function).result(PATIENT)


def wait_until(condition):
    """Polls until a condition holds."""
    deadline = time.monotonic() + PATIENT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)
