# SPDX-License-Identifier: MIT
"""Tests of the options of redlock-sim: one run, a case of contention, and a campaign."""

import os
import signal
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "lib"))
import tapcase  # noqa: E402


def run(*options):
    done = subprocess.run([os.environ["SIMULATOR"], *options], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)  # fmt: skip
    return done.returncode, done.stdout.decode(), done.stderr.decode()


class Options(unittest.TestCase):
    def test_trace_needs_a_seed(self):
        for more in [], ["--runs", "1"]:
            status, out, err = run("--trace", *more)
            self.assertEqual((status, out), (64, ""))
            self.assertIn("--seed", err)

    def test_one_run_is_printed_and_repeats(self):
        status, out, _ = run("--seed", "7", "--trace")
        self.assertEqual(status, 0)
        self.assertGreater(out.count("\n"), 100)
        self.assertTrue(out.splitlines()[-1].startswith("seed 7: "))
        self.assertEqual(run("--trace", "--seed", "7")[1], out)

    def test_a_case_of_contention_is_measured(self):
        status, out, _ = run("--case", "waiting")
        self.assertEqual(status, 0)
        self.assertRegex(out, r"^waiting +\d+ grants")
        self.assertEqual(run("--case", "waiting", "--seed", "1")[1], out)
        self.assertIn("no case is called 'queue'", run("--case", "queue")[2])
        self.assertEqual(run("--case", "queue")[0], 64)

    def test_the_clients_of_a_case_use_lines_or_not(self):
        on = run("--case", "waiting")[1]
        self.assertEqual(run("--case", "waiting", "--lines", "on")[1], on)
        status, off, _ = run("--case", "waiting", "--lines", "off")
        self.assertEqual(status, 0)
        self.assertRegex(off, r"^waiting +\d+ grants")
        self.assertNotEqual(off, on)
        status, out, err = run("--case", "waiting", "--lines", "some")
        self.assertEqual((status, out), (64, ""))
        self.assertIn("'some' is neither on nor off", err)

    def test_a_campaign_that_a_signal_ends_prints_its_totals(self):
        for sig in signal.SIGINT, signal.SIGTERM:
            campaign = subprocess.Popen([os.environ["SIMULATOR"], "--first", "1", "--hours", "1", "--jobs", "2"],
                                        stdout=subprocess.PIPE)  # fmt: skip
            campaign.stdout.readline()
            campaign.send_signal(sig)
            out = campaign.communicate(timeout=120)[0].decode()
            self.assertEqual(campaign.returncode, 0)
            self.assertRegex(out, r"schedules +\d+\b")
            self.assertRegex(out, r"violations +0\b")

    def test_a_campaign_prints_its_totals(self):
        status, out, _ = run("--first", "1", "--runs", "4", "--jobs", "2")
        self.assertEqual(status, 0)
        self.assertRegex(out, r"schedules +4\b")
        self.assertRegex(out, r"violations +0\b")


if __name__ == "__main__":
    tapcase.main()
