# SPDX-License-Identifier: MIT
"""Help texts, and arguments that are refused before any server is contacted. Needs no server. world.CommandCase gives
a directory, and no servers. redlock() runs the command and returns its result."""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import tapcase  # noqa: E402
from world import CommandCase, clean_environment  # noqa: E402

COMMANDS = "run acquire extend release status nodes break config sandbox watch".split()

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "options_table.c")


def option_table():
    """Returns (name, letter or "", commands) of each row of the command's option table."""
    with open(TABLE, encoding="utf-8") as file:
        text = file.read()
    groups = {}
    for name, value in re.findall(r"^#define (\w+) +\(([\w |]+)\)", text, re.M):
        groups[name] = value.split(" | ")

    def members(word):
        """Returns the commands that this word of the C table stands for: one, or those of a group."""
        return sum(map(members, groups[word]), []) if word in groups else [word[len("CMD_") :].lower()]

    for name, letter, commands in re.findall(r"^    \{\"([\w-]+)\", (0|'.'), \w+, \w+, ([\w |]+)\}", text, re.M):
        yield name, letter.strip("'0"), sum(map(members, commands.split(" | ")), [])


# arguments, exit code, what the message must name
BAD_INPUT = [
    (["frobnicate"], 64, "unknown command frobnicate"),
    (["rnu", "x"], 64, "did you mean run"),
    (["backup", "./backup.sh"], 64, "redlock run NAME -- CMD"),
    (["--frob"], 64, "unknown command --frob"),
    (["run"], 64, "give the name of a lock and a command"),
    (["run", "x"], 64, "no command for x"),
    (["run", "", "true"], 64, "the name of the lock is empty; use 1 to 512 bytes"),
    (["run", "n" * 513, "true"], 64, "too long; use 1 to 512 bytes"),
    (["run", "--grcae", "1s", "x", "true"], 64, "did you mean --grace"),
    (["run", "--tll=3s", "x", "true"], 64, "did you mean --ttl"),
    (["run", "-z", "x", "true"], 64, "unknown flag -z"),
    (["run", "--strict", "x", "true"], 64, "unknown flag --strict (a flag of release)"),
    (["run", "--password", "x", "true"], 64, "unknown flag --password"),
    (["release", "--yes", "x", "t"], 64, "a flag of break"),
    (["run", "-t"], 64, "-t needs a value"),
    (["run", "--keep=1", "x", "true"], 64, "takes no value"),
    (["run", "-t", "30x", "x", "true"], 64, "ttl 30x: not a duration; write 250ms"),
    (["run", "-t", "-1", "x", "true"], 64, "not a duration"),
    (["run", "-t", "", "x", "true"], 64, 'ttl ""'),
    (["run", "-t", "1e3", "x", "true"], 64, "not a duration"),
    (["run", "-t", "1.5ms", "x", "true"], 64, "not a duration"),
    (["run", "-t", "9999999999999999999999h", "x", "true"], 64, "not a duration"),
    (["run", "-t", "0", "x", "true"], 78, "ttl 0"),
    (["run", "-t", "24001h", "x", "true"], 64, "at most 1000 days"),
    (["run", "-w", "soon", "x", "true"], 64, "wait soon"),
    (["run", "--renew", "0", "x", "true"], 78, "flag --renew: renew 0: give an interval"),
    (["run", "-E", "256", "x", "true"], 64, "write a number from 0 to 255"),
    (["run", "-E", "-1", "x", "true"], 64, "write a number from 0 to 255"),
    (["run", "-E", "600", "x", "true"], 64, "write a number from 0 to 255"),
    (["run", "--signal", "NOPE", "x", "true"], 64, "no such signal"),
    (["run", "--on-loss", "panic", "x", "true"], 64, "write stop or warn"),
    (["run", "--status-fd", "99", "x", "true"], 64, "this descriptor is not open for writing"),
    (["run", "--min-hold", "1m", "x", "true"], 78, "min-hold 1m is above max_ttl 30s"),
    (["run", "--max-hold", "0", "x", "true"], 64, "--max-hold 0: the command would be stopped at once"),
    (["run", "--max-hold", "1s", "x", "true"], 78, "max-hold 1s is not longer than grace 5s"),
    (["run", "--min-hold", "20s", "--max-hold", "10s", "x", "true"], 78, "longer than max-hold"),
    (["run", "-t", "10s", "--no-renew", "--min-hold", "20s", "x", "true"], 78, "--no-renew"),
    (["run", "-c", "true", "x", "extra"], 64, "quote all of it"),
    (["run", "-n", "-w", "5", "x", "true"], 64, "-n and -w 5 contradict each other"),
    (["acquire", "--wait=5s", "--nonblock", "x"], 64, "-n and -w 5s contradict each other"),
    (["run", "--no-renew", "--renew", "3s", "x", "true"], 64, "--no-renew and --renew contradict each other"),
    (["run", "-q", "-v", "x", "true"], 64, "-q and -v contradict each other"),
    (["nodes", "--acl", "--init"], 64, "--acl and --init contradict each other"),
    (["nodes", "--acl", "--wait"], 64, "--acl and --wait contradict each other"),
    (["nodes", "--init", "--wait"], 64, "--init and --wait contradict each other"),
    (["nodes", "--acl", "--json"], 64, "--acl and --json contradict each other"),
    (["nodes", "-w", "5s"], 64, "-w needs --wait"),
    (["help", "foo"], 64, "unknown command foo"),
    (["help", "rnu"], 64, "did you mean run"),
    (["--help", "foo"], 64, "unknown command foo"),
    (["config", "-t", "1h"], 78, "ttl 1h is above max_ttl 30s"),
    (["config", "-t", "10s", "-k", "20s"], 78, "grace"),
    (["config", "-t", "10s", "--renew", "20s"], 78, "renew"),
    (["config", "--renew", "0"], 78, "flag --renew: renew 0: give an interval"),
    (["run", "--connect-timeout", "0", "x", "true"], 64, "out of range"),
    (["run", "-s", "", "x", "true"], 78, "no server address given"),
    (["run", "-s", "http://a", "x", "true"], 78, "unknown scheme"),
    (["run", "-s", "rediss://a", "x", "true"], 78, "TLS is not supported yet"),
    (["run", "-s", "a:99999", "x", "true"], 78, "port"),
    (["run", "-s", "a:1,b:2,a:1", "x", "true"], 78, "a:1"),
    (["run", "-s", "redis://who@a:1", "x", "true"], 78, "write user:password@host"),
    (["acquire"], 64, "give one name or more"),
    (["watch"], 64, "give one name or more"),
    (["watch", "-i", "5ms", "x"], 64, "at least 10 ms"),
    (["watch", "-i", "0", "x"], 64, "at least 10 ms"),
    (["watch", "-i", "often", "x"], 64, "not a duration"),
    (["acquire", "a", "b", "a"], 64, "a is named twice"),
    (["acquire", "a", ""], 64, "the name of the lock is empty"),
    (["acquire", "--fence", "a", "b"], 64, "--fence is for one lock"),
    (["acquire", *map(str, range(65))], 64, "more than 64 locks"),
    (["run", "a", "--also", "a", "true"], 64, "a is named twice"),
    (["run", "-s", "a:1", "a", "no-such-lock-or-command", "--", "true"], 127, "redlock run a -a no-such"),
    (["release", "a", "b", "b", "token"], 64, "b is named twice"),
    (["acquire", "-t", "9ms", "x"], 78, "ttl 9ms is below 10 ms"),
    (["extend", "x"], 64, "give NAME and TOKEN"),
    (["release", "x", ""], 64, "the token is empty"),
    (["release", "--token-file", "/nonexistent/t", "x"], 64, "No such file"),
    (["extend", "-t", "31s", "x", "t"], 78, "must be equal in all clients"),
    (["status"], 64, "give one name or more"),
    (["nodes", "x"], 64, "takes no operand"),
    (["break", "x"], 64, "--yes"),
    (["config", "x"], 64, "takes no operand"),
    (["sandbox", "-n", "0"], 64, "write a number from 1 to 31"),
    (["sandbox", "-n", "32"], 64, "write a number from 1 to 31"),
    (["sandbox", "no-such-command-here"], 127, "command not found"),
]

# Arguments and environment that are accepted, and that are refused with these words: both near a bound. An accepted
# `run` ends before it contacts a server, because its command does not exist.
BOUNDS = [
    # 8787 + 100 (one more try) + 1000 + 112 (drift) ms are less than 10 s.
    ("-t 10s -k 1s --node-timeout 100ms --renew 8787ms", "-t 10s -k 1s --node-timeout 100ms --renew 8788ms", "= 10s must be less"),
    ("-t 10s -k 1s --no-renew", "-t 10s -k 9888ms --no-renew", "grace 9888ms + drift 112ms = 10s must be less"),
    # The sum of the drift is rounded up: 100.01 + 2 + 10.001 ms.
    ("-t 10001ms -k 1s --no-renew", "-t 10001ms -k 10s --no-renew", "drift 113ms"),
    ("-k 5s --max-hold 5001ms", "-k 5s --max-hold 5s", "max-hold 5s is not longer than grace 5s"),
    ("-t 1s -k 0 --max-hold 251ms", "-t 1s -k 0 --max-hold 250ms", "is not longer than grace 250ms"),
    ("--min-hold 30s", "--min-hold 30001ms", "is above max_ttl 30s"),
    ("-t 9s --no-renew --min-hold 9s", "-t 9s --no-renew --min-hold 9001ms", "is above ttl 9s"),
    ("--min-hold 10s --max-hold 10s", "--min-hold 10001ms --max-hold 10s", "is longer than max-hold 10s"),
    ("-t 30s", "-t 30001ms", "is above max_ttl 30s"),
    ("--connect-timeout 1ms", "--connect-timeout 0ms", "out of range; write 1ms to 1m"),
    ("--connect-timeout 1m", "--connect-timeout 60001ms", "out of range; write 1ms to 1m"),
    ("-w 24000h", "-w 86400000.001s", "not a duration"),
    ("REDLOCK_DRIFT=50%", "REDLOCK_DRIFT=50.0001%", "not a rate of clocks"),
    ("REDLOCK_DRIFT=500000ppm", "REDLOCK_DRIFT=500001ppm", "not a rate of clocks"),
    ("REDLOCK_HEARTBEAT=10ms", "REDLOCK_HEARTBEAT=9ms", "out of range; write 10ms to 1m"),
    ("REDLOCK_CLOCK_SLACK=1m", "REDLOCK_CLOCK_SLACK=60001ms", "out of range; write 0ms to 1m"),
]


class Bounds(CommandCase):
    """The least and greatest values of the numeric settings, from the table BOUNDS."""

    def run_with(self, words):
        """Runs `redlock run` with these flags, and variables written as NAME=VALUE, and a command that does not
        exist: exit code 127 shows that all settings were accepted."""
        flags = [word for word in words.split() if "=" not in word]
        environment = dict(word.split("=") for word in words.split() if "=" in word)
        # With some of these settings there is no time for an extension by default.
        flags += ["--no-renew", "-k", "1s"] if environment else []
        return self.redlock("run", *flags, "-s", "a:1", "x", "no-such-command-here", env=clean_environment(**environment))

    def test_bounds(self):
        """A value within the bound is accepted, one beyond it is refused with the words of the row."""
        for inside, outside, words in BOUNDS:
            with self.subTest(inside=inside):
                self.assertCode(self.run_with(inside), 127)
            with self.subTest(outside=outside):
                result = self.run_with(outside)
                self.assertIn(result.returncode, (64, 78))
                self.assertIn(words, result.stderr)

    def test_lengths(self):
        """Limits of a line of a settings file, of the first line of a password file, and of a name."""
        for length, code in (190, 0), (191, 78):
            with self.subTest(line=length):
                line = "prefix = "
                path = self.path("conf", f"[redlock]\n{line}{'p' * (length - len(line))}\n")
                result = self.redlock("config", "-f", path, env=clean_environment())
                self.assertCode(result, code)
        for length, code in (1024, 0), (1025, 78):
            with self.subTest(password=length):
                path = self.path("pass", "p" * length + "\r\n")
                os.chmod(path, 0o600)
                self.assertCode(self.redlock("config", "--pass-file", path, env=clean_environment()), code)
        for length, words in (512, "command not found"), (513, "use 1 to 512 bytes"):
            with self.subTest(name=length):
                result = self.redlock("run", "-s", "a:1", "n" * length, "no-such-command-here", env=clean_environment())
                self.assertIn(words, result.stderr)


class Help(CommandCase):
    """Help texts of all commands."""

    def test_no_arguments_show_three_examples(self):
        """Without arguments, redlock shows how to begin."""
        result = self.redlock(env=clean_environment())
        self.assertCode(result, 0)
        for word in "redlock sandbox", "redlock run", "redlock status", "REDLOCK_SERVERS":
            self.assertIn(word, result.stdout)

    def test_every_help_fits_a_screen_and_has_an_example(self):
        """Each help has at most 24 lines of 80 characters, an example and the exit codes."""
        for command in COMMANDS:
            with self.subTest(command=command):
                result = self.redlock(command, "--help", env=clean_environment())
                self.assertCode(result, 0)
                lines = result.stdout.splitlines()
                self.assertLessEqual(len(lines), 24)
                self.assertLessEqual(max(len(line) for line in lines), 80)
                self.assertIn("Example: ", result.stdout)
                self.assertIn("Exit: ", result.stdout)
                self.assertEqual(self.redlock("help", command, env=clean_environment()).stdout, result.stdout)

    def test_overview_names_every_command(self):
        """`redlock --help` names each command."""
        result = self.redlock("--help", env=clean_environment())
        self.assertLessEqual(len(result.stdout.splitlines()), 24)
        for command in COMMANDS:
            self.assertIn(f"\n  {command} ", result.stdout)

    def test_version(self):
        """`redlock --version` names the versions of the libraries, too."""
        result = self.redlock("--version", env=clean_environment())
        self.assertRegex(result.stdout, r"^redlock \d+\.\d+\.\d+ \(hiredis \d\S*, libsodium \d\S*, jansson \d\S*\)\n$")

    def test_every_flag_is_in_its_help(self):
        """Every option of the table is in the help, by its letter if it has one. Two are left out: --help, and
        a time limit that has no letter."""
        flags = list(option_table())
        self.assertGreater(len(flags), 35)
        for command in COMMANDS:
            words = re.findall(r"(?<![\w-])--?[\w-]+", self.redlock(command, "--help", env=clean_environment()).stdout)
            for name, letter, commands in flags:
                if command in commands and name != "help" and (letter or name != "timeout"):
                    with self.subTest(command=command, flag=name):
                        self.assertIn(f"-{letter}" if letter else f"--{name}", words)


class BadInput(CommandCase):
    """Command lines that are refused, most from the table BAD_INPUT. Nothing listens at the servers' addresses."""

    def test_refusal_names_value_source_and_advice(self):
        """Each row ends with its exit code and its message."""
        for args, code, message in BAD_INPUT:
            with self.subTest(args=" ".join(args)[:60]):
                result = self.redlock(*args, env=clean_environment(REDLOCK_SERVERS="127.0.0.1:1"))
                self.assertCode(result, code)
                self.assertIn(message, result.stderr)
                self.assertTrue(result.stderr.startswith("redlock: "))

    def test_flags_that_only_look_contradictory_are_accepted(self):
        """-n together with -w 0 is accepted; so is a short TTL where no command has to be stopped."""
        for args in (["acquire", "-n", "-w", "0s", "x"], ["acquire", "-n", "x"]):
            result = self.redlock(*args, env=clean_environment(REDLOCK_SERVERS="127.0.0.1:1"))
            self.assertCode(result, 69)
        result = self.redlock("config", "-t", "20ms", env=clean_environment())  # enough for `acquire`
        self.assertCode(result, 0)

    def test_quiet_hides_no_error(self):
        """-q does not hide the message that servers cannot be reached."""
        environment = clean_environment(REDLOCK_SERVERS="127.0.0.1:1,127.0.0.1:2,127.0.0.1:3")
        token = "0" * 40
        for args, words in (
            (["run", "-q", "-n", "x", "--", "true"], "x: not acquired: no quorum: 0 of 3 servers granted the lock, 2 required"),
            (["acquire", "-q", "-n", "x"], "x: not acquired: no quorum: 0 of 3 servers granted the lock, 2 required"),
            (["run", "-q", "-n", "-E", "69", "x", "--", "true"], "x: not acquired: no quorum: "),
            (["extend", "-q", "x", token], "x: not extended: no quorum: 0 of 3 servers extended the lock, 2 required"),
            (["release", "-q", "x", token], "x: not released: no quorum: 0 of 3 servers released the lock, 2 required"),
            (["break", "-q", "--yes", "x"], "x: no quorum: 0 of 3 servers replied, 2 required"),
        ):
            with self.subTest(args=args):
                result = self.redlock(*args, env=environment)
                self.assertCode(result, 69)
                self.assertIn(words, result.stderr)

    def test_no_servers(self):
        """Without servers, the message says how to name them."""
        result = self.redlock("run", "x", "true", env=clean_environment())
        self.assertCode(result, 78)
        self.assertIn("REDLOCK_SERVERS", result.stderr)
        self.assertIn("redlock sandbox", result.stderr)

    def test_accepted_durations(self):
        """A refusal shows how a duration was read."""
        for text, shown in ("31", "31s"), ("30001ms", "30001ms"), ("31.5", "31500ms"), (".52m", "31200ms"), ("1h", "1h"):
            result = self.redlock("acquire", "-t", text, "x", env=clean_environment(REDLOCK_SERVERS="127.0.0.1:1"))
            self.assertCode(result, 78)
            self.assertIn(f"ttl {shown} is above max_ttl 30s", result.stderr)

    def test_control_bytes_do_not_reach_the_terminal(self):
        """Control bytes of an argument are escaped in the message."""
        for byte in "\x1b", "\n", "\r", "\x7f", "\x9b", "\x85":
            with self.subTest(byte=byte):
                result = self.redlock("run", f"a{byte}[2Jb", env=clean_environment())
                self.assertCode(result, 64)
                self.assertNotIn(byte, result.stderr[:-1])
                self.assertRegex(result.stderr, r"^redlock: run: no command for a(\\x[0-9a-f]{2}){1,2}\[2Jb")


if __name__ == "__main__":
    tapcase.main()
