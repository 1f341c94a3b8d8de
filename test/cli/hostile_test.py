# SPDX-License-Identifier: MIT
"""What the command started ends with the lock, whatever the surroundings take from the guardian."""

import errno
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import seccomp  # noqa: E402
import tapcase  # noqa: E402
from family import FamilyCase  # noqa: E402
from world import SLOW  # noqa: E402


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


if __name__ == "__main__":
    tapcase.main()
