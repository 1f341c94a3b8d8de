# SPDX-License-Identifier: MIT
"""R01 to R08 of the problems that users of other tools reported: signals, stop on loss, waiting, exit status.
world.Case starts servers for the class, five unless `count` differs, and empties them before each test. redlock()
runs the command and returns its result; start() only starts it; hold() acquires a lock as another holder; until()
waits for a condition."""

import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import tapcase  # noqa: E402
from world import SLOW, Case, runs, seconds_until_gone, until  # noqa: E402

PRINT_PID_AND_SLEEP = "ulimit -c 0; echo $$; exec sleep 1000"


class R01(Case):
    """A signal to the wrapper never leaves the command running without the lock."""

    def test_every_ending_signal_reaches_the_command(self):
        """Each of four signals ends the command; the exit code is 128 + its number, and no key is left."""
        for sig in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
            with self.subTest(signal=sig.name):
                process = self.start("run", "-t", "10s", "r01", "--", "sh", "-c", PRINT_PID_AND_SLEEP)
                pid = int(process.stdout.readline())
                process.send_signal(sig)
                self.assertEqual(process.wait(10 * SLOW), 128 + sig)
                self.assertFalse(runs(pid))
                self.assertEqual(self.servers.keys(), set())

    def test_killed_wrapper_takes_the_command_with_it(self):
        """kill -9 of redlock ends the command."""
        process = self.start("run", "-t", "10s", "r01", "--", "sh", "-c", PRINT_PID_AND_SLEEP)
        pid = int(process.stdout.readline())
        process.kill()
        self.wait_gone(pid)

    def test_second_signal_kills_what_ignores_the_first(self):
        """A command that ignores signals is killed after the grace of 1 s."""
        stubborn = "trap '' INT TERM; echo $$; while :; do sleep 1; done"
        process = self.start("run", "-t", "20s", "-k", "1s", "r01", "--", "sh", "-c", stubborn)
        pid = int(process.stdout.readline())
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)
        until(lambda: process.poll() is not None, "end after the grace")
        self.assertEqual(process.returncode, 128 + signal.SIGKILL)
        self.assertFalse(runs(pid))
        self.assertEqual(self.servers.keys(), set())

    def test_user_signals_are_passed_on(self):
        """SIGUSR1 and SIGUSR2 reach the command."""
        script = "trap 'echo usr1' USR1; trap 'echo usr2; exit 3' USR2; echo ready; while :; do sleep 0.01; done"
        process = self.start("run", "r01", "--", "sh", "-c", script)
        self.assertEqual(process.stdout.readline(), "ready\n")
        process.send_signal(signal.SIGUSR1)
        self.assertEqual(process.stdout.readline(), "usr1\n")
        process.send_signal(signal.SIGUSR2)
        self.assertEqual(process.stdout.readline(), "usr2\n")
        self.assertEqual(process.wait(10 * SLOW), 3)


class R02(Case):
    """When the lock is lost, the whole process group of the command is killed, not only the shell."""

    def test_grandchild_is_killed_with_the_shell(self):
        """A loss ends the grandchild, too, before the lock's deadline."""
        script = "sh -c 'trap \"\" TERM; echo $$; while :; do sleep 1; done' & echo $$; wait"
        process = self.start("run", "-t", "3s", "r02", "--", "sh", "-c", script)
        pids = [int(process.stdout.readline()) for _ in range(2)]
        for index in range(3):
            self.servers.command(index, "FLUSHALL")
        flushed = time.monotonic()
        # The last extension was before the flush, so the lock ends at most 3 s after the flush.
        self.assertLess(seconds_until_gone(pids, flushed), 3.0)
        self.assertEqual(process.wait(10 * SLOW), 124)
        self.assertRegex(self.error_text(), "cannot be extended|is lost")


class R03(Case):
    """A signal ends a wait at once, and no key stays."""

    def test_signal_ends_the_wait_at_once(self):
        """A signal ends a wait, and the holder keeps its key."""
        token = self.hold("r03").encode()
        for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(signal=sig.name):
                process = self.start("run", "-v", "r03", "--", "true")
                self.wait_error("waiting for r03: held by another client")
                process.send_signal(sig)
                self.assertEqual(process.wait(10 * SLOW), 128 + sig)
                self.assertEqual(set(self.servers.values("r03")), {token})  # the lock is still held: only the signal ended the wait

    def test_signal_ends_the_wait_for_a_quorum_too(self):
        """The same while servers do not reply; no key is left afterwards."""
        self.servers.stop(0, 1, 2)
        process = self.start("run", "-v", "r03", "--", "true")
        self.wait_error("waiting for r03")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(10 * SLOW), 128 + signal.SIGTERM)
        self.servers.continue_all()
        until(lambda: self.servers.keys() == set(), "no key on any server")


class R04(Case):
    """After a stop signal the command is never started."""

    def test_released_lock_does_not_start_the_command(self):
        """A lock that is released after the signal does not start the command."""
        marker = self.path("started")
        token = self.hold("r04")
        process = self.start("run", "-v", "r04", "--", "touch", marker)
        self.wait_error("waiting for r04")
        process.send_signal(signal.SIGTERM)
        self.redlock("release", "r04", token)
        self.assertEqual(process.wait(10 * SLOW), 128 + signal.SIGTERM)
        self.assertFalse(os.path.exists(marker))
        self.assertEqual(self.servers.keys(), set())

    def test_signal_in_the_middle_of_starting(self):
        """Whenever the signal arrives, the wrapper ends by it, and no key stays."""
        marker = self.path("started")
        for delay_ms in range(0, 40, 4):
            process = self.start("run", "r04", "--", "sh", "-c", f"touch {marker}; exec sleep 1000")
            until(lambda: time.monotonic() > 0, "now")
            send_at = time.monotonic() + delay_ms / 1000
            until(lambda send_at=send_at: time.monotonic() >= send_at, "the moment")
            process.send_signal(signal.SIGTERM)
            status = process.wait(10 * SLOW)
            # Before `redlock` handles signals, the signal kills it.
            self.assertIn(status, (128 + signal.SIGTERM, -signal.SIGTERM))
            until(lambda: self.servers.keys() == set(), "no key on any server")


class R05(Case):
    """The exit status is that of the command."""

    def test_status_is_passed_on(self):
        """The command's exit status is that of redlock."""
        for status in (0, 1, 2, 3, 64, 75, 124, 125, 255):
            with self.subTest(status=status):
                self.assertCode(self.redlock("run", "r05", "-c", f"exit {status}"), status)

    def test_death_by_signal_is_128_plus_n(self):
        """A command that dies by signal n gives 128 + n."""
        for sig in (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            with self.subTest(signal=sig.name):
                self.assertCode(self.redlock("run", "r05", "-c", f"kill -{sig.value} $$"), 128 + sig)

    def test_output_and_input_are_untouched(self):
        """redlock adds nothing to the command's output."""
        result = self.redlock("run", "r05", "--", "sh", "-c", "echo out; echo err >&2")
        self.assertEqual((result.stdout, result.stderr), ("out\n", "err\n"))


class R06(Case):
    """Without the lock the exit status is never 0, unless -E 0 is given."""

    def test_held_by_another(self):
        """A lock that is held ends with 75, or with the code of -E, and the command does not start."""
        self.hold("r06")
        for flags, code in (["-n"], 75), (["-w", "0"], 75), (["-w", "0.9"], 75), (["-n", "-E", "42"], 42), (
            ["-n", "-E", "0"],
            0,
        ):
            with self.subTest(flags=flags):
                marker = self.path("started")
                result = self.redlock("run", *flags, "r06", "--", "touch", marker)
                self.assertCode(result, code)
                self.assertFalse(os.path.exists(marker))
                self.assertIn("held by another", result.stderr)

    def test_quiet_is_quiet(self):
        """-q hides the message about a held lock."""
        self.hold("r06")
        result = self.redlock("run", "-q", "-n", "r06", "--", "true")
        self.assertCode(result, 75)
        self.assertEqual(result.stderr, "")

    def test_no_quorum(self):
        """Without a majority, the exit code is 69 and the message names each server."""
        self.servers.stop(0, 1, 2)
        result = self.redlock("run", "-w", "1s", "r06", "--", "true")
        self.assertCode(result, 69)
        self.assertIn("not acquired", result.stderr)
        for port in self.servers.ports[:3]:
            self.assertRegex(result.stderr, rf"127\.0\.0\.1:{port}[:,] \S+")


class R07(Case):
    """The command runs without a shell, except with -c."""

    def test_arguments_arrive_as_they_are(self):
        """The command gets its arguments unchanged."""
        words = ["$HOME", "a  b", "*", ";", "", "'\"", "-n", "--help"]
        result = self.redlock("run", "r07", "--", "printf", "[%s]\\n", *words)
        self.assertEqual(result.stdout, "".join(f"[{word}]\n" for word in words))

    def test_separator_is_optional(self):
        """-- before the command may be left out."""
        self.assertEqual(self.redlock("run", "-n", "r07", "echo", "-n", "x").stdout, "x")

    def test_flags_may_follow_the_name(self):
        """Flags after the name belong to redlock, up to the command."""
        self.assertEqual(self.redlock("run", "r07", "-n", "-t", "5s", "echo", "x").stdout, "x\n")

    def test_shell_is_opt_in(self):
        """Only -c runs a shell."""
        self.assertEqual(self.redlock("run", "r07", "-c", "echo a | tr a b; exit 4").stdout, "b\n")

    def test_script_without_interpreter_line(self):
        """A script without #! is run by a shell, as execvp() does."""
        script = self.path("script", "echo $1 $#\n")
        os.chmod(script, 0o755)
        self.assertEqual(self.redlock("run", "r07", "--", script, "a b", "c").stdout, "a b 2\n")
        # The shell gets the path at which the script was found in PATH.
        found = self.environment(PATH=f"{self.directory}:{os.environ['PATH']}")
        self.assertEqual(self.redlock("run", "r07", "--", "script", "a b", "c", env=found).stdout, "a b 2\n")

    def test_path_search_continues_after_a_file_that_is_not_executable(self):
        """The search in PATH continues after a file that cannot be executed."""
        other = self.path("other")
        os.mkdir(other)
        self.addCleanup(os.rmdir, other)
        hidden = self.path("other/redlock-test-script", "#!/bin/sh\nexit 5\n")
        self.addCleanup(os.unlink, hidden)
        os.chmod(hidden, 0o600)
        path = f"{other}:{self.directory}:{os.environ['PATH']}"
        self.assertCode(self.redlock("run", "r07", "--", "redlock-test-script", env=self.environment(PATH=path)), 126)
        os.chmod(self.path("redlock-test-script", "#!/bin/sh\nexit 6\n"), 0o700)
        self.assertCode(self.redlock("run", "r07", "--", "redlock-test-script", env=self.environment(PATH=path)), 6)


class R08(Case):
    """A short TTL with automatic extension is the default."""

    def test_default_ttl_is_30_s(self):
        """The TTL is 30 s by default."""
        result = self.redlock("run", "r08", "-c", "echo $REDLOCK_TTL_MS")
        self.assertEqual(result.stdout, "30000\n")

    def test_lock_outlives_its_ttl_while_the_command_runs(self):
        """The lock is extended while the command runs, with the same token."""
        process = self.start("run", "-t", "4s", "r08", "--", "sh", "-c", PRINT_PID_AND_SLEEP)
        process.stdout.readline()
        before = set(self.servers.values("r08"))
        self.assertEqual(len(before), 1)
        end = time.monotonic() + 6

        def held_so_long():
            """Checks that the key is unchanged, and returns whether 6 s have passed."""
            self.assertEqual(set(self.servers.values("r08")), before)
            return time.monotonic() > end

        until(held_so_long, "6 s with a TTL of 4 s")
        self.assertTrue(all(ttl <= 4000 for ttl in self.servers.command_all("PTTL", "r08")))
        process.send_signal(signal.SIGTERM)
        process.wait(10 * SLOW)

    def test_crash_frees_the_lock_within_its_ttl(self):
        """After kill -9 of redlock, the lock is free within the TTL."""
        process = self.start("run", "-t", "2s", "r08", "--", "sh", "-c", PRINT_PID_AND_SLEEP)
        process.stdout.readline()
        process.kill()
        self.assertCode(self.redlock("run", "-w", "10s", "r08", "--", "true"), 0)


if __name__ == "__main__":
    tapcase.main()
