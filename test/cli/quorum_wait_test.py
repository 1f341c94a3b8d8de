# SPDX-License-Identifier: MIT
"""--quorum-wait: for how long `run` and `acquire` wait without a quorum of servers. world.Case starts five servers for
the class and empties them before each test; OwnServersCase starts three for each test. redlock() runs the command and
returns its result; start_with_events() starts `run` and records its events; hold() acquires a lock as another holder."""

import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import tapcase  # noqa: E402
from world import SLOW, TIME_LIMIT, Case, OwnServersCase, clean_environment, until  # noqa: E402

TEXT = "without a quorum (--quorum-wait)"


def json_lines(text):
    """Returns {name of the event: its last line} of the events in the text."""
    lines = [json.loads(line) for line in text.splitlines()]
    return {line["event"]: line for line in lines if "event" in line}


class QuorumWait(Case):
    """Waits while a majority of five servers is stopped."""

    def test_majority_is_stopped(self):
        """The wait ends with 69 after the limit, not before, and says what, where and what to do."""
        self.servers.stop(0, 1, 2)
        started = time.monotonic()
        process, path = self.start_with_events("-v", "--quorum-wait", "2s", "q", "--", "true")
        self.assertEqual(process.wait(TIME_LIMIT), 69)
        self.assertGreater(time.monotonic() - started, 1.9)
        self.assertRegex(self.error_text(), r"waiting for q: no quorum: .*; gives up in [12]s\n")
        self.assertRegex(self.error_text(), r"q: not acquired: no quorum: .* servers granted the lock, 3 required; 127\.0\.0\.1:\d+[:,] ")
        self.assertIn(f"gave up after 2s {TEXT}; check the servers: redlock nodes\n", self.error_text())
        event = self.wait_event(path, "not_acquired")
        self.assertEqual((event["limit"], event["error"], event["exit"]), ("quorum-wait", "REDLOCK_ENOQUORUM", 69))
        self.assertGreaterEqual(event["no_quorum_ms"], 2000)
        self.assertEqual(len(event["servers"]), 5)
        self.servers.continue_all()
        until(lambda: self.servers.keys() == set(), "no key on any server")

    def test_zero_gives_up_soon(self):
        """--quorum-wait 0 still tries for half a second. The variable and the file set the limit, too."""
        self.servers.stop(0, 1, 2)
        path = self.path("conf", "[redlock]\nquorum-wait = 0\n")
        short = self.environment(REDLOCK_QUORUM_WAIT="0")
        for flags, env in (["--quorum-wait", "0"], None), ([], short), (["-f", path], None):
            started = time.monotonic()
            result = self.redlock("acquire", *flags, "q", env=env)
            self.assertCode(result, 69)
            self.assertGreater(time.monotonic() - started, 0.49)
            self.assertIn(TEXT, result.stderr)

    def test_shorter_wait_wins(self):
        """-w ends the wait before the longer --quorum-wait, also if that is forever."""
        self.servers.stop(0, 1, 2)
        for limit in "20s", "forever":
            result = self.redlock("acquire", "--json", "-w", "900ms", "--quorum-wait", limit, "q")
            self.assertCode(result, 69)
            self.assertNotIn(TEXT, result.stderr)
            self.assertEqual(json_lines(result.stderr)["not_acquired"]["limit"], "wait")

    def test_held_lock_is_waited_for(self):
        """A lock that another client holds is waited for until -w ends, which is longer than --quorum-wait."""
        token = self.hold("q")
        started = time.monotonic()
        result = self.redlock("acquire", "--json", "-w", "3s", "--quorum-wait", "0", "q")
        self.assertCode(result, 75)
        self.assertGreater(time.monotonic() - started, 2.9)
        self.assertEqual(json_lines(result.stderr)["not_acquired"]["limit"], "wait")
        process = self.start("run", "-v", "--quorum-wait", "0", "q", "--", "echo", "mine")
        self.wait_error("waiting for q: held by another client")
        self.assertNotIn("gives up", self.error_text())
        self.assertCode(self.redlock("release", "q", token), 0)
        self.assertEqual(process.stdout.readline(), "mine\n")

    def test_majority_is_stopped_while_waiting(self):
        """If the majority stops while the lock is held, the limit counts from then on."""
        self.hold("q")
        process, path = self.start_with_events("-v", "--quorum-wait", "2s", "q", "--", "true")
        self.wait_event(path, "waiting")
        self.servers.stop(0, 1, 2)
        stopped = time.monotonic()
        self.assertEqual(process.wait(TIME_LIMIT), 69)
        self.assertGreater(time.monotonic() - stopped, 1.9)
        self.assertIn(TEXT, self.error_text())
        event = self.wait_event(path, "not_acquired")
        self.assertEqual((event["limit"], event["exit"]), ("quorum-wait", 69))

    def test_majority_is_stopped_while_waiting_for_a_permit(self):
        """The same for a permit, although the preferred server of a slot may still reply that it is taken."""
        self.assertCode(self.redlock("acquire", "--permits", "1", "-t", "30s", "q"), 0)
        for _ in range(3):  # the preferred server is among the stopped ones or not
            process, path = self.start_with_events("--permits", "1", "--quorum-wait", "2s", "q", "--", "true")
            self.wait_event(path, "waiting")
            self.servers.stop(0, 1, 2)
            self.assertEqual(process.wait(TIME_LIMIT), 69)
            self.assertRegex(self.error_text(), r"q: not acquired: no quorum: .*, 3 required; 127\.0\.0\.1:\d+[:,] ")
            event = self.wait_event(path, "not_acquired")
            self.assertEqual((event["limit"], event["error"]), ("quorum-wait", "REDLOCK_ENOQUORUM"))
            self.assertEqual(len(event["servers"]), 5)
            self.servers.continue_all()

    def test_signal_wins(self):
        """A signal ends a wait without a quorum, as it ends any other."""
        self.servers.stop(0, 1, 2)
        process = self.start("acquire", "-v", "--quorum-wait", "forever", "q")
        self.wait_error("waiting for q: no quorum")
        self.assertNotIn("gives up", self.error_text())
        process.terminate()
        self.assertEqual(process.wait(10 * SLOW), 128 + 15)

    def test_usage(self):
        """A wait that does not happen has no limit, and a limit is a duration or forever."""
        for flags in ["-n"], ["-w", "0"]:
            result = self.redlock("acquire", *flags, "--quorum-wait", "5s", "q")
            self.assertCode(result, 64)
            self.assertIn("with --quorum-wait 5s: the one forbids to wait; give one of them", result.stderr)
        result = self.redlock("acquire", "--quorum-wait", "never", "q")
        self.assertCode(result, 64)
        self.assertIn("--quorum-wait never: not a duration; write 250ms", result.stderr)
        self.assertIn("no limit: forever", result.stderr)
        self.assertCode(self.redlock("acquire", "-n", "q", env=self.environment(REDLOCK_QUORUM_WAIT="5s")), 0)


class Quarantine(OwnServersCase):
    """Servers that were started a moment ago: without ?fresh=1 they do not vote until max_ttl has passed."""

    def test_quarantine_does_not_count(self):
        """The wait goes on until the quarantine has ended, although it is longer than the limit."""
        servers = ",".join(f"127.0.0.1:{port}" for port in self.servers.ports)
        flags = ["-s", servers, "--max-ttl", "6s", "-t", "6s"]
        result = self.redlock("acquire", "--json", *flags, "--quorum-wait", "500ms", "q", env=clean_environment())
        self.assertCode(result, 0)
        self.assertIn("votes again in", result.stderr)
        self.assertNotIn("gives up", result.stderr)
        self.assertGreater(json.loads(result.stdout)["waited_ms"], 1500)


if __name__ == "__main__":
    tapcase.main()
