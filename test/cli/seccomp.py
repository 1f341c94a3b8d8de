# SPDX-License-Identifier: MIT
"""Makes system calls fail as in a container whose seccomp profile does not know or does not allow them."""

import ctypes
import errno
import os
import struct

# The numbers from 403 on are the same on all architectures.
PIDFD_SEND_SIGNAL = 424
PIDFD_OPEN = 434

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
BPF_LD_W_ABS, BPF_JEQ_K, BPF_RET_K = 0x20, 0x15, 0x06
SECCOMP_RET_ERRNO, SECCOMP_RET_ALLOW = 0x00050000, 0x7FFF0000


class Program(ctypes.Structure):
    """struct sock_fprog: the filter that the kernel is given."""

    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def statement(code, value, if_true=0, if_false=0):
    """Returns one statement of a filter: struct sock_filter."""
    return struct.pack("=HBBI", code, if_true, if_false, value)


def forbid(error, *numbers):
    """Makes the calls with these numbers fail with the error, in this process and its descendants."""
    text = statement(BPF_LD_W_ABS, 0)  # the number of the call
    for number in numbers:
        text += statement(BPF_JEQ_K, number, 0, 1) + statement(BPF_RET_K, SECCOMP_RET_ERRNO | error)
    text += statement(BPF_RET_K, SECCOMP_RET_ALLOW)
    buffer = ctypes.create_string_buffer(text, len(text))
    program = Program(len(text) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 or libc.prctl(
        PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0
    ):
        raise OSError(ctypes.get_errno(), "seccomp")


def is_available():
    """Returns whether forbid() works here, which a child process tries."""
    pid = os.fork()
    if pid == 0:
        try:
            forbid(errno.EPERM, PIDFD_OPEN)
            code = ctypes.CDLL(None, use_errno=True).syscall(PIDFD_OPEN, os.getpid(), 0)
            os._exit(0 if code == -1 and ctypes.get_errno() == errno.EPERM else 1)
        except OSError:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
