# SPDX-License-Identifier: MIT
"""usage: ./dev coverage [--show] [--again] [SUITE or TEST]...
       ./dev sim --coverage [OPTION of redlock-sim]...

Builds with gcc's coverage counters, runs the tests (without names: the suites below) and prints for
each file of lib/ how many of its statements and branches were reached. --show names those that were
not; --again prints the figures of the last run without running anything. ./dev sim --coverage runs a
campaign of the simulator instead, and prints the figures of the layers that the simulator uses.

The branches of an RL_ASSERT are not counted, because one of them ends the process.
"""

import argparse
import collections
import glob
import importlib.util
import json
import os
import re
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import processes  # noqa: E402
import table  # noqa: E402

SOURCE = os.path.dirname(os.path.dirname(HERE))
DIRECTORY = "build-coverage"
SUITES = "unit fuzz io oom torture sim live"
FLOORS_SIMULATED = ["core", "node", "engine"]
ASSERTION = re.compile(r"\bRL_ASSERT\s*\(")

BUILD = table.Build(
    name="coverage",
    directory=DIRECTORY,
    compiler="gcc",
    # Static: a forked child that writes its counters would leave out those of a shared library.
    options=["-Db_coverage=true", "-Doptimization=0", "-Ddefault_library=static", "-Dexamples=disabled"],
    suites=SUITES.split(),
    targets="needed",
    wrapper=[],
    slow=3,
    environment=table.ONE_PROCESS,
)


def load_runner():
    """Returns the module of __main__.py."""
    spec = importlib.util.spec_from_file_location("runner", os.path.join(HERE, "__main__.py"))
    runner = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(runner)
    return runner


def forget_counters():
    """Removes the counters of earlier runs."""
    for path in glob.glob(os.path.join(DIRECTORY, "**", "*.gcda"), recursive=True):
        os.remove(path)


def run_campaign(options):
    """Builds and runs the simulator with these options. Returns whether it succeeded."""
    simulator = os.path.join("test", "sim", "redlock-sim")
    runner = load_runner()
    try:
        runner.builddir.ensure(BUILD.directory, SOURCE, BUILD.options, BUILD.compiler,
                               targets=lambda _: [simulator])  # fmt: skip
    except runner.builddir.BuildFailure as failure:
        sys.exit(f"{failure.args[1]}\ncoverage: {failure.args[0]}")
    forget_counters()
    with processes.start([os.path.join(DIRECTORY, simulator), *options]) as campaign:
        status = campaign.wait()
    if status == 64:  # usage error
        sys.exit(status)
    return status == 0


def run_tests(names):
    """Runs the suites of BUILD, and the tests with these names. Returns whether they passed."""
    runner = load_runner()
    totals = runner.Totals()
    forget_counters()
    started = time.monotonic()
    build = BUILD._replace(suites=list({*BUILD.suites, *names}))
    runner.run_all([build], names, totals)
    print(f"{time.monotonic() - started:.0f} s; {totals.passed} passed, {totals.failed} failed, "
          f"{totals.skipped} skipped")  # fmt: skip
    for failure in totals.failures:
        print(f"FAILED {failure}")
    return totals.failed == 0


def assertion_lines(name):
    """Returns the numbers of the lines of each RL_ASSERT(…), to its closing parenthesis."""
    lines = set()
    depth = 0
    with open(name, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            start = ASSERTION.search(line)
            if depth == 0 and not start:
                continue
            lines.add(number)
            for letter in line[start.start() if depth == 0 and start else 0 :]:
                depth += (letter == "(") - (letter == ")")
    return lines


def read_counters():
    """Returns {file: {line: [executions, branches, branches taken]}} of the sources below lib/."""
    files = collections.defaultdict(dict)
    for path in sorted(glob.glob(os.path.join(DIRECTORY, "lib", "libredlock-*.a.p", "*.gcno"))):
        folder = os.path.dirname(path)
        done = subprocess.run(["gcov", "-b", "-j", "-t", os.path.abspath(path)], cwd=folder,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)  # fmt: skip
        for entry in json.loads(done.stdout)["files"]:
            name = os.path.relpath(os.path.normpath(os.path.join(DIRECTORY, entry["file"])), ".")
            if not name.startswith("lib/") or not name.endswith(".c"):
                continue
            passed_over = assertion_lines(name)
            for line in entry["lines"]:
                number = line["line_number"]
                counts = files[name].setdefault(number, [0, 0, 0])
                counts[0] += line["count"]
                if number not in passed_over:
                    counts[1] += len(line["branches"])
                    counts[2] += sum(branch["count"] > 0 for branch in line["branches"])
    return files


def percent(part, whole):
    """Returns the share in percent; 100 of nothing."""
    return 100 * part / whole if whole else 100


def ranges(numbers):
    """[1, 2, 3, 7] -> "1-3 7"."""
    found = []
    for number in sorted(numbers):
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in found)


def print_row(name, lines):
    """Prints the numbers of one file, or of all."""
    statements = (sum(count > 0 for count, _, _ in lines), len(lines))
    branches = (sum(taken for _, _, taken in lines), sum(all_ for _, all_, _ in lines))
    print(f"{name:28}{statements[0]:7} of {statements[1]:5}{percent(*statements):7.1f} %"
          f"{branches[0]:8} of {branches[1]:5}{percent(*branches):7.1f} %")  # fmt: skip


def print_figures(files, show):
    """Prints the table; with `show`, also the lines that were not reached."""
    print(f"\n{'':28}{'statements':>24}{'branches':>25}")
    for name in sorted(files):
        lines = files[name]
        print_row(name[len("lib/") :], list(lines.values()))
        missed = [number for number, counts in lines.items() if counts[0] == 0]
        halves = [number for number, counts in lines.items() if counts[0] and counts[2] < counts[1]]
        if show and missed:
            print(f"    not reached: {ranges(missed)}")
        if show and halves:
            print(f"    branches not taken: {ranges(halves)}")
    for layer in sorted({name.split("/")[1] for name in files}):
        below = [lines for name, lines in files.items() if name.startswith(f"lib/{layer}/")]
        print_row(f"all of {layer}", [counts for lines in below for counts in lines.values()])
    print_row("all", [counts for lines in files.values() for counts in lines.values()])


def main():
    """Runs the tests as the command line says, and prints the coverage."""
    parser = argparse.ArgumentParser(prog="./dev coverage", description=__doc__.partition("\n\n")[2],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--show", action="store_true", help="name the lines that were not reached")
    parser.add_argument("--again", action="store_true", help="only print the last run's figures")
    parser.add_argument("--sim", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*", metavar="SUITE or TEST")
    chosen = parser.parse_args()
    os.chdir(SOURCE)
    processes.end_on_signals()
    run = run_campaign if chosen.sim else run_tests
    good = chosen.again or run(chosen.names)
    files = read_counters()
    if chosen.sim:
        files = {name: lines for name, lines in files.items() if name.split("/")[1] in FLOORS_SIMULATED}
    if not files:
        sys.exit("coverage: nothing was built yet")
    print_figures(files, chosen.show)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
