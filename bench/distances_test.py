# SPDX-License-Identifier: MIT
"""Runs distances.py: a row for each distance and scenario, and no acquisition is faster than the network."""

import json
import os
import subprocess
import sys
import unittest

import tapcase

REDLOCK = os.environ["REDLOCK_TEST_COMMAND"]
BUILD = os.environ["REDLOCK_TEST_BUILD"]
SLOW = int(os.environ.get("REDLOCK_TEST_SLOW", "1"))
DRIVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "distances.py")


def run(*words, sandbox=True):
    """Runs distances.py, in a sandbox or without one. Returns the finished process."""
    command = [sys.executable, DRIVER, "--build", BUILD, *words]
    if sandbox:
        command = [REDLOCK, "sandbox", "-q", "--", *command]
    environment = {name: value for name, value in os.environ.items() if name != "REDLOCK_SERVERS"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120 * SLOW, check=False)


class Distances(unittest.TestCase):
    def test_nothing_is_faster_than_the_network(self):
        done = run("--json", "--each-way", "1ms,5ms", "--seconds", "1", "--warm", "2", "--scenario", "embedded-1", "--seed", "3")
        self.assertIn(done.returncode, (0, 1), done.stderr)  # 1: servers of a busy machine replied late
        rows = json.loads(done.stdout)["rows"]
        self.assertEqual([row["each_way"] for row in rows], ["1ms", "5ms", "500us, one 15ms"])
        for row, way_ms in zip(rows, (1, 5, 0.5), strict=True):
            self.assertGreaterEqual(row["trip_ms"], 2 * way_ms)
            self.assertGreaterEqual(row["acquire_p50_ms"], 2 * way_ms)
            self.assertGreaterEqual(row["baseline_pair_p50_ms"], 4 * way_ms)
            # A row lasts a second: batches of 20 pairs, each of two round trips, not the 500 pairs of a near server.
            self.assertLessEqual(row["pairs"], 20 + 1000 / (4 * way_ms))
        # The baseline waits for the slow server, the library does not.
        self.assertGreaterEqual(rows[-1]["baseline_pair_p50_ms"], 60)
        self.assertLess(rows[-1]["acquire_p50_ms"], 30)

    def test_the_table_has_a_row_for_each_scenario(self):
        done = run("--each-way", "100us", "--seconds", "1", "--no-slow", "--scenario", "embedded-1,threaded-1")
        self.assertIn(done.returncode, (0, 1), done.stderr)
        lines = [line.split() for line in done.stdout.splitlines() if line.startswith("100us ")]
        self.assertEqual([line[2] for line in lines], ["embedded-1", "threaded-1"])

    def test_invalid_options_are_refused(self):
        self.assertEqual(run(sandbox=False).returncode, 69)
        for words, text in (
            (("--scenario", "open"), "with the baseline as its other side"),
            (("--each-way", "near"), "a time with its unit"),
        ):
            done = run(*words, sandbox=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn(text, done.stderr)
        done = run("--build", "/nonexistent", "--each-way", "1ms")
        self.assertNotEqual(done.returncode, 0)


if __name__ == "__main__":
    tapcase.main()
