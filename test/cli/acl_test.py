# SPDX-License-Identifier: MIT
"""The ACL user that `redlock nodes --acl` prints, with prefixes that contain special characters. redis-cli runs the
printed line, with a password in place of PASSWORD. The user has all rights that locks need for keys with the prefix,
and none for other keys. world.OwnServersCase starts three servers for each test. world.CommandCase gives a directory,
and no servers. redlock() runs the command and returns its result."""

import json
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import tapcase  # noqa: E402
from world import CommandCase, OwnServersCase, clean_environment  # noqa: E402

CLIENT = shutil.which("redis-cli") or shutil.which("valkey-cli")
PREFIXES = ["app:", "[x]", "[^x]", "[a-c]", "a*", "q?", "b\\", "b\\*", "\\", "^c", "it's", 'say"', "'\"", "x'\\", "$(id)`id`!", "~&+@%", "#{}", "é", "\x7f\x01\x1b[2J"]  # fmt: skip
FORBIDDEN = ["a b", "tab\t", "line\n", "\r", "\v", "\f"]


def others_than(prefix):
    """Returns keys that are similar to the prefix but do not begin with it."""
    cuts = range(len(prefix))
    keys = {prefix[:i] + new + prefix[i + 1 :] + "name" for i in cuts for new in ("", "Z", "a", "x", "\\", "zz")}
    return [key for key in sorted(keys | {"name", "Zname"}) if not key.startswith(prefix)]


class Line(CommandCase):
    """The line that is printed, without servers."""

    def test_prefixes_with_blanks_are_refused(self):
        """A prefix with a blank cannot be written in an ACL rule: refused."""
        for prefix in FORBIDDEN:
            with self.subTest(prefix=prefix):
                result = self.redlock("nodes", "--acl", "--prefix", prefix, env=clean_environment())
                self.assertCode(result, 78)
                self.assertEqual(result.stdout, "")
                self.assertRegex(result.stderr, r"option --prefix: .* cannot contain a blank")
        result = self.redlock("nodes", "--acl", "--fence", env=clean_environment(REDLOCK_FENCE_KEY="a b"))
        self.assertCode(result, 78)
        self.assertRegex(result.stderr, r"REDLOCK_FENCE_KEY: .* cannot contain a blank")

    def test_plain_prefixes_are_quoted(self):
        """The key pattern of an ordinary prefix is in quotes, which redis-cli reads."""
        result = self.redlock("nodes", "--acl", "--fence", "--prefix", "app:", env=clean_environment())
        self.assertIn(" '~app:*' '~redlock:fence' ", result.stdout)

    def test_rights_of_lines(self):
        """The rights that only lines need are printed, except with --no-line or if lines are off."""
        for words, environment, lines in ([], {}, True), (["--no-line"], {}, False), ([], {"REDLOCK_LINE": "off"}, False):
            with self.subTest(words=words, environment=environment):
                result = self.redlock("nodes", "--acl", *words, env=clean_environment(**environment))
                for right in "'&redlock:q:*'", "+getex", "+publish", "+getrange":
                    self.assertEqual(right in result.stdout, lines)

    def test_name_of_the_user(self):
        """The name is that of the settings, in quotes if redis-cli needs them, or redlock."""
        for words, name in ([], "redlock"), (["--user", "jobs"], "jobs"), (["--user", 'a"b'], "'a\"b'"):
            with self.subTest(words=words):
                result = self.redlock("nodes", "--acl", *words, env=clean_environment())
                self.assertIn(f"\nACL SETUSER {name} on >PASSWORD ", result.stdout)

    def test_no_control_byte_is_printed(self):
        """A prefix with control bytes does not put them on the terminal."""
        result = self.redlock("nodes", "--acl", "--prefix", "\x1b[2J\x9b\x7f", env=clean_environment())
        self.assertRegex(result.stdout, r"\A[\n -~]*\Z")


class User(OwnServersCase):
    """The printed user, created on three servers."""

    def make_user(self, *flags, **more):
        """Creates the user that --acl prints, with the password `secret`, on all servers."""
        result = self.redlock("nodes", "--acl", *flags, env=self.environment(**more))
        self.assertCode(result, 0)
        line = re.search(r"^ACL SETUSER .*\n", result.stdout, re.M).group(0).replace(">PASSWORD", ">secret")
        for port in self.servers.ports:
            made = subprocess.run([CLIENT, "-p", str(port)], input=line, capture_output=True, text=True, check=False)
            self.assertEqual(made.stdout, "OK\n", line + made.stderr)

    def check_others(self, prefix, fence_key):
        """Checks that the user may not read or write keys without the prefix, except the fence record."""
        connection = self.servers.connect(0)
        self.assertEqual(connection.command("AUTH", "redlock", "secret"), b"OK")
        self.assertEqual(connection.command("PTTL", prefix + "name"), -2)
        self.assertEqual(connection.command("GETEX", prefix + "name{#q}"), None)
        for key in others_than(prefix) + others_than(fence_key):
            if key == fence_key or key.startswith(prefix):
                continue
            for words in (("GET", key), ("SET", key, "1"), ("PTTL", key), ("DEL", key), ("EVAL", "return 1", 1, key)):
                self.assertRegex(str(connection.command(*words)), "NOPERM|No permissions", (prefix, key))
        connection.close()

    def setUp(self):
        super().setUp()
        if not CLIENT:
            self.skipTest("no redis-cli and no valkey-cli")

    def test_prefixes_of_special_characters(self):
        """With each prefix, the user may lock names below it, and may use no other key."""
        for prefix in [*PREFIXES, "".join(PREFIXES)]:
            with self.subTest(prefix=prefix):
                self.make_user("--prefix", prefix)
                flags = ["--user", "redlock", "--prefix", prefix]
                environment = self.environment(REDLOCK_AUTH="secret")
                self.assertCode(self.redlock("run", *flags, "-n", "name", "--", "true", env=environment), 0)
                token = self.redlock("acquire", *flags, "-n", "name", env=environment).stdout.strip()
                self.assertCode(self.redlock("status", *flags, "name", env=environment), 0)
                self.assertCode(self.redlock("extend", *flags, "name", token, env=environment), 0)
                self.assertCode(self.redlock("release", *flags, "--strict", "name", token, env=environment), 0)
                self.check_others(prefix, prefix)

    def test_nodes_finds_no_missing_right(self):
        """`redlock nodes`, run as this user, finds no missing right."""
        prefix, fence_key = "".join(PREFIXES), "fence" + "".join(reversed(PREFIXES)) + "\\"
        more = {"REDLOCK_FENCE_KEY": fence_key, "REDLOCK_FENCE_RECORDS": "volatile"}
        self.make_user("--prefix", prefix, "--fence", **more)
        flags = ["--user", "redlock", "--prefix", prefix]
        environment = self.environment(REDLOCK_AUTH="secret", **more)
        self.assertCode(self.redlock("nodes", "--init", *flags, env=environment), 0)
        self.assertCode(self.redlock("run", *flags, "--fence", "-n", "name", "--", "true", env=environment), 0)
        result = self.redlock("nodes", "--fence", "--json", *flags, env=environment)
        self.assertCode(result, 0)
        seen = json.loads(result.stdout)
        self.assertEqual([node["line"] for node in seen["servers"]], ["on"] * 3)
        self.assertNotIn("no_line", [finding["code"] for finding in seen["findings"]])
        self.check_others(prefix, fence_key)


if __name__ == "__main__":
    tapcase.main()
