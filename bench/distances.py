#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Measures the library and the baseline at the distances of real networks: redlock-bench through redlock-delay, on the servers
of REDLOCK_SERVERS (redlock sandbox starts five). Prints a table, or the measurements as JSON with --json."""

import argparse
import json
import os
import re
import subprocess
import sys

# Scenarios of redlock-bench that are measured by default.
SCENARIOS = ["embedded-1", "threaded-1", "embedded-64"]
WAYS = ["100us", "500us", "2500us", "15ms"]  # delays in each direction: round trips of 0.2, 1, 5 and 30 ms
SLOW = ("500us", "15ms")  # last rows: delay of all servers but one, and of that one
# Explains the columns, below the table.
NOTES = """
each way: delay that the proxy adds in each direction; the work of proxy and servers comes on top
trip: round trip of PING to the q-th fastest server (q: a majority); /trip: the median acquisition in such round trips
the baseline waits for all servers, so a slow server determines its times
"""


class Failed(Exception):
    """redlock-bench could not measure."""


def count_servers():
    """Returns the number of servers in REDLOCK_SERVERS."""
    return len(re.findall(r"[^, \t\n]+", os.environ.get("REDLOCK_SERVERS", "")))


def measure(arguments, delays):
    """Runs redlock-bench through the proxy with `delays`, one or one for each server. Returns its JSON document."""
    command = [
        os.path.join(arguments.build, "bench", "redlock-delay"), "--delay", delays, "--",
        os.path.join(arguments.build, "bench", "redlock-bench"), "--json", "--quiet", "--warm", str(arguments.warm),
        "--seconds", str(arguments.seconds), "--scenario", ",".join(["ping", *arguments.scenario]),
    ]  # fmt: skip
    if arguments.seed is not None:
        command += ["--seed", str(arguments.seed)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 1) or not done.stdout:
        raise Failed(f"{' '.join(command)}: exit status {done.returncode}")
    return json.loads(done.stdout)


def rows_of(document, way):
    """Yields a row of the table for each scenario. Its first result is PING, the unit of the other ones."""
    ping, *others = document["results"]
    trip_ms = ping["sides"][0]["pair_us"]["p50"] / 1000
    for result in others:
        ours, baseline = result["sides"]
        yield {
            "each_way": way,
            "trip_ms": trip_ms,
            "scenario": result["scenario"],
            "passed": result["passed"],
            "failed": ours["failed"],
            "pairs": ours["pairs"],
            "pairs_per_s": ours["pairs_per_s"],
            "acquire_p50_ms": ours["acquire_us"]["p50"] / 1000,
            "acquire_p50_trips": ours["acquire_us"]["p50"] / 1000 / trip_ms,
            "pair_p50_ms": ours["pair_us"]["p50"] / 1000,
            "baseline_pairs_per_s": baseline["pairs_per_s"],
            "baseline_pair_p50_ms": baseline["pair_us"]["p50"] / 1000,
        }


def show_head(environment, seed):
    """Prints the head of the report and of the table."""
    print("redlock at a distance: acquire and release through redlock-delay")
    print(f"  machine  {environment['cpu']}, {environment['cpus']} CPUs, {environment['kernel']}, "
          f"load {environment['load'][0]:.1f} before")
    print(f"  servers  {environment['servers']} x {environment['server']}")
    print(f"  library  redlock {environment['redlock']}, {environment['compiler']} {environment['flags']}")
    print(f"  seed     {seed}\n")
    print(f"{'each way':<18}{'trip ms':>8}  {'scenario':<12}{'pairs/s':>9}{'acquire ms':>12}{'/trip':>7}"
          f"{'pair ms':>9}{'baseline/s':>10}{'pair ms':>9}{'x baseline':>9}{'fail':>6}")


def show(row):
    """Prints one row of rows_of()."""
    print(f"{row['each_way']:<18}{row['trip_ms']:>8.2f}  {row['scenario']:<12}{row['pairs_per_s']:>9.1f}"
          f"{row['acquire_p50_ms']:>12.2f}{row['acquire_p50_trips']:>7.2f}{row['pair_p50_ms']:>9.2f}"
          f"{row['baseline_pairs_per_s']:>10.1f}{row['baseline_pair_p50_ms']:>9.2f}"
          f"{row['pairs_per_s'] / max(row['baseline_pairs_per_s'], 0.1):>8.2f}x{row['failed']:>6}", flush=True)


def parse():
    """Parses the command line. Ends the program if it is not valid."""
    parser = argparse.ArgumentParser(prog="./dev bench --distances", description=__doc__)
    parser.add_argument("--build", default="build", help="build directory (build)")
    parser.add_argument("--each-way", default=",".join(WAYS), metavar="LIST", help="delays in each direction, a row each (%(default)s)")
    parser.add_argument("--scenario", default=",".join(SCENARIOS), metavar="LIST", help="of redlock-bench (%(default)s)")
    parser.add_argument("--seconds", type=int, default=3, help="length of each scenario (3)")
    parser.add_argument("--warm", type=int, default=20, help="pairs before that do not count (20)")
    parser.add_argument("--seed", type=int, help="of the order of the slices")
    parser.add_argument("--no-slow", action="store_true", help="without the last rows: one slow server among near ones")
    parser.add_argument("--json", action="store_true", help="JSON instead of a table")
    arguments = parser.parse_args()
    arguments.scenario = arguments.scenario.split(",")
    for name in arguments.scenario:
        if not re.fullmatch(r"(embedded|threaded)-\d+", name):
            parser.error(f"--scenario {name}: use a scenario with the baseline as its other side, like embedded-1 or threaded-64")
    for way in arguments.each_way.split(","):
        if not re.fullmatch(r"\d+(us|ms|s)", way):
            parser.error(f"--each-way {way}: give a time with its unit, like 500us")
    return arguments


def main():
    """Measures all distances. Returns the exit status: 0, 1 if a measurement failed, 69 without
    servers."""
    arguments = parse()
    servers = count_servers()
    if servers < 3:
        print("distances.py: REDLOCK_SERVERS has fewer than three servers; run it in redlock sandbox", file=sys.stderr)
        return 69
    ways = [(way, way) for way in arguments.each_way.split(",")]
    if not arguments.no_slow:
        near, far = SLOW
        ways.append((f"{near}, one {far}", ",".join([near] * (servers - 1) + [far])))
    rows = []
    for way, delays in ways:
        try:
            document = measure(arguments, delays)
        except Failed as failed:
            print(f"distances.py: {failed}", file=sys.stderr)
            return 1
        if not rows and not arguments.json:
            show_head(document["environment"], document["seed"])
        for row in rows_of(document, way):
            rows.append(row)
            if not arguments.json:
                show(row)
    if arguments.json:
        print(json.dumps({"schema": "redlock.distances/1", "environment": document["environment"], "rows": rows}, indent=1))
    else:
        print(NOTES, end="")
    return 0 if all(row["passed"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
