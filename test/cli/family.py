# SPDX-License-Identifier: MIT
"""Helpers of the guardian's tests: a command that starts processes in its own group and in other sessions."""

import os
import shutil
import signal

from world import Case, children_of, seconds_until_gone, until

# The command, a child of it in its group, children in another session, and an orphan.
FAMILY = """
trap '' TERM HUP INT
sleep 1000 & echo $!
setsid sh -c 'sleep 1000 & echo $!'
setsid sh -c 'trap "" TERM HUP INT; sleep 1000 & echo $!; echo $$ ; wait' &
echo $$
while :; do sleep 1; done
"""
FAMILY_SIZE = 5  # number of processes of FAMILY that print their pid

# Leaves the group of the command. A child of it stays there, which has ended and is never reaped.
ZOMBIE = """
import os, time
zombie = os.fork()
if zombie == 0:
    os._exit(0)
os.waitid(os.P_PID, zombie, os.WEXITED | os.WNOWAIT)
os.setsid()
print(os.getpid(), zombie, flush=True)
time.sleep(1000)
"""


def comm(pid):
    """Returns the name of the process, or '' if there is none."""
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return ""


def arguments(pid):
    """Returns the command line as `pkill -f` reads it."""
    with open(f"/proc/{pid}/cmdline", encoding="utf-8") as file:
        return file.read().replace("\0", " ").strip()


def descendants_of(pid):
    """Returns the pids of its children, their children, and so on."""
    found = children_of(pid)
    return found + [below for child in found for below in descendants_of(child)]


def is_removed(directory):
    """Removes a directory; returns False if a process that is ending has just created a file in it."""
    shutil.rmtree(directory, ignore_errors=True)
    return not os.path.exists(directory)


class FamilyCase(Case):
    """A test case with a `redlock run` whose command has several processes."""

    def family(self, *flags, name="g", **options):
        """Starts `redlock run` with that command. Returns (process, the pids of the family)."""
        process = self.start("run", *flags, name, "--", "sh", "-c", FAMILY, **options)
        pids = [int(process.stdout.readline()) for _ in range(FAMILY_SIZE)]
        self.addCleanup(self.kill_all, pids)
        return process, pids

    @staticmethod
    def kill_all(pids):
        """Kills these processes with SIGKILL; those that have ended are skipped."""
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def guardian_of(self, process):
        """Waits for the guardian of this `redlock run`, and returns its pid."""
        return until(
            lambda: [pid for pid in children_of(process.pid) if comm(pid) == "rl-guardian"],
            "the guardian",
        )[0]

    def starter_of(self, guardian):
        """Returns the child of the guardian that starts the command."""
        return until(
            lambda: [pid for pid in children_of(guardian) if comm(pid) == "rl-starter"],
            "the starter",
        )[0]

    def assert_gone_within(self, pids, since, seconds):
        """Fails unless all processes have ended at most `seconds` after `since` (time.monotonic())."""
        self.assertLess(seconds_until_gone(pids, since), seconds)

    def stalled_at(self, path):
        """Returns an environment in which the guardian stops when it is about to list that directory (procstall.c)."""
        shim = os.environ.get("PROCSTALL_SHIM", "")
        if not shim:
            self.skipTest("a preloaded object and the sanitizers do not go together")
        directory = self.path("stall")
        os.mkdir(directory)
        self.addCleanup(until, lambda: is_removed(directory), "the directory of the stalled guardian is removed")
        return self.environment(LD_PRELOAD=shim, PROCSTALL=directory, PROCSTALL_AT=path)
