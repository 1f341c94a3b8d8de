# SPDX-License-Identifier: MIT
"""The processes of one driver, from start to end: the slices that they run, and the lines that they print."""

import os
import select
import subprocess
import tempfile
import time

import roster

READY_S = 60  # for a driver to connect
OVERRUN_S = 15  # for pairs that began before the end of the slice
TICK_US = 1000000 // os.sysconf("SC_CLK_TCK")  # unit of processor time in /proc


class Slice:
    """The lines that a driver has printed about one slice. Times are in ns of CLOCK_MONOTONIC."""

    def __init__(self, begin, end):
        self.begin, self.end = begin, end
        self.holds = []  # (caller, want, grant, release, done)
        self.failures = []  # (caller, want, end, text)
        self.histograms = {"acquire": [], "pair": []}  # (value in ns, count)
        self.attempts = 0
        self.cpu_us = 0

    def add(self, line):
        """Adds one line; bench/peers/README.md lists them. Returns True for the last line of a process."""
        word, _, rest = line.partition(" ")
        if word == "hold":
            self.holds.append(tuple(map(int, rest.split())))
        elif word == "failed":
            parts = rest.rstrip("\n").split(" ", 3)
            self.failures.append((int(parts[0]), int(parts[1]), int(parts[2]), parts[3]))
        elif word == "histogram":
            name, value, count = rest.split()
            self.histograms[name].append((int(value), int(count)))
        elif word == "sums":
            self.attempts += int(rest.split()[2])
        elif word == "over\n":
            return True
        else:
            raise Broken(f"says {line[:60]!r}")
        return False


class Broken(Exception):
    """A driver has ended, or printed something unexpected, or did not finish in time."""


class Process:
    """One process of a driver. Its standard error goes to a file, for the message if it fails."""

    def __init__(self, command, environment):
        self.errors = tempfile.TemporaryFile()
        self.popen = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=self.errors, env=environment)  # fmt: skip
        self.rest = b""

    def line(self, deadline):
        """Returns the next line, with its newline. `deadline` is in seconds of time.monotonic()."""
        while b"\n" not in self.rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.popen.stdout], [], [], left)[0]:
                raise Broken("is not ready")
            data = os.read(self.popen.stdout.fileno(), 1 << 20)
            if data == b"":
                raise Broken(f"ended: {self.last_error()}")
            self.rest += data
        line, _, self.rest = self.rest.partition(b"\n")
        return line.decode(errors="replace") + "\n"

    def lines(self, deadline):
        """Returns all lines up to "over". Reads in large blocks, because there may be many lines."""
        parts = [self.rest]
        while not (parts[-1].endswith(b"over\n") or b"".join(parts[-2:]).endswith(b"over\n")):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.popen.stdout], [], [], left)[0]:
                raise Broken(f"at work for {OVERRUN_S} s after the end of a slice")
            data = os.read(self.popen.stdout.fileno(), 1 << 20)
            if data == b"":
                raise Broken(f"ended: {self.last_error()}")
            parts.append(data)
        self.rest = b""
        return b"".join(parts).decode(errors="replace").splitlines(True)

    def send(self, text):
        """Writes to the standard input of the process."""
        try:
            self.popen.stdin.write(text.encode())
            self.popen.stdin.flush()
        except OSError:
            raise Broken(f"ended: {self.last_error()}") from None

    def cpu_us(self):
        """Returns the processor time of the process until now."""
        with open(f"/proc/{self.popen.pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * TICK_US

    def last_error(self):
        """Returns the last line of standard error."""
        self.errors.seek(0)
        lines = [line for line in self.errors.read().decode(errors="replace").splitlines() if line.strip()]
        return lines[-1][:160] if lines else "without a message"

    def close(self, patience_s):
        """Closes standard input, and kills the process if it has not ended after patience_s seconds."""
        try:
            self.popen.stdin.close()
        except OSError:
            pass
        try:
            self.popen.wait(patience_s)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()
        self.popen.stdout.close()
        self.errors.close()


class Running:
    """One driver in one scenario: its processes, and all slices that they have run."""

    def __init__(self, driver, build, nodes, resource, scenario, ttl_ms):
        self.driver, self.resource, self.tls = driver, resource, nodes.is_tls()
        self.slices, self.broken = [], None  # broken: why the driver has failed; None: it has not
        self.left_between, self.left_behind = 0, 0  # most keys that stayed after a slice; keys that stayed at the end
        self.processes, self.commands = [], []
        where = roster.place(driver, build)
        self.environment = {**os.environ, **driver.environment(where)}
        servers = nodes.text if driver.is_ours() else nodes.bare()
        first = 0
        for number in range(scenario.processes):
            count = (scenario.callers - first) // (scenario.processes - number)
            words = [servers, resource, str(ttl_ms), str(scenario.hold_us), str(first), str(count)]
            self.commands.append([*driver.command(where), *words, *(["own"] if scenario.own else [])])
            first += count

    def guard(self, work):
        """Runs a step. If the driver fails, the error becomes a line of the table, and the comparison continues."""
        if self.broken is None:
            try:
                work()
            except Broken as error:
                self.broken = str(error)
                self.close(0)

    def start(self):
        """Starts one process after the other, because a driver may acquire a lock to check the servers."""

        def work():
            for command in self.commands:
                self.processes.append(Process(command, self.environment))
                deadline = time.monotonic() + READY_S
                while (line := self.processes[-1].line(deadline)) != "ready\n":
                    if not line.strip():
                        raise Broken(f"says {line[:60]!r}")

        self.guard(work)

    def run(self, seconds):
        """Runs one slice in all processes."""

        def work():
            before = sum(process.cpu_us() for process in self.processes)
            begin = time.monotonic_ns()
            one = Slice(begin, begin + int(seconds * 1e9))
            for process in self.processes:
                process.send(f"{one.end}\n")
            texts = [process.lines(one.end / 1e9 + OVERRUN_S) for process in self.processes]
            one.cpu_us = sum(process.cpu_us() for process in self.processes) - before
            for lines in texts:
                for line in lines:
                    one.add(line)
            self.slices.append(one)

        self.guard(work)

    def close(self, patience_s=15):
        """Ends all processes: kills them if patience_s is 0, and otherwise after that time."""
        for process in self.processes:
            if patience_s == 0:
                process.popen.kill()
        for process in self.processes:
            process.close(patience_s)
        self.processes = []
