# SPDX-License-Identifier: MIT
"""Each way in which a test program can fail must make the runner fail."""

import glob
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "lib")]
import builddir  # noqa: E402
import coverage  # noqa: E402
import lanes  # noqa: E402
import over_tls  # noqa: E402
import program  # noqa: E402
import table  # noqa: E402
import tap  # noqa: E402
import tapcase  # noqa: E402

TWO_PASSED = "ok 1 - a: Passed\nok 2 - b: Passed\n1..2\n"


class Builds(unittest.TestCase):
    """The builds of the table."""

    def test_coverage_has_a_build_of_its_own(self):
        """The build with counters has no directory in common with another one."""
        taken = {build.directory for build in table.BUILDS}
        self.assertNotIn(coverage.BUILD.directory, taken)
        self.assertEqual(coverage.BUILD._fields, table.Build._fields)


class Table(unittest.TestCase):
    """The table of what each build runs."""

    def test_some_programs_of_a_suite(self):
        """A build with a selection of a suite runs exactly these programs of it."""
        builds = {build.name: build for build in table.BUILDS}
        for (name, suite), chosen in table.ONLY.items():
            self.assertIn(suite, builds[name].suites)
            self.assertFalse(table.runs(builds[name], suite, "no such program"))
            self.assertTrue(all(table.runs(builds[name], suite, program) for program in chosen))
        self.assertTrue(table.runs(builds["gcc"], "unit", "no such program"))
        over_tls_too = next(build for build in over_tls.BUILDS if build.name == "tsan-tls")
        self.assertFalse(table.runs(over_tls_too, "live", "no such program"))

    def test_nothing_is_left_out_of_all_builds(self):
        """A suite of which a build runs a part is run whole by another build."""
        whole = {suite for build in table.BUILDS for suite in build.suites if (build.name, suite) not in table.ONLY}
        self.assertEqual({suite for _, suite in table.ONLY} - whole, set())
        builds = {build.name: build for build in table.BUILDS}
        for (name, suite), left_out in table.LEFT_OUT.items():
            self.assertIn(suite, builds[name].suites)
            self.assertTrue(table.runs(builds[name], suite, "no such program"))
            others = [build for build in table.BUILDS if build.name != name and suite in build.suites]
            for program in left_out:
                self.assertFalse(table.runs(builds[name], suite, program))
                self.assertTrue(any(table.runs(build, suite, program) for build in others), program)


class CommandLine(unittest.TestCase):
    """What a command line chooses, and the last lines that it prints."""

    runner = coverage.load_runner()
    every = ["gcc", "asan", "tsan", "clang", "valgrind", "gcc-tls", "asan-tls", "tsan-tls"]

    def chosen(self, *names, build=(), everything=False):
        """Returns the names of the builds."""
        return [build.name for build in self.runner.builds_for(build, everything, names)]

    def run_by(self, build, *names):
        """Returns the tests that this build runs, of one of each of three suites."""
        tests = [{"name": name, "suite": [f"redlock:{suite}"]} for suite, name in
                 (("live", "live_faults"), ("torture", "torture_destroy"), ("unit", "core_wire"))]  # fmt: skip
        build = next(each for each in self.runner.BUILDS if each.name == build)
        return [test["name"] for test in self.runner.choose(tests, build, names)]

    def test_builds(self):
        """Without options it is gcc, with --all every build once, with --build those that are named."""
        self.assertEqual(self.chosen(), ["gcc"])
        self.assertEqual(self.chosen(everything=True), self.every)
        self.assertEqual(self.chosen(build=["tsan", "gcc-tls"]), ["tsan", "gcc-tls"])
        self.assertEqual(self.chosen(build=["tsan"], everything=True), ["tsan"])

    def test_builds_of_a_suite(self):
        """A suite that is named runs in gcc; with --all also in its other builds, and a program may be in any."""
        self.assertEqual(self.chosen("torture"), ["gcc"])
        self.assertEqual(self.chosen("torture", everything=True), ["gcc", "asan", "gcc-tls", "asan-tls"])
        self.assertEqual(self.chosen("torture_destroy", everything=True), self.every)

    def test_names(self):
        """gcc runs what is named, also what it has no row for; other builds run only what they have a row for."""
        self.assertEqual(self.run_by("gcc"), ["live_faults", "core_wire"])
        self.assertEqual(self.run_by("gcc", "torture"), ["torture_destroy"])
        self.assertEqual(self.run_by("gcc", "torture_destroy"), ["torture_destroy"])
        self.assertEqual(self.run_by("asan"), ["live_faults", "torture_destroy", "core_wire"])
        self.assertEqual(self.run_by("clang", "torture", "unit"), [])
        self.assertEqual(self.run_by("clang", "torture_destroy", "core_wire"), ["core_wire"])

    def test_one_line_for_all_builds(self):
        """The last line has the sums of all builds; the failures before it name theirs."""
        totals = self.runner.Totals()
        for name, result in (("gcc", tap.Result(5, 0, 2, ["skipped: no npm"])), ("asan", tap.Result(3, 1, 0, ["failed: b"]))):
            totals.add(name, "live", "live_faults", program.Outcome(result, 1.5, 0.5, "log"))
        self.assertEqual(self.runner.summary(totals), ["FAILED asan/live/live_faults: failed: b", "8 passed, 1 failed, 2 skipped"])

    def test_nothing_ran(self):
        """A run without a case says so."""
        self.assertIn("no test ran", self.runner.summary(self.runner.Totals())[0])


class OverTls(unittest.TestCase):
    """What runs over TLS."""

    def setUp(self):
        self.build, self.sanitized = over_tls.BUILDS[:2]
        self.plain = table.BUILDS[0]

    def test_builds(self):
        """Each build runs suites that exist, in the environment of the table and one more variable."""
        self.assertEqual([build.name for build in over_tls.BUILDS], ["gcc-tls", "asan-tls", "tsan-tls"])
        for build in over_tls.BUILDS:
            original = next(each for each in table.BUILDS if each.name == build.name.removesuffix("-tls"))
            self.assertEqual(build.directory, original.directory)
            self.assertEqual(build.environment, {**original.environment, "REDLOCK_TEST_TLS": "1"})
            self.assertEqual(set(build.suites) - {suite for each in table.BUILDS for suite in each.suites}, set())

    def test_only_a_run_over_tls_leaves_programs_out(self):
        """A program that is left out has a reason, and runs without TLS."""
        for name, why in over_tls.LEFT_OUT.items():
            self.assertEqual(over_tls.reason(self.build, name), why)
            self.assertIsNone(over_tls.reason(self.plain, name))
        self.assertIsNone(over_tls.reason(self.build, "no such program"))
        for name, why in over_tls.SANITIZERS_LEAVE_OUT.items():
            self.assertEqual(over_tls.reason(self.sanitized, name), why)
            self.assertIsNone(over_tls.reason(self.build, name))

    def test_cases_that_are_left_out_exist(self):
        """Each case that is left out is one of a program of test/cli that runs over TLS."""
        present = {}
        for path in glob.glob(os.path.join(os.path.dirname(HERE), "cli", "*_test.py")):
            with open(path, encoding="utf-8") as file:
                program_name = "cli_" + os.path.basename(path).removesuffix("_test.py")
                present[program_name] = file.read()
        for case in over_tls.CASES_LEFT_OUT:
            group, _, function = case.partition(".")
            found = [name for name, text in present.items() if f"class {group}(" in text and f"def {function}(" in text]
            self.assertEqual([name for name in found if name not in over_tls.LEFT_OUT], found, case)
            self.assertNotEqual(found, [], case)

    def test_a_program_without_tls_counts_as_failed(self):
        """The line of a server with TLS must be in the output, but only in a run over TLS."""
        for words, build, failed in (("echo", self.build, 1), ("echo", self.plain, 0),
                                     (f"echo '{over_tls.MARK.strip()}'", self.build, 0)):  # fmt: skip
            with self.subTest(words, build=build.environment), tempfile.TemporaryDirectory() as logs:
                script = f"echo ok 1 - a; {words}; echo 1..1"
                test = {"name": "t", "cmd": ["sh", "-c", script], "env": {}, "timeout": 20, "workdir": logs}
                self.assertEqual(program.run(test, build, logs, []).result[:2], (1, failed))


class Counting(unittest.TestCase):
    """What the runner counts for an output and an exit status. Counts are (passed, failed, skipped)."""

    def check(self, text, status, counts):
        """Fails unless the runner counts so, with a reason for each result that is not a pass."""
        result = tap.read(text, status)
        self.assertEqual(result[:3], counts, result)
        self.assertEqual(bool(result.reasons), counts[1:] != (0, 0), "a reason for what is not green")

    def test_all_passed(self):
        """Two cases, status 0."""
        self.check(TWO_PASSED, 0, (2, 0, 0))

    def test_a_case_failed(self):
        """One of two cases failed."""
        self.check("ok 1 - a\nnot ok 2 - b: 1 == 2\n1..2\n", 1, (1, 1, 0))

    def test_what_a_failed_case_says(self):
        """The reason contains the lines below the failed case, up to a limit."""
        said = "not ok 1 - b: no\n  the first node\n  the second\nok 2 - c\n  of no interest\n1..2\n"
        reasons = tap.read(said, 1).reasons
        self.assertEqual(reasons, ["failed: b: no\n    the first node\n    the second"])
        long = "not ok 1 - b: no\n" + 20 * "more\n" + "1..1\n"
        self.assertEqual(tap.read(long, 1).reasons[0].count("more"), tap.MORE_LINES)

    def test_all_cases_passed_but_the_status_says_no(self):
        """All cases passed, but the status is 66: a failure more."""
        self.check(TWO_PASSED, 66, (2, 1, 0))

    def test_a_crash_before_the_plan(self):
        """A crash is a failure."""
        self.check("ok 1 - a\n", -11, (1, 1, 0))

    def test_an_end_before_the_plan(self):
        """An output without a plan is a failure."""
        self.check("ok 1 - a\n", 0, (1, 1, 0))

    def test_fewer_cases_than_announced(self):
        """A missing case is a failure."""
        self.check("1..3\nok 1 - a\nok 2 - b\n", 0, (2, 1, 0))

    def test_no_case_at_all(self):
        """A plan of no case is a failure."""
        self.check("1..0\n", 0, (0, 1, 0))

    def test_bail_out(self):
        """"Bail out!" is a failure."""
        self.check("1..2\nok 1 - a\nBail out! no disk\n", 1, (1, 1, 0))

    def test_skipped_program(self):
        """A program that skips all counts as one skip, with its reason."""
        self.check("1..0 # SKIP no npm here\n", 0, (0, 0, 1))
        self.assertIn("no npm here", tap.read("1..0 # SKIP no npm here\n", 0).reasons[0])

    def test_skipped_case(self):
        """A skipped case does not count as passed."""
        self.check("ok 1 - a # SKIP no npm here\nok 2 - b\n1..2\n", 0, (1, 0, 1))

    def test_a_skip_does_not_hide_a_failure(self):
        """A case that failed and says SKIP counts as failed."""
        self.check("not ok 1 - a # SKIP no\n1..1\n", 1, (0, 1, 0))

    def test_plain_statuses(self):
        """Without TAP the exit status alone counts: 0 passed, 77 skipped, others failed."""
        self.check("whatever\n", 0, (1, 0, 0))
        self.check("whatever\n", 1, (0, 1, 0))
        self.check("whatever\n", -6, (0, 1, 0))
        self.check("no toolchain\n", 77, (0, 0, 1))
        self.assertIn("no toolchain", tap.read("no toolchain\n", 77).reasons[0])


class Programs(unittest.TestCase):
    """Runs shell scripts as test programs."""

    build = table.BUILDS[0]

    def setUp(self):
        """Shortens the time for what is left, which two cases use up."""
        self.addCleanup(setattr, program, "GRACE_SECONDS", program.GRACE_SECONDS)
        program.GRACE_SECONDS = 3.0

    def run_script(self, script, timeout=20):
        """Runs the script as a test with this time limit in seconds, and returns its outcome."""
        return self.run_command(["/bin/sh", "-c", script], timeout)

    def run_command(self, words, timeout=20):
        """The same for a command."""
        logs = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, logs)
        test = {"name": "t", "cmd": words, "env": {}, "workdir": logs, "timeout": timeout}
        return program.run(test, self.build, logs, [])

    def assert_gone(self, path):
        """Fails if the process whose pid is in the file still exists, even as a zombie."""
        with open(path, encoding="ascii") as file:
            self.assertFalse(os.path.exists(f"/proc/{file.read().strip()}"))

    def test_green(self):
        """A passing script passes."""
        outcome = self.run_script("echo 'ok 1 - a'; echo 1..1")
        self.assertEqual(outcome.result[:3], (1, 0, 0))

    def test_program_that_cannot_be_started(self):
        """The log says why, and the reason is the status 127."""
        outcome = self.run_command(["/no/such/program"])
        self.assertEqual(program.read_text(outcome.log), "/no/such/program: No such file or directory\n")
        self.assertIn("127", outcome.result.reasons[-1])

    def test_signals_of_a_program(self):
        """No signal is blocked or ignored."""
        outcome = self.run_script("grep -E 'Sig(Blk|Ign)' /proc/self/status")
        self.assertEqual(program.read_text(outcome.log).split(), ["SigBlk:", "0" * 16, "SigIgn:", "0" * 16])

    def test_output_on_stderr_is_in_the_log(self):
        """The log has stdout and stderr."""
        outcome = self.run_script("echo out; echo err >&2; exit 3")
        self.assertEqual(program.read_text(outcome.log), "out\nerr\n")
        self.assertEqual(outcome.result[:3], (0, 1, 0))

    def test_what_a_sanitizer_reports_is_a_reason(self):
        """The reason has the first report, without the text before it, and one line for each other place."""
        report = "echo 'WARNING: ThreadSanitizer: data race'; seq 30; echo 'SUMMARY: data race'"
        other = "echo 'WARNING: ThreadSanitizer: heap'; seq 30; echo 'SUMMARY: heap'"
        outcome = self.run_script(
            f"echo 'ok 1 - a'; echo 1..1; (echo noise; echo =====; {report}; {other}; {report}) >&2; exit 66")
        status, found = outcome.result.reasons
        lines = [line.strip() for line in found.splitlines()]
        self.assertEqual(outcome.result[:3], (1, 1, 0))
        self.assertEqual(status, "all cases passed, but exit status 66")
        self.assertEqual(lines[:2], ["WARNING: ThreadSanitizer: data race", "1"])
        self.assertEqual(lines[tap.FINDING_LINES :], ["SUMMARY: data race", "SUMMARY: heap"])

    def test_reports_of_other_tools_are_reasons(self):
        """Those of the address sanitizer, of undefined behaviour and of valgrind; of a program that passes, none is shown."""
        for line in ("==7==ERROR: AddressSanitizer: heap-use-after-free", "a.c:3:1: runtime error: overflow",
                     "==7== Invalid read of size 4"):  # fmt: skip
            ended = f"echo 'ok 1 - a'; echo '{line}' >&2"
            self.assertIn(line, self.run_script(f"{ended}; exit 1").result.reasons[-1])
            self.assertEqual(self.run_script(f"{ended}; echo 1..1").result.reasons, [])

    def test_hanging_program_is_ended(self):
        """A program that does not end is killed at its time limit."""
        outcome = self.run_script("echo 'ok 1 - a'; exec sleep 60", timeout=1.5)
        self.assertEqual(outcome.result[:3], (1, 1, 0))
        self.assertIn("no end within", outcome.result.reasons[-1])
        self.assertLess(outcome.seconds, 20)

    def test_a_process_left_running_is_a_failure(self):
        """A process that the script leaves running is a failure."""
        outcome = self.run_script("echo 'ok 1 - a'; echo 1..1; sleep 60 & exit 0")
        self.assertEqual(outcome.result[:3], (1, 1, 0))
        self.assertIn("left running: sleep", outcome.result.reasons)

    def test_a_daemon_left_running_is_a_failure(self):
        """A process that has left the session of the script is found, too, and is killed with its children."""
        daemon = "setsid sh -c 'setsid sleep 60 & echo $! >pid; exec sleep 60' & until [ -s pid ]; do :; done"
        outcome = self.run_script(f"echo 'ok 1 - a'; echo 1..1; {daemon}")
        self.assertEqual(outcome.result[:3], (1, 1, 0))
        self.assertIn("left running: sleep", outcome.result.reasons)
        self.assert_gone(os.path.join(os.path.dirname(outcome.log), "pid"))

    def test_nothing_of_a_hanging_program_is_left(self):
        """At the time limit, what the program has started is killed, too."""
        outcome = self.run_script("setsid sleep 60 & echo $! >pid; exec sleep 60", timeout=1.5)
        self.assertIn("no end within", outcome.result.reasons[-1])
        self.assert_gone(os.path.join(os.path.dirname(outcome.log), "pid"))

    def test_a_daemon_that_ends_in_time_is_no_failure(self):
        """What ends within the time for it is not left."""
        outcome = self.run_script("echo 'ok 1 - a'; echo 1..1; setsid sleep 0.3 & exit 0")
        self.assertEqual(outcome.result[:3], (1, 0, 0))

    def test_the_signal_that_ends_a_program_is_reported(self):
        """A program that a signal ends has failed by it."""
        outcome = self.run_script("echo 'ok 1 - a'; echo 1..1; kill -SEGV $$")
        self.assertEqual(outcome.result[:3], (1, 1, 0))
        self.assertIn("11", outcome.result.reasons[-1])

    def test_a_file_left_behind_is_a_failure(self):
        """A file in TMPDIR is a failure."""
        outcome = self.run_script("echo 'ok 1 - a'; echo 1..1; touch $TMPDIR/left")
        self.assertEqual(outcome.result[:3], (1, 1, 0))
        self.assertIn("left in TMPDIR: left", outcome.result.reasons)

    def test_processor_time_is_told(self):
        """The outcome has the processor time."""
        outcome = self.run_script("echo 'ok 1 - a'; echo 1..1; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done")
        self.assertGreater(outcome.computed, 0)


class Signals(unittest.TestCase):
    """What is left after a signal to the runner."""

    def setUp(self):
        """Makes a directory for the files of a case."""
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def script(self, name, words=""):
        """Returns a shell script that does not end, nor does a process that it starts with these words before the command.
        The script writes the pids of both, and TMPDIR."""
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="ascii") as file:
            file.write(f"{words} sleep 600 & echo $! $$ $TMPDIR >{path}.new; mv {path}.new {path}.started; wait\n")
        return path

    def check_ended(self, number, code, name):
        """Runs the code in a process that ends on signals, sends it one when the script with this name has started, and
        fails unless the processes of the script have ended, its TMPDIR is gone and the exit status says so."""
        started = os.path.join(self.folder, name + ".started")
        head = f"import sys\nsys.path.insert(0, {HERE!r})\nimport builddir, lanes, processes, program, table\n"
        words = [sys.executable, "-B", "-c", f"{head}processes.end_on_signals()\n{code}"]
        with subprocess.Popen(words, env={**os.environ, "TMPDIR": "/no/such/directory"}) as runner:
            while not os.path.exists(started) and runner.poll() is None:
                time.sleep(0.01)
            runner.send_signal(number)
            self.assertEqual(runner.wait(), 128 + number)
        with open(started, encoding="ascii") as file:
            *pids, scratch = file.read().split()
        os.remove(started)
        self.assertFalse(os.path.exists(scratch), scratch)
        for pid in pids:
            self.wait_for_end(pid)

    def wait_for_end(self, pid):
        """Fails unless the process ends soon. An orphan that has ended may be a zombie until the system reaps it."""
        deadline = time.monotonic() + 20
        while True:
            try:
                with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                    if file.read().rpartition(")")[2].split()[0] in "ZX":
                        return
            except (FileNotFoundError, ProcessLookupError):
                return
            self.assertLess(time.monotonic(), deadline, f"process {pid} has not ended")
            time.sleep(0.01)

    def test_programs_end(self):
        """Each signal ends a test program with what it has started, and removes its TMPDIR."""
        test = {"name": "t", "cmd": ["sh", self.script("job", "setsid")], "env": {}, "workdir": "", "timeout": 600}
        code = (f"jobs = lanes.Lanes()\nbuild = table.BUILDS[0]._replace(directory={self.folder!r})\n"
                f"jobs.add(lanes.WAITING, 0, program.run, {test!r}, build, {self.folder!r}, [])\njobs.run()\n")
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            with self.subTest(number):
                self.check_ended(number, code, "job")

    def test_compilers_end(self):
        """Each signal ends ninja and its commands, also at the lower priority of a compilation beside tests."""
        with open(os.path.join(self.folder, "build.ninja"), "w", encoding="ascii") as file:
            file.write(f"rule compile\n command = sh {self.script('compiler')}\nbuild object: compile\n")
        code = f"builddir.run([builddir.ninja(), '-C', {self.folder!r}], 5)\n"
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            with self.subTest(number):
                self.check_ended(number, code, "compiler")


class TwoLanes(unittest.TestCase):
    """The two queues of jobs."""

    def test_all_jobs_run_and_compiling_comes_first(self):
        """All jobs run, also those that a job adds."""
        done = []
        jobs = lanes.Lanes()
        for rank, name in ((1, "late"), (0, "early")):
            jobs.add(lanes.WAITING, rank, done.append, name)
        jobs.add(lanes.COMPUTING, 0, lambda: jobs.add(lanes.WAITING, 2, done.append, "added"))
        jobs.run()
        self.assertEqual(sorted(done), ["added", "early", "late"])

    def test_no_more_at_once_than_there_are_slots(self):
        """Both lanes fill their slots at once, and never exceed them. One job computes until all others have ended, so that
        there are no spare slots."""
        lock, counts, most = threading.Lock(), dict.fromkeys(lanes.SLOTS, 0), dict.fromkeys(lanes.SLOTS, 0)
        meet = threading.Barrier(sum(lanes.SLOTS.values()))
        ended, tried = threading.Semaphore(0), threading.Event()

        def job(lane, together):
            """Counts how many jobs run at once; with `together`, waits until all slots are filled."""
            with lock:
                counts[lane] += 1
                most[lane] = max(most[lane], counts[lane])
            if together:
                meet.wait(20)  # passes only if the lanes are filled at the same time
            if lane == lanes.WAITING:
                self.assertTrue(tried.wait(20))
            elif not together:
                tried.set()  # run() has tried to start more that wait before it started this one
            with lock:
                counts[lane] -= 1
            ended.release()

        def first():
            """Computes until all other jobs have ended."""
            meet.wait(20)
            for _ in range(3 * sum(lanes.SLOTS.values()) - 1):
                self.assertTrue(ended.acquire(timeout=20))

        jobs = lanes.Lanes()
        counts[lanes.COMPUTING] = 1  # first()
        jobs.add(lanes.COMPUTING, 0, first)
        for lane, slots in lanes.SLOTS.items():
            for number in range(counts[lane], 3 * slots):
                jobs.add(lane, 0, job, lane, number < slots)
        jobs.run()
        for lane in lanes.SLOTS:
            self.assertEqual(most[lane], lanes.SLOTS[lane])

    def test_more_wait_at_once_when_nothing_is_left_to_compute(self):
        """The slots of programs that wait and the spare ones are filled at the same time."""
        slots = lanes.SLOTS[lanes.WAITING] + lanes.SPARE_SLOTS
        meet = threading.Barrier(slots)
        jobs = lanes.Lanes()
        for _ in range(slots):
            jobs.add(lanes.WAITING, 0, meet.wait, 20)
        jobs.run()

    def test_an_error_ends_the_run_after_what_is_under_way(self):
        """An error in one job ends the run once the other running jobs have ended."""
        done, failing = [], threading.Event()
        jobs = lanes.Lanes()

        def fail():
            """The job that fails."""
            failing.set()
            sys.exit("no test is named so")

        def finish():
            """The job that is running at that moment."""
            failing.wait(20)
            done.append("finished")

        jobs.add(lanes.WAITING, 0, finish)
        jobs.add(lanes.COMPUTING, 0, fail)
        with self.assertRaises(SystemExit):
            jobs.run()
        self.assertEqual(done, ["finished"])


class BuildDirectories(unittest.TestCase):
    """A tiny project, so that setting up takes little."""

    def setUp(self):
        """Makes a project of one program in a temporary directory."""
        self.source = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.source)
        self.write("meson.build", "project('tiny', 'c')\nexecutable('tiny', 'tiny.c')\n")
        self.write("tiny.c", "int main(void) { return 7; }\n")
        self.directory = os.path.join(self.source, "build")

    def write(self, name, text):
        """Writes a file of the project."""
        with open(os.path.join(self.source, name), "w", encoding="utf-8") as file:
            file.write(text)

    def ensure(self, *options):
        """Sets up and compiles the project with these options, and runs its program."""
        builddir.ensure(self.directory, self.source, list(options), "gcc")
        done = subprocess.run([os.path.join(self.directory, "tiny")], check=False)
        self.assertEqual(done.returncode, 7)

    def test_twice(self):
        """A second call does not set the directory up again."""
        self.ensure()
        before = os.stat(os.path.join(self.directory, "build.ninja")).st_mtime_ns
        self.ensure()
        self.assertEqual(os.stat(os.path.join(self.directory, "build.ninja")).st_mtime_ns, before)

    def test_broken_directories_are_repaired(self):
        """Damaged files of the build directory are made again."""
        self.ensure()
        for name in ("build.ninja", "meson-private/coredata.dat", "tiny.p/tiny.c.o"):
            with open(os.path.join(self.directory, name), "w", encoding="utf-8") as file:
                file.write("broken\n")
            os.remove(os.path.join(self.directory, "tiny"))
            self.ensure()
        os.remove(os.path.join(self.directory, "build.ninja"))
        self.ensure()

    def test_other_options_set_up_again(self):
        """Other options set the directory up again."""
        self.ensure()
        self.ensure("-Dbuildtype=release")
        self.assertEqual(builddir.read_stamp(self.directory)["options"], ["-Dbuildtype=release"])

    def test_a_part_whose_package_is_missing_is_an_error(self):
        """Also in a directory that was set up by hand, where the part had been left out."""
        self.write("meson_options.txt", "option('part', type: 'feature', value: 'auto')\n")
        self.write("meson.build", "project('tiny', 'c')\nexecutable('tiny', 'tiny.c')\n"
                   "dependency('no-such-package', required: get_option('part'))\n")  # fmt: skip
        self.assertEqual(builddir.run(["meson", "setup", self.directory, self.source])[0], 0)
        for _ in ("by hand", "by ensure()"):
            with self.assertRaises(builddir.BuildFailure) as caught:
                self.ensure()
            self.assertIn("no-such-package", caught.exception.args[1])

    def check_reported(self, word):
        """Fails unless ensure() raises BuildFailure with a message that has the word, and leaves the directory in place."""
        mark = os.path.join(self.directory, "mark")
        with open(mark, "w", encoding="ascii"), self.assertRaises(builddir.BuildFailure) as caught:
            self.ensure()
        self.assertIn(word, caught.exception.args[1])
        self.assertTrue(os.path.exists(mark))

    def test_errors_in_the_source_are_reported(self):
        """An error of the compiler of C or C++, of the linker or of meson is shown, and the directory is not wiped."""
        self.write("meson.build", "project('tiny', 'c', 'cpp')\nexecutable('tiny', 'tiny.c', 'more.cc')\n")
        self.write("more.cc", "int more;\n")
        self.ensure()
        for name, wrong in (("tiny.c", "int main(void) { return seven; }\n"), ("more.cc", "int more = seven;\n"),
                            ("tiny.c", "int seven(void);\nint main(void) { return seven(); }\n"),
                            ("meson.build", "project('tiny', 'c')\nexecutable('tiny', seven)\n")):  # fmt: skip
            with self.subTest(wrong):
                with open(os.path.join(self.source, name), encoding="ascii") as file:
                    right = file.read()
                self.write(name, wrong)
                self.check_reported("seven")
                self.write(name, right)
        self.ensure()

    def test_foreign_directory_is_left_alone(self):
        """A directory with other files is refused and stays as it is."""
        os.mkdir(self.directory)
        self.write("build/thesis.txt", "years of work\n")
        with self.assertRaises(builddir.BuildFailure):
            self.ensure()
        self.assertTrue(os.path.exists(os.path.join(self.directory, "thesis.txt")))

    def test_directory_of_another_build_system_is_left_alone(self):
        """So is one with a build.ninja that meson has not written."""
        os.mkdir(self.directory)
        self.write("build/build.ninja", "rule none\n command = true\n")
        with self.assertRaises(builddir.BuildFailure):
            self.ensure()
        self.assertTrue(os.path.exists(os.path.join(self.directory, "build.ninja")))


class Needs(unittest.TestCase):
    """How ./dev sees whether what a command needs is there. Its functions run here without its last line, main."""

    def holds(self, probe):
        """Returns whether a probe of ./dev finds what it looks for."""
        path = os.path.join(os.path.dirname(os.path.dirname(HERE)), "dev")
        with open(path, encoding="utf-8") as file:
            functions, main = file.read().rstrip().rsplit("\n", 1)
        self.assertEqual(main, 'main "$@"')
        done = subprocess.run(["bash", "-c", f"{functions}\nif {probe}; then echo yes; else echo no; fi", path],
                              capture_output=True, text=True, check=False, timeout=60)  # fmt: skip
        self.assertEqual(done.stderr, "")
        return done.stdout == "yes\n"

    def test_headers(self):
        """A header counts if it is there, whatever packages are installed."""
        self.assertTrue(self.holds("has_header stdio.h"))
        self.assertTrue(self.holds("has_header sys/types.h"))
        self.assertFalse(self.holds("has_header no_such_header_anywhere.h"))

    def test_programs_and_libraries(self):
        """The same for programs and libraries."""
        self.assertTrue(self.holds("has bash"))
        self.assertFalse(self.holds("has no-such-program"))
        self.assertFalse(self.holds("has_library no-such-library"))


if __name__ == "__main__":
    tapcase.main()
