# SPDX-License-Identifier: MIT
"""Runs the tests of bindings/python with pytest, and reports them in TAP. The package is put together from the sources
and from the module that meson has built (BINDING). Runs inside `redlock sandbox`."""

import os
import sys
import tempfile

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(HERE, "..", "..", "bindings", "python")
sys.dont_write_bytecode = True


class Tap:
    """A plugin of pytest that prints a line of TAP for each test."""

    def __init__(self):
        self.number = 0

    def line(self, verdict, report, directive=""):
        """Prints the line of a test."""
        self.number += 1
        print(f"{verdict} {self.number} - {report.nodeid.split('::', 1)[-1]}{directive}", flush=True)

    @staticmethod
    def pytest_addoption(parser):
        """Defines the option that pytest reads to explain a failed assertion, in the place of the terminal plugin."""
        parser.addoption("--verbose", type=int, default=0)

    def pytest_runtest_logreport(self, report):
        """Reports the end of a test, or what failed before or after it."""
        if report.skipped:
            self.line("ok", report, f" # SKIP {report.longrepr[2]}")
        elif report.failed:
            self.line("not ok", report)
            for line in report.longreprtext.splitlines()[-6:]:
                print(f"  # {line}", flush=True)
        elif report.when == "call":
            self.line("ok", report)

    def pytest_collectreport(self, report):
        """Reports a test file that cannot be loaded."""
        if report.failed:
            self.line("not ok", report)
            print(report.longreprtext, file=sys.stderr)


def package(folder):
    """Puts the package together in a folder: links to its sources and to the module."""
    target = os.path.join(folder, "libredlock")
    os.mkdir(target)
    sources = os.path.join(SOURCE, "libredlock")
    for name in os.listdir(sources):
        if name.endswith(".py"):
            os.symlink(os.path.join(sources, name), os.path.join(target, name))
    module = os.environ["BINDING"]
    os.symlink(module, os.path.join(target, os.path.basename(module)))


def main():
    """Runs the tests, or those that the command line names. Returns the exit status."""
    with tempfile.TemporaryDirectory(prefix="python-") as folder:
        package(folder)
        sys.path.insert(0, folder)
        os.environ["PYTHONPATH"] = folder  # for the processes that the tests start
        tap = Tap()
        words = sys.argv[1:] or [os.path.join(SOURCE, "tests")]
        status = pytest.main(["-p", "no:cacheprovider", "-p", "no:terminal", *words], plugins=[tap])
        print(f"1..{tap.number}", flush=True)
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
