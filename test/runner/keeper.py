# SPDX-License-Identifier: MIT
"""usage: keeper.py REPORT GRACE COMMAND...

Runs a test program in a session of its own, and then ends whatever it has left running, daemons with sessions of their
own included: the keeper is a child subreaper, so the kernel makes it the parent of every orphan below it. Writes to the
file REPORT, as fields that each end with NUL, the wait status of the program, its processor seconds, and the names of the
processes that did not end by themselves within GRACE seconds. SIGTERM ends everything at once; the status is then -1.

It imports little, because it starts once for each program: json and subprocess would take longer than all the rest.
"""

import ctypes
import os
import signal
import sys
import time

PR_SET_CHILD_SUBREAPER = 36
KILL_SECONDS = 20.0  # after that, a process that survives KILL is stuck in the kernel
STEP_SECONDS = 0.02


class Interrupted(Exception):
    """SIGTERM has arrived."""


def become_subreaper():
    """Makes this process the parent of all orphans below it."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def interrupt(number, frame):
    """Handles the first SIGTERM."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Interrupted


def children():
    """Returns {pid: name} of the children that run."""
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as file:
                head, _, rest = file.read().rpartition(")")
        except OSError:
            continue
        fields = rest.split()
        if int(fields[1]) == os.getpid() and fields[0] not in "ZX":
            found[int(entry)] = head.partition("(")[2]
    return found


def reap():
    """Reaps the children that have ended. Returns whether one is left."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            pass
    except ChildProcessError:
        return False
    return True


def end_children(grace):
    """Waits so many seconds until no child is left, and then kills the children and those that they leave as orphans.
    Returns the names of the killed ones."""
    names = set()
    deadline = time.monotonic() + grace
    while reap():
        late = time.monotonic() - deadline
        if late > KILL_SECONDS:
            break
        if late >= 0:
            left = children()
            names.update(left.values())
            for pid in left:
                os.kill(pid, signal.SIGKILL)  # not reaped yet, so the pid is still that of the child
        time.sleep(STEP_SECONDS)
    return sorted(names)


def start(words):
    """Starts the program in a session of its own. Returns its pid. One that cannot be started exits with 127."""
    program = os.fork()  # after posix_spawn() of glibc the program would ignore signals 32 and 33
    if program == 0:
        try:
            os.setsid()
            for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them
                signal.signal(number, signal.SIG_DFL)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.execvp(words[0], words)
        except OSError as failure:
            os.write(2, f"{words[0]}: {failure.strerror}\n".encode())
        finally:
            os._exit(127)  # nothing else may run in the child
    return program


def wait_for(program):
    """Waits for the end of the program, reaping orphans meanwhile. Returns its wait status and its processor seconds."""
    while True:
        pid, status, used = os.wait4(-1, 0)
        if pid == program:
            return status, used.ru_utime + used.ru_stime


def main():
    """Runs the program that the command line names."""
    path, grace, words = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
    signal.signal(signal.SIGTERM, interrupt)
    become_subreaper()
    status, computed = -1, 0.0
    try:
        status, computed = wait_for(start(words))
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    except Interrupted:
        grace = 0
    left = end_children(grace)
    with open(path, "w", encoding="utf-8") as file:
        file.write("".join(f"{word}\0" for word in (status, computed, *left)))


if __name__ == "__main__":
    main()
