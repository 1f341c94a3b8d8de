# SPDX-License-Identifier: MIT
"""Every process of the command ends with the lock, also where the guardian is killed, stopped or restricted.
family.FamilyCase.family() starts `redlock run` with a command of several processes, on the five servers of
world.Case. start() only starts it; start_with_events() starts `run` and records its events; until() waits for a
condition."""

import datetime
import errno
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import seccomp  # noqa: E402
import tapcase  # noqa: E402
from family import ZOMBIE, FamilyCase, arguments, comm  # noqa: E402
from world import REDLOCK, SLOW, TIME_LIMIT, children_of, runs, state_of, until  # noqa: E402

# `redlock` runs as this user, and its command starts a process of root, which this user may not signal.
FOREIGN_USER = 65534
AS_ROOT = """
import os, time
os.setuid(0)
os.setsid()
print(os.getpid(), flush=True)
time.sleep(1000)
"""

# A process whose first thread ends while another one runs: /proc shows a zombie.
HEADLESS = """
import ctypes, os, threading, time
threading.Thread(target=time.sleep, args=(1000,)).start()
print(os.getpid(), flush=True)
ctypes.CDLL(None).pthread_exit(None)
"""


class Hostile(FamilyCase):
    """FamilyCase.family() starts `redlock run` with a command of several processes. Each test takes something away
    from redlock: system calls, its guardian or its starter."""

    def test_no_pidfd(self):
        """A container may refuse pidfd_open() and pidfd_send_signal()."""
        if not seccomp.is_available():
            self.skipTest("no seccomp filter can be set here")
        for error in (errno.EPERM, errno.ENOSYS, errno.EINVAL):
            for calls in ([seccomp.PIDFD_OPEN], [seccomp.PIDFD_SEND_SIGNAL]):
                with self.subTest(error=errno.errorcode[error], calls=calls):
                    self.servers.command_all("FLUSHALL")  # deletes the lock of the case before
                    process, pids = self.family(
                        "-t", "10s", preexec_fn=lambda error=error, calls=calls: seccomp.forbid(error, *calls)
                    )
                    process.kill()
                    self.assert_gone_within(pids, time.monotonic(), 2.0 * SLOW)

    def test_group_of_only_zombies_is_empty(self):
        """The zombie's parent runs in another session and never reaps it."""
        process = self.start(
            "run", "-t", "10s", "-k", "300ms", "g", "--", "sh", "-c", '"$@" & wait', "sh", sys.executable, "-c", ZOMBIE
        )
        parent, zombie = (int(word) for word in process.stdout.readline().split())
        self.addCleanup(self.kill_all, [parent])
        self.assertEqual(state_of(zombie), "Z")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(10 * SLOW), 128 + signal.SIGTERM)
        self.assertTrue(runs(parent))
        self.assertEqual(state_of(zombie), "Z")
        self.assertEqual(self.servers.keys(), set())

    def test_process_without_its_first_thread_is_alive(self):
        """A process whose first thread has ended looks like a zombie; it is killed all the same."""
        for how, script in ("group", '"$@" & wait'), ("session", 'setsid "$@" & wait'):
            with self.subTest(how=how):
                process = self.start(
                    "run", "-t", "10s", "-k", "300ms", how, "--", "sh", "-c", script, "sh", sys.executable, "-c", HEADLESS
                )
                pid = int(process.stdout.readline())
                self.addCleanup(self.kill_all, [pid])
                until(lambda pid=pid: state_of(pid) == "Z", "end of the first thread")
                self.assertTrue(runs(pid))
                process.kill()
                self.wait_gone(pid)

    def assert_released_after_the_end(self, process, pids):
        """Checks that no process of the command runs any more when the lock is released."""
        until(lambda: self.servers.keys() == set(), "no key on any server")
        self.assertFalse([pid for pid in pids if runs(pid)])
        self.assertEqual(process.wait(TIME_LIMIT), 70)

    def test_killed_guardian(self):
        """The guardian's processes become children of the wrapper, which ends them before it releases the lock."""
        process, pids = self.family("-t", "10s")
        os.kill(self.guardian_of(process), signal.SIGKILL)
        self.assert_released_after_the_end(process, pids)

    def test_killed_starter(self):
        """The starter, the parent of the command, is killed: the family ends, and only then the lock is released."""
        process, pids = self.family("-t", "10s")
        os.kill(self.starter_of(self.guardian_of(process)), signal.SIGKILL)
        self.assert_released_after_the_end(process, pids)

    def test_lock_is_held_while_the_guardian_kills(self):
        """The guardian is held up before it looks for processes: the lock is not released meanwhile."""
        process, pids = self.family("-t", "10s", env=self.stalled_at("/proc"))
        os.kill(self.starter_of(self.guardian_of(process)), signal.SIGKILL)
        until(lambda: os.path.exists(self.path("stall/reached")), "the guardian lists /proc")
        self.assertNotEqual(self.servers.keys(), set())
        self.path("stall/go", "")
        self.assert_released_after_the_end(process, pids)

    def test_killed_guardian_of_a_sandbox(self):
        """The sandbox's servers end, and so do processes of its command in another session."""
        script = "setsid sleep 1000 & echo $!; cat $REDLOCK_SANDBOX_DIR/1/pid; wait"
        process = self.start("sandbox", "-n", "1", "--", "sh", "-c", script)
        pids = [int(process.stdout.readline()) for _ in range(2)]
        self.addCleanup(self.kill_all, pids)
        os.kill(self.guardian_of(process), signal.SIGKILL)
        self.assertEqual(process.wait(TIME_LIMIT), 70)
        self.assertFalse([pid for pid in pids if runs(pid)])

    def test_killed_guardian_and_starter(self):
        """Guardian and starter are killed at once: the wrapper ends the family and then releases."""
        process, pids = self.family("-t", "10s")
        guardian = self.guardian_of(process)
        starter = self.starter_of(guardian)
        self.kill_all([guardian, starter])
        self.assert_released_after_the_end(process, pids)

    def test_guardian_or_starter_stopped_at_the_kill_time(self):
        """The wrapper acts in place of a stopped guardian, also where the starter cannot report the command's end."""
        for name, codes in ("guardian", (124,)), ("starter", (70,)), ("guardian and starter", (70, 124)):
            with self.subTest(stopped=name):
                self.servers.command_all("FLUSHALL")
                process, pids = self.family("-t", "3s")
                guardian = self.guardian_of(process)
                starter = self.starter_of(guardian)
                self.addCleanup(self.kill_all, [guardian, starter])
                for pid, what in (guardian, "guardian"), (starter, "starter"):
                    if what in name:
                        os.kill(pid, signal.SIGSTOP)
                for index in range(3):
                    self.servers.command(index, "FLUSHALL")
                self.assert_gone_within(pids, time.monotonic(), 3.0)
                self.assertIn(process.wait(TIME_LIMIT), codes)
                self.wait_gone(guardian, starter)

    def test_guardian_killed_during_the_grace(self):
        """The command has ended at the first signal; a process in another session has not."""
        script = """
            setsid sh -c 'trap "" TERM; echo $$; while :; do sleep 1; done' &
            setsid sh -c 'trap "" TERM; echo $$; read _ <$1' sh "$1" &
            trap 'exit 0' TERM; wait; wait
        """
        process, events = self.start_with_events(
            *("-t", "20s", "-k", "2s", "--max-hold", "4s", "g", "--", "sh", "-c", script, "sh", self.fifo("end"))
        )
        guardian = self.guardian_of(process)  # before --max-hold begins to count
        pids = [int(process.stdout.readline()) for _ in range(2)]
        self.addCleanup(self.kill_all, pids)
        self.wait_event(events, "child_exited")
        os.kill(guardian, signal.SIGKILL)
        # The end of one process does not end the grace of the other.
        with open(self.path("end"), "w", encoding="utf-8") as file:
            file.write("\n")
        self.wait_gone(*pids)
        stopping = datetime.datetime.fromisoformat(self.wait_event(events, "stopping")["t"].replace("Z", "+00:00"))
        self.assertGreater((datetime.datetime.now(datetime.timezone.utc) - stopping).total_seconds(), 1.6)
        until(lambda: self.servers.keys() == set(), "no key on any server")
        self.assertEqual(process.wait(TIME_LIMIT), 124)

    def test_full_pipe_of_a_stopped_guardian(self):
        """The wrapper does not wait for a guardian that reads no orders."""
        process, events = self.start_with_events("-t", "6s", "g", "--", "sh", "-c", "echo; exec sleep 1000")
        process.stdout.readline()
        guardian = self.guardian_of(process)
        self.addCleanup(self.kill_all, [guardian])
        os.kill(guardian, signal.SIGSTOP)
        until(lambda: state_of(guardian) == "T", "the guardian is stopped")
        self.fill_pipe(guardian)
        extended = len([event for event in self.events(events) if event["event"] == "extended"])
        self.wait_events(events, "extended", extended + 2)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(TIME_LIMIT), 128 + signal.SIGTERM)
        self.assertFalse(runs(guardian))

    @staticmethod
    def fill_pipe(guardian):
        """Fills the guardian's pipe with orders that set no kill time."""
        directory = f"/proc/{guardian}/fd"
        pipes = [fd for fd in os.listdir(directory) if os.readlink(f"{directory}/{fd}").startswith("pipe:")]
        fd = os.open(f"{directory}/{pipes[0]}", os.O_WRONLY | os.O_NONBLOCK)
        try:
            while True:
                os.write(fd, struct.pack("=QII", 2**64 - 1, 1, 0))
        except BlockingIOError:
            os.close(fd)

    def test_stopped_guardian_ends_with_the_command(self):
        """A stopped guardian does not keep redlock from exiting, and does not outlive it."""
        process = self.start("run", "g", "--", "sh", "-c", "echo; read _ <$1", "sh", self.fifo("end"))
        process.stdout.readline()
        guardian = self.guardian_of(process)
        self.addCleanup(self.kill_all, [guardian])
        os.kill(guardian, signal.SIGSTOP)
        until(lambda: state_of(guardian) == "T", "the guardian is stopped")
        with open(self.path("end"), "w", encoding="utf-8") as file:
            file.write("\n")
        self.assertEqual(process.wait(TIME_LIMIT), 0)
        self.assertFalse(runs(guardian))

    def fifo(self, name):
        """Creates a named pipe in the directory of the case, and returns its path."""
        path = self.path(name)
        os.mkfifo(path)
        return path

    def test_no_pattern_of_pkill_matches_all_three(self):
        """No pattern of `pkill -9` or `pkill -9 -f` matches redlock, its guardian and its starter together."""
        for read in comm, arguments:
            for pattern in ("redlock", "lock", "rl-", "guardian", "starter"):
                with self.subTest(read=read.__name__, pattern=pattern):
                    self.servers.command_all("FLUSHALL")
                    process, pids = self.family("-t", "10s")
                    guardian = self.guardian_of(process)
                    all_three = [process.pid, guardian, self.starter_of(guardian)]
                    found = [pid for pid in all_three if pattern in read(pid)]
                    self.assertTrue(0 < len(found) < 3, found)
                    self.kill_all(found)
                    self.assert_gone_within(pids, time.monotonic(), 2.0 * SLOW)
                    process.wait(TIME_LIMIT)

    def test_children_of_an_earlier_shell_are_not_killed(self):
        """A shell that becomes `redlock` by exec leaves children behind, which are not of the command."""
        script = 'sleep 1000 >/dev/null & (sleep 1000 >/dev/null & wait) >/dev/null & echo $!; exec "$@"'
        words = ["sh", "-c", script, "sh", REDLOCK, "run", "-t", "10s", "g", "--", "sh", "-c", "echo $$; sleep 1000"]
        with open(self.path("stderr"), "wb") as errors:
            process = subprocess.Popen(
                words, stdout=subprocess.PIPE, stderr=errors, stdin=subprocess.DEVNULL, text=True, env=self.environment()
            )
        self.addCleanup(self.end, process)
        shell = int(process.stdout.readline())
        command = int(process.stdout.readline())
        guardian = self.guardian_of(process)
        before = [pid for pid in children_of(process.pid) if pid != guardian]
        before += until(lambda: children_of(shell), "a child of the other shell")
        self.addCleanup(self.kill_all, before)
        self.assertEqual(len(before), 3)
        os.kill(guardian, signal.SIGKILL)
        self.assertEqual(process.wait(TIME_LIMIT), 70)
        self.assertFalse(runs(command))
        self.assertTrue(all(runs(pid) for pid in before))

    def setuid_python(self):
        """Returns the path of an interpreter with the setuid bit, which every user runs as root."""
        directory = tempfile.mkdtemp(prefix="cli-", dir="/tmp")  # other users may not search TMPDIR
        self.addCleanup(shutil.rmtree, directory)
        os.chmod(directory, 0o755)
        path = os.path.join(directory, "python")
        shutil.copy(os.path.realpath("/usr/bin/python3"), path)
        os.chmod(path, 0o4755)
        for words in [path, "-c", "import os; os.setuid(0)"], [REDLOCK, "--version"]:
            try:
                subprocess.run(words, user=FOREIGN_USER, extra_groups=[], capture_output=True, check=True)
            except (OSError, subprocess.SubprocessError):
                self.skipTest("to become another user and root again takes root, and paths that all may read")
        return path

    def test_process_of_another_user_is_not_waited_for(self):
        """The process cannot be ended, and the stop after a loss must not take longer because of it."""
        python = self.setuid_python()
        script = '"$@" & trap "exit 0" TERM; wait; wait'
        process = self.start(
            "run", "-t", "3s", "g", "--", "sh", "-c", script, "sh", python, "-c", AS_ROOT, user=FOREIGN_USER, extra_groups=[]
        )
        pid = int(process.stdout.readline())
        self.addCleanup(self.kill_all, [pid])
        for index in range(3):
            self.servers.command(index, "FLUSHALL")
        self.assertEqual(process.wait(TIME_LIMIT), 124)
        self.assertTrue(runs(pid))
        self.assertIn("still run, without the lock: 1", self.error_text())

    def test_process_of_another_user_keeps_the_lock_for_the_grace(self):
        """A process that runs as root (set-user-ID) cannot be killed by redlock: after --max-hold the
        lock is held while this process runs, for the grace at most."""
        python = self.setuid_python()
        script = '"$@" & trap "exit 0" TERM; wait; wait'
        events = self.path("events", "")
        os.chmod(events, 0o666)
        with open(events, "ab") as file:
            process = self.start(
                *("run", "--status-fd", str(file.fileno()), "-t", "20s", "-k", "5s", "--max-hold", "6s", "g"),
                *("--", "sh", "-c", script, "sh", python, "-c", AS_ROOT),
                pass_fds=[file.fileno()],
                user=FOREIGN_USER,
                extra_groups=[],
            )
        pid = int(process.stdout.readline())
        self.addCleanup(self.kill_all, [pid])
        self.wait_event(events, "child_exited")
        self.assertNotEqual(self.servers.keys(), set())
        self.kill_all([pid])
        self.assertEqual(process.wait(TIME_LIMIT), 124)
        self.assertNotIn("still run", self.error_text())


if __name__ == "__main__":
    tapcase.main()
