# SPDX-License-Identifier: MIT
"""`redlock top`: the screen and its keys, and what --once prints. ScreenCase runs the command on a terminal and reads
its screen; hold() acquires a lock as another holder; redlock() runs the command and returns its result."""

import json
import os
import re
import signal
import sys
import termios
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import tapcase  # noqa: E402
from screen import ScreenCase  # noqa: E402
from world import REDLOCK, Case, OwnServersCase, clean_environment, until  # noqa: E402

OWNER = r"[^ /]+/\d+/\d+"
KEYS = "^q quit  / filter  n t h v w sort"  # the last line, unless something else is there


class TopCase(ScreenCase):
    """A test case with `redlock top` on a terminal."""

    def top(self, *flags, **options):
        """Starts `redlock top` and waits until it has drawn the servers. Skips the case in a build without a screen."""
        self.spawn(REDLOCK, "top", *flags, **options)
        found = self.wait_line("^redlock top  |built without ncurses")[0]
        if "without" in found:
            self.wait_end()
            raise unittest.SkipTest("built without ncurses")
        self.wait_line("servers are eligible")
        self.terminal = os.open(os.readlink(f"/proc/{self.pid}/fd/0"), os.O_RDWR | os.O_NOCTTY)
        self.addCleanup(os.close, self.terminal)

    def names(self):
        """Returns the names of the locks on the screen, from top to bottom."""
        return [line.split()[0] for line in self.lines() if re.search(r" \d/5 ", line)]

    def wait_names(self, *names):
        """Waits until the screen has these locks in this order."""
        self.wait_screen(lambda lines: self.names() == list(names), f"the locks {names}")

    def quit(self, key="q", code=0):
        """Ends it with a key, and checks its exit code and that the terminal gets the ordinary screen back."""
        self.type(key)
        self.assertEqual(self.wait_end(), code)
        self.assertIn(b"\x1b[?1049h", self.raw)
        self.assertNotIn(b"\x1b[?1049h", self.raw.rpartition(b"\x1b[?1049l")[2])


class Top(TopCase):
    """The screen, with five servers."""

    def test_lock_appears_and_vanishes(self):
        """A lock is on the screen while it is held, with its holder, votes and time left."""
        self.top()
        self.wait_line("^0 locks, by name")
        self.wait_line(r"^redlock top  \d\d:\d\d:\d\d  5 of 5 servers are eligible, 3 required$")
        self.wait_screen(lambda lines: sum(bool(re.search(r"^127\.0\.0\.1:\d+ +eligible +0 +[\d.]+ [um]s", line)) for line in lines) == 5,
                         "five servers")  # fmt: skip
        token = self.hold_on_all("mine")
        self.wait_line(rf"^mine +held +5/5 +\d+s  {OWNER}$")
        self.wait_line("^1 lock, by name")
        self.wait_line(r"^127\.0\.0\.1:\d+ +eligible +1 ")
        self.redlock("release", "mine", token)
        self.wait_line("^0 locks, by name")
        self.wait_names()
        self.quit()

    def test_key_removed_on_one_server(self):
        """A key that is removed on one server is not counted there at the next look."""
        self.top()
        self.hold("mine")
        self.wait_screen(lambda lines: sum(bool(re.search(r"^127\.0\.0\.1:\d+ +eligible +1 ", line)) for line in lines) == 5,
                         "a key on five servers")  # fmt: skip
        self.assertEqual(self.servers.command(2, "DEL", "mine"), 1)
        self.wait_line(r"^mine +held +4/5 ")
        self.wait_line(rf"^127\.0\.0\.1:{self.servers.ports[2]} +eligible +0 ")
        self.wait_screen(lambda lines: sum(bool(re.search(r"^127\.0\.0\.1:\d+ +eligible +1 ", line)) for line in lines) == 4,
                         "a key on four servers")  # fmt: skip
        self.quit()

    def test_servers(self):
        """A server that does not reply is down, with the cause, and votes again later."""
        self.top(columns=120)
        self.servers.stop(3)
        self.wait_line(r"^127\.0\.0\.1:\d+ +down +0 +no reply")
        self.wait_line("  4 of 5 servers are eligible, 3 required$")
        self.servers.continue_all()
        self.wait_line("  5 of 5 servers are eligible, 3 required$")
        self.servers.stop(0, 1, 2)
        self.wait_line("  2 of 5 servers are eligible, 3 required: no quorum$")
        self.wait_line("^locks cannot be searched for")
        self.type("?")  # the keys work although no server replies
        self.wait_line("^Keys of redlock top")
        self.quit("qq")

    def test_break_after_confirmation(self):
        """b and y delete the key of the selected lock, b and another key do not."""
        token = self.hold("first").encode()
        self.hold("second")
        self.top()
        self.wait_names("first", "second")
        self.type("\x1bOBb")  # down, b
        self.wait_line(rf"^Press y to break second, held by {OWNER}; any other key: no$")
        self.type("n")
        self.wait_line("^not broken$")
        self.assertEqual(len(self.servers.values("second")), 5)
        self.type("b")
        self.wait_line("^Press y to break second")
        for server in 3, 4:  # they reply after the majority
            self.servers.command(server, "CLIENT", "PAUSE", 300, "WRITE")
        self.type("y")
        self.wait_line("^second: deleted on 5 of 5 servers$")
        self.wait_names("first")
        until(lambda: self.servers.values("second") == [], "no key of the broken lock")
        self.assertEqual(set(self.servers.values("first")), {token})
        self.type("x")
        self.wait_line(KEYS)
        self.quit()

    def test_break_spares_another_holder(self):
        """A lock that has got another holder since the question is not broken."""
        self.servers.command_all("SET", "x", "0" * 40 + "@web1/1/1", "PX", "25000")
        self.top()
        self.wait_line("^x +held +5/5 +[0-9]+s  web1/1/1$")
        self.type("b")
        self.wait_line("^Press y to break x, held by web1/1/1;")
        self.servers.command_all("SET", "x", "1" * 40 + "@web2/2/2", "PX", "25000")
        self.type("y")
        self.wait_line("^x was not broken: another client holds it now$")
        self.assertEqual(len(self.servers.values("x")), 5)
        self.quit()

    def test_sort_and_filter(self):
        """Keys sort the locks, in reverse order if pressed again, and a text filters them by name or holder."""
        for name, owner, ttl in ("a", "web3/1/1", 600000), ("b", "web1/1/1", 900000), ("c", "web2/1/1", 300000):
            self.servers.command_all("SET", name, "0" * 40 + "@" + owner, "PX", ttl)
        self.servers.command(4, "DEL", "b")
        self.top()
        self.wait_names("a", "b", "c")
        for key, order in ("t", "cab"), ("t", "bac"), ("h", "bca"), ("v", "bac"), ("n", "abc"), ("n", "cba"):
            self.type(key)
            self.wait_names(*order)
        self.wait_line(r"^3 locks, by name \(reverse\)$")
        self.type("/web1")
        self.wait_line("^filter: web1_")
        self.wait_names("b")
        self.type("\x7f2\r")
        self.wait_names("c")
        self.wait_line('^3 locks, 1 with "web2", by name')
        self.wait_line(KEYS)
        self.type("\x1b")
        self.wait_names("c", "b", "a")
        self.quit()

    def test_given_names(self):
        """Names of the command line are shown even if they are free, and no other ones."""
        self.hold("other")
        self.top("one", "two")
        self.wait_line("^one +free +0/5$")
        self.hold("two")
        self.wait_line(rf"^two +held +5/5 +\d+s  {OWNER}$")
        self.wait_line("^2 locks, by name$")
        self.quit()

    def test_sizes(self):
        """The screen fits 80 and 200 columns and a size that changes, and scrolls to the selected lock."""
        self.servers.command_all("SET", "x" * 300, "0" * 40 + "@" + "y" * 100 + "/1/1", "PX", "25000")
        for number in range(30):
            self.servers.command_all("SET", f"lock{number:02}", "0" * 40 + "@web1/1/1", "PX", "25000")
        self.top()
        self.wait_line("^31 locks, by name")
        self.wait_line("^lock00 ")
        self.assertFalse(any("x" * 10 in line for line in self.lines()))
        self.type("\x1bOF")  # end
        self.wait_line(r"^x{20,}\.\.\. +held +5/5 +\d+s  y+.*\.\.\.$")
        self.assertEqual(len(self.lines()), 24)
        self.assertRegex(self.lines()[23], KEYS)
        self.resize(200)
        self.wait_line(r"^x{60,}.* held +5/5 +\d+s  y{100}/1/1$")
        self.wait_line(r" +redis \d|valkey \d")
        self.resize(40, 14)
        self.wait_screen(lambda lines: len(lines) == 14 and re.search("^q quit", lines[13]), "14 lines")
        self.assertLessEqual(max(len(line) for line in self.lines()), 40)
        self.resize(20, 3)
        self.wait_screen(lambda lines: len(lines) <= 3 and lines[0].startswith("redlock top"), "3 lines")
        self.resize(80)
        self.wait_line("^31 locks, by name")
        self.quit()

    def test_unprintable_names_are_escaped(self):
        """Control characters in names do not reach the terminal, and wide characters stay aligned."""
        self.servers.command_all("SET", "a\x1b[31mb", "0" * 40 + "@web1/1/1", "PX", "25000")
        self.servers.command_all("SET", "日本", "0" * 40 + "@web1/1/1", "PX", "25000")
        self.top()
        self.wait_line(r"^a\\x1b\[31mb  held     5/5 ")
        self.assertNotIn(b"a\x1b[31mb", self.raw)
        self.wait_line(r"^日本 {8}held     5/5 ")  # the two characters take four columns
        self.quit()

    def test_signals_restore_the_terminal(self):
        """Each end restores the settings of the terminal and shows the ordinary screen: keys, signals, faults."""
        for number, code in (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGSEGV, -signal.SIGSEGV), (signal.SIGABRT, 134):
            with self.subTest(signal=number):
                self.top()
                drawing = termios.tcgetattr(self.terminal)
                self.assertFalse(drawing[3] & termios.ECHO)
                os.kill(self.pid, number)
                self.assertIn(self.wait_end(), (code, 1))  # 1: of the sanitizers, which handle faults themselves
                self.assertTrue(termios.tcgetattr(self.terminal)[3] & termios.ECHO)
                self.assertIn(b"\x1b[?1049l", self.raw)
        self.top()
        self.quit("\x03", 130)
        self.assertTrue(termios.tcgetattr(self.terminal)[3] & termios.ECHO)

    def test_job_control(self):
        """Ctrl-Z gives the terminal to the shell, fg takes it again; settings are those of before."""
        self.spawn_shell()
        self.type("stty -g\n")
        self.wait_screen(lambda lines: len(lines) > 1 and lines[-1] == "ready>", "the prompt after the settings")
        before = self.wait_line("^([0-9a-f]+:){4,}[0-9a-f:]+$")[0]
        self.type("redlock top\n")
        found = self.wait_line("^redlock top  |built without ncurses")[0]
        if "without" in found:
            self.skipTest("built without ncurses")
        self.wait_line(KEYS)
        self.type("\x1a")
        self.wait_line("Stopped +redlock top")
        self.type("clear; stty -g\n")
        self.wait_screen(lambda lines: before in lines, "the settings of before")
        self.type("clear; fg\n")
        self.wait_line(KEYS)
        self.type("q")
        self.type("clear; echo code=$?; stty -g\n")
        self.wait_line("^code=0$")
        self.wait_screen(lambda lines: before in lines, "the settings of before")
        self.type("redlock top &\n")  # it stops until it is in the foreground
        until(lambda: self.read(0.05) and any("Stopped" in line for line in self.lines()) or self.type("\n"), "a stopped job")
        self.type("clear; fg\n")
        self.wait_line(KEYS)
        self.type("q")
        self.type("clear; echo code=$?\n")
        self.wait_line("^code=0$")

    def test_unknown_terminal(self):
        """A terminal that is not known is refused with what to do."""
        self.spawn("/usr/bin/env", "TERM=no-such-terminal", REDLOCK, "top", columns=120)
        code = self.wait_end()
        if any("built without ncurses" in line for line in self.lines()):
            self.skipTest("built without ncurses")
        self.assertEqual(code, 78)
        self.wait_line('^redlock: top: unknown terminal type "no-such-terminal"; set TERM, or give --once$')


class Once(Case):
    """--once, with five servers."""

    def top(self, *flags, code=0, **options):
        """Runs `redlock top --once --json` and returns its object."""
        result = self.redlock("top", "--once", "--json", *flags, **options)
        self.assertCode(result, code)
        return json.loads(result.stdout)

    def scans(self, index):
        """Returns how many SCAN commands the server was sent since the last CONFIG RESETSTAT."""
        stats = self.servers.command(index, "INFO", "commandstats").decode()
        self.assertNotIn("cmdstat_keys", stats)
        return int((re.search(r"cmdstat_scan:calls=(\d+)", stats) or [0, "0"])[1])

    def test_text(self):
        """The text has a table of servers and one of locks."""
        self.hold("a")
        result = self.redlock("top", "--once")
        self.assertCode(result, 0)
        servers, locks = result.stdout.split("\n\n")
        self.assertRegex(servers, r"^5 of 5 servers are eligible, 3 required\nSERVER +STATE +LOCKS +RTT ")
        self.assertEqual(len(re.findall(r"^127\.0\.0\.1:\d+ +eligible +1 ", servers, re.MULTILINE)), 5)
        self.assertRegex(locks, rf"^1 lock\nLOCK  STATE  VOTES  LEFT  HOLDER\na     held     5/5   30s  {OWNER}\n$")

    def test_json(self):
        """The object has servers and locks, and says whether the list is complete."""
        self.hold("a")
        found = self.top()
        self.assertEqual(found["schema"], "redlock.top/1")
        self.assertIs(found["complete"], True)
        self.assertEqual([(server["state"], server["locks"]) for server in found["servers"]], [("eligible", 1)] * 5)
        (lock,) = found["locks"]
        self.assertEqual((lock["name"], lock["state"], lock["votes"], lock["configured"], lock["quorum"]), ("a", "held", 5, 5, 3))
        self.assertRegex(lock["owner"], OWNER)
        self.assertLessEqual(lock["ttl_ms"]["max"], 30000)
        self.assertEqual([lock["name"] for lock in self.top("b", "a")["locks"]], ["a", "b"])

    def test_search(self):
        """Patterns and the prefix select names. Keys that are no locks are left out, locks of other clients are not."""
        for name in "app/1", "app/2", "other":
            self.hold(name)
        self.servers.command_all("SET", "foreign", "no lock")
        self.servers.command_all("HSET", "hash", "a", "b")
        self.servers.command_all("SET", "redlock-py", "0123456789abcdef", "PX", "25000")
        self.servers.command_all("SET", "stuck", "0" * 40 + "@web1/1/1")
        names = [lock["name"] for lock in self.top()["locks"]]
        self.assertEqual(names, ["app/1", "app/2", "other", "redlock-py", "stuck"])
        self.assertEqual([lock["name"] for lock in self.top("--match", "app/?")["locks"]], ["app/1", "app/2"])
        self.assertEqual([lock["name"] for lock in self.top("--prefix", "app/")["locks"]], ["1", "2"])
        self.assertEqual(self.top("--prefix", "a*/")["locks"], [])
        self.assertTrue(next(lock for lock in self.top()["locks"] if lock["name"] == "stuck")["endless"])

    def test_search_is_bounded(self):
        """A majority is searched with SCAN, no other server, with a bounded COUNT; KEYS is never sent."""
        for number in range(300):
            self.servers.command_all("SET", f"foreign{number}", "x")
        self.hold("held")
        monitor = self.servers.connect(0)
        self.addCleanup(monitor.close)
        monitor.command("MONITOR")
        for flags, count, calls in ([], 1000, 1), (["--scan-rate", "300"], 30, 8):
            self.servers.command_all("CONFIG", "RESETSTAT")
            self.assertEqual([lock["name"] for lock in self.top(*flags)["locks"]], ["held"])
            scans = [self.scans(index) for index in range(5)]
            self.assertEqual(scans[3:], [0, 0])
            self.assertGreaterEqual(min(scans[:3]), calls)
            while b'"SCAN"' not in (line := monitor.reply()):
                pass
            self.assertIn(b'"COUNT" "%d"' % count, line)

    def test_lock_on_any_majority_is_found(self):
        """A lock that only three of the servers have is found, whichever they are."""
        for missing in (0, 1), (3, 4), (0, 4):
            self.servers.command_all("SET", "x", "0" * 40 + "@web1/1/1", "PX", "25000")
            for index in missing:
                self.servers.command(index, "DEL", "x")
            (lock,) = self.top()["locks"]
            self.assertEqual((lock["state"], lock["votes"]), ("held", 3))

    def test_servers_do_not_reply(self):
        """With two stopped servers others are searched. Without a quorum the exit code is 69, and the list incomplete."""
        self.hold("x")
        self.servers.stop(0, 1)
        found = self.top()
        self.assertEqual([server["state"] for server in found["servers"]], ["down"] * 2 + ["eligible"] * 3)
        self.assertEqual([(lock["name"], lock["votes"]) for lock in found["locks"]], [("x", 3)])
        self.servers.stop(2)
        found = self.top(code=69)
        self.assertIs(found["complete"], False)
        self.assertEqual([lock["state"] for lock in found["locks"]], ["unknown"])

    def test_user_without_the_right(self):
        """A user who may not SCAN gets the locks that are named, and otherwise 69 with the reason."""
        self.hold("x")
        acl = self.redlock("nodes", "--acl").stdout
        rights = re.search(r"ACL SETUSER \S+ (.*)", acl)[1].replace("'", "").split()
        rights = ["on", ">secret", *[word for word in rights if not word.startswith((">", "on", "reset"))]]
        self.servers.command_all("ACL", "SETUSER", "jobs", "reset", *rights)
        try:
            servers = ",".join(f"redis://jobs:s%65cret@127.0.0.1:{port}?fresh=1" for port in self.servers.ports)
            found = self.top("-s", servers, code=69)
            self.assertRegex(found["scan_error"], "^allow \\+scan, or name the locks; all 5 servers: NOPERM ")
            text = self.redlock("top", "--once", "-s", servers).stdout
            self.assertIn("\nlocks cannot be searched for: allow +scan, or name the locks; all 5 servers: NOPERM ", text)
            self.assertNotIn("0 locks", text)
            self.assertIs(found["complete"], False)
            self.assertEqual(len(self.top("-s", servers, "x")["locks"]), 1)
            self.servers.command_all("ACL", "SETUSER", "jobs", "+scan")
            self.assertEqual([lock["name"] for lock in self.top("-s", servers)["locks"]], ["x"])
            plain = self.environment(REDLOCK_AUTH="secret")
            self.assertEqual(len(self.top("--user", "jobs", env=plain)["locks"]), 1)
        finally:
            self.servers.command_all("ACL", "DELUSER", "jobs")

    def test_shards(self):
        """With several shards each lock and server has its shard."""
        parts = self.servers.list.split(",")
        servers = f"east={','.join(parts[:3])};west={parts[3]}"
        environment = self.environment(REDLOCK_SERVERS=servers)
        for number in range(8):
            self.assertCode(self.redlock("acquire", "-q", f"lock{number}", env=environment), 0)
        found = self.top(env=environment)
        self.assertEqual([server["shard"] for server in found["servers"]], ["east"] * 3 + ["west"])
        shards = {lock["name"]: (lock["shard"], lock["votes"]) for lock in found["locks"]}
        self.assertEqual(len(shards), 8)
        self.assertEqual(set(shards.values()), {("east", 3), ("west", 1)})
        text = self.redlock("top", "--once", env=environment).stdout
        self.assertIn("4 of 4 servers of 2 shards are eligible\n", text)
        self.assertRegex(text, r"LOCK +SHARD +STATE ")

    def test_usage(self):
        """What would be ignored is refused, and a screen needs a terminal."""
        for flags, message in (
            (["--once", "a", "--match", "b"], "NAME with --match: names are not searched for"),
            (["--once", "a", "--scan-rate", "5"], "NAME with --scan-rate: names are not searched for"),
            (["--once", ""], "the name of the lock is empty"),
            (["--scan-rate", "0"], "write a number from 1 to 1000000"),
            (["-i", "1ms"], "--interval below 100 ms"),
            ([], "give --once"),
        ):
            with self.subTest(flags=flags):
                result = self.redlock("top", *flags)
                self.assertCode(result, 64)
                self.assertIn(message, result.stderr)


class Quarantine(OwnServersCase):
    """Servers that were started a moment ago."""

    def test_quarantine(self):
        """Without ?fresh=1 the servers are in quarantine, with the time that is left. Locks are found all the same."""
        self.assertCode(self.redlock("acquire", "-n", "x"), 0)
        servers = ",".join(f"127.0.0.1:{port}" for port in self.servers.ports)
        result = self.redlock("top", "--once", "--max-ttl", "10m", "-s", servers, env=clean_environment())
        self.assertCode(result, 69)
        self.assertIn("0 of 3 servers are eligible, 2 required: no quorum\n", result.stdout)
        self.assertEqual(len(re.findall(r" quarantine (9m|10m)\d\ds .* restarted .* ago", result.stdout)), 3)
        self.assertRegex(result.stdout, "\nx ")


if __name__ == "__main__":
    tapcase.main()
