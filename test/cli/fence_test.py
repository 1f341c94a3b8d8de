# SPDX-License-Identifier: MIT
"""Fencing tokens on the command line: they are printed and exported, they grow however the clients' clocks differ, and
an operator can use locks with fences again after a majority has lost its fence records. world.Case starts servers
for the class, five unless `count` differs, and empties them before each test. redlock() runs the command and
returns its result; start_with_events() starts `run` and records its events; until() waits for a condition."""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import tapcase  # noqa: E402
from world import Case, clean_environment, until  # noqa: E402

HOUR_NS = 3600 * 10**9
RECORD = "redlock:fence"
PRINT = ["--", "sh", "-c", "echo ${REDLOCK_FENCE-unset}"]


class Fence(Case):
    """`--fence` on five servers with volatile fence records."""

    def environment(self, **more):
        """Returns the environment with volatile fence records."""
        return super().environment(**{"REDLOCK_FENCE_RECORDS": "volatile", **more})

    def fence(self, *flags, **options):
        """Runs a command under a lock with a fence, and returns the fencing token that it sees."""
        result = self.redlock("run", "-w", "10s", "--fence", *flags, "job", *PRINT, **options)
        self.assertCode(result, 0)
        return int(result.stdout)

    def test_acquire_prints_token_and_fence(self):
        """`acquire --fence` prints the token and the fencing token."""
        result = self.redlock("acquire", "--fence", "-w", "10s", "-t", "20s", "job")
        self.assertCode(result, 0)
        token, fence = result.stdout.split()
        self.assertIn(token.encode(), self.servers.values("job"))
        self.assertCode(self.redlock("release", "job", token), 0)
        self.assertGreater(self.fence(), int(fence))
        printed = self.path("token", self.redlock("acquire", "--fence", "-w", "10s", "job").stdout)
        self.assertCode(self.redlock("release", "--strict", "--token-file", printed, "job"), 0)
        plain = self.redlock("acquire", "-t", "20s", "other")
        self.assertEqual(len(plain.stdout.split()), 1)

    def test_fence_in_json_and_events(self):
        """JSON output and events contain the fencing token."""
        first = self.fence()
        result = self.redlock("acquire", "--json", "--fence", "-w", "10s", "-t", "20s", "other")
        self.assertCode(result, 0)
        self.assertGreater(json.loads(result.stdout)["fence"], first)
        plain = json.loads(self.redlock("acquire", "--json", "-t", "20s", "third").stdout)
        self.assertNotIn("fence", plain)
        process, path = self.start_with_events("--fence", "job", "--", "true")
        self.assertEqual(process.wait(), 0)
        self.assertGreater(self.wait_event(path, "acquired")["fence"], first)

    def test_only_a_lock_with_fence_exports_it(self):
        """The command gets REDLOCK_FENCE only with --fence."""
        self.fence()
        environment = self.environment(REDLOCK_FENCE="7")
        result = self.redlock("run", "job", *PRINT, env=environment)
        self.assertEqual(result.stdout, "unset\n")
        self.assertGreater(self.fence(env=environment), 7)

    def test_fences_grow_with_clocks_an_hour_apart(self):
        """Fencing tokens increase between clients whose clocks differ by an hour."""
        last = self.fence()
        for hours in (0, 1, 0, -1, 1, -1, 0):
            fence = self.fence(env=self.with_clock(hours * HOUR_NS))
            self.assertGreater(fence, last, f"{hours} h ahead")
            last = fence

    def test_init_after_a_majority_lost_its_records(self):
        """After a majority has lost its records, --fence fails until `nodes --init`."""
        last = self.fence()
        for index in range(3):
            self.servers.command(index, "FLUSHALL")
        result = self.redlock("run", "-n", "--fence", "job", *PRINT)
        self.assertCode(result, 69)
        self.assertIn("fence_majority_lost", result.stderr)
        self.assertCode(self.redlock("run", "-n", "job", "--", "true"), 0)
        result = self.redlock("nodes", "--init")
        self.assertCode(result, 0)
        self.assertGreater(self.fence(), last)

    def test_init_names_servers_left_out(self):
        """`nodes --init` names the servers that it could not reach."""
        self.servers.stop(4)
        result = self.redlock("nodes", "--init")
        self.assertCode(result, 0)
        self.assertRegex(result.stderr, rf":{self.servers.ports[4]} is left out: ")
        self.assertEqual(result.stderr.count("left out"), 1)
        self.servers.continue_all()
        self.assertIsNone(self.servers.command(4, "HGET", RECORD, "cfg"))
        self.assertIsNotNone(self.servers.command(3, "HGET", RECORD, "cfg"))

    def test_init_needs_a_majority(self):
        """`nodes --init` fails without a majority of servers."""
        self.servers.stop(0, 1, 2)
        result = self.redlock("nodes", "--init", "--connect-timeout", "100ms")
        self.assertCode(result, 69)
        self.assertIn("nothing was changed", result.stderr)
        self.servers.continue_all()
        self.assertEqual(self.servers.command(3, "HGET", RECORD, "cfg"), None)

    def test_durable_records_must_be_attested(self):
        """Durable records need ?durable=1 in the addresses."""
        environment = self.environment(REDLOCK_FENCE_RECORDS="durable")
        result = self.redlock("run", "--fence", "job", *PRINT, env=environment)  # fails at once: waiting cannot help
        self.assertCode(result, 78)
        self.assertRegex(result.stderr, r"^redlock: \S+: not acquired: .* not attested as durable .*: write ")
        self.assertEqual(result.stderr.count("attested"), 1)  # the reason is said once
        self.assertIn("5 of 5 servers", result.stderr)
        servers = self.servers.list.replace("fresh=1", "durable=1")
        self.assertIn("durable=1", servers)
        self.fence(env=self.environment(REDLOCK_SERVERS=servers, REDLOCK_FENCE_RECORDS="durable"))

    def test_settings_of_fences(self):
        """The settings about fences are shown and checked."""
        self.assertGreater(self.fence(env=self.environment(REDLOCK_FENCE_KEY="my:numbers")), 0)
        self.assertEqual(self.servers.command_all("EXISTS", "my:numbers", RECORD), [1] * 5)
        result = self.redlock("config", env=self.environment(REDLOCK_FENCE_RECORDS="sometimes"))
        self.assertCode(result, 78)
        self.assertIn("durable or volatile", result.stderr)
        path = self.path("file", "[redlock]\nfence-key = k\nfence-records = volatile\n")
        shown = self.redlock("config", "--json", "-f", path, env=clean_environment())
        settings = json.loads(shown.stdout)["settings"]
        self.assertEqual(settings["fence-records"]["value"], "volatile")
        self.assertEqual(settings["fence-key"]["value"], "k")

    def test_records_have_no_expiry(self):
        """A fence record never expires."""
        self.fence()
        until(lambda: self.servers.command_all("PTTL", RECORD) == [-1] * 5, "records without a TTL")


if __name__ == "__main__":
    tapcase.main()
