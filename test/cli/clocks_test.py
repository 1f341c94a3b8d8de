# SPDX-License-Identifier: MIT
"""Settings about clocks: the drift, the interval of heartbeats, and how far the client's wall clock may be ahead.
world.Case starts servers for the class, five unless `count` differs, and empties them before each test. redlock()
runs the command and returns its result; start() only starts it; start_with_events() starts `run` and records its
events; until() waits for a condition."""

import json
import os
import re
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import tapcase  # noqa: E402
from world import Case, OwnServersCase, until  # noqa: E402


class Clocks(Case):
    """REDLOCK_DRIFT, REDLOCK_HEARTBEAT and REDLOCK_CLOCK_SLACK, on three servers."""

    count = 3

    def validity_ms(self, **more):
        """Acquires a lock with a TTL of 30 s and returns its validity."""
        result = self.redlock("run", "-v", "-t", "30s", "c", "--", "true", env=self.environment(**more))
        self.assertCode(result, 0)
        return int(re.search(r"valid for (\d+) ms", result.stderr).group(1))

    def test_drift_shortens_the_validity(self):
        """A larger drift leaves less of the TTL as validity."""
        self.assertLessEqual(self.validity_ms(REDLOCK_DRIFT="20%"), 30000 - 6000 - 2 - 30)
        self.assertLessEqual(self.validity_ms(REDLOCK_DRIFT="83000ppm"), 30000 - 2490 - 2 - 30)
        until(lambda: self.validity_ms(REDLOCK_DRIFT="0%") > 30000 - 300, "a lock that loses less than 1 %")

    def test_drift_counts_where_timings_are_checked(self):
        """A drift for which the TTL leaves no time for an extension is refused."""
        flags = ["run", "-t", "10s", "--renew", "3s", "-k", "1s", "c", "--", "true"]
        self.assertCode(self.redlock(*flags), 0)
        result = self.redlock(*flags, env=self.environment(REDLOCK_DRIFT="50%"))
        self.assertCode(result, 0)
        flags[4] = "4s"
        result = self.redlock(*flags, env=self.environment(REDLOCK_DRIFT="50%"))
        self.assertCode(result, 78)
        self.assertIn("drift 5012ms", result.stderr)

    def test_extension_interval_with_large_drift(self):
        """A large drift shortens the validity, and extensions must start accordingly earlier."""
        process, events = self.start_with_events(
            "-t", "20s", "--renew", "1s", "-k", "1s", "c", "--", "sleep", "1000", env=self.environment(REDLOCK_DRIFT="45%")
        )
        left = self.wait_event(events, "extended")["remaining_ms"]
        self.assertLess(left, 11000)
        process.terminate()

    def heartbeats(self):
        """Returns how many TIME commands the first server has executed."""
        found = re.search(rb"cmdstat_time:calls=(\d+)", self.servers.command(0, "INFO", "commandstats"))
        return int(found.group(1)) if found else 0

    def test_heartbeat(self):
        """Heartbeats come as often as the setting says."""
        before = self.heartbeats()
        process = self.start(
            "run", "c", "--", "sleep", "1000", env=self.environment(REDLOCK_HEARTBEAT="20ms")
        )
        until(lambda: self.heartbeats() - before >= 60, "heartbeats that would take a minute by default")
        process.terminate()

    def run_with_our_clock_set_ahead(self, **more):
        """Starts `redlock run`, waits for an extension, and sets its wall clock 5 s ahead. Returns (process, path of its
        events)."""
        environment = {**self.with_clock(0), **more}
        path = self.path("events", "")
        with open(path, "ab") as file:
            process = self.start(
                "run", "--status-fd", str(file.fileno()), "-t", "20s", "--renew", "300ms", "c", "--", "sleep", "1000",
                pass_fds=[file.fileno()], env=environment,
            )
        self.wait_event(path, "extended")
        with open(self.path("clock"), "r+b") as file:
            file.seek(8)
            file.write(struct.pack("<q", 5 * 10**9))
        return process, path

    def test_our_clock_is_set_ahead(self):
        """By default, a wall clock that steps ahead ends the lock and the command."""
        process, path = self.run_with_our_clock_set_ahead()
        self.wait_event(path, "lost")
        self.assertEqual(process.wait(), 124)

    def test_our_clock_may_be_set_ahead(self):
        """With a setting that allows the step, the lock stays."""
        process, path = self.run_with_our_clock_set_ahead(REDLOCK_CLOCK_SLACK="1m")
        known = len(self.events(path))

        def renewed():
            """Returns whether three extensions have succeeded after the step."""
            return sum(event["event"] == "extended" for event in self.events(path)[known:]) >= 3

        until(renewed, "renewals after the step")
        self.assertNotIn("lost", [event["event"] for event in self.events(path)])
        process.terminate()

    def test_where_they_come_from(self):
        """`redlock config` names the source of each of these settings."""
        path = self.path("conf", "[redlock]\ndrift = 0.5%\nheartbeat = 2s\nclock-slack = 0ms\n")
        flags = ["config", "--json", "-f", path]
        for environment, drift, origin in (({}, "0.5%", path), ({"REDLOCK_DRIFT": "8.3%"}, "8.3%", "REDLOCK_DRIFT")):
            result = self.redlock(*flags, env=self.environment(**environment))
            self.assertCode(result, 0)
            settings = json.loads(result.stdout)["settings"]
            self.assertEqual(settings["drift"]["value"], drift)
            self.assertIn(origin, settings["drift"]["origin"])
            self.assertEqual(settings["heartbeat"]["value"], "2s")
            self.assertEqual(settings["clock-slack"]["value"], "0ms")
        settings = json.loads(self.redlock("config", "--json").stdout)["settings"]
        values = [settings[name]["value"] for name in ("drift", "heartbeat", "clock-slack")]
        self.assertEqual(values, ["1%", "1s", "100ms"])

    def test_invalid_settings_are_refused(self):
        """Values out of range are refused with a message."""
        cases = [
            *(("DRIFT", word, "write 1%, 8.5% or 10000ppm") for word in ("1", "", "51%", "500001ppm", "-1%", "1.5ppm",
                                                                       ".%", "0.00001%", "99999999999%", "1% ", "50.0001%")),
            ("HEARTBEAT", "9ms", "write 10ms to 1m"),
            ("HEARTBEAT", "61s", "write 10ms to 1m"),
            ("CLOCK_SLACK", "2m", "write 0ms to 1m"),
            ("CLOCK_SLACK", "-1s", "not a duration"),
        ]
        for name, word, advice in cases:
            with self.subTest(name=name, word=word):
                result = self.redlock("config", env=self.environment(**{f"REDLOCK_{name}": word}))
                if word == "":  # as with all of them: not set
                    self.assertCode(result, 0)
                    continue
                self.assertCode(result, 78)
                self.assertIn(f"REDLOCK_{name}={word}: ", result.stderr)
                self.assertIn(advice, result.stderr)
        for word in "50%", "500000ppm", "0ppm", "0.0001%", "08.30%":
            self.assertCode(self.redlock("config", env=self.environment(REDLOCK_DRIFT=word)), 0)


class NotTrusted(Case):
    """A server whose uptime does not count."""

    count = 3

    def test_advice(self):
        """To wait would help one client only."""
        until(lambda: re.search(rb"uptime_in_seconds:([7-9]|\d\d+)\r", self.servers.command(0, "INFO", "server")), "7 s")
        environment = self.environment(REDLOCK_SERVERS=self.servers.list.replace("?fresh=1", ""), REDLOCK_ADMISSION="proven")
        result = self.redlock("nodes", "--max-ttl", "3s", "--json", env=environment)
        advice = {finding["advice"] for finding in json.loads(result.stdout)["findings"] if finding["code"] == "restarted"}
        self.assertEqual(len(advice), 1, result.stdout)
        self.assertIn("each new client waits", advice.pop())


class StandingClock(OwnServersCase):
    """A server whose clock stands still, because of a suspended machine or a broken clock source."""

    def test_finding(self):
        """`nodes` names it as critical and gives no advice to wait, and the end of a wait says it, too."""
        environment = {**os.environ, **self.with_clock(0)}
        with open(self.path("clock"), "r+b") as file:  # it loses all that it gains since now
            file.write(struct.pack("<I4xqqq", 0, 0, time.time_ns(), -1000000))
        self.start_another(2, env=environment)
        servers = self.servers.list.replace("?fresh=1", "")
        result = self.redlock("nodes", "--json", env=self.environment(REDLOCK_SERVERS=servers))
        findings = [finding for finding in json.loads(result.stdout)["findings"] if finding["code"] == "clock_stopped"]
        self.assertEqual([finding["severity"] for finding in findings], ["crit"])
        self.assertIn("its clock stands still", findings[0]["text"])
        self.assertNotIn("wait", findings[0]["advice"])


if __name__ == "__main__":
    tapcase.main()
