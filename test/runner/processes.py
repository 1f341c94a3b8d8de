# SPDX-License-Identifier: MIT
"""The processes that the runner has started, and what ends them when a signal ends the runner.

Each is the leader of a session, so that a signal reaches what it has started, too: the compilers of ninja, for example. The
keeper of a test program (keeper.c) ends that program itself.
"""

import contextlib
import os
import signal
import subprocess
import sys

SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)

running = set()  # processes that have not ended
ending = None  # number of the signal that ends the runner


def end(number, _frame):
    """Handles a signal: ends all processes. Each thread that waits for one exits when it has ended."""
    global ending
    ending = number
    for process in list(running):
        terminate(process)


def end_on_signals():
    """Lets the signals end all processes, and then this one with the status 128 + N. Also those that nohup or a script's
    background job ignores, because programs would inherit that."""
    for number in SIGNALS:
        signal.signal(number, end)


def terminate(process):
    """Sends SIGTERM to the session of the process."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)


def exit_if_ending():
    """Exits from the calling thread if a signal has arrived. lanes.run() hands the exit on to the main thread."""
    if ending is not None:
        sys.exit(128 + ending)


@contextlib.contextmanager
def start(words, **more):
    """Starts a process, with arguments as for Popen, for the time of a 'with' statement, which waits for its end."""
    exit_if_ending()
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, start_new_session=True, **more)
    running.add(process)
    try:
        exit_if_ending()  # end() may have run before the process was added
        yield process
    except BaseException:
        terminate(process)
        raise
    finally:
        process.wait()
        running.discard(process)
    exit_if_ending()
