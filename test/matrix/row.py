# SPDX-License-Identifier: MIT
"""What all rows of the matrix share: their result, and the runs of the test suites of which it is made."""

import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(SOURCE, "test", "lib"))
sys.path.insert(0, os.path.join(SOURCE, "test", "abi"))

SUMS = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", re.MULTILINE)


class Skipped(Exception):
    """The row cannot be had here. The argument is the reason."""


class Result:
    """The sums of a row, the versions that it ran with, and the text of each failure."""

    def __init__(self, output, versions):
        """Reads the output of the test runner. A run that did not end with its sums has failed."""
        sums = SUMS.findall(output)
        self.passed, self.failed, self.skipped = (int(word) for word in sums[-1]) if sums else (0, 1, 0)
        self.versions = versions
        self.failures = re.findall(r"^FAILED (.*)$", output, re.MULTILINE)
        if not sums or not self.passed:
            self.failures.append(output.strip()[-2500:])


def run(words, **more):
    """Runs a command with nice and returns it with its output, stderr included."""
    return subprocess.run(["nice", "-n", "10", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False, errors="replace", **more)  # fmt: skip


def inside(directory, compiler, suites, options=(), wrapper="", slow=2):
    """Returns the words that run the suites in the system in which they are executed."""
    words = ["python3", "test/matrix/inside.py", "--directory", directory, "--compiler", compiler, "--slow", str(slow)]
    words += [word for option in options for word in (f"--option={option}",)]
    if wrapper:
        words += ["--wrapper", wrapper]
    return [*words, *suites]
