#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Measures how `redlock run` of fresh processes contends for one lock: each loop runs `redlock run NAME -- true` again and
again, on the servers of REDLOCK_SERVERS (redlock sandbox starts five), directly or through redlock-delay. Prints a table,
or JSON with --json."""

import argparse
import json
import os
import re
import secrets
import socket
import subprocess
import sys
import threading
import time

WAIT = "120s"  # wait budget of each run: none may end before it gets the lock
# Explains the columns, below the table.
NOTES = """
delay: that of the proxy in each direction; runs/s: runs of all loops; p50, longest: from the start of a process to its end
jain: of the numbers of runs, 1 means equal shares; least: runs of the loop that had the fewest
"""


class Loop(threading.Thread):
    """Runs the command again and again until the time `end_s` (time.monotonic()), at least once. A run that began earlier
    ends later."""

    def __init__(self, command, environment, end_s):
        super().__init__()
        self.command, self.environment, self.end_s = command, environment, end_s
        self.times_s, self.failures = [], []

    def run(self):
        while not (self.times_s or self.failures) or time.monotonic() < self.end_s:
            start_s = time.monotonic()
            done = subprocess.run(self.command, env=self.environment, stdin=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True, check=False)  # fmt: skip
            if done.returncode == 0:
                self.times_s.append(time.monotonic() - start_s)
            else:
                self.failures.append(done.stderr.strip() or f"exit status {done.returncode}")
                time.sleep(0.1)


def jain(counts):
    """Returns Jain's index of the counts: 1 means equal shares, 0 that there is nothing to share."""
    squares = sum(count * count for count in counts)
    return sum(counts) ** 2 / len(counts) / squares if squares else 0.0


def measure(arguments, name, loops, delay):
    """Runs the given number of loops at the same time. Returns a row of the table. Failures are printed on stderr."""
    environment = dict(os.environ)
    proxy = None
    if delay != "0":
        program = os.path.join(arguments.build, "bench", "redlock-delay")
        # Without a command the proxy prints the list of servers and ends with its standard input.
        proxy = subprocess.Popen([program, "--delay", delay], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        environment["REDLOCK_SERVERS"] = proxy.stdout.readline().strip()
    start_s = time.monotonic()
    command = [arguments.redlock, "run", "-w", WAIT, name, "--", "true"]
    threads = [Loop(command, environment, start_s + arguments.seconds) for _ in range(loops)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    spent_s = time.monotonic() - start_s
    if proxy is not None:
        proxy.stdin.close()
        proxy.wait()
        proxy.stdout.close()
    failures = [text for thread in threads for text in thread.failures]
    for text in failures[:3]:
        print(f"fresh.py: {text}", file=sys.stderr)
    times_s = sorted(seconds for thread in threads for seconds in thread.times_s)
    counts = [len(thread.times_s) for thread in threads]
    return {
        "loops": loops,
        "delay": delay,
        "runs": len(times_s),
        "runs_per_s": len(times_s) / spent_s,
        "p50_ms": times_s[len(times_s) // 2] * 1000 if times_s else 0.0,
        "longest_ms": times_s[-1] * 1000 if times_s else 0.0,
        "jain": jain(counts),
        "least": min(counts),
        "failed": len(failures),
    }


def keys_left(name):
    """Returns whether a server has a key of this lock or of its line. Waits three seconds for late undos."""
    end_s = time.monotonic() + 3
    while True:
        left = any(exists(url, key) for url in servers() for key in (name, name + "{#q}"))
        if not left or time.monotonic() > end_s:
            return left
        time.sleep(0.05)


def servers():
    """Returns (host, port) of each server in REDLOCK_SERVERS."""
    return re.findall(r"(?:redis://)?([\w.-]+):(\d+)", os.environ["REDLOCK_SERVERS"])


def exists(address, key):
    """Returns whether the server has the key."""
    with socket.create_connection(address, timeout=5) as connection:
        connection.sendall(f"*2\r\n$6\r\nEXISTS\r\n${len(key)}\r\n{key}\r\n".encode())
        return connection.recv(64) == b":1\r\n"


def show(row):
    """Prints a row of measure()."""
    print(f"{row['loops']:>5}{row['delay']:>8}{row['runs_per_s']:>10.1f}{row['p50_ms']:>10.1f}{row['longest_ms']:>10.0f}"
          f"{row['jain']:>8.3f}{row['least']:>7}{row['failed']:>6}", flush=True)  # fmt: skip


def parse():
    """Returns the parsed command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build", help="directory of the programs (build)")
    parser.add_argument("--redlock", help="the command that is measured (that of --build)")
    parser.add_argument("--loops", default="2,32", help="numbers of loops, separated by commas (2,32)")
    parser.add_argument("--delay", default="0,5ms", help="delays in each direction, separated by commas; 0: no proxy (0,5ms)")
    parser.add_argument("--seconds", type=float, default=10, help="length of each measurement (10)")
    parser.add_argument("--json", action="store_true", help="JSON instead of the table")
    arguments = parser.parse_args()
    arguments.redlock = arguments.redlock or os.path.join(arguments.build, "tools", "redlock")
    if not re.fullmatch(r"[1-9]\d{0,2}(,[1-9]\d{0,2})*", arguments.loops) or arguments.seconds <= 0:
        parser.error("--loops needs numbers from 1 to 999, --seconds a positive one")
    if not os.environ.get("REDLOCK_SERVERS"):
        parser.error("no servers: set REDLOCK_SERVERS, or run it in a sandbox")
    return arguments


def main():
    """Measures all combinations. Returns the exit status."""
    arguments = parse()
    name = f"redlock-fresh:{secrets.token_hex(6)}"
    rows = []
    if not arguments.json:
        print(f"{'loops':>5}{'delay':>8}{'runs/s':>10}{'p50 ms':>10}{'longest':>10}{'jain':>8}{'least':>7}{'fail':>6}", flush=True)
    for delay in arguments.delay.split(","):
        for loops in arguments.loops.split(","):
            rows.append(measure(arguments, name, int(loops), delay))
            if not arguments.json:
                show(rows[-1])
    left = keys_left(name)
    if arguments.json:
        print(json.dumps({"schema": "redlock.fresh/1", "rows": rows, "keys_left": left}, indent=2))
    else:
        print(NOTES, end="")
    if left:
        print("fresh.py: keys are left", file=sys.stderr)
    return 1 if left or any(row["failed"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
