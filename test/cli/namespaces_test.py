# SPDX-License-Identifier: MIT
"""Every process of the command ends with the lock in other namespaces, too: where /proc is missing or shows the
processes of another namespace, and where clocks differ. family.FamilyCase.family() starts `redlock run` with a
command of several processes, on the five servers of world.Case. until() waits for a condition."""

import os
import resource
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import tapcase  # noqa: E402
from family import FAMILY, FAMILY_SIZE, ZOMBIE, FamilyCase, comm, descendants_of  # noqa: E402
from world import REDLOCK, SLOW, TIME_LIMIT, children_of, runs, until  # noqa: E402

WORDS = 'exec "$@"'
AS_CHILD = '"$@"; exit $?'
AS_CHILD_THAT_MAY_GO = '"$@"; exec sleep 1000'  # the end of PID 1 would end all others
# How `redlock` is started. FOREIGN: in a new PID namespace with the /proc of the old one, as PID 1 and as its child.
# NO_PROC: without /proc. WITHOUT_WRAPPER: places in which the other processes run on when `redlock` is killed.
FOREIGN = {
    "pid_1": ["unshare", "-fp"],
    "child_of_pid_1": ["unshare", "-fp", "sh", "-c", AS_CHILD, "sh"],
}
NO_PROC = {"no_proc": ["unshare", "-m", "sh", "-c", f"mount -t tmpfs none /proc && {WORDS}", "sh"]}

ALL = {**FOREIGN, **NO_PROC}
WITHOUT_WRAPPER = {"child_of_pid_1": ["unshare", "-fp", "sh", "-c", AS_CHILD_THAT_MAY_GO, "sh"], **NO_PROC}


class Namespaces(FamilyCase):
    """Runs `redlock` in other namespaces. A place is the list of words that start a program there."""

    def setUp(self):
        """Skips the case where no namespaces can be made."""
        super().setUp()
        if not os.environ.get("CLOCKSHIM"):
            self.skipTest("a sanitizer looks into /proc itself")
        for words in ALL.values():
            if subprocess.run([*words, "true"], capture_output=True, check=False).returncode != 0:
                self.skipTest("a PID or mount namespace takes root")

    def start_inside(self, place, *words):
        """Runs `redlock` in that place. Returns (process that was started, pid of `redlock`, pid of its guardian)."""
        # Without /proc the dynamic linker does not find the library next to the program.
        library = os.path.join(os.path.dirname(os.path.dirname(REDLOCK)), "lib")
        with open(self.path("stderr"), "wb") as errors:
            process = subprocess.Popen(
                [*place, REDLOCK, *words],
                stdout=subprocess.PIPE,
                stderr=errors,
                stdin=subprocess.DEVNULL,
                text=True,
                env=self.environment(LD_LIBRARY_PATH=library),
            )
        self.errors = self.path("stderr")
        self.addCleanup(self.end_with_all, process)
        guardian = until(
            lambda: [pid for pid in descendants_of(process.pid) if comm(pid) == "rl-guardian"], "the guardian"
        )[0]
        wrapper = [pid for pid in [process.pid, *descendants_of(process.pid)] if guardian in children_of(pid)][0]
        return process, wrapper, guardian

    def end_with_all(self, process):
        """Kills the process and all its descendants."""
        self.kill_all([process.pid, *descendants_of(process.pid)])
        process.stdout.close()
        process.wait()

    def family_inside(self, place, *flags, script=FAMILY, words=(), size=FAMILY_SIZE):
        """Starts `redlock run` with a script of `size` processes. Returns what start_inside() does, and their pids."""
        process, wrapper, guardian = self.start_inside(place, "run", *flags, "g", "--", "sh", "-c", script, *words)
        for _ in range(size):
            process.stdout.readline()
        pids = [pid for pid in descendants_of(guardian) if pid != self.starter_of(guardian)]
        self.assertGreaterEqual(len(pids), size)
        self.addCleanup(self.kill_all, pids)
        return process, wrapper, guardian, pids

    def in_each_place(self, places, test):
        """Runs the test in each of the places."""
        for name, place in places.items():
            with self.subTest(place=name):
                self.servers.command_all("FLUSHALL")
                test(place)

    def check_loss(self, place, *flags):
        """Checks that all processes end in time when a majority loses the key, with little processor time."""
        process, _, _, pids = self.family_inside(place, "-t", "3s", *flags)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        for index in range(3):
            self.servers.command(index, "FLUSHALL")
        self.assert_gone_within(pids, time.monotonic(), 3.0)
        self.assertEqual(process.wait(TIME_LIMIT), 124)
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.assertLess(now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime, 1.5)
        self.assertEqual(self.error_text().count("/proc cannot be read"), 1, self.error_text())

    def test_loss_ends_all_before_the_deadline_and_costs_little(self):
        self.in_each_place(ALL, self.check_loss)

    def test_children_of_an_earlier_shell_are_not_reported(self):
        """Such children run on, but are not processes of the command."""
        place = ["unshare", "-fp", "sh", "-c", 'sleep 1000 >/dev/null & exec "$@"', "sh"]
        self.check_loss(place)
        self.assertNotIn("still run", self.error_text())

    def test_loss_in_the_foreground(self):
        self.in_each_place(ALL, lambda place: self.check_loss(place, "--foreground"))

    def test_killed_wrapper(self):
        def kill(place):
            _, wrapper, _, pids = self.family_inside(place, "-t", "10s")
            self.kill_all([wrapper])
            self.assert_gone_within(pids, time.monotonic(), 2.0 * SLOW)

        self.in_each_place(WITHOUT_WRAPPER, kill)

    def test_killed_guardian(self):
        def kill(place):
            process, _, guardian, pids = self.family_inside(place, "-t", "10s")
            self.kill_all([guardian])
            until(lambda: self.servers.keys() == set(), "no key on any server")
            self.assertFalse([pid for pid in pids if runs(pid)])
            self.assertEqual(process.wait(TIME_LIMIT), 70)

        self.in_each_place(ALL, kill)

    def test_processes_of_a_stopped_command_end_before_the_release(self):
        """All processes of the command write to a named pipe of the test, which is at its end once none of them runs.
        Looking for the processes instead would be late on a busy machine, because --max-hold does not wait for it."""
        script = """
            exec 9>"$1"
            setsid sh -c 'trap "" TERM; echo; while :; do sleep 1; done' & trap 'exit 0' TERM; wait; wait
        """
        path = self.path("pipe")
        os.mkfifo(path)

        def stop(place):
            pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            self.addCleanup(os.close, pipe)
            flags = ("-t", "20s", "-k", "2s", "--max-hold", "4s")
            process, _, _ = self.start_inside(place, "run", *flags, "g", "--", "sh", "-c", script, "sh", path)
            self.assertEqual(process.stdout.readline(), "\n")  # the lock is held, and the pipe is open
            until(lambda: self.servers.keys() == set(), "no key on any server")
            self.assertEqual(os.read(pipe, 1), b"", "a process of the command still runs")
            self.assertEqual(process.wait(TIME_LIMIT), 124)

        self.in_each_place(ALL, stop)

    def test_pids_that_have_wrapped(self):
        """The newest pid is smaller than that of a process of the command."""
        last = "/proc/sys/kernel/ns_last_pid"
        script = f"echo 20000 >{last}; setsid sh -c 'sleep 1000 & echo; wait' & wait"
        place = WITHOUT_WRAPPER["child_of_pid_1"]
        _, wrapper, _, pids = self.family_inside(place, "-t", "10s", script=script, size=1)
        inside = ["nsenter", "-t", str(wrapper), "-p", "sh", "-c", f"echo 50 >{last}"]
        subprocess.run(inside, check=True)
        self.kill_all([wrapper])
        self.wait_gone(*pids)

    def test_group_of_only_zombies(self):
        """Without /proc, zombies cannot be distinguished from running processes: the wait for them has a limit."""

        def end(place):
            words = ("sh", sys.executable, "-c", ZOMBIE)
            process, wrapper, _, _ = self.family_inside(
                place, "-t", "10s", "-k", "300ms", script='"$@" & wait', words=words, size=1
            )
            os.kill(wrapper, signal.SIGTERM)
            self.assertEqual(process.wait(TIME_LIMIT), 128 + signal.SIGTERM)
            self.assertEqual(self.servers.keys(), set())

        self.in_each_place(FOREIGN, end)

    def test_kill_time_in_another_time_namespace(self):
        """CLOCK_BOOTTIME is ahead of CLOCK_MONOTONIC there, as after a suspension of the machine."""
        place = ["unshare", "-fT", "--boottime", "100000"]
        if subprocess.run([*place, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no time namespaces here")
        process, wrapper, _, pids = self.family_inside(place, "-t", "2s")
        os.kill(wrapper, signal.SIGSTOP)
        self.assert_gone_within(pids, time.monotonic(), 2.0)
        os.kill(wrapper, signal.SIGCONT)
        self.assertEqual(process.wait(TIME_LIMIT), 124)


if __name__ == "__main__":
    tapcase.main()
