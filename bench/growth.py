#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Measures how time, memory and commands grow with nodes, held locks, threads and processes. Runs redlock-growth for each
size on the servers of REDLOCK_SERVERS (redlock sandbox -n 9 starts enough), prints a table, and writes CSV, JSON and plots."""

import argparse
import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
# The sizes of each series.
NODES = [1, 2, 3, 4, 5, 6, 7, 8, 9]
HELD = [1, 10, 100, 1000, 10000]
LOOPS = [1, 4, 16, 64, 256]
THREADS = [1, 2, 4, 8, 16, 32, 64, 128, 256]
PROCESSES = [1, 2, 4, 8, 16, 32, 64]
COUNTED = {1: (1000, 12000), 100: (3000, 4000), 10000: (30000, 12000)}  # locks held: (TTL, time of holding), ms


# The head of the report; the fields are those of the environment.
HEAD = """how time, memory and commands grow
  machine  {cpu}, {cpus} CPUs, {kernel}
  load     {load[0]:.2f} {load[1]:.2f} {load[2]:.2f} (1, 5, 15 minutes, before)
  servers  {servers} x {server}
  library  redlock {redlock}, hiredis {hiredis}, libsodium {libsodium}
  compiler {compiler}, {flags}"""


class Failed(Exception):
    """A measurement has printed no result."""


def ended(number, _frame):
    """Handles SIGTERM: ends the program like Ctrl-C, so that temporary files are removed."""
    raise SystemExit(128 + number)


def count_servers():
    """Returns the number of servers in REDLOCK_SERVERS."""
    words = re.split(r"[, \t\n]+", os.environ.get("REDLOCK_SERVERS", ""))
    return len([word for word in words if word])


class Runner:
    """Runs the measurements. Each series is a method that yields (size, row). quick: only the ends of each series,
    a moment each. tls: over TLS."""

    def __init__(self, program, quick, tls):
        self.program, self.quick, self.tls = program, quick, ["--tls"] if tls else []
        self.servers = count_servers()

    def run(self, kind, *words, wrapper=()):
        """Runs redlock-growth once, below `wrapper`, and returns its result with "passed"."""
        if kind == "held":  # with thousands of requests at once a busy server replies late
            words += ("--node-timeout", 20000)
        command = [*wrapper, self.program, kind, *self.tls, *[str(word) for word in words]]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if not done.stdout:
            raise Failed(f"{' '.join(command)}: status {done.returncode}: {done.stderr.strip()}")
        try:
            result = json.loads(done.stdout)
        except ValueError:
            raise Failed(f"{' '.join(command)}: unexpected output {done.stdout[:60]!r}: {done.stderr.strip()}") from None
        result["passed"] = done.returncode == 0
        return result

    def environment(self):
        """Returns the environment of the measurement, as redlock-growth reads it."""
        found = self.run("environment", "--nodes", self.servers)
        del found["passed"]
        return found

    def sizes(self, sizes):
        """Returns the sizes to measure: all, or the first and the last one."""
        return sizes[:: max(len(sizes) - 1, 1)] if self.quick else sizes

    def pairs(self, pairs):
        """Returns the number of pairs to run."""
        return max(pairs // 50, 20) if self.quick else pairs

    def nodes(self):
        """Measures pairs and memory by number of nodes."""
        for nodes in self.sizes([n for n in NODES if n <= self.servers]):
            row = self.run("loop", "--nodes", nodes, "--size", 64, "--pairs", self.pairs(20000))
            held = self.run("held", "--nodes", nodes, "--size", 100, "--hold", 1)
            row["client_bytes"] = held["client_bytes"]
            row["bytes_per_lock"] = held["held_bytes"] / held["held"]
            row["passed"] = row["passed"] and held["passed"]
            yield nodes, row

    def held(self):
        """Measures locks that are acquired, held with extensions, and released, by their number."""
        hold = 300 if self.quick else 6000
        for size in self.sizes(HELD):
            row = self.run("held", "--nodes", self.five(), "--size", size, "--ttl", 6000, "--hold", hold)
            row["bytes_per_lock"] = row["held_bytes"] / max(row["held"], 1)
            row["acquire_us_per_lock"] = row["acquire_ms"] * 1000 / size
            row["hold_cpu_us_per_renewal"] = row["hold_cpu_ms"] * 1000 / max(row["renewed"], 1)
            row["commands_per_read"] = row["hold_commands"] / max(row["hold_reads"], 1)
            yield size, row

    def loop(self):
        """Measures pairs of one loop by the number in flight."""
        for size in self.sizes(LOOPS):
            yield size, self.run("loop", "--nodes", self.five(), "--size", size, "--pairs", self.pairs(20000))

    def threads(self):
        """Measures pairs of threads that share a client."""
        for size in self.sizes(THREADS):
            pairs = self.pairs(4000 if size < 8 else 12000)
            yield size, self.run("threads", "--nodes", self.five(), "--size", size, "--pairs", pairs)

    def processes(self):
        """Measures pairs of processes with a client each."""
        for size in self.sizes(PROCESSES):
            pairs = self.pairs(max(8000 // size, 200))
            yield size, self.run("processes", "--nodes", self.five(), "--size", size, "--pairs", pairs)

    def five(self):
        """Returns the number of nodes of most series: five, if there are as many servers."""
        return min(5, self.servers)

    def instructions(self):
        """Counts the client's instructions per extension of a held lock: callgrind counts within growth_hold() only."""
        if self.quick:
            return
        if not shutil.which("valgrind"):
            print("no instructions: valgrind is missing (Debian: valgrind)", file=sys.stderr)
            return
        for size, (ttl, hold) in COUNTED.items():
            with tempfile.TemporaryDirectory() as directory:
                path = os.path.join(directory, "out")
                wrapper = ["valgrind", "--tool=callgrind", "--toggle-collect=growth_hold", f"--callgrind-out-file={path}"]
                words = ["--nodes", self.five(), "--size", size, "--ttl", ttl, "--hold", hold]
                row = self.run("held", *words, wrapper=wrapper)
                with open(path, encoding="utf-8") as file:
                    found = re.findall(r"^(?:totals|summary): (\d+)", file.read(), re.M)
            count = int(found[-1]) if found else 0
            yield size, {
                "kind": "instructions",
                "held": row["held"],
                "renewed": row["renewed"],
                "instructions_per_renewal": count / max(row["renewed"], 1),
                "turns_per_renewal": row["hold_turns"] / max(row["renewed"], 1),
                "passed": row["passed"],
            }


# Columns of the tables: heading, key, digits after the point, factor.
PAIR = [
    ("pairs/s", "pairs_per_second", 0, 1),
    ("p50 us", "p50_us", 0, 1),
    ("p99 us", "p99_us", 0, 1),
    ("cpu us/pair", "cpu_us_per_pair", 1, 1),
    ("servers' us", "servers_cpu_us_per_pair", 1, 1),
    ("cmds/pair", "commands_per_pair", 2, 1),
    ("reads/pair", "reads_per_pair", 2, 1),
]
# The columns of each series.
COLUMNS = {
    "nodes": PAIR + [("client KiB", "client_bytes", 0, 1 / 1024), ("B/lock", "bytes_per_lock", 0, 1)],
    "held": [
        ("B/lock", "bytes_per_lock", 0, 1),
        ("rss KiB", "held_rss", 0, 1 / 1024),
        ("kept KiB", "after_bytes", 0, 1 / 1024),
        ("acquire us", "acquire_us_per_lock", 1, 1),
        ("renewed", "renewed", 0, 1),
        ("most/10ms", "slice_most", 0, 1),
        ("cpu us/ren", "hold_cpu_us_per_renewal", 1, 1),
        ("cmds/read", "commands_per_read", 1, 1),
        ("release ms", "release_ms", 0, 1),
    ],
    "loop": PAIR,
    "threads": PAIR + [("switches", "switches_per_pair", 2, 1), ("rss KiB", "rss", 0, 1 / 1024)],
    "processes": PAIR + [("switches", "switches_per_pair", 2, 1), ("pss KiB", "pss", 0, 1 / 1024)],
    "instructions": [
        ("renewed", "renewed", 0, 1),
        ("instr/renewal", "instructions_per_renewal", 0, 1),
        ("turns/renewal", "turns_per_renewal", 2, 1),
    ],
}
SERIES = list(COLUMNS)


def print_head(series, out):
    """Prints the headings of a series."""
    print("\n" + f"{series:<13}" + "".join(f"{column[0]:>14}" for column in COLUMNS[series]), file=out)


def print_row(series, size, row, out):
    """Prints one row of a series."""
    cells = (f"{row[key] * factor:>14.{digits}f}" for _, key, digits, factor in COLUMNS[series])
    print(f"{size:<13}" + "".join(cells) + ("" if row["passed"] else "  FAILED"), file=out, flush=True)


def measure(runner, chosen, results, out):
    """Measures the series and appends each row to `results` at once, so that a failure loses no earlier row."""
    for series in chosen:
        print_head(series, out)
        for size, row in getattr(runner, series)():
            results.append({**row, "series": series, "size": size})
            print_row(series, size, row, out)


def write_csv(path, environment, results):
    """Writes all rows of all series as CSV, with the head as comments."""
    names = ["series", "size"]
    for row in results:
        names += [name for name in row if name not in names]
    with open(path, "w", newline="", encoding="utf-8") as file:
        file.writelines(f"# {line.strip()}\n" for line in HEAD.format(**environment).splitlines())
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(results)


def plot(directory, results):
    """Draws the plots, or prints one line if there is no gnuplot."""
    if not shutil.which("gnuplot"):
        print("no plots: gnuplot is missing (Debian: gnuplot-nox)", file=sys.stderr)
        return
    if not results:
        return
    for series in {row["series"] for row in results}:
        with open(os.path.join(directory, f"{series}.dat"), "w", encoding="utf-8") as file:
            for row in results:
                if row["series"] == series:
                    cells = (row[key] * factor for _, key, _, factor in COLUMNS[series])
                    print(row["size"], *cells, file=file)
    subprocess.run(["gnuplot", os.path.join(HERE, "growth.gnuplot")], cwd=directory, check=True)
    print(f"plots: {directory}/growth.png, growth.svg")


def write(directory, environment, results):
    """Writes growth.csv, growth.json and the plots."""
    os.makedirs(directory, exist_ok=True)
    write_csv(os.path.join(directory, "growth.csv"), environment, results)
    with open(os.path.join(directory, "growth.json"), "w", encoding="utf-8") as file:
        document = {"schema": "redlock.growth/1", "servers": count_servers(), "environment": environment,
                    "results": results}  # fmt: skip
        json.dump(document, file, indent=1)
    plot(directory, results)


def parse():
    """Parses the command line. Ends the program if it is not valid."""
    parser = argparse.ArgumentParser(prog="growth.py", description=__doc__)
    parser.add_argument("program", help="redlock-growth")
    parser.add_argument("--series", default=",".join(SERIES), help="of " + ",".join(SERIES))
    parser.add_argument("--tls", action="store_true", help="over TLS, at the addresses in $REDLOCK_TLS_SERVERS")
    parser.add_argument("--quick", action="store_true", help="only the smallest and largest sizes, for a moment each")
    parser.add_argument("--output", help="directory for growth.csv, growth.json and the plots")
    given = parser.parse_args()
    given.chosen = given.series.split(",")
    for series in given.chosen:
        if series not in SERIES:
            parser.error(f"there is no series '{series}'")
    if count_servers() == 0:
        parser.error("no servers: REDLOCK_SERVERS is empty; redlock sandbox -n 9 sets it")
    return given


def main():
    """Measures the chosen series. Returns the exit status: 0, 1 if a row failed, 69 or 128 +
    signal."""
    given = parse()
    signal.signal(signal.SIGTERM, ended)
    runner, results, failed = Runner(given.program, given.quick, given.tls), [], None
    try:
        environment = runner.environment()
        print(HEAD.format(**environment), flush=True)
        measure(runner, given.chosen, results, sys.stdout)
    except Failed as error:
        print(f"growth.py: {error}", file=sys.stderr)
        failed = 69
    except KeyboardInterrupt:
        print("growth.py: interrupted", file=sys.stderr)
        failed = 128 + signal.SIGINT
    if given.output and results:
        write(given.output, environment, results)
    return failed or (0 if all(row["passed"] for row in results) else 1)


if __name__ == "__main__":
    sys.exit(main())
