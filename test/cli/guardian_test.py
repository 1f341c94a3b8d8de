# SPDX-License-Identifier: MIT
"""The guardian: no process that the command started runs after the deadline, whatever happens to `redlock run`.
family.FamilyCase.family() starts `redlock run` with a command of several processes, on the five servers of
world.Case. redlock() runs the command and returns its result; start() only starts it; hold() acquires a lock as
another holder; until() waits for a condition."""

import contextlib
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import tapcase  # noqa: E402
from family import FamilyCase  # noqa: E402
from world import REDLOCK, SLOW, children_of, runs, stat_fields, until  # noqa: E402

def processor_ticks():
    """Returns the number of processor ticks per second."""
    return os.sysconf("SC_CLK_TCK")


def status_of(pid, field):
    """Returns a field of /proc/PID/status, or "0" if there is no such process."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
            return next(line.split()[1] for line in file if line.startswith(f"{field}:"))
    except (OSError, StopIteration):
        return "0"


def has_been_killed(pid):
    """Returns whether the process has ended, or SIGKILL waits for it to run."""
    pending = int(status_of(pid, "SigPnd"), 16) | int(status_of(pid, "ShdPnd"), 16)
    return not runs(pid) or bool(pending & 1 << signal.SIGKILL - 1)


def sleeps_of(pid):
    """Returns how often the process has given up the processor to wait."""
    return int(status_of(pid, "voluntary_ctxt_switches"))


class Guardian(FamilyCase):
    """FamilyCase.family() starts `redlock run` with a command of several processes, which ignore SIGTERM or have
    left its group or session. Each test stops or kills something."""

    def test_flushed_majority_ends_all_before_the_deadline(self):
        """A majority loses the key: the lock is lost, and the whole family ends within the TTL."""
        process, pids = self.family("-t", "3s")
        for index in range(3):
            self.servers.command(index, "FLUSHALL")
        self.assert_gone_within(pids, time.monotonic(), 3.0)
        self.assertEqual(process.wait(10 * SLOW), 124)

    def test_killed_wrapper(self):
        """`redlock run` (the wrapper) is killed: the guardian ends the family and itself."""
        process, pids = self.family("-t", "10s")
        guardian = self.guardian_of(process)
        process.kill()
        self.assert_gone_within(pids, time.monotonic(), 2.0 * SLOW)
        self.wait_gone(guardian)

    def test_stopped_wrapper(self):
        """The wrapper is stopped: the family ends within the TTL. When it continues, it exits with 124."""
        process, pids = self.family("-t", "2s")
        guardian = self.guardian_of(process)
        process.send_signal(signal.SIGSTOP)
        # The last extension was before the stop: the lock ends at most 2 s after the stop.
        self.assert_gone_within(pids, time.monotonic(), 2.0)
        self.wait_gone(guardian)
        process.send_signal(signal.SIGCONT)
        self.assertEqual(process.wait(10 * SLOW), 124)

    def test_stopped_wrapper_whose_caller_ignores_sigchld(self):
        """The same if the caller of redlock ignores SIGCHLD."""
        process, pids = self.family("-t", "2s", preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        process.send_signal(signal.SIGSTOP)
        self.wait_gone(*pids)
        process.send_signal(signal.SIGCONT)
        self.assertEqual(process.wait(10 * SLOW), 124)

    def test_wrapper_stopped_until_the_lock_has_expired(self):
        """The wrapper stays stopped beyond the TTL: it reports no key that ends with its TTL."""
        process, pids = self.family("-t", "2s")
        process.send_signal(signal.SIGSTOP)
        self.wait_gone(*pids)
        until(lambda: not self.servers.keys(), "the end of the lock")
        process.send_signal(signal.SIGCONT)
        self.assertEqual(process.wait(10 * SLOW), 124)
        self.assertNotIn("ends with its TTL", self.error_text())

    def test_command_starts_only_after_the_guardian(self):
        """The command does not start before the guardian has made its first step."""
        more = self.stalled_at("/proc/self/fd")
        process = self.start("run", "g", "--", "sh", "-c", "echo; test -e $PROCSTALL/go", env=more)
        until(lambda: os.path.exists(more["PROCSTALL"] + "/reached"), "the first step of the guardian")
        until(lambda: self.servers.keys() != set(), "the lock is held")
        self.assertCode(self.redlock("run", "other", "--", "true"), 0)  # takes as long as a start of the command
        self.path("stall/go", "")
        process.stdout.readline()
        self.assertEqual(process.wait(20 * SLOW), 0)

    def test_command_is_not_started_after_the_deadline(self):
        """The wrapper is paused between the lock and the command, and continues after the deadline, while the guardian is
        killing."""
        more = self.stalled_at("command")
        process = self.start("run", "-t", "1s", "--no-renew", "g", "--", "echo", "started", env=more)
        until(lambda: os.path.exists(more["PROCSTALL"] + "/reached"), "the last step before the command")
        until(lambda: self.servers.keys() == set(), "the lock is over")
        self.path("stall/go", "")
        self.assertEqual(process.wait(20 * SLOW), 124)
        self.assertEqual(process.stdout.read(), "")
        self.assertIn("expired before the command could be started", self.error_text())

    def test_group_is_killed_before_proc_is_listed(self):
        """On a busy machine, listing /proc can take longer than the rest of the lock's time."""
        more = self.stalled_at("/proc")
        directory = more["PROCSTALL"]
        for how in (signal.SIGKILL, signal.SIGSTOP):
            process, pids = self.family("-t", "4s", name=f"g{int(how)}", env=more)
            guardian = self.guardian_of(process)
            others = [pid for pid in pids if os.getpgid(pid) != os.getpgid(pids[0])]
            self.assertEqual(len(others), 3)
            process.send_signal(how)
            until(lambda: os.path.exists(f"{directory}/reached"), "the listing of /proc")
            self.wait_gone(*set(pids) - set(others))
            self.assertTrue(all(runs(pid) for pid in others))
            self.path("stall/go", "")
            self.wait_gone(guardian, *pids)  # it lists /proc again, which needs the file "go"
            process.kill()
            process.wait(10 * SLOW)
            os.unlink(f"{directory}/reached")
            os.unlink(f"{directory}/go")

    def test_killed_guardian_ends_the_command(self):
        """The guardian is killed: the command ends, redlock exits with 70, and no key is left."""
        process = self.start("run", "-t", "10s", "g", "--", "sh", "-c", "echo $$; exec sleep 1000")
        pid = int(process.stdout.readline())
        os.kill(self.guardian_of(process), signal.SIGKILL)
        self.wait_gone(pid)
        self.assertEqual(process.wait(10 * SLOW), 70)
        self.assertIn("guardian process was killed", self.error_text())
        until(lambda: self.servers.keys() == set(), "no key on any server")

    def test_guardian_killed_while_waiting(self):
        """The guardian is killed while the lock is waited for: redlock exits with 70."""
        self.hold("g")
        process = self.start("run", "-v", "g", "--", "true")
        self.wait_error("waiting for g")
        os.kill(self.guardian_of(process), signal.SIGKILL)
        self.assertEqual(process.wait(10 * SLOW), 70)

    def test_guardian_lists_proc_until_two_listings_are_empty(self):
        """A listing can miss a process whose parent is ending, so two listings in a row must find none."""
        more = self.stalled_at("nowhere")
        script = "setsid sh -c 'sleep 1000 & echo $!; wait' & wait"
        process = self.start("run", "-t", "10s", "g", "--", "sh", "-c", script, env=more)
        pid = int(process.stdout.readline())
        self.addCleanup(self.kill_all, [pid])
        self.path("stall/hidden", f"{pid}\n")
        guardian = self.guardian_of(process)
        process.kill()
        self.wait_gone(guardian, pid)

    def test_guardian_has_own_session_and_few_descriptors(self):
        """The guardian has a session of its own and two descriptors. The command is a child of the starter, in the
        session of redlock and in a group of its own."""
        process = self.start("run", "-t", "10s", "g", "--", "sh", "-c", "echo $$; exec sleep 1000")
        pid = int(process.stdout.readline())
        guardian = self.guardian_of(process)
        starter = children_of(guardian)[0]
        self.assertEqual(stat_fields(guardian)[3], guardian)
        self.assertEqual(stat_fields(pid)[3], stat_fields(process.pid)[3])
        self.assertEqual(stat_fields(pid)[1], starter)
        self.assertEqual(stat_fields(pid)[2], pid)
        links = until(
            lambda: sorted(os.readlink(f"/proc/{guardian}/fd/{fd}") for fd in os.listdir(f"/proc/{guardian}/fd")),
            "descriptors",
        )
        self.assertEqual(len(links), 2, links)
        self.assertEqual([link.split(":")[0] for link in links], ["anon_inode", "pipe"])
        process.send_signal(signal.SIGTERM)
        process.wait(10 * SLOW)
        self.assertFalse(runs(guardian))
        self.assertFalse(runs(starter))

    def test_guardian_needs_little_processor_time(self):
        """Wrapper and guardian use hardly any processor time within a second."""
        process = self.start("run", "-t", "30s", "g", "--", "sh", "-c", "echo $$; exec sleep 1000")
        process.stdout.readline()
        guardian = self.guardian_of(process)

        def ticks():
            """Returns the processor ticks that wrapper and guardian have used."""
            total = 0
            for pid in (process.pid, guardian):
                with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                    fields = file.read().rpartition(")")[2].split()
                total += int(fields[11]) + int(fields[12])
            return total

        before = ticks()
        end = time.monotonic() + 1.0
        until(lambda: time.monotonic() > end, "a second")
        self.assertLess(ticks() - before, processor_ticks() * 0.2)

    def test_leftover_processes_of_a_finished_command_are_reported(self):
        """Processes that a finished command leaves behind are reported on stderr."""
        process = self.start("run", "g", "--", "sh", "-c", "setsid sleep 1000 >/dev/null & echo $!")
        pid = int(process.stdout.readline())
        self.addCleanup(self.kill_all, [pid])
        self.assertEqual(process.wait(10 * SLOW), 0)
        self.assertTrue(runs(pid))
        self.assertIn("still run, without the lock", self.error_text())

    def test_signal_waits_for_the_rest_of_the_group(self):
        """After a signal, redlock ends when all processes of the command's group have ended."""
        inner = "trap 'sleep 0.5; exit' TERM; echo $$; while :; do sleep 0.01; done"
        process = self.start("run", "-t", "20s", "g", "--", "sh", "-c", 'sh -c "$0" & wait', inner)
        pid = int(process.stdout.readline())
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(10 * SLOW), 128 + signal.SIGTERM)
        self.assertFalse(runs(pid))

    def test_command_ends_without_wrapper_and_guardian(self):
        """With wrapper and guardian killed, the kernel still ends the command (its parent-death signal)."""
        process = self.start("run", "-t", "10s", "g", "--", "sh", "-c", "echo $$; exec sleep 1000")
        pid = int(process.stdout.readline())
        guardian = self.guardian_of(process)
        process.send_signal(signal.SIGSTOP)
        os.kill(guardian, signal.SIGKILL)
        process.kill()
        self.wait_gone(pid)

    def test_max_hold(self):
        """--max-hold ends the family, although the lock could be extended."""
        process, pids = self.family("-t", "20s", "-k", "500ms", "--max-hold", "2s")
        started = time.monotonic()
        self.assert_gone_within(pids, started, 2.0 * SLOW)
        self.assertEqual(process.wait(10 * SLOW), 124)
        self.assertIn("--max-hold 2s has been reached", self.error_text())

    def test_inherited_descriptors(self):
        """The command gets the descriptors of the caller and no others."""
        read, write = os.pipe()
        result = self.redlock("run", "g", "--", "ls", "/proc/self/fd", pass_fds=[write])
        os.close(read)
        os.close(write)
        self.assertEqual({int(fd) for fd in result.stdout.split()}, {0, 1, 2, 3, write} if write != 3 else {0, 1, 2, 3, 4})

    def test_signal_state_is_reset(self):
        """The command has default signal actions whatever redlock inherited."""
        result = self.redlock("run", "g", "--", "grep", "-E", "Sig(Blk|Ign)", "/proc/self/status")
        self.assertEqual(result.stdout.split()[1::2], ["0" * 16, "0" * 16])

    def test_nested_run_leaves_no_process(self):
        """The starter of the inner `redlock run` gets hardly any processor time, until its guardian is seen to wait for its end.
        The outer one does not report it as a leftover process."""
        self.hold("h")
        process = self.start("run", "g", "--", REDLOCK, "run", "-v", "h", "--", "true")
        self.wait_error("waiting for h")
        inner = children_of(self.starter_of(self.guardian_of(process)))[0]
        guardian, processors = children_of(inner)[0], os.sched_getaffinity(0)
        starter = self.starter_of(guardian)
        busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        self.addCleanup(busy.wait)
        self.addCleanup(busy.kill)
        for pid in busy.pid, starter:
            os.sched_setaffinity(pid, {min(processors)})
        os.sched_setscheduler(starter, os.SCHED_IDLE, os.sched_param(0))
        os.kill(inner, signal.SIGTERM)
        until(lambda: not runs(guardian) or has_been_killed(starter), "the end of the starter begins")
        before = sleeps_of(guardian)
        until(lambda: not runs(guardian) or sleeps_of(guardian) > before + 50, "the guardian waits for the starter")
        if runs(guardian):  # it does not wait without a limit, and a busy machine would reach that
            with contextlib.suppress(ProcessLookupError):
                os.sched_setscheduler(starter, os.SCHED_OTHER, os.sched_param(0))
                os.sched_setaffinity(starter, processors)
        self.assertEqual(process.wait(60 * SLOW), 128 + signal.SIGTERM)
        self.assertNotIn("still run", self.error_text())


if __name__ == "__main__":
    tapcase.main()
