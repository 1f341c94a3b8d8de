# SPDX-License-Identifier: MIT
"""Tests of what ./dev fuzz makes of the end of a fuzzer. A shell script stands for the fuzzer."""

import contextlib
import io
import os
import shutil
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "lib")]
import campaign  # noqa: E402
import tapcase  # noqa: E402

STATISTICS = "echo '#397 DONE cov: 1330 ft: 1'; echo 'stat::number_of_executed_units: 397'\n"


class Ends(unittest.TestCase):
    """How a run of the fuzzer can end."""

    def setUp(self):
        """Makes a build directory for the script."""
        self.build = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.build)
        self.addCleanup(setattr, campaign, "BUILD", campaign.BUILD)
        campaign.BUILD = self.build

    def fuzz(self, script, seconds):
        """Runs the script as the fuzzer of each target. Returns the last result, and what was printed."""
        printed = io.StringIO()
        for target in campaign.targets():
            path = campaign.program(target, self.build)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="ascii") as file:
                file.write("#!/bin/sh\n" + script)
            os.chmod(path, 0o755)
            with contextlib.redirect_stdout(printed):
                result = campaign.fuzz(target, self.build, seconds)
        return result, printed.getvalue()

    def test_the_whole_time(self):
        """A run that lasts as long as it has to has passed."""
        self.assertEqual(self.fuzz(STATISTICS, 0), ((397, 1330, []), ""))

    def test_an_early_end_is_a_failure(self):
        """A run that ends before its time without an error has failed, and its output is shown."""
        (executions, _, mistakes), printed = self.fuzz(STATISTICS, 3600)
        self.assertEqual((executions, len(mistakes)), (397, 1))
        for target in campaign.targets():
            self.assertRegex(printed, rf"{target}: exit status 0 after \d+ of 3600 s\n")
        self.assertIn("#397 DONE", printed)

    def test_a_failure_without_an_input(self):
        """An exit status other than 0 is a failure, whenever the run ends."""
        (_, _, mistakes), printed = self.fuzz("echo no; exit 3\n", 0)
        self.assertEqual(len(mistakes), 1)
        self.assertRegex(mistakes[0], r"^exit status 3 after \d+ of 0 s$")
        self.assertIn("no\n", printed)


if __name__ == "__main__":
    tapcase.main()
