# SPDX-License-Identifier: MIT
"""usage: inside.py --directory D --compiler C [--option O]... [--wrapper W] [--slow N] SUITE...

Builds what the suites need and runs them, as test/runner does, but with any compiler and any options of meson. For a row of
the matrix, in whose system it runs, and for a build of test/package.
"""

import argparse
import importlib.util
import os
import sys

sys.dont_write_bytecode = True
RUNNER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner")
sys.path.insert(0, RUNNER)
import table  # noqa: E402


def load_runner():
    """Returns the module of the test runner."""
    spec = importlib.util.spec_from_file_location("runner", os.path.join(RUNNER, "__main__.py"))
    runner = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(runner)
    return runner


def main():
    """Runs the suites of the command line, and returns the exit status."""
    parser = argparse.ArgumentParser(usage=__doc__.split("\n", maxsplit=1)[0].replace("usage: ", ""))
    parser.add_argument("--directory", required=True)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--option", action="append", default=[])
    parser.add_argument("--wrapper", default="")
    parser.add_argument("--slow", type=int, default=2)
    parser.add_argument("suites", nargs="+")
    chosen = parser.parse_args()
    runner = load_runner()
    os.chdir(runner.SOURCE)
    build = table.Build(name="matrix", directory=chosen.directory, compiler=chosen.compiler, options=chosen.option,
                        suites=chosen.suites, wrapper=chosen.wrapper.split(), slow=chosen.slow, environment={},
                        targets="needed")  # fmt: skip
    totals = runner.Totals()
    totals.checked = True  # the table of builds does not name this one
    runner.run_all([build], chosen.suites, totals)
    for failure in totals.failures:
        print(f"FAILED {failure}")
    print(f"{totals.passed} passed, {totals.failed} failed, {totals.skipped} skipped")
    return 0 if totals.failed == 0 and totals.passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
