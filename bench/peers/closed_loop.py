# SPDX-License-Identifier: MIT
"""The part that all drivers in Python share; README.md describes drivers. Each driver has a class with acquire(end), which
returns the deadline of the lock in ns, or None if the lock is taken, and release()."""

import asyncio
import sys
import threading
import time

now = time.monotonic_ns  # the clock of all times: CLOCK_MONOTONIC


class Task:
    """The arguments of a driver."""

    def __init__(self, words):
        servers, self.resource, ttl, hold, first, count = words[:6]
        self.servers = servers.split(",")  # URLs, redis://host:port
        self.ttl_ms = int(ttl)
        self.hold_s = int(hold) / 1e6
        self.callers = range(int(first), int(first) + int(count))
        self.own = len(words) > 6

    def name(self, number):
        """Returns the resource of the caller with this number."""
        return f"{self.resource}{number}" if self.own else self.resource


def one_line(error):
    """Returns an exception as one line of text."""
    return f"{type(error).__name__}: {error}".replace("\n", " ")


def failed(number, want, word, text=""):
    """Returns the line of a failed call. `want`: when the failed release began, or the first try since the last hold."""
    return f"failed {number} {want} {now()} {word} {text}"


def held(number, want, grant, called, until):
    """Returns the line of a hold. `called`: call of release; `until`: deadline of the lock."""
    return f"hold {number} {want} {grant} {min(called, until)} {now()}"


def contend(task, caller, number, end, lines):
    """Runs one caller in a thread until `end`."""
    want = 0
    while now() < end:
        want = want or now()
        try:
            until = caller.acquire(end)
        except Exception as error:  # any exception of the library counts as a failure
            lines.append(failed(number, want, "error", one_line(error)))
            continue
        if until is None:
            lines.append(failed(number, want, "taken"))
            continue
        grant = now()
        if task.hold_s > 0:
            time.sleep(task.hold_s)
        called = now()
        try:
            caller.release()
        except Exception as error:
            lines.append(failed(number, called, "release", one_line(error)))
        lines.append(held(number, want, grant, called, until))
        want = 0


async def contend_async(task, caller, number, end, lines):
    """Runs one caller as a task of asyncio until `end`."""
    want = 0
    while now() < end:
        want = want or now()
        try:
            until = await caller.acquire(end)
        except Exception as error:
            lines.append(failed(number, want, "error", one_line(error)))
            continue
        if until is None:
            lines.append(failed(number, want, "taken"))
            continue
        grant = now()
        if task.hold_s > 0:
            await asyncio.sleep(task.hold_s)
        called = now()
        try:
            await caller.release()
        except Exception as error:
            lines.append(failed(number, called, "release", one_line(error)))
        lines.append(held(number, want, grant, called, until))
        want = 0


def say(lines):
    """Prints the lines of a slice, and its end."""
    sys.stdout.write("\n".join([*lines, "over\n"]))
    sys.stdout.flush()


def run_threads(task, callers):
    """Runs all slices with a thread for each caller."""
    print("ready", flush=True)
    for line in sys.stdin:
        lines = []
        threads = [threading.Thread(target=contend, args=(task, caller, number, int(line), lines))
                   for caller, number in zip(callers, task.callers)]  # fmt: skip
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        say(lines)


async def run_async(task, callers):
    """Runs all slices with a task for each caller."""
    print("ready", flush=True)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        lines = []
        await asyncio.gather(*(contend_async(task, caller, number, int(line), lines)
                               for caller, number in zip(callers, task.callers)))  # fmt: skip
        say(lines)
