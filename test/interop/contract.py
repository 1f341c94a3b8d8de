# SPDX-License-Identifier: MIT
"""What two clients must guarantee each other on one key, in both directions. A test program derives a TestCase
from Contract for each pair of clients. A method check_… proves one guarantee for a first client `a` and a second
client `b`; several tests call it, with this library's client on either side. A method of a client returns "ok",
"contended" (another client holds the lock) or "lost" (sides.py)."""

import time

import servers

LONG_MS = 20000  # longer than any test, so that no key expires
SHORT_MS = 1500  # longer than a pause of the machine
MIDDLE_MS = 6000  # longer than the part of a test before an extension
WAIT_MS = 10000  # deadline of everything that a test waits for


class Contract:
    """The tests. A subclass sets NODES, the number of servers, and make_ours and make_theirs, which return the two
    clients (sides.py) for a list of addresses."""

    NODES = 5

    @classmethod
    def setUpClass(cls):
        """Starts the servers and both clients, for all tests of the class."""
        cls.servers = servers.Servers(cls.NODES).__enter__()
        try:
            cls.ours = cls.make_ours([f"{url}?fresh=1" for url in cls.servers.urls()])
            cls.theirs = cls.make_theirs(cls.servers.urls())
        except BaseException:
            cls.servers.__exit__()
            raise

    @classmethod
    def tearDownClass(cls):
        """Ends both clients and the servers."""
        for side in (cls.ours, cls.theirs):
            side.close()
        cls.servers.__exit__()

    def setUp(self):
        self.name = "interop:" + self._testMethodName
        self.command_all("FLUSHALL")

    def tearDown(self):
        self.command_all("FLUSHALL")

    # ---- the keys on the servers, read without either client ----

    def command_all(self, *command):
        """Sends a command to all servers and returns their replies."""
        return [self.servers.command(number, *command) for number in range(self.NODES)]

    def values(self):
        """Returns the value of the test's key on each server; None: there is no key."""
        return self.command_all("GET", self.name)

    def wait_for_all(self, held):
        """Waits until all servers have the key (`held`) or none has it, because both sides reply after a majority.
        Returns the values there."""
        deadline = time.monotonic() + WAIT_MS / 1000
        while time.monotonic() < deadline:
            values = self.values()
            if all((value is not None) == held for value in values):
                return values
        self.fail(f"still {values} after {WAIT_MS} ms, expected all {'held' if held else 'free'}")

    def assert_ok(self, result):
        self.assertEqual(result, "ok")

    # ---- the tests: `a` acquires the lock first, then `b` ----

    def check_exclusion(self, a, b):
        """Checks that neither client gets a lock that the other one holds, and that a client gets
        it after the other has released it."""
        self.assert_ok(a.acquire(self.name, LONG_MS))
        self.assertEqual(b.acquire(self.name, LONG_MS), "contended")
        self.assert_ok(a.release(self.name))
        self.assert_ok(b.acquire(self.name, LONG_MS))
        self.assertEqual(a.acquire(self.name, LONG_MS), "contended")
        self.assert_ok(b.release(self.name))
        self.wait_for_all(held=False)

    def check_extension(self, a, b):
        """Checks that an extension gives all keys a longer TTL, and that the lock still excludes `b`."""
        self.assert_ok(a.acquire(self.name, MIDDLE_MS))
        self.wait_for_all(held=True)
        self.assert_ok(a.extend(self.name, LONG_MS))
        for pttl in self.command_all("PTTL", self.name):
            self.assertGreater(pttl, MIDDLE_MS)
        self.assertEqual(b.acquire(self.name, LONG_MS), "contended")
        self.assert_ok(a.release(self.name))
        self.assert_ok(b.acquire(self.name, LONG_MS))

    def check_expiry(self, a, b):
        """Checks that `b`, which waits, gets the lock when the keys of `a` have expired."""
        self.assert_ok(a.acquire(self.name, SHORT_MS))
        self.assert_ok(b.acquire(self.name, LONG_MS, WAIT_MS))
        self.assertEqual(a.acquire(self.name, LONG_MS), "contended")

    def check_token_decides(self, a, b, verb):
        """Checks that `a`, whose key was deleted and whose deadline is far, cannot release or extend the lock of `b`:
        the token decides. `verb`: "release" or "extend"."""
        self.assert_ok(a.acquire(self.name, LONG_MS))
        self.wait_for_all(held=True)
        self.command_all("DEL", self.name)
        self.assert_ok(b.acquire(self.name, LONG_MS))
        before = self.wait_for_all(held=True)
        result = a.release(self.name) if verb == "release" else a.extend(self.name, LONG_MS)
        self.assertEqual(result, "lost")
        self.assertEqual(self.values(), before)
        self.assert_ok(b.extend(self.name, LONG_MS))
        self.assert_ok(b.release(self.name))

    def test_ours_excludes_theirs(self):
        self.check_exclusion(self.ours, self.theirs)

    def test_theirs_excludes_ours(self):
        self.check_exclusion(self.theirs, self.ours)

    def test_ours_extended_excludes_theirs(self):
        self.check_extension(self.ours, self.theirs)

    def test_theirs_extended_excludes_ours(self):
        self.check_extension(self.theirs, self.ours)

    def test_theirs_expired_lets_ours_in(self):
        self.check_expiry(self.theirs, self.ours)

    def test_ours_expired_lets_theirs_in(self):
        self.check_expiry(self.ours, self.theirs)

    def test_our_release_leaves_theirs_alone(self):
        self.check_token_decides(self.ours, self.theirs, "release")

    def test_their_release_leaves_ours_alone(self):
        self.check_token_decides(self.theirs, self.ours, "release")

    def test_our_extension_leaves_theirs_alone(self):
        self.check_token_decides(self.ours, self.theirs, "extend")

    def test_their_extension_leaves_ours_alone(self):
        self.check_token_decides(self.theirs, self.ours, "extend")

    def test_ours_sees_theirs(self):
        self.assertEqual(self.ours.state(self.name), "free")
        self.assert_ok(self.theirs.acquire(self.name, LONG_MS))
        self.assertEqual(self.ours.state(self.name), "held")
        self.assert_ok(self.theirs.release(self.name))
        self.assertEqual(self.ours.state(self.name), "free")
