# SPDX-License-Identifier: MIT
"""One lock of several resources: `acquire`, `run`, `extend` and `release` affect all of them or none. world.Case
starts servers for the class, five unless `count` differs, and empties them before each test. redlock() runs the
command and returns its result; hold() acquires a lock as another holder; until() waits for a condition."""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import tapcase  # noqa: E402
from world import REDLOCK, Case, until  # noqa: E402


class SeveralResources(Case):
    """Locks with `-a NAME` (further resources), on five servers."""

    def check_all(self, token):
        """Waits until all servers have the three keys with that token."""
        for name in "a", "b", "c":
            until(lambda name=name: self.servers.values(name) == [token.encode()] * 5, f"{name} everywhere")

    def check_none(self):
        """Fails if a key is on any server."""
        until(lambda: not self.servers.keys(), "no key anywhere")

    def test_acquire_extend_release(self):
        """All names are acquired, extended and released together."""
        result = self.redlock("acquire", "--json", "b", "a", "-a", "c")
        self.assertCode(result, 0)
        taken = json.loads(result.stdout)
        self.assertEqual((taken["name"], taken["names"]), ("b", ["b", "a", "c"]))
        self.check_all(taken["token"])
        for names in ("a",), ("c", "d"):
            self.assertCode(self.redlock("acquire", "-n", *names), 75)
        self.assertCode(self.redlock("extend", "c", "a", "b", taken["token"]), 0)
        self.assertCode(self.redlock("extend", "c", "a", "b", "d", taken["token"]), 1)
        self.check_all(taken["token"])
        result = self.redlock("release", "--json", "-a", "a", "c", "b", taken["token"])
        self.assertCode(result, 0)
        self.assertEqual(json.loads(result.stdout)["names"], ["c", "b", "a"])
        self.check_none()
        self.assertCode(self.redlock("release", "--strict", "a", "b", "c", taken["token"]), 1)

    def test_release_deletes_remaining_keys(self):
        """A release deletes those of the keys that are still there."""
        token = self.redlock("acquire", "a", "b", "c").stdout.strip()
        self.assertCode(self.redlock("release", "b", token), 0)
        result = self.redlock("release", "--strict", "a", "b", "c", token)
        self.assertCode(result, 1)
        self.assertIn("a, b, c were not all held with this token any more; those that were are released", result.stderr)
        self.check_none()

    def test_run_exports_names_and_holds_all(self):
        """`run` holds all names and passes them to its command in the environment."""
        script = f'printf %s "$REDLOCK_NAME:$REDLOCK_NAMES"; "{REDLOCK}" acquire -n a'
        result = self.redlock("run", "c", "-a", "b", "--also", "a", "-c", script)
        self.assertCode(result, 75)
        self.assertEqual(result.stdout, "c:c\nb\na")
        self.check_none()

    def test_message_names_the_held_resource(self):
        """The message about a conflict names the resource that is held."""
        self.hold("b")
        result = self.redlock("run", "-n", "a", "-a", "b", "true")
        self.assertCode(result, 75)
        self.assertIn("a, b: not acquired: held by another client ('b')", result.stderr)
        self.assertEqual(self.servers.values("a"), [])

    def test_nested_run_on_a_held_resource_is_refused(self):
        """A `run` inside of a `run` that holds one of its names is refused."""
        for names in "b", "x\nb", "b\nx":
            inside = self.environment(REDLOCK_HELD="1", REDLOCK_NAME=names.split("\n", maxsplit=1)[0], REDLOCK_NAMES=names)
            result = self.redlock("run", "a", "-a", "b", "true", env=inside)
            self.assertCode(result, 64)
            self.assertIn("would wait for itself", result.stderr)
        result = self.redlock("run", "a", "-a", "c", "true", env=inside)
        self.assertCode(result, 0)


if __name__ == "__main__":
    tapcase.main()
