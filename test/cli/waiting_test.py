# SPDX-License-Identifier: MIT
"""Waiting for a lock, holding it, the flags of `run`, and the exit codes when there is no lock. world.Case starts
servers for the class, five unless `count` differs, and empties them before each test. redlock() runs the command
and returns its result; start() only starts it; start_with_events() starts `run` and records its events; hold()
acquires a lock as another holder; until() waits for a condition."""

import os
import re
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import tapcase  # noqa: E402
from world import REDLOCK, SLOW, Case, seconds_until_gone, until  # noqa: E402


class Waiting(Case):
    """Acquisitions that wait, on five servers. hold() makes another holder of the lock."""

    def test_waiter_gets_the_lock_when_it_is_released(self):
        """A `run` that waits starts its command when the holder releases."""
        token = self.hold("w")
        process = self.start("run", "-v", "w", "--", "echo", "mine")
        self.wait_error("waiting for w: held by another client")
        self.redlock("release", "w", token)
        self.assertEqual(process.stdout.readline(), "mine\n")
        self.assertEqual(process.wait(10 * SLOW), 0)

    def line_calls(self):
        """Returns how often the servers have read a line since they were started or CONFIG RESETSTAT."""
        return sum(b"cmdstat_getex" in text for text in self.servers.command_all("INFO", "commandstats"))

    def test_no_line_writes_no_other_key(self):
        """A waiter is in a line on one server, unless --no-line or REDLOCK_LINE=off is given."""
        for flags, environment, lines in (([], {}, True), (["--no-line"], {}, False), ([], {"REDLOCK_LINE": "off"}, False)):
            with self.subTest(flags=flags, environment=environment):
                self.servers.command_all("CONFIG", "RESETSTAT")
                token = self.hold("w")
                process = self.start("run", "-v", *flags, "w", "--", "echo", "mine", env=self.environment(**environment))
                self.wait_error("waiting for w: held by another client")
                self.redlock("release", "w", token)
                self.assertEqual(process.stdout.readline(), "mine\n")
                self.assertEqual(process.wait(10 * SLOW), 0)
                self.assertEqual(self.line_calls() > 0, lines)

    def test_waiter_gets_the_lock_when_servers_return(self):
        """A `run` that waits for a quorum starts its command when the servers continue."""
        self.servers.stop(0, 1, 2)
        process = self.start("run", "-v", "w", "--", "echo", "mine")
        self.wait_error("waiting for w: no quorum: ")
        self.servers.continue_all()
        self.assertEqual(process.stdout.readline(), "mine\n")
        self.assertEqual(process.wait(10 * SLOW), 0)

    def test_two_of_five_servers_down(self):
        """Two stopped servers do not matter."""
        self.servers.stop(1, 3)
        self.assertCode(self.redlock("run", "-n", "w", "--", "true"), 0)

    def test_wait_budget_ends_the_wait(self):
        """-w 1s ends the wait with 75, not before its time."""
        self.hold("w")
        started = time.monotonic()
        result = self.redlock("run", "-w", "1s", "w", "--", "true")
        spent = time.monotonic() - started
        self.assertCode(result, 75)
        self.assertGreater(spent, 0.9)
        self.assertLess(spent, 10 * SLOW)  # the lock is held for longer

    def test_waiting_message_at_once_and_after_ten_seconds(self):
        """With -v the message about the wait is printed at once and once more after ten seconds."""
        self.hold("w", "30s")
        process = self.start("run", "-v", "-w", "11s", "w", "--", "true")
        self.wait_error("waiting for w")
        self.assertEqual(process.wait(30 * SLOW), 75)
        self.assertEqual(self.error_text().count("waiting for w"), 2)

    def test_waiter_is_warned_of_a_key_that_does_not_expire(self):
        """After a wait of max_ttl the key is checked: it never expires, or only later than max_ttl allows."""
        flags = ["--max-ttl", "900ms", "-t", "900ms"]
        # The number of servers in the message is that of the servers that replied in time.
        cases = {"never expires on [345] servers": [], "expires later than max_ttl 900ms allows": ["EX", "3600"]}
        for words, more in cases.items():
            self.servers.command_all("SET", "w", "foreign", *more)
            process, path = self.start_with_events(*flags, "-k", "50ms", "--renew", "100ms", "w", "--", "true")
            self.wait_error(f"waiting for w: held by another client.*; its key {words}")
            # The event comes behind the line, and behind others if too few servers have replied to an earlier check.
            until(lambda at=path: any("stuck" in event for event in self.events(at)), "an event with the warning")
            waiting = [event for event in self.events(path) if event["event"] == "waiting"]
            self.assertNotIn("stuck", waiting[0])
            warned = next(event for event in waiting if "stuck" in event)
            self.assertRegex(warned["stuck"], words)
            self.assertIn("redlock break --yes", warned["stuck"])
            process.terminate()
            process.wait(10 * SLOW)
            result = self.redlock("acquire", "-w", "3s", *flags, "w")
            self.assertCode(result, 75)
            self.assertRegex(result.stderr, f"w: not acquired: held by another client.*; its key {words}")

    def refused_inspections(self):
        """Returns the number of servers that have refused a GET that was not sent by a script, since ACL LOG RESET."""

        def is_refused(entry):
            """Returns whether this entry of the log is about such a GET."""
            fields = dict(zip(entry[::2], entry[1::2]))
            return (fields[b"object"], fields[b"context"]) == (b"get", b"toplevel")

        return sum(any(map(is_refused, log)) for log in self.servers.command_all("ACL", "LOG"))

    def test_key_is_inspected_again_after_an_inspection_that_failed(self):
        """The warning about a key that never expires comes although the first inspection of the key has failed."""
        self.servers.command_all("SET", "w", "foreign")
        self.servers.command_all("ACL", "LOG", "RESET")
        self.addCleanup(self.servers.command_all, "ACL", "SETUSER", "default", "+get")
        self.servers.command_all("ACL", "SETUSER", "default", "-get")
        self.start("run", "--max-ttl", "900ms", "-t", "900ms", "-k", "50ms", "--renew", "100ms", "w", "--", "true")
        until(lambda: self.refused_inspections() >= 3, "an inspection that fails")
        self.servers.command_all("ACL", "SETUSER", "default", "+get")
        # Less than the time between two inspections that succeed.
        until(lambda: "its key never expires" in self.error_text(), "the warning on stderr", 30)

    def test_long_wait_for_extended_lock_gives_no_warning(self):
        """A holder that extends its lock looks like no key that never expires."""
        holder = self.start("run", "--max-ttl", "4s", "-t", "4s", "-k", "50ms", "w", "--", "sleep", "1000")
        until(lambda: len(self.servers.values("w")) == 5, "the holder's key")
        result = self.redlock("acquire", "-w", "9s", "--max-ttl", "4s", "-t", "4s", "w")
        self.assertCode(result, 75)
        self.assertNotIn("its key", result.stderr)
        holder.terminate()

    def test_interrupted_waiters_leave_no_keys(self):
        """Waiting clients are interrupted during their attempts."""
        token = self.hold("w").encode()
        for turn in range(5):
            waiters = [self.start("run", "-v", "w", "--", "true") for _ in range(4)]
            self.wait_error("waiting for w")
            send_at = time.monotonic() + 0.013 * turn
            until(lambda send_at=send_at: time.monotonic() >= send_at, "a moment in the retries")
            for waiter in waiters:
                waiter.send_signal(signal.SIGINT)
            for waiter in waiters:
                self.assertIn(waiter.wait(10 * SLOW), (130, -signal.SIGINT))
            self.assertEqual(set(self.servers.values("w")), {token})
        self.assertCode(self.redlock("release", "w", token.decode()), 0)
        until(lambda: self.servers.keys() == set(), "no key on any server")

    def test_only_one_at_a_time(self):
        """Eight `run` at once: their commands never overlap."""
        path = self.path("log", "")
        script = f"echo in >> {path}; echo out >> {path}"
        waiters = [self.start("run", "w", "-c", script) for _ in range(8)]
        for waiter in waiters:
            self.assertEqual(waiter.wait(60 * SLOW), 0)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), "in\nout\n" * 8)

    def test_acquire_waits_as_run_does(self):
        """`acquire` has the flags, exit codes and signals of `run` for its wait."""
        self.hold("w")
        self.assertCode(self.redlock("acquire", "-n", "w"), 75)
        self.assertCode(self.redlock("acquire", "-w", "900ms", "-E", "3", "w"), 3)
        process = self.start("acquire", "-v", "w")
        self.wait_error("waiting for w")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(10 * SLOW), 128 + signal.SIGTERM)
        self.assertEqual(process.stdout.read(), "")


class Holding(Case):
    """How long `run` holds its lock, and what its command gets."""

    def test_min_hold_keeps_the_lock_without_a_process(self):
        """--min-hold keeps the lock for its time; redlock ends before."""
        started = time.monotonic()
        self.assertCode(self.redlock("run", "--min-hold", "10s", "h", "--", "true"), 0)
        self.assertCode(self.redlock("run", "-n", "h", "--", "true"), 75)  # the process has ended before the hold
        self.assertTrue(all(0 < ttl <= 10000 for ttl in self.servers.command_all("PTTL", "h") if ttl != -2))
        self.assertCode(self.redlock("run", "-w", "30s", "h", "--", "true"), 0)
        self.assertGreater(time.monotonic() - started, 9.9)

    def test_min_hold_longer_than_the_ttl(self):
        """If --min-hold is longer than the TTL, redlock stays and extends."""
        started = time.monotonic()
        self.assertCode(self.redlock("run", "-t", "4s", "--min-hold", "7s", "h", "--", "true"), 0)
        self.assertGreater(time.monotonic() - started, 2.9)
        self.assertCode(self.redlock("run", "-w", "30s", "h", "--", "true"), 0)
        self.assertGreater(time.monotonic() - started, 6.9)

    def test_keep_leaves_the_lock_to_its_ttl(self):
        """With --keep the lock is not released, and expires."""
        self.assertCode(self.redlock("run", "-t", "8s", "--keep", "h", "--", "true"), 0)
        self.assertCode(self.redlock("run", "-n", "h", "--", "true"), 75)
        self.assertCode(self.redlock("run", "-w", "30s", "h", "--", "true"), 0)

    def test_no_renew_stops_the_command_at_the_end_of_the_ttl(self):
        """With --no-renew the command ends within the TTL."""
        process = self.start("run", "-t", "1500ms", "--no-renew", "h", "--", "sh", "-c", "echo $$; exec sleep 1000")
        pid = int(process.stdout.readline())
        started = time.monotonic()
        self.assertLess(seconds_until_gone([pid], started), 1.5)
        self.assertEqual(process.wait(10 * SLOW), 124)

    def test_child_environment(self):
        """The variables REDLOCK_* of the command. The token is not among them."""
        names = "HELD NAME KEY OWNER TTL_MS ACQUIRED_AT TOKEN"
        script = "".join(f'echo "${{REDLOCK_{name}-unset}}";' for name in names.split())
        result = self.redlock("run", "-t", "9s", "--prefix", "p:", "h", "-c", script)
        values = dict(zip(names.split(), result.stdout.splitlines()))
        self.assertEqual(values["HELD"], "1")
        self.assertEqual(values["NAME"], "h")
        self.assertEqual(values["KEY"], "p:h")
        self.assertRegex(values["OWNER"], r"^\S+/\d+/\d+$")
        self.assertEqual(values["TTL_MS"], "9000")
        self.assertLess(abs(int(values["ACQUIRED_AT"]) / 1000 - time.time()), 60)
        self.assertEqual(values["TOKEN"], "unset")

    def test_exported_token_is_the_value_of_the_key(self):
        """With --export-token the command gets the token."""
        process = self.start("run", "--export-token", "h", "--", "sh", "-c", "echo $REDLOCK_TOKEN; exec sleep 1000")
        token = process.stdout.readline().strip()
        self.assertEqual(set(self.servers.values("h")), {token.encode()})

    def test_nested(self):
        """A `run` for the name that an outer `run` holds is refused, unless --allow-nested; other names work."""
        inner = f"{REDLOCK} run -n h -- true"
        result = self.redlock("run", "h", "-c", inner)
        self.assertCode(result, 64)
        self.assertIn("--allow-nested", result.stderr)
        self.assertCode(self.redlock("run", "h", "-c", f"{REDLOCK} run -n --allow-nested h -- true"), 75)
        self.assertCode(self.redlock("run", "h", "-c", f"{REDLOCK} run -n other -- true"), 0)


class Flags(Case):
    """Flags whose effect no other test checks."""

    def test_signal(self):
        """--signal is what the command gets at the end of --max-hold."""
        script = "trap 'echo got USR1; exit 5' USR1; echo ready; while :; do sleep 0.01; done"
        process = self.start(
            "run", "-t", "20s", "-k", "2s", "--max-hold", "4s", "--signal", "SIGUSR1", "f", "--", "sh", "-c", script
        )
        self.assertEqual(process.stdout.read(), "ready\ngot USR1\n")
        self.assertEqual(process.wait(10 * SLOW), 124)
        self.assertIn("sent USR1 to the command", self.error_text())

    def test_renew(self):
        """Two extensions come before the first one would be due by default."""
        process, events = self.start_with_events("--renew", "200ms", "f", "--", "sleep", "1000")

        def renewed():
            """Returns whether the lock was extended twice."""
            return sum(event["event"] == "extended" for event in self.events(events)) >= 2

        until(renewed, "two renewals", 9)
        process.terminate()

    def test_connect_timeout(self):
        """With three stopped servers, `run -n` ends with 69, not before the connect timeout."""
        self.servers.stop(0, 1, 2)
        started = time.monotonic()
        self.assertCode(self.redlock("run", "-n", "--connect-timeout", "2s", "f", "--", "true"), 69)
        self.assertGreater(time.monotonic() - started, 1.9)

    def test_node_timeout(self):
        """An extension fails only after the node timeout."""
        process, events = self.start_with_events(
            "-t", "20s", "--renew", "300ms", "--node-timeout", "2s", "f", "--", "sleep", "1000"
        )
        self.wait_event(events, "extended")
        self.servers.stop(0, 1, 2)
        stopped = time.monotonic()
        self.wait_event(events, "extend_failed")
        self.assertGreater(time.monotonic() - stopped, 1.5)
        process.terminate()

    def test_verbose(self):
        """-v reports the lock, -vv also the servers."""
        for flags, words in ([], []), (["-v"], ["acquired on"]), (["-vv"], ["acquired on", "connected, eligible"]):
            result = self.redlock("run", *flags, "f", "--", "true")
            self.assertCode(result, 0)
            for word in "acquired on", "connected, eligible":
                self.assertEqual(word in result.stderr, word in words, result.stderr)

    def test_long_names(self):
        """The long names of flags do what the short ones do."""
        environment = self.environment(REDLOCK_SERVERS="127.0.0.1:1")
        flags = ["--servers", self.servers.list, "--ttl", "9s", "--wait", "5s", "--grace", "1s", "--quiet"]
        result = self.redlock("run", *flags, "--command", "echo $REDLOCK_TTL_MS", "f", env=environment)
        self.assertCode(result, 0)
        self.assertEqual(result.stdout, "9000\n")
        self.hold("f")
        for more in ["--nonblock"], ["--timeout", "900ms"]:
            result = self.redlock("run", "--verbose", *more, "--conflict-exit-code", "3", "f", "--", "true")
            self.assertCode(result, 3)
        path = self.path("conf", "[redlock]\nprefix = from-file:\n")
        self.assertIn("from-file:", self.redlock("config", "--config", path, env=environment).stdout)


class Codes(Case):
    """Exit codes and messages when there is no lock."""

    def test_command_is_checked_before_the_lock_is_requested(self):
        """A command that cannot be run ends with 126 or 127 before any request."""
        script = self.path("plain", "x")
        for command, code in ("/no/such/command", 127), ("no-such-command-here", 127), (script, 126), ("/etc", 126):
            with self.subTest(command=command):
                events = self.path("events", "")
                with open(events, "ab") as file:
                    fd = file.fileno()
                    result = self.redlock("run", "--status-fd", str(fd), "x", "--", command, pass_fds=[fd])
                self.assertCode(result, code)
                self.assertIn("the lock was not requested", result.stderr)
                self.assertEqual(self.events(events), [])

    def test_refused_user(self):
        """Servers that refuse the password end `run` with 77 at once."""
        for index in range(3):
            self.servers.command(index, "CONFIG", "SET", "requirepass", "secret")
        try:
            started = time.monotonic()
            result = self.redlock("run", "x", "--", "true")
            self.assertCode(result, 77)
            self.assertLess(time.monotonic() - started, 5 * SLOW)
            result = self.redlock("run", "x", "--", "true", env=self.environment(REDLOCK_AUTH="wrong"))
            self.assertCode(result, 77)
            self.assertNotIn("wrong", result.stderr.replace("wrong password", ""))
            path = self.path("pass", "secret\nnot the password\n")
            result = self.redlock("run", "--pass-file", path, "x", "--", "true", env=self.environment(REDLOCK_AUTH="wrong"))
            self.assertCode(result, 0)
        finally:
            for index in range(3):
                self.servers.command_with_password(index, "secret", "CONFIG", "SET", "requirepass", "")

    def test_server_listed_twice(self):
        """Two addresses of one server end with 78, or with a finding of `nodes`."""
        first, second = self.servers.ports[:2]
        twice = f"127.0.0.1:{first}?fresh=1,localhost:{first}?fresh=1,127.0.0.1:{second}?fresh=1"
        result = self.redlock("run", "-s", twice, "x", "--", "true")
        self.assertCode(result, 78)
        self.assertIn("same server", result.stderr)
        result = self.redlock("nodes", "-s", twice)
        self.assertCode(result, 2)
        self.assertIn("remove one of the two", result.stdout)
        same = f"127.0.0.1:{first},redis://127.0.0.1:{first}/0"
        self.assertCode(self.redlock("run", "-s", same, "x", "--", "true"), 78)

    def test_ttl_above_max_ttl(self):
        """A TTL above max_ttl is refused with 78."""
        result = self.redlock("run", "-t", "31s", "x", "--", "true")
        self.assertCode(result, 78)
        self.assertIn("must be equal in all clients", result.stderr)
        self.assertCode(self.redlock("run", "-t", "31s", "--max-ttl", "1m", "x", "--", "true"), 0)
        environment = self.environment(REDLOCK_MAX_TTL="10s")
        self.assertCode(self.redlock("acquire", "-n", "-t", "11s", "x", env=environment), 78)

    def test_message_about_inconsistent_timings_shows_the_sum(self):
        """Timings that do not fit into the TTL are refused with the sum."""
        for flags in (["-t", "3s", "--renew", "2s"], ["-t", "3s", "-k", "2s"], ["-t", "300ms"]):
            with self.subTest(flags=flags):
                result = self.redlock("run", *flags, "x", "--", "true")
                self.assertCode(result, 78)
                self.assertRegex(result.stderr, r"renew \w+ \+ one more try \w+ \+ grace \w+ \+ drift \w+ = \w+")

    def test_nodes(self):
        """`nodes` exits with 0, 1 with a server down, 2 without a majority."""
        result = self.redlock("nodes")
        self.assertCode(result, 0)
        self.assertEqual(result.stdout.count("master"), 5)
        self.assertIn("OK: 5 of 5 servers are eligible, 3 required", result.stdout)
        self.servers.stop(4)
        result = self.redlock("nodes")
        self.assertCode(result, 1)
        self.servers.stop(3, 2)
        result = self.redlock("nodes")
        self.assertCode(result, 2)
        self.assertIn("no lock can be acquired", result.stdout)

    def test_one_and_even_numbers_of_servers_give_one_warning(self):
        """One server, or an even number, gives one warning."""
        for count, word in (1, "one server"), (2, "odd number"), (4, "odd number"):
            with self.subTest(count=count):
                servers = ",".join(self.servers.list.split(",")[:count])
                result = self.redlock("run", "-s", servers, "x", "--", "true")
                self.assertCode(result, 0)
                self.assertEqual(result.stderr.count("warning"), 1)
                self.assertIn(word, result.stderr)
                self.assertCode(self.redlock("nodes", "-s", servers), 1)


if __name__ == "__main__":
    tapcase.main()
