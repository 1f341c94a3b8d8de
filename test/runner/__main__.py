# SPDX-License-Identifier: MIT
"""usage: ./dev test [--all | --build NAME...] [--compile | --list] [SUITE or TEST]...

Builds with gcc and runs its suites after the table in test/runner/table.py; with --all also those of the other builds, in
which the sanitizers and valgrind look on and servers speak TLS. A suite or test that is named runs in gcc, whether the table
gives it to gcc or not, and with --all in the other builds of its suite. The last line is
`N passed, N failed, N skipped`; the exit status is 0 only if nothing failed and something passed. SIGHUP, SIGINT and SIGTERM
end all that was started; the exit status is then 128 + N.
"""

import argparse
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import builddir  # noqa: E402
import lanes  # noqa: E402
import over_tls  # noqa: E402
import processes  # noqa: E402
import program  # noqa: E402
import table  # noqa: E402

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TAIL_LINES = 60
USUAL = table.BUILDS[0]  # what runs without --all and --build
BUILDS = [*table.BUILDS, *over_tls.BUILDS]


def say(text=""):
    """Prints a line at once."""
    print(text, flush=True)


class Totals:
    """The sums of a whole run. Several threads add to it."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.seconds = {}  # (suite, build) -> seconds of its programs
        self.computed = {}  # (suite, build) -> processor seconds of its programs
        self.failures = []
        self.checked = False  # whether the names, or the table, were checked against the first build
        self.lock = threading.Lock()

    def add(self, build, suite, name, outcome):
        """Adds the result of one program."""
        result = outcome.result
        self.passed += result.passed
        self.failed += result.failed
        self.skipped += result.skipped
        key = (suite, build)
        self.seconds[key] = self.seconds.get(key, 0) + outcome.seconds
        self.computed[key] = self.computed.get(key, 0) + outcome.computed
        if result.failed:
            self.failures.append(f"{build}/{suite}/{name}: {'; '.join(result.reasons)}")

    def add_failure(self, text):
        """Adds a failure that no program has reported."""
        self.failed += 1
        self.failures.append(text)


def suite_of(test):
    """Returns the suite of a test without the project's name in front, or '' if it has none."""
    suites = [name.partition(":")[2] for name in test["suite"]]
    return suites[0] if suites else ""


def tail(text, lines=TAIL_LINES):
    """Returns the end of an output, without the cases that passed."""
    text = re.sub(r"^ok \d+.*\n", "", text, flags=re.MULTILINE)
    return "\n".join("    | " + line for line in text.rstrip().split("\n")[-lines:])


def report(build, suite, test, outcome):
    """Prints the line about one program, and the reasons of its failures and skips."""
    result = outcome.result
    counts = [f"{result.passed:4} passed"]
    if result.failed:
        counts.append(f"{result.failed} failed")
    if result.skipped:
        counts.append(f"{result.skipped} skipped")
    times = f"{outcome.seconds:7.1f} s{outcome.computed:7.1f} s cpu"
    say(f"  {build:9}{suite:12}{test['name']:28}{times} {', '.join(counts)}")
    for reason in result.reasons:
        say(f"      {reason}")
    if result.failed:
        say(tail(program.read_text(outcome.log)))
        say(f"    the whole log: {os.path.relpath(outcome.log, SOURCE)}")


def is_compiled(test, directory):
    """Returns whether the test's program was built in this directory. Others, such as Python, do not run under a
    wrapper."""
    first = os.path.realpath(test["cmd"][0])
    return first.startswith(os.path.realpath(directory) + os.sep)


def steady_addresses():
    """Turns address randomization off: sanitizers of older compilers do not start where it is wide."""
    words = ["setarch", "-R"]
    try:
        steady = subprocess.run([*words, "true"], stderr=subprocess.DEVNULL, check=False)
    except OSError:
        return []
    return words if steady.returncode == 0 else []


def choose(tests, build, names):
    """Returns the tests that this build runs: those with the given names or suites, or all of the table. The usual build
    also runs what is named and has no row there."""
    chosen = []
    suites = [*build.suites, *(names if build.name == USUAL.name else [])]
    for test in tests:
        suite = suite_of(test)
        if names and suite not in names and test["name"] not in names:
            continue
        if test["name"] not in names and not table.runs(build, suite, test["name"]):
            continue
        named = build.name == USUAL.name and test["name"] in names
        if (suite in suites or named) and (not build.wrapper or is_compiled(test, build.directory)):
            chosen.append(test)
    return chosen


def leave_out(tests, build, totals):
    """Returns the tests that can run over TLS, if this build does. Reports and counts the others as skipped."""
    kept = []
    for test in tests:
        reason = over_tls.reason(build, test["name"])
        if reason is None:
            kept.append(test)
            continue
        with totals.lock:
            totals.skipped += 1
            say(f"  {build.name:9}{suite_of(test):12}{test['name']:28} skipped: {reason}")
    return kept


def wrapper_of(build, niceness):
    """Returns the words in front of the command of a program: nice, valgrind, or fixed addresses for sanitizers."""
    wrapper = build.wrapper
    if any("b_sanitize" in option for option in build.options):
        wrapper = steady_addresses()
    return [*(["nice", "-n", str(niceness)] if niceness else []), *wrapper]


def run_test(build, test, niceness, totals):
    """Runs one program and reports its result."""
    logs = os.path.join(build.directory, "test-logs", build.name)
    os.makedirs(logs, exist_ok=True)
    outcome = program.run(test, build, logs, wrapper_of(build, niceness))
    with totals.lock:
        totals.add(build.name, suite_of(test), test["name"], outcome)
        report(build.name, suite_of(test), test, outcome)


def run_builds(directories, builds, names, jobs, totals):
    """Compiles one directory after the other and adds its tests to the jobs. Compilers use all cores by themselves,
    and two of them must not work in a directory that builds share."""
    for build in builds:
        if build.directory != directories[0]:
            continue
        tests = prepare(build, names, totals)
        for test in leave_out(choose(tests or [], build, names), build, totals):
            lane = table.lane(build, suite_of(test))
            # Compiling has rank 0: the other lane waits for it.
            jobs.add(lane, table.rank(test), run_test, build, test, lanes.NICENESS[lane], totals)
    if directories[1:]:
        jobs.add(lanes.COMPUTING, 0, run_builds, directories[1:], builds, names, jobs, totals)


def run_all(builds, names, totals):
    """Builds and runs everything, on both lanes."""
    jobs = lanes.Lanes()
    directories = list(dict.fromkeys(build.directory for build in builds))
    jobs.add(lanes.COMPUTING, 0, run_builds, directories, builds, names, jobs, totals)
    jobs.run()


def missing_tool(build):
    """Returns the compiler or wrapper that is not installed, or None."""
    for tool in [build.compiler, *build.wrapper[:1]]:
        if shutil.which(tool) is None:
            return tool
    return None


def introspect(directory, what="tests"):
    """Returns what `meson introspect` prints of the build directory: the list of its tests by default. Meson has written it
    to this file; the command would take half a second."""
    with open(os.path.join(directory, "meson-info", f"intro-{what}.json"), encoding="utf-8") as file:
        return json.load(file)


def needed(directory, build, names):
    """Returns the targets that ninja must build for the tests of that build."""
    files = {target["id"]: target["filename"] for target in introspect(directory, "targets")}
    wanted = {name for test in choose(introspect(directory), build, names) for name in test["depends"]}
    paths = {path for name in wanted for path in files[name]}
    return sorted(os.path.relpath(path, os.path.abspath(directory)) for path in paths)


def installed(directory):
    """Returns the targets that `meson install` copies, for tests that install them."""
    files = [path for target in introspect(directory, "targets") if target["installed"] for path in target["filename"]]
    return [os.path.relpath(path, os.path.abspath(directory)) for path in files]


def targets_of(build, names):
    """Returns a function of the build directory for builddir.ensure(): the list of files to compile."""
    if build.targets == "all":
        return builddir.everything
    if build.targets == "objects":
        return lambda directory: needed(directory, build, names) + builddir.objects(directory) + installed(directory)
    return lambda directory: needed(directory, build, names)


def prepare(build, names, totals):
    """Compiles a build. Returns its tests, or None if it cannot be built here."""
    tool = missing_tool(build)
    if tool:
        say(f"build {build.name}: skipped: {tool} is not installed")
        totals.skipped += 1
        return None
    started = time.monotonic()
    try:
        # Nothing waits for the processor yet when the first directory is compiled.
        niceness = lanes.COMPILER_NICENESS if totals.checked else 0
        builddir.ensure(build.directory, SOURCE, build.options, build.compiler, niceness, targets_of(build, names))
    except builddir.BuildFailure as failure:
        say(tail(failure.args[1]))
        say(f"build {build.name}: failed: {failure.args[0]}")
        totals.add_failure(f"build {build.name}: {failure.args[0]}")
        return None
    say(f"build {build.name}: {time.monotonic() - started:.1f} s")
    tests = introspect(build.directory)
    if not totals.checked and names:
        check_names(tests, names)
    elif not totals.checked and build is USUAL:  # it has all tests
        check_table(tests, totals)
    totals.checked = True
    return tests


def check_table(tests, totals):
    """Fails for a suite without a row and for a name in the table that no test has; reports a row without a test."""
    named = {suite for build in table.BUILDS for suite in build.suites}
    present = {suite_of(test) for test in tests}
    for suite in sorted(present - named):
        names = ", ".join(test["name"] for test in tests if suite_of(test) == suite)
        totals.add_failure(f"suite '{suite}' is in no row of test/runner/table.py: {names}")
        say(totals.failures[-1])
    for suite in sorted(named - present):
        say(f"suite {suite}: has no tests")
    check_listed("table.py", table.LONG_TESTS, tests, totals)
    for (_, suite), names in [*table.ONLY.items(), *table.LEFT_OUT.items()]:
        check_listed("table.py", set(names), [test for test in tests if suite_of(test) == suite], totals)
    check_listed("over_tls.py", {*over_tls.LEFT_OUT, *over_tls.SANITIZERS_LEAVE_OUT}, tests, totals)


def check_listed(file, listed, tests, totals):
    """Fails for each of the listed names that no test has. `file` in test/runner lists them."""
    for name in sorted(listed - {test["name"] for test in tests}):
        totals.add_failure(f"test/runner/{file} names a test that there is not: {name}")
        say(totals.failures[-1])


def check_names(tests, names):
    """Fails for names that no test has, before everything is compiled."""
    known = {suite_of(test) for test in tests} | {test["name"] for test in tests}
    for name in names:
        if name not in known:
            sys.exit(f"dev test: no suite or test is named {name}")


def concerns(build, names):
    """Returns False if all names are suites and that build runs none of them."""
    suites = {suite for each in BUILDS for suite in each.suites}
    return build is USUAL or not names or not set(names) <= suites or bool(set(names) & set(build.suites))


def builds_for(names, all_builds, suites_and_tests):
    """Returns the builds that the command line chooses: those with these names, or all, or the usual one."""
    chosen = [build for build in BUILDS if (build.name in names if names else all_builds or build is USUAL)]
    return [build for build in chosen if concerns(build, suites_and_tests)]


def print_table(builds, totals):
    """Prints seconds and processor seconds for each suite and build."""
    suites = sorted({suite for suite, _ in totals.seconds})
    if not suites:
        return
    for title, numbers in (("seconds", totals.seconds), ("computing", totals.computed)):
        say(f"\n{title:12}" + "".join(f"{build.name:>10}" for build in builds))
        for suite in suites:
            cells = [numbers.get((suite, build.name)) for build in builds]
            words = ["-" if cell is None else f"{cell:.1f}" for cell in cells]
            say(f"{suite:12}" + "".join(f"{word:>10}" for word in words))


def processor_seconds():
    """Returns the processor time of all child processes, which distinguishes a busy machine from slow tests."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def list_tests(builds, names):
    """Prints what would run."""
    for build in builds:
        if not os.path.isdir(build.directory):
            sys.exit(f"{build.directory} is not there yet: run ./dev test once")
        for test in choose(introspect(build.directory), build, names):
            if over_tls.reason(build, test["name"]) is None:
                say(f"{build.name:9}{suite_of(test):12}{test['name']}")


def compile_only(builds, names):
    """Compiles the builds. Returns the exit status."""
    return 1 if any(prepare(build, names, Totals()) is None for build in builds) else 0


def summary(totals):
    """Returns the last lines of a run: what failed, and one line for all builds together."""
    lines = [f"FAILED {failure}" for failure in totals.failures]
    if totals.passed + totals.failed == 0:
        lines.append("no test ran: that is a failure too")
    return [*lines, f"{totals.passed} passed, {totals.failed} failed, {totals.skipped} skipped"]


def arguments():
    """Returns the parsed command line."""
    parser = argparse.ArgumentParser(usage=__doc__.split("\n")[0].replace("usage: ", ""))
    known = [build.name for build in BUILDS]
    parser.add_argument("--all", action="store_true", help="all builds: " + ", ".join(known))
    parser.add_argument("--build", action="append", default=[], choices=known, metavar="NAME", help="only this build")
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--compile", action="store_true", help="compile, run nothing")
    instead.add_argument("--list", action="store_true", help="list what would run, run nothing")
    parser.add_argument("names", nargs="*", metavar="SUITE or TEST")
    return parser.parse_args()


def main():
    """Runs what the command line names, and returns the exit status."""
    processes.end_on_signals()
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)  # programs would inherit it if it were ignored
    chosen = arguments()
    os.chdir(SOURCE)
    builds = builds_for(chosen.build, chosen.all, chosen.names)
    if chosen.compile:
        return compile_only(builds, chosen.names)
    if chosen.list:
        return list_tests(builds, chosen.names)
    started = time.monotonic()
    totals = Totals()
    run_all(builds, chosen.names, totals)
    print_table(builds, totals)
    say(f"\n{time.monotonic() - started:.0f} s in all, {processor_seconds():.0f} s of processor time")
    for line in summary(totals):
        say(line)
    return 0 if totals.failed == 0 and totals.passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
