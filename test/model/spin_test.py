# SPDX-License-Identifier: MIT
"""The model for Spin has the results of the model in C: no violation, and one for each rule that is switched
off. Skipped where spin is missing (Debian: apt-get install spin)."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest

import tapcase

HERE = os.path.dirname(os.path.abspath(__file__))
SECONDS_MAX = 600  # time limit of each program


def explore(*changes):
    """Runs Spin on the model with `changes`, which are options -D… of its preprocessor. Returns the
    numbers of violations and of states."""
    with tempfile.TemporaryDirectory() as directory:

        def run(*command):
            return subprocess.run(
                command,
                cwd=directory,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=SECONDS_MAX,
                check=False,
            ).stdout

        shutil.copy(os.path.join(HERE, "fence.pml"), directory)
        said = run("spin", *changes, "-a", "fence.pml")
        said += run("cc", "-w", "-O2", "-DSAFETY", "-o", "pan", "pan.c")
        said += run("./pan", "-E", "-m10000")
    errors = re.search(r"errors: (\d+)", said)
    states = re.search(r"(\d+) states, stored", said)
    if not errors or not states:
        raise AssertionError(said)
    if "Search not completed" in said and errors.group(1) == "0":
        raise AssertionError(said)
    return int(errors.group(1)), int(states.group(1))


@unittest.skipUnless(shutil.which("spin"), "no spin in PATH")
class Spin(unittest.TestCase):
    def test_the_algorithm_holds(self):
        """The lower bound proves that Spin has seen the whole model and not a part of it."""
        errors, states = explore()
        self.assertEqual(errors, 0)
        self.assertGreater(states, 1000000)

    def test_equal_proposals_are_not_accepted(self):
        self.assertEqual(explore("-DEQUAL_ACCEPTED")[0], 1)

    def test_a_raise_needs_its_owner(self):
        self.assertEqual(explore("-DGUARD=true")[0], 1)

    def test_acks_count_from_votes_that_were_used(self):
        self.assertEqual(explore("-DCOUNTS=true")[0], 1)


if __name__ == "__main__":
    tapcase.main()
