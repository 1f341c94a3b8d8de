# SPDX-License-Identifier: MIT
"""R09 to R15 of the problems that users of other tools reported: extensions, tokens, status and events. world.Case
starts servers for the class, five unless `count` differs, and empties them before each test. redlock() runs the
command and returns its result; start() only starts it; start_with_events() starts `run` and records its events;
hold() acquires a lock as another holder; until() waits for a condition."""

import json
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import tapcase  # noqa: E402
from world import REDLOCK, SLOW, Case, runs, seconds_until_gone, until  # noqa: E402

PRINT_PID_AND_SLEEP = "echo $$; exec sleep 1000"


class R09(Case):
    """Lost connections are opened again, for extensions and for the release."""

    def kill_connections(self):
        """Ends all clients' connections on all servers."""
        for index in range(len(self.servers.ports)):
            connection = self.servers.connect(index)
            connection.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            connection.close()

    def test_release_after_lost_connections(self):
        """A lock is released although all connections were cut."""
        process = self.start("run", "-t", "20s", "r09", "--", "sh", "-c", PRINT_PID_AND_SLEEP)
        process.stdout.readline()
        self.kill_connections()
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(10 * SLOW), 128 + signal.SIGTERM)
        until(lambda: self.servers.keys() == set(), "no key on any server")

    def test_renewal_after_lost_connections(self):
        """A lock is extended although all connections were cut."""
        process, events = self.start_with_events("-t", "6s", "r09", "--", "sh", "-c", PRINT_PID_AND_SLEEP)
        pid = int(process.stdout.readline())
        self.kill_connections()
        self.wait_event(events, "extended")
        self.assertTrue(runs(pid))


class R10(Case):
    """The help texts describe for how long a lock is held."""

    def test_help_says_what_ends_the_hold(self):
        """The help of `run` and `acquire` says when the lock ends."""
        run = " ".join(self.redlock("run", "--help").stdout.split())
        self.assertIn("extended until CMD ends, then released", run)
        acquire = " ".join(self.redlock("acquire", "--help").stdout.split())
        self.assertIn("it expires after its TTL, or ends with redlock release NAME TOKEN", acquire)


class R11(Case):
    """The reaction to a loss can be chosen, and is reported in events."""

    def flush_majority(self):
        """Makes a majority of servers lose the key."""
        for index in range(3):
            self.servers.command(index, "FLUSHALL")

    def test_warn_does_not_stop_the_command(self):
        """With --on-loss warn, the command continues after a loss."""
        process, events = self.start_with_events(
            "-t", "1500ms", "--on-loss", "warn", "r11", "--", "sh", "-c", PRINT_PID_AND_SLEEP
        )
        pid = int(process.stdout.readline())
        self.flush_majority()
        self.wait_event(events, "lost")
        self.wait_error("the command runs on without it")
        self.assertTrue(runs(pid))
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(10 * SLOW), 128 + signal.SIGTERM)
        self.assertNotIn("stopping", [event["event"] for event in self.events(events)])

    def test_default_stops_the_command_and_reports_events(self):
        """By default a loss stops the command and is reported as events."""
        process, events = self.start_with_events("-t", "2s", "r11", "--", "sh", "-c", PRINT_PID_AND_SLEEP)
        process.stdout.readline()
        self.flush_majority()
        self.assertEqual(process.wait(10 * SLOW), 124)
        names = [event["event"] for event in self.events(events)]
        for name in ("acquired", "child_started", "extend_failed", "stopping", "child_exited"):
            self.assertIn(name, names)
        self.assertEqual(self.wait_event(events, "stopping")["reason"], "lock_loss")

    def test_preserved_status(self):
        """With --preserve-status, redlock exits with the code of the command that it has stopped."""
        process = self.start(
            "run", "-t", "2s", "--preserve-status", "r11", "--", "sh", "-c",
            "trap 'exit 9' TERM; echo $$; while :; do sleep 0.01; done",
        )  # fmt: skip
        process.stdout.readline()
        self.servers.stop(0, 1, 2)
        self.assertEqual(process.wait(10 * SLOW), 9)


class R12(Case):
    """A lock can be held over several processes with its token."""

    def test_acquire_extend_release(self):
        """`acquire` prints a token with which `extend` and `release` work."""
        token = self.hold("r12", "15s")
        until(lambda: self.servers.values("r12") == [token.encode()] * len(self.servers.ports), "the key on all servers")
        result = self.redlock("extend", "-t", "30s", "r12", token)
        self.assertCode(result, 0)
        self.assertGreater(min(self.servers.command_all("PTTL", "r12")[:3]), 0)
        until(
            lambda: sum(ttl > 15000 for ttl in self.servers.command_all("PTTL", "r12")) >= 3,
            "a longer TTL on a majority",
        )
        self.assertCode(self.redlock("release", "r12", token), 0)
        until(lambda: self.servers.keys() == set(), "no key on any server")

    def test_wrong_token_changes_nothing(self):
        """A wrong token changes no key: `extend` and `release --strict` exit with 1, `release` with 0 and a message."""
        token = self.hold("r12")
        other = "0" * 40
        result = self.redlock("extend", "r12", other)
        self.assertCode(result, 1)
        result = self.redlock("release", "r12", other)
        self.assertCode(result, 0)
        self.assertIn("was not held with this token", result.stderr)
        self.assertCode(self.redlock("release", "--strict", "r12", other), 1)
        self.assertEqual(set(self.servers.values("r12")), {token.encode()})

    def test_token_file(self):
        """`extend` and `release` read the token from a file."""
        path = self.path("token", self.hold("r12") + "\n")
        self.assertCode(self.redlock("extend", "--token-file", path, "r12"), 0)
        self.assertCode(self.redlock("release", "r12", "--token-file", path), 0)
        until(lambda: self.servers.keys() == set(), "no key on any server")

    def test_unwritable_token_is_released(self):
        """If the token cannot be written, the lock is released."""
        with open("/dev/full", "w", encoding="ascii") as full:
            result = self.redlock_to(full)
        self.assertEqual(result, 74)
        until(lambda: self.servers.keys() == set(), "no key on any server")

    def redlock_to(self, file):
        """Runs the command with this file as its stdout."""
        return subprocess.run(
            [REDLOCK, "acquire", "r12"],
            stdout=file,
            stderr=subprocess.DEVNULL,
            env=self.environment(),
            timeout=60 * SLOW,
            check=False,
        ).returncode


class R13(Case):
    """`redlock status` shows the holder, and `redlock break --yes` deletes the lock of a holder that has crashed."""

    def test_status(self):
        """`status` prints the holder and the time left, and exits with 1 if a name is free."""
        self.assertCode(self.redlock("status", "r13"), 1)
        process = self.start("run", "r13", "--", "sh", "-c", "echo $REDLOCK_OWNER; exec sleep 1000")
        owner = process.stdout.readline().strip()
        result = self.redlock("status", "r13")
        self.assertCode(result, 0)
        label, _, start = owner.rpartition("/")
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(int(start)))
        self.assertRegex(result.stdout, rf"^r13: held by {label} on \d of 5 servers, expires in (\d+ to )?\d+ s, "
                         rf"held since {since} UTC or later\n(  127\.0\.0\.1:\d+ +held +held, expires in \d+ s\n)+")  # fmt: skip
        result = self.redlock("status", "r13", "free")
        self.assertCode(result, 1)

    def test_status_warns_of_keys_that_do_not_expire(self):
        """Keys that live longer than max_ttl, or never expire, give a warning."""
        self.servers.command_all("SET", "r13", "x", "PX", "3600000")
        result = self.redlock("status", "r13")
        self.assertCode(result, 0)
        self.assertIn("warning: r13: expires later than max_ttl 30s allows: a server's clock was set back", result.stderr)
        self.assertEqual(self.redlock("status", "--max-ttl", "2h", "r13").stderr, "")
        self.servers.command_all("PERSIST", "r13")
        self.assertIn("warning: r13: never expires on ", self.redlock("status", "r13").stderr)

    def test_status_without_a_majority_is_unknown(self):
        """Without a majority, `status` exits with 3."""
        self.servers.stop(0, 1, 2)
        result = self.redlock("status", "r13")
        self.assertCode(result, 3)
        self.assertIn("2 of 5 servers replied", result.stdout)

    def test_break(self):
        """`break` needs --yes, and then deletes the keys of another holder."""
        self.hold("r13")
        result = self.redlock("break", "r13")
        self.assertCode(result, 64)
        self.assertIn("--yes", result.stderr)
        self.assertEqual(len(self.servers.values("r13")), 5)
        result = self.redlock("break", "--yes", "r13")
        self.assertCode(result, 0)
        self.assertRegex(result.stdout, r"(?s)r13: held by \S+ on . of 5 servers.*deleted on")
        until(lambda: self.servers.keys() == set(), "no key on any server")
        self.assertCode(self.redlock("break", "--yes", "r13"), 1)

    def broken(self):
        """Runs `break` and returns what it prints after the holder."""
        result = self.redlock("break", "--yes", "r13")
        self.assertCode(result, 0)
        return result.stdout[result.stdout.rindex("r13: deleted on "):]

    def test_break_says_of_how_many_servers(self):
        """`break` waits for the servers that reply after the majority, and names those without the key."""
        self.hold("r13")
        until(lambda: len(self.servers.values("r13")) == 5, "the key on all servers")
        self.assertEqual(self.broken(), "r13: deleted on 5 of 5 servers\n")
        self.hold("r13")
        until(lambda: len(self.servers.values("r13")) == 5, "the key on all servers")
        self.servers.command(1, "DEL", "r13")
        self.assertRegex(self.broken(), rf"^r13: deleted on 4 of 5 servers\n"
                         rf"  127\.0\.0\.1:{self.servers.ports[1]} +free +no key\n$")  # fmt: skip

    def test_break_names_a_server_that_was_not_reached(self):
        """The line of a server that does not reply says why."""
        self.hold("r13")
        until(lambda: len(self.servers.values("r13")) == 5, "the key on all servers")
        self.servers.stop(2)
        self.assertRegex(self.broken(), rf"^r13: deleted on 4 of 5 servers\n"
                         rf"  127\.0\.0\.1:{self.servers.ports[2]} +error +\S.*: its key, if any, expires by itself\n$")  # fmt: skip

    def test_release_counts_a_server_that_has_confirmed_once(self):
        """A release that is repeated because a majority refuses finds no key on the servers of the first request."""
        token = self.hold("r13")
        until(lambda: len(self.servers.values("r13")) == 5, "the key on all servers")
        for server in range(3):
            self.servers.command(server, "CONFIG", "SET", "min-replicas-to-write", "1")
            self.addCleanup(self.servers.command, server, "CONFIG", "SET", "min-replicas-to-write", "0")
        result = self.redlock("release", "--json", "r13", token)
        self.assertCode(result, 69)
        self.assertEqual(json.loads(result.stdout)["granted"], 2)
        self.assertIn("2 of 5 servers released the lock or do not have it, 3 required", result.stderr)


class R14(Case):
    """A failed extension is reported and repeated, until the command must be stopped."""

    def test_extension_is_retried_after_a_failure(self):
        """A failed extension is reported and repeated until it succeeds."""
        process, events = self.start_with_events("-t", "4s", "r14", "--", "sh", "-c", PRINT_PID_AND_SLEEP)
        pid = int(process.stdout.readline())
        self.wait_event(events, "acquired")
        self.servers.stop(0, 1, 2)
        failed = self.wait_event(events, "extend_failed")
        self.assertGreater(failed["remaining_ms"], 0)
        until(lambda: "not extended, trying again" in self.error_text(), "the first warning")  # it follows the event
        self.servers.continue_all()
        until(
            lambda: any(event["event"] == "extended" for event in self.events(events)),
            "a renewal after the failure",
        )
        # Each failure is reported, also soon after the one before.
        warnings = self.error_text().count("not extended")
        self.servers.stop(0, 1, 2)
        until(lambda: self.error_text().count("not extended") > warnings, "the second warning")
        self.servers.continue_all()
        self.assertTrue(runs(pid))
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(10 * SLOW), 128 + signal.SIGTERM)

    def test_lasting_failure_stops_the_command_in_time(self):
        """If no extension succeeds, the command ends before the lock expires."""
        process = self.start("run", "-t", "3s", "r14", "--", "sh", "-c", PRINT_PID_AND_SLEEP)
        pid = int(process.stdout.readline())
        self.servers.stop(0, 1, 2)
        stopped = time.monotonic()
        self.assertLess(seconds_until_gone([pid], stopped), 3.0)
        self.assertEqual(process.wait(10 * SLOW), 124)


class R15(Case):
    """The event `endangered` comes while the lock is still held."""

    def test_endangered_event_comes_before_stopping(self):
        """The event `endangered` comes before `stopping`, and the grace leaves the command time to end."""
        script = "trap 'date +%s%N; exit 0' TERM; echo $$; while :; do sleep 0.01; done"
        process, events = self.start_with_events("-t", "4s", "r15", "--", "sh", "-c", script)
        process.stdout.readline()
        self.servers.stop(0, 1, 2)
        self.assertEqual(process.wait(10 * SLOW), 124)
        self.assertTrue(process.stdout.readline(), "the command had the time to end by itself")
        names = [event["event"] for event in self.events(events)]
        self.assertLess(names.index("endangered"), names.index("stopping"))
        endangered = self.wait_event(events, "endangered")
        stopping = self.wait_event(events, "stopping")
        self.assertGreater(endangered["remaining_ms"], stopping["remaining_ms"])
        # The default grace is a quarter of the TTL.
        self.assertGreater(stopping["remaining_ms"], 500)


if __name__ == "__main__":
    tapcase.main()
