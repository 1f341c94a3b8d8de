# SPDX-License-Identifier: MIT
"""usage: ./dev test [--build NAME]... [--list] [SUITE or TEST]...

Builds and runs the tests after the table in test/runner/table.py. Without names everything runs. The
last line is `N passed, N failed, N skipped`; the exit status is 0 only if nothing failed and something
passed.
"""

import argparse
import concurrent.futures
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import builddir  # noqa: E402
import program  # noqa: E402
import table  # noqa: E402

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TAIL_LINES = 60


def say(text=""):
    print(text, flush=True)


class Totals:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.seconds = {}  # (suite, build) -> seconds of its programs
        self.failures = []

    def add(self, build, suite, name, outcome):
        result = outcome.result
        self.passed += result.passed
        self.failed += result.failed
        self.skipped += result.skipped
        key = (suite, build)
        self.seconds[key] = self.seconds.get(key, 0) + outcome.seconds
        if result.failed:
            self.failures.append(f"{build}/{suite}/{name}: {'; '.join(result.reasons)}")

    def add_failure(self, text):
        self.failed += 1
        self.failures.append(text)


def suite_of(test):
    """The suite without the project's name in front; a test without one has the suite ''."""
    suites = [name.partition(":")[2] for name in test["suite"]]
    return suites[0] if suites else ""


def tail(text, lines=TAIL_LINES):
    """The end of an output, without the cases that passed."""
    text = re.sub(r"^ok \d+.*\n", "", text, flags=re.MULTILINE)
    return "\n".join("    | " + line for line in text.rstrip().split("\n")[-lines:])


def report(build, suite, test, outcome):
    result = outcome.result
    counts = [f"{result.passed:4} passed"]
    if result.failed:
        counts.append(f"{result.failed} failed")
    if result.skipped:
        counts.append(f"{result.skipped} skipped")
    say(f"  {build:9}{suite:12}{test['name']:28}{outcome.seconds:7.1f} s {', '.join(counts)}")
    for reason in result.reasons:
        say(f"      {reason}")
    if result.failed:
        say(tail(program.read_text(outcome.log)))
        say(f"    the whole log: {os.path.relpath(outcome.log, SOURCE)}")


def is_compiled(test, directory):
    first = os.path.realpath(test["cmd"][0])
    return first.startswith(os.path.realpath(directory) + os.sep)


def steady_addresses():
    """Sanitizers of older compilers do not start where the kernel randomises addresses widely."""
    words = ["setarch", "-R"]
    try:
        steady = subprocess.run([*words, "true"], stderr=subprocess.DEVNULL, check=False)
    except OSError:
        return []
    return words if steady.returncode == 0 else []


def choose(tests, build, names):
    chosen = []
    for test in tests:
        suite = suite_of(test)
        if names and suite not in names and test["name"] not in names:
            continue
        if suite in build.suites and (not build.wrapper or is_compiled(test, build.directory)):
            chosen.append(test)
    return chosen


def run_tests(build, tests, totals):
    """First those that may share the machine, two at a time, then the others one by one."""
    wrapper = build.wrapper
    if any("b_sanitize" in option for option in build.options):
        wrapper = steady_addresses()
    logs = os.path.join(build.directory, "test-logs", build.name)
    os.makedirs(logs, exist_ok=True)

    def is_serial(test):
        return not test["is_parallel"] or suite_of(test) in table.SERIAL_SUITES

    for serial, workers in ((False, 2), (True, 1)):
        batch = [test for test in tests if is_serial(test) == serial]
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            runs = {pool.submit(program.run, test, build, logs, wrapper): test for test in batch}
            try:
                for done in concurrent.futures.as_completed(runs):
                    test = runs[done]
                    totals.add(build.name, suite_of(test), test["name"], done.result())
                    report(build.name, suite_of(test), test, done.result())
            except KeyboardInterrupt:
                for waiting in runs:
                    waiting.cancel()
                program.stop_all()
                raise


def missing_tool(build):
    for tool in [build.compiler, *build.wrapper[:1]]:
        if shutil.which(tool) is None:
            return tool
    return None


def introspect(directory):
    output = subprocess.run(
        ["meson", "introspect", "--tests", directory], stdout=subprocess.PIPE, check=True
    )
    return json.loads(output.stdout)


def prepare(build, totals):
    """The tests of that build, or None if it cannot be built here."""
    tool = missing_tool(build)
    if tool:
        say(f"build {build.name}: skipped: {tool} is not installed")
        totals.skipped += 1
        return None
    started = time.monotonic()
    try:
        builddir.ensure(build.directory, SOURCE, build.options, build.compiler)
    except builddir.BuildFailure as failure:
        say(tail(failure.args[1]))
        say(f"build {build.name}: failed: {failure.args[0]}")
        totals.add_failure(f"build {build.name}: {failure.args[0]}")
        return None
    say(f"build {build.name}: {time.monotonic() - started:.1f} s")
    return introspect(build.directory)


def check_table(tests, totals):
    """No suite without a row, no row without a test going unnoticed."""
    named = {suite for build in table.BUILDS for suite in build.suites}
    present = {suite_of(test) for test in tests}
    for suite in sorted(present - named):
        names = ", ".join(test["name"] for test in tests if suite_of(test) == suite)
        totals.add_failure(f"suite '{suite}' is in no row of test/runner/table.py: {names}")
        say(totals.failures[-1])
    for suite in sorted(named - present):
        say(f"suite {suite}: has no tests")


def check_names(tests, names):
    """Before an hour of compiling, not after it."""
    known = {suite_of(test) for test in tests} | {test["name"] for test in tests}
    for name in names:
        if name not in known:
            sys.exit(f"dev test: no suite or test is named {name}")


def concerns(build, names):
    """False if only suites are asked for and that build runs none of them."""
    suites = {suite for each in table.BUILDS for suite in each.suites}
    return not names or not set(names) <= suites or bool(set(names) & set(build.suites))


def print_table(builds, totals):
    suites = sorted({suite for suite, _ in totals.seconds})
    if not suites:
        return
    say("\nseconds     " + "".join(f"{build.name:>10}" for build in builds))
    for suite in suites:
        cells = [totals.seconds.get((suite, build.name)) for build in builds]
        say(f"{suite:12}" + "".join(f"{'-' if cell is None else f'{cell:.1f}':>10}" for cell in cells))


def processor_seconds():
    """Of everything that was started: tells a busy machine from slow tests."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def list_tests(builds, names):
    for build in builds:
        if not os.path.isdir(build.directory):
            sys.exit(f"{build.directory} is not there yet: run ./dev test once")
        for test in choose(introspect(build.directory), build, names):
            say(f"{build.name:9}{suite_of(test):12}{test['name']}")


def arguments():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n")[0].replace("usage: ", ""))
    parser.add_argument("--build", action="append", help="only this build: "
                        + ", ".join(build.name for build in table.BUILDS))
    parser.add_argument("--list", action="store_true", help="list what would run, run nothing")
    parser.add_argument("names", nargs="*", metavar="SUITE or TEST")
    chosen = parser.parse_args()
    known = {build.name for build in table.BUILDS}
    for name in chosen.build or []:
        if name not in known:
            parser.error(f"no build named {name}; there are: {', '.join(sorted(known))}")
    return chosen


def main():
    chosen = arguments()
    os.chdir(SOURCE)
    builds = [build for build in table.BUILDS if not chosen.build or build.name in chosen.build]
    builds = [build for build in builds if concerns(build, chosen.names)]
    if chosen.list:
        return list_tests(builds, chosen.names)
    started = time.monotonic()
    totals = Totals()
    checked = False
    for build in builds:
        tests = prepare(build, totals)
        if tests is None:
            continue
        if not checked and chosen.names:
            check_names(tests, chosen.names)
        elif not checked:
            check_table(tests, totals)
        checked = True
        run_tests(build, choose(tests, build, chosen.names), totals)
    print_table(builds, totals)
    say(f"\n{time.monotonic() - started:.0f} s in all, {processor_seconds():.0f} s of processor time")
    for failure in totals.failures:
        say(f"FAILED {failure}")
    if totals.passed + totals.failed == 0:
        say("no test ran: that is a failure too")
    say(f"{totals.passed} passed, {totals.failed} failed, {totals.skipped} skipped")
    return 0 if totals.failed == 0 and totals.passed > 0 else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
