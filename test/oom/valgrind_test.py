# SPDX-License-Identifier: MIT
"""Runs smoke.c, which calls each public function, under valgrind: no bad access, no leak, and no
descriptor left open."""

import os
import re
import shutil
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import tapcase  # found below test/lib

SMOKE = os.environ["SMOKE"]  # path of the program smoke.c
SYMBOLS = os.path.join(HERE, "..", "abi", "symbols.txt")  # all public functions, one in a line
SECONDS_MAX = 240  # time limit of the program under valgrind
VALGRIND = [
    "valgrind",
    "--quiet",
    "--error-exitcode=99",
    "--leak-check=full",
    "--show-leak-kinds=all",
    "--errors-for-leak-kinds=all",
    "--track-fds=yes",
    "--num-callers=30",
]
# What a process has at its end that it did not open itself is marked; the rest is a leak.
OPEN = re.compile(r"Open (?:file descriptor|AF_\w+ socket) (\d+).*\n(.*)")


def public_functions():
    """Returns the names of all public functions."""
    with open(SYMBOLS, encoding="utf-8") as file:
        return [line.strip() for line in file if line.startswith("redlock_")]


class Valgrind(unittest.TestCase):
    def test_each_public_function_is_called(self):
        with open(os.path.join(HERE, "smoke.c"), encoding="utf-8") as file:
            source = file.read()
        names = public_functions()
        self.assertGreater(len(names), 50)
        self.assertEqual([name for name in names if not re.search(rf"\b{name}\(", source)], [])

    def test_nothing_is_wrong(self):
        done = subprocess.run(
            [*VALGRIND, SMOKE],
            env={**os.environ, "REDLOCK_TEST_SLOW": "10"},
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )
        if done.returncode == 77:
            self.skipTest(done.stdout.strip())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        left = [
            match.group(0)
            for match in OPEN.finditer(done.stderr)
            if int(match.group(1)) > 2 and "<inherited from parent>" not in match.group(2)
        ]
        self.assertEqual(left, [], done.stderr)


if __name__ == "__main__":
    if shutil.which("valgrind") is None:
        tapcase.skip_all("valgrind is not installed")
    tapcase.main()
