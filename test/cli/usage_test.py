# SPDX-License-Identifier: MIT
"""Help texts, and arguments that are refused before any server is contacted. Needs no server. world.CommandCase gives
a directory, and no servers. redlock() runs the command and returns its result."""

import os
import re
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(FOLDER, "..", "lib"))
sys.path.insert(0, os.path.join(FOLDER, "..", "..", "tools", "manual"))

import model  # noqa: E402 (in tools/manual)
import table  # noqa: E402
import tapcase  # noqa: E402
from world import CommandCase, clean_environment  # noqa: E402

COMMANDS = [command.name for command in table.COMMANDS]

# arguments, exit code, what the message must name
BAD_INPUT = [
    (["frobnicate"], 64, "unknown command frobnicate"),
    (["rnu", "x"], 64, "did you mean run"),
    (["backup", "./backup.sh"], 64, "redlock run NAME -- CMD"),
    (["--frob"], 64, "unknown command --frob"),
    (["run"], 64, "no name and no command; write: redlock run NAME -- CMD"),
    (["run", "x"], 64, "no command for x"),
    (["run", "", "true"], 64, "the name of the lock is empty; use 1 to 512 bytes"),
    (["run", "n" * 513, "true"], 64, "too long; use 1 to 512 bytes"),
    (["run", "n{#q}", "true"], 78, "'n{#q}' is the key of a line on the servers"),
    (["run", "-a", "n{#q}", "x", "true"], 78, "choose another name"),
    (["run", "--permits", "2", "n{#q}", "true"], 78, "choose another name"),
    (["acquire", "n{#q}"], 78, "choose another name"),
    (["release", "n{#q}", "t"], 78, "choose another name"),
    (["run", "--grcae", "1s", "x", "true"], 64, "did you mean --grace"),
    (["run", "--tll=3s", "x", "true"], 64, "did you mean --ttl"),
    (["run", "-z", "x", "true"], 64, "unknown option -z"),
    (["run", "--tls", "x", "true"], 64, "unknown option --tls; to connect with TLS, write rediss:// in the addresses"),
    (["run", "--strict", "x", "true"], 64, "unknown option --strict (an option of release)"),
    (["run", "--password", "x", "true"], 64, "unknown option --password; the arguments of a process are public"),
    (["nodes", "--passwd=x"], 64, "unknown option --passwd; the arguments of a process are public, so give a file (--pass-file FILE)"),
    (["version"], 64, "write: redlock --version"),
    (["release", "--yes", "x", "t"], 64, "(an option of break)"),
    (["run", "-t"], 64, "-t needs a value"),
    (["run", "--keep=1", "x", "true"], 64, "takes no value"),
    (["run", "-t", "30x", "x", "true"], 64, "option -t 30x: not a duration; write 250ms"),
    (["run", "-t", "-1", "x", "true"], 64, "not a duration"),
    (["run", "-t", "", "x", "true"], 64, 'option -t ""'),
    (["run", "-t", "1e3", "x", "true"], 64, "not a duration"),
    (["run", "-t", "1.5ms", "x", "true"], 64, "not a duration"),
    (["run", "-t", "9999999999999999999999h", "x", "true"], 64, "not a duration"),
    (["run", "-t", "0", "x", "true"], 78, "ttl 0"),
    (["run", "-t", "24001h", "x", "true"], 64, "at most 1000 days"),
    (["run", "-w", "soon", "x", "true"], 64, "option -w soon: not a duration"),
    (["run", "--renew", "0", "x", "true"], 78, "option --renew: renew 0 is no interval; give one"),
    (["run", "-E", "256", "x", "true"], 64, "out of range; write a number from 0 to 255"),
    (["run", "-E", "-1", "x", "true"], 64, "not a number; write a number from 0 to 255"),
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
    (["help", "foo"], 64, "unknown command foo"),
    (["help", "rnu"], 64, "did you mean run"),
    (["--help", "foo"], 64, "unknown command foo"),
    (["config", "-t", "1h"], 78, "ttl 1h is above max_ttl 30s"),
    (["config", "-t", "10s", "-k", "20s"], 78, "grace"),
    (["config", "-t", "10s", "--renew", "20s"], 78, "renew"),
    (["config", "--renew", "0"], 78, "option --renew: renew 0 is no interval; give one"),
    (["run", "--connect-timeout", "0", "x", "true"], 64, "out of range"),
    (["run", "-s", "", "x", "true"], 78, "no server address given"),
    (["run", "-s", "http://a", "x", "true"], 78, "unknown scheme"),
    (["run", "--tls-verify", "no", "x", "true"], 64, "--tls-verify no: unknown; write full, chain or none"),
    (["run", "--tls-verify", "chain", "x", "true"], 78, "--tls-verify chain: needs tls-cacert"),
    (["run", "--tls-verify", "none", "--tls-cacert", "f", "x", "true"], 78, "tls-cacert has no effect; leave one of them out"),
    (["run", "--tls-key", "f", "x", "true"], 78, "--tls-key f: a private key without a certificate; set tls-cert"),
    (["run", "--tls-cacert", "", "x", "true"], 78, '--tls-cacert "": empty; give a value'),
    (["run", "-s", "a:99999", "x", "true"], 78, "port"),
    (["run", "-s", "a:1,b:2,a:1", "x", "true"], 78, "a:1"),
    (["run", "-s", "redis://who@a:1", "x", "true"], 78, "write user:password@host"),
    (["acquire"], 64, "no name; write: redlock"),
    (["watch"], 64, "no name; write: redlock"),
    (["watch", "-i", "5ms", "x"], 64, "too short, because each inspection"),
    (["watch", "-i", "0", "x"], 64, "too short, because each inspection"),
    (["watch", "-i", "often", "x"], 64, "not a duration"),
    (["acquire", "a", "b", "a"], 64, "a is named twice"),
    (["acquire", "a", ""], 64, "the name of the lock is empty"),
    (["acquire", "--fence", "a", "b"], 64, "--fence with several names"),
    (["acquire", *map(str, range(65))], 64, "more than 64 names"),
    (["run", "a", "--also", "a", "true"], 64, "a is named twice"),
    (["run", "-s", "a:1", "a", "no-such-lock-or-command", "--", "true"], 127, "redlock run a -a no-such"),
    (["release", "a", "b", "b", "token"], 64, "b is named twice"),
    (["acquire", "-t", "9ms", "x"], 78, "ttl 9ms is below 10 ms"),
    (["extend", "x"], 64, "no token; write: redlock extend NAME"),
    (["release", "x", ""], 64, "the token is empty"),
    (["release", "--token-file", "/nonexistent/t", "x"], 64, "No such file"),
    (["extend", "-t", "31s", "x", "t"], 78, "must be equal in all clients"),
    (["extend"], 64, "no name; write: redlock extend"),
    (["release", "--token-file", "/dev/null"], 64, "no name; write: redlock release"),
    (["break"], 64, "no name; write: redlock break --yes NAME"),
    (["break", "--yes", "a", "b"], 64, "more than one name"),
    (["acquire", "--permits", "2", "a", "b"], 64, "--permits with several names"),
    (["run", "--permits", "2", "-a", "b", "a", "true"], 64, "--permits with several names"),
    (["status"], 64, "no name; write: redlock"),
    (["nodes", "x"], 64, "unexpected word x"),
    (["break", "x"], 64, "--yes"),
    (["config", "x"], 64, "unexpected word x"),
    (["sandbox", "-n", "0"], 64, "write a number from 1 to 31"),
    (["sandbox", "-n", "32"], 64, "write a number from 1 to 31"),
    (["sandbox", "no-such-command-here"], 127, "command not found"),
]

# Each refusal ends in what to do: after a semicolon, or as a question.
ADVICE = r"; |did you mean|must be"

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
    ("REDLOCK_LINE=off", "REDLOCK_LINE=no", "unknown; write on or off"),
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
        """Limits of the first line of a password file, and of a name."""
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

    def help_of(self, *words):
        """Returns the lines of a help text; none is longer than the screen is wide."""
        result = self.redlock(*words, env=clean_environment())
        self.assertCode(result, 0)
        lines = result.stdout.splitlines()
        self.assertLessEqual(max(len(line) for line in lines), 80)
        return lines

    def test_every_card_fits_a_screen_and_has_an_example(self):
        """Each card has at most 24 lines of 80 characters, an example, the exit codes, and where to read more."""
        for command in COMMANDS:
            with self.subTest(command=command):
                lines = self.help_of(command, "-h")
                self.assertLessEqual(len(lines), 24)
                for start in f"Usage: redlock {command}", "Exit: ", "Example: redlock", f"More: redlock {command} --help":
                    if start == "Example: redlock" and command == "acquire":
                        start = "Example: token=$(redlock acquire"
                    self.assertTrue([line for line in lines if line.startswith(start)], start)

    def test_card_has_each_option(self):
        """The card has the options of the table, each by its shortest name, and no others."""
        for command in COMMANDS:
            with self.subTest(command=command):
                lines = [line for line in self.help_of(command, "-h") if line.startswith("  ")]
                shown = re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", "\n".join(lines))
                for option in model.options_of(table, command):
                    self.assertIn(option.spellings[0], shown)
                known = {name for option in model.options_of(table, command) for name in option.spellings}
                self.assertLessEqual(set(shown), known)

    def test_arguments_on_cards_are_in_capitals(self):
        """An argument on a card is a word in capitals, or the list of the words that the option accepts."""
        for command in COMMANDS:
            for option in model.options_of(table, command):
                with self.subTest(command=command, option=option.name):
                    self.assertRegex(option.short_argument, r"^([A-Z]*|[a-z]+(\|[a-z]+)+)$")

    def test_help_has_a_line_for_each_option(self):
        """`--help` begins a line with each option, in both forms and with its argument, below the heading of its group."""
        for command in COMMANDS:
            lines = self.help_of(command, "--help")
            for option in model.options_of(table, command):
                with self.subTest(command=command, option=option.name):
                    names = f"-{option.letter}, --{option.name}" if option.letter else f"    --{option.name}"
                    start = f"  {names} {option.short_argument}".rstrip()
                    found = [at for at, line in enumerate(lines) if re.match(re.escape(start) + r"(  |$)", line)]
                    self.assertEqual(len(found), 1, start)
                    headings = [line for line in lines[: found[0]] if re.match(r"[A-Z].*:$", line)]
                    self.assertEqual(headings[-1], f"{table.GROUPS[option.group]}:")
                    text = " ".join(line.strip() for line in lines[found[0] :]).replace("  ", " ")
                    if option.default:
                        self.assertIn(f"Default: {option.default}.", text)
            self.assertEqual(self.help_of("help", command), lines)

    def test_overview_names_every_command(self):
        """`redlock --help` names each command, on one screen; `-h` and `help` are the same."""
        lines = self.help_of("--help")
        self.assertLessEqual(len(lines), 24)
        for command in COMMANDS:
            self.assertIn(f"\n  {command} ", "\n".join(lines))
        self.assertEqual(self.help_of("-h"), lines)
        self.assertEqual(self.help_of("help"), lines)

    def test_version(self):
        """`redlock --version` names the versions of the libraries, too."""
        result = self.redlock("--version", env=clean_environment())
        self.assertRegex(result.stdout, r"^redlock \d+\.\d+\.\d+ \(hiredis \d\S*, libsodium \d\S*, (?:openssl \d\S*|without TLS), jansson \d\S*\)\n$")


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
                self.assertRegex(result.stderr.splitlines()[-1], ADVICE)

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
            (["release", "-q", "x", token], "x: not released: no quorum: 0 of 3 servers released the lock or do not have it, 2 required"),
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
        for text, shown in ("31", "31s"), ("30001ms", "30001ms"), ("31.5", "31500ms"), (".52m", "31200ms"), ("1h", "1h"), ("1d", "1d"), ("1.5d", "36h"):
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
