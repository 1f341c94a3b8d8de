# SPDX-License-Identifier: MIT
"""Passwords of the servers are removed from the environment of the command, and a `redlock` in that command names what
it lacks. world.OwnServersCase starts three servers for each test. redlock() runs the command and returns its
result."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import tapcase  # noqa: E402
from world import REDLOCK, OwnServersCase, clean_environment  # noqa: E402

PASSWORD = "s3cr3t"
SHOW = ("--", "sh", "-c", "{ env; tr '\\0' '\\n' </proc/$$/environ; } | grep ^RED")


class Secrets(OwnServersCase):
    """Three servers that want a password."""

    def setUp(self):
        """Starts three servers that require a password."""
        super().setUp()
        self.servers.command_all("CONFIG", "SET", "requirepass", PASSWORD)
        self.in_addresses = ",".join(f"redis://:{PASSWORD}@{part}" for part in self.servers.list.split(","))

    def seen(self, *flags, **environment):
        """Returns the names of the variables RED* that the command sees, and all of their text."""
        result = self.redlock("run", *flags, "s", *SHOW, env=clean_environment(**environment))
        self.assertCode(result, 0)
        return dict(line.split("=", 1) for line in result.stdout.splitlines() if "=" in line), result.stdout

    def with_login(self):
        """Returns an environment with the password."""
        return {"REDLOCK_SERVERS": self.servers.list, "REDLOCK_AUTH": PASSWORD}

    def nested(self, *flags, inner=("status", "s"), **environment):
        """Runs `redlock run` with another redlock command in it."""
        return self.redlock("run", *flags, "s", "--", REDLOCK, *inner, env=clean_environment(**environment))

    def test_password_variable_is_removed(self):
        """The command does not see REDLOCK_AUTH."""
        found, text = self.seen(**self.with_login(), REDLOCK_AUTHOR="ada", REDLOCK_AUTH_X="b")
        self.assertNotIn(PASSWORD, text)
        self.assertNotIn("REDLOCK_AUTH", found)
        self.assertEqual(found["REDLOCK_SERVERS"], self.servers.list)
        # A variable whose name only begins with the removed name stays.
        self.assertEqual((found["REDLOCK_AUTHOR"], found["REDLOCK_AUTH_X"]), ("ada", "b"))

    def test_passwords_in_addresses_are_removed(self):
        """The command sees the addresses without passwords."""
        found, text = self.seen(REDLOCK_SERVERS=self.in_addresses)
        self.assertNotIn(PASSWORD, text)
        self.assertEqual(found["REDLOCK_SERVERS"], self.in_addresses.replace(PASSWORD, "***"))

    def test_passwords_of_an_unused_list_are_removed(self):
        """The same for a list that a flag replaces."""
        found, text = self.seen("-s", self.servers.list, REDLOCK_SERVERS="redis://u:other@h:1", REDLOCK_AUTH=PASSWORD)
        self.assertNotIn("other", text)
        self.assertEqual(found["REDLOCK_SERVERS"], "redis://u:***@h:1")

    def test_keep_env(self):
        """With --keep-env the command sees all of them."""
        found, _ = self.seen("--keep-env", **self.with_login())
        self.assertEqual(found["REDLOCK_AUTH"], PASSWORD)
        self.assertNotIn("REDLOCK_LOGIN", found)
        found, _ = self.seen("--keep-env", REDLOCK_SERVERS=self.in_addresses)
        self.assertEqual(found["REDLOCK_SERVERS"], self.in_addresses)

    def test_other_variables_stay(self):
        """Other variables are as they were."""
        self.servers.command_all_with_password(PASSWORD, "CONFIG", "SET", "requirepass", "")
        url = "redis://:other@h:1"
        found, _ = self.seen(REDLOCK_SERVERS=self.servers.list, REDLOCK_PREFIX="p:", REDIS_URL=url)
        self.assertEqual((found["REDLOCK_SERVERS"], found["REDLOCK_PREFIX"]), (self.servers.list, "p:"))
        self.assertEqual(found["REDIS_URL"], url)
        self.assertNotIn("REDLOCK_LOGIN", found)

    def test_nested_redlock_names_the_removed_variable(self):
        """A `redlock` in the command says which variable was removed."""
        around = "by the enclosing `redlock run`; give --keep-env there"
        cases = (self.with_login(), "REDLOCK_AUTH: removed from the environment "), (
            {**self.with_login(), "REDLOCK_USER": "default"},
            "REDLOCK_AUTH: removed from the environment ",
        ), ({"REDLOCK_SERVERS": self.in_addresses}, "REDLOCK_SERVERS: its passwords were removed (***) ")
        for environment, words in cases:
            for inner in ("status", "s"), ("acquire", "-n", "t"), ("run", "-n", "t", "--", "true"), ("nodes",):
                with self.subTest(words=words, inner=inner):
                    result = self.nested(inner=inner, **environment)
                    self.assertCode(result, 78)
                    self.assertIn(words + around, result.stderr)
                    self.assertNotIn(PASSWORD, result.stderr)

    def test_nested_redlock_with_its_own_password(self):
        """It works with a password of its own."""
        path = self.path("pass", PASSWORD + "\n")
        os.chmod(path, 0o600)
        self.assertCode(self.nested(inner=("status", "--pass-file", path, "s"), **self.with_login()), 0)
        self.assertCode(self.nested(inner=("status", "-s", self.in_addresses, "s"), **self.with_login()), 0)
        self.assertCode(self.nested("--keep-env", **self.with_login()), 0)
        self.assertCode(self.nested("--keep-env", REDLOCK_SERVERS=self.in_addresses), 0)

    def test_password_is_the_first_line_of_its_file(self):
        """Of a password file, only the first line is used."""
        for text in PASSWORD, PASSWORD + "\n", PASSWORD + "\r\n", PASSWORD + "\nmore\n":
            with self.subTest(text=text):
                path = self.path("pass", text)
                os.chmod(path, 0o600)
                result = self.redlock("status", "-s", self.servers.list, "--pass-file", path, "s", env=clean_environment())
                self.assertCode(result, 1)

    def test_nested_sandbox_needs_no_password(self):
        """A sandbox in the command is not affected."""
        words = ("sandbox", "-n", "1", "--", REDLOCK, "acquire", "-q", "-n", "--connect-timeout", "1s", "t")
        self.assertCode(self.nested(inner=words, **self.with_login()), 0)


if __name__ == "__main__":
    tapcase.main()
