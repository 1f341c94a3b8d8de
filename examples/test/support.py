# SPDX-License-Identifier: MIT
"""The part that the tests of the examples share. They run inside `redlock sandbox`; meson passes
REDLOCK_COMMAND (the command), EXAMPLES_DIR (the built examples) and SOURCE_DIR."""

import contextlib
import os
import subprocess
import sys
import time

REDLOCK = os.environ["REDLOCK_COMMAND"]  # path of the command
EXAMPLES = os.environ["EXAMPLES_DIR"]
SOURCE = os.environ["SOURCE_DIR"]
SLOW = int(os.environ.get("REDLOCK_TEST_SLOW", "1"))  # factor of all deadlines; larger with sanitizers
SECONDS_MAX = 30 * SLOW  # deadline of every command

sys.path.insert(0, os.path.join(SOURCE, "test", "lib"))
import tapcase  # noqa: E402, F401


# On a machine that stands still for a moment, a server must not count as unresponsive.
PATIENT = ["--connect-timeout", "1s", "--node-timeout", "1s"]


def run(command, **changes):
    """Runs a command to its end, with changes to its environment (None: unset)."""
    if command[0] == REDLOCK and command[1] in ("status", "break"):
        command = [*command[:2], *PATIENT, *command[2:]]
    environment = {**os.environ, **{k: v for k, v in changes.items() if v is not None}}
    for name in [name for name, value in changes.items() if value is None]:
        environment.pop(name, None)
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=SECONDS_MAX, check=False
    )


def example(name, *arguments, **changes):
    """Runs an example to its end."""
    return run([os.path.join(EXAMPLES, name), *arguments], **changes)


def status_of(resource):
    """Returns the exit status of `redlock status`: 0 held, 1 free, 3 unknown."""
    return run([REDLOCK, "status", resource]).returncode


def wait_until(condition, what):
    """Polls until condition() is true. `what` is the text if it does not become true."""
    give_up = time.monotonic() + SECONDS_MAX
    while not condition():
        if time.monotonic() > give_up:
            raise AssertionError(f"did not happen: {what}")
        time.sleep(0.02)


@contextlib.contextmanager
def held(resource):
    """Another client holds the lock in this context. The held command itself prints that it runs: the key
    alone could be left over from an earlier hold (--min-hold)."""
    holder = subprocess.Popen(
        [REDLOCK, "run", resource, "--", "sh", "-c", "echo held; exec cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        if holder.stdout.readline() != b"held\n":
            raise AssertionError(f"{resource} is not held")
        yield
    finally:
        holder.stdin.close()
        holder.wait(SECONDS_MAX)
        holder.stdout.close()
