# SPDX-License-Identifier: MIT
"""What two clients must guarantee each other on one key, in both directions. A test program derives a TestCase
from Contract for each pair of clients."""

import time

import servers

LONG_MS = 20000  # longer than any test, so that no key expires
SHORT_MS = 1500  # longer than a pause of the machine
MIDDLE_MS = 6000
WAIT_MS = 10000


class Contract:
    NODES = 5

    @classmethod
    def setUpClass(cls):
        cls.servers = servers.Servers(cls.NODES).__enter__()
        try:
            cls.ours = cls.make_ours([f"{url}?fresh=1" for url in cls.servers.urls()])
            cls.theirs = cls.make_theirs(cls.servers.urls())
        except BaseException:
            cls.servers.__exit__()
            raise

    @classmethod
    def tearDownClass(cls):
        for side in (cls.ours, cls.theirs):
            side.close()
        cls.servers.__exit__()

    def setUp(self):
        self.name = "interop:" + self._testMethodName
        self.everywhere("FLUSHALL")

    def tearDown(self):
        self.everywhere("FLUSHALL")

    # ---- the keys on the servers, read without either client ----

    def everywhere(self, *command):
        return [self.servers.command(number, *command) for number in range(self.NODES)]

    def values(self):
        return self.everywhere("GET", self.name)

    def settle(self, taken):
        """Waits for all servers, because both sides reply after a majority, and returns the values there."""
        deadline = time.monotonic() + WAIT_MS / 1000
        while time.monotonic() < deadline:
            values = self.values()
            if all((value is not None) == taken for value in values):
                return values
        self.fail(f"still {values} after {WAIT_MS} ms, expected all {'taken' if taken else 'free'}")

    def assert_ok(self, result):
        self.assertEqual(result, "ok")

    # ---- the tests: `a` acquires the lock, and `b` finds it held ----

    def exclude(self, a, b):
        self.assert_ok(a.acquire(self.name, LONG_MS))
        self.assertEqual(b.acquire(self.name, LONG_MS), "contended")
        self.assert_ok(a.release(self.name))
        self.assert_ok(b.acquire(self.name, LONG_MS))
        self.assertEqual(a.acquire(self.name, LONG_MS), "contended")
        self.assert_ok(b.release(self.name))
        self.settle(taken=False)

    def extend(self, a, b):
        self.assert_ok(a.acquire(self.name, MIDDLE_MS))
        self.settle(taken=True)
        self.assert_ok(a.extend(self.name, LONG_MS))
        for pttl in self.everywhere("PTTL", self.name):
            self.assertGreater(pttl, MIDDLE_MS)
        self.assertEqual(b.acquire(self.name, LONG_MS), "contended")
        self.assert_ok(a.release(self.name))
        self.assert_ok(b.acquire(self.name, LONG_MS))

    def let_in_after_expiry(self, a, b):
        self.assert_ok(a.acquire(self.name, SHORT_MS))
        self.assert_ok(b.acquire(self.name, LONG_MS, WAIT_MS))
        self.assertEqual(a.acquire(self.name, LONG_MS), "contended")

    def leave_alone(self, a, b, verb):
        """b holds by now what a still believes to hold: the token decides, not the clock of a."""
        self.assert_ok(a.acquire(self.name, LONG_MS))
        self.settle(taken=True)
        self.everywhere("DEL", self.name)
        self.assert_ok(b.acquire(self.name, LONG_MS))
        before = self.settle(taken=True)
        result = a.release(self.name) if verb == "release" else a.extend(self.name, LONG_MS)
        self.assertEqual(result, "lost")
        self.assertEqual(self.values(), before)
        self.assert_ok(b.extend(self.name, LONG_MS))
        self.assert_ok(b.release(self.name))

    def test_ours_excludes_theirs(self):
        self.exclude(self.ours, self.theirs)

    def test_theirs_excludes_ours(self):
        self.exclude(self.theirs, self.ours)

    def test_ours_extended_excludes_theirs(self):
        self.extend(self.ours, self.theirs)

    def test_theirs_extended_excludes_ours(self):
        self.extend(self.theirs, self.ours)

    def test_theirs_expired_lets_ours_in(self):
        self.let_in_after_expiry(self.theirs, self.ours)

    def test_ours_expired_lets_theirs_in(self):
        self.let_in_after_expiry(self.ours, self.theirs)

    def test_our_release_leaves_theirs_alone(self):
        self.leave_alone(self.ours, self.theirs, "release")

    def test_their_release_leaves_ours_alone(self):
        self.leave_alone(self.theirs, self.ours, "release")

    def test_our_extension_leaves_theirs_alone(self):
        self.leave_alone(self.ours, self.theirs, "extend")

    def test_their_extension_leaves_ours_alone(self):
        self.leave_alone(self.theirs, self.ours, "extend")

    def test_ours_sees_theirs(self):
        self.assertEqual(self.ours.state(self.name), "free")
        self.assert_ok(self.theirs.acquire(self.name, LONG_MS))
        self.assertEqual(self.ours.state(self.name), "held")
        self.assert_ok(self.theirs.release(self.name))
        self.assertEqual(self.ours.state(self.name), "free")
