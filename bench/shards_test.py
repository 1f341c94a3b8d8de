# SPDX-License-Identifier: MIT
"""Runs redlock-shards on servers of a sandbox: a row for each number of shards, without violations."""

import os
import subprocess
import unittest

import tapcase

COMMAND = os.environ["REDLOCK_TEST_COMMAND"]
SHARDS = os.environ["REDLOCK_TEST_SHARDS"]
SLOW = float(os.environ.get("REDLOCK_TEST_SLOW", "1"))


@unittest.skipUnless(os.path.exists(COMMAND), "the command was not built")
class Shards(unittest.TestCase):
    def run_shards(self, servers, *args):
        return subprocess.run(
            [COMMAND, "sandbox", "-q", "-n", str(servers), "--", SHARDS, *args],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=120 * SLOW,
            check=False,
        )

    def test_a_row_for_each_number_of_shards(self):
        result = self.run_shards(6, "3", "4", "1")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("# servers  6 x", result.stdout)
        rows = [line.split() for line in result.stdout.splitlines() if line[0].isdigit()]
        self.assertEqual([row[0] for row in rows], ["1", "2"])
        for row in rows:
            self.assertEqual(len(row), 12)
            self.assertTrue(all(float(figure) > 0 for figure in row[1:10]), row)
            times = [float(figure) for figure in row[2:8]]
            self.assertEqual(times, sorted(times))
            failed, violations = map(int, row[10:])
            self.assertLessEqual(failed, 20)  # of 2000: a machine that stands still delays replies
            self.assertEqual(violations, 0)

    def test_too_few_servers(self):
        result = self.run_shards(3, "5")
        self.assertEqual(result.returncode, 64)
        self.assertIn("3 servers are too few for a shard of 5", result.stderr)

    def test_refusals(self):
        for words in (["5x"], ["0"], ["32"], ["5", "4097"], ["5", "64", "1", "more"], ["--nonsense"]):
            result = self.run_shards(1, *words)
            self.assertEqual(result.returncode, 64, words)
            self.assertIn(f"not understood: '{words[-1]}'", result.stderr)


if __name__ == "__main__":
    tapcase.main()
