# SPDX-License-Identifier: MIT
"""What the command started ends with the lock, whatever the surroundings take from the guardian."""

import errno
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import seccomp  # noqa: E402
import tapcase  # noqa: E402
from family import FamilyCase  # noqa: E402
from world import SLOW, runs, state_of, until  # noqa: E402

# Leaves the group of the command with a child in it that has ended and that it does not wait for.
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

# Its first thread ends and another one goes on: /proc shows a zombie.
HEADLESS = """
import ctypes, os, threading, time
threading.Thread(target=time.sleep, args=(1000,)).start()
print(os.getpid(), flush=True)
ctypes.CDLL(None).pthread_exit(None)
"""


class Hostile(FamilyCase):
    def test_no_pidfd(self):
        """A container may refuse the system calls that pin a process."""
        if not seccomp.works():
            self.skipTest("no seccomp filter can be set here")
        for error in (errno.EPERM, errno.ENOSYS, errno.EINVAL):
            for calls in ([seccomp.PIDFD_OPEN], [seccomp.PIDFD_SEND_SIGNAL]):
                with self.subTest(error=errno.errorcode[error], calls=calls):
                    process, pids = self.family(
                        "-t", "10s", preexec_fn=lambda error=error, calls=calls: seccomp.forbid(error, *calls)
                    )
                    process.kill()
                    self.assert_gone_within(pids, time.monotonic(), 2.0 * SLOW)

    def test_group_of_only_zombies_is_empty(self):
        """Its parent is in another session, does not wait for it, and goes on."""
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


if __name__ == "__main__":
    tapcase.main()
