# SPDX-License-Identifier: MIT
"""Compares the library with its peers: python3 bench/compare --build DIRECTORY, with the list of servers in
REDLOCK_SERVERS. bench/README.md describes the measurements, bench/peers/README.md the drivers."""

import argparse
import collections
import os
import random
import signal
import sys
import time

import figures
import report
import roster
from drivers import Running
from nodes import Nodes, Proxy

# callers: in all processes. own: each caller has a lock of its own, otherwise all contend for one. stopped: servers are
# stopped after the drivers have connected. slow: the last server is behind the delay proxy. hold_us: time between grant
# and release.
Scenario = collections.namedtuple("Scenario", "name summary callers processes own stopped slow hold_us")
STOPPED = 2  # servers of a scenario with `stopped`
SLOW = "10ms"  # delay in each direction of a scenario with `slow`
PATIENCE_S = 2  # for keys to disappear after a slice
BACK_S = 3  # for clients to reconnect after servers were stopped
CLOSE_S = 15  # for a driver to end
# All scenarios; the columns are the fields of Scenario.
SCENARIOS = [
    Scenario("one", "one caller, a lock without contention", 1, 1, True, False, False, 0),
    Scenario("many", "64 callers of one client, each with a lock of its own", 64, 1, True, False, False, 0),
    Scenario("stopped", "one caller, two of the servers stopped", 1, 1, True, True, False, 0),
    Scenario("slow", "one caller, one server replies 20 ms later", 1, 1, True, False, True, 0),
    Scenario("contended", "32 callers in 4 processes contend for one lock", 32, 4, False, False, False, 0),
]


class NotPossible(Exception):
    """The scenario cannot run on these servers."""


class Ended(BaseException):
    """A signal ends the comparison."""

    def __init__(self, number):
        super().__init__(number)
        self.number = number


def end(number, _frame):
    """Handles a signal: raises Ended, so that drivers are stopped and servers continued."""
    raise Ended(number)


class Parser(argparse.ArgumentParser):
    """Reports a wrong command line in one line, with exit status 64."""
    def error(self, message):
        """Ends the program with a message."""
        self.exit(64, f"compare: {message}; see ./dev bench --peers --help\n")


def fits(driver, scenario):
    """True if the driver can run the scenario. The baseline has no time limits and cannot contend."""
    return driver.name != "baseline" or (scenario.own and not scenario.stopped)


def run_slices(options, scenario, nodes, members):
    """Runs one slice of each driver in each round, in a random order. Slice 0 warms up. The slices of one driver with and
    without TLS follow each other, so that their ratio depends less on other work of the machine."""
    for number in range(options.rounds + 1):
        order = [one for one in members if one.broken is None]
        options.random.shuffle(order)
        drivers = [one.driver for one in order]
        order.sort(key=lambda one: drivers.index(one.driver))
        for one in order:
            print(f"  {scenario.name}, slice {number}: {one.driver.name}{' tls' if one.tls else ''}", file=sys.stderr, flush=True)
            for _ in range(one.driver.warm if number == 0 else 1):
                one.run(options.slice if number > 0 else min(options.slice, options.warm))
            one.left_between = max(one.left_between, nodes.left(one.resource, PATIENCE_S))


def count_leftover_keys(scenario, nodes, members):
    """Counts the keys that are left at the end. Continues stopped servers first, and gives their clients time to reconnect."""
    nodes.continue_all()
    if scenario.stopped:
        time.sleep(BACK_S)
    for one in members:
        one.left_behind = nodes.left(one.resource, PATIENCE_S)


def run_scenario(options, scenario, nodes, present):
    """Runs all drivers and returns one line of the table for each, with TLS two. Keys are counted at the plain ports, and
    servers stop with all their ports."""
    if scenario.stopped and (len(nodes.list) < 2 * STOPPED + 1 or not nodes.read_pids()):
        raise NotPossible("needs the processes of a sandbox with five servers")
    proxies, members, patience_s = [], [], CLOSE_S
    try:
        for front in [nodes, options.tls] if options.tls else [nodes]:
            if scenario.slow:
                delays = ["0"] * (len(nodes.list) - 1) + [SLOW]
                proxies.append(Proxy(os.path.join(options.build, "bench", "redlock-delay"), front, delays))
                front = proxies[-1].nodes
            for driver in present:
                if fits(driver, scenario):
                    resource = f"redlock-peers:{os.getpid()}:{scenario.name}:{'tls:' if front.is_tls() else ''}{driver.name}:"
                    members.append(Running(driver, options.build, front, resource, scenario, options.ttl))
        for one in members:
            one.start()
        if scenario.stopped:
            nodes.stop(STOPPED)
        run_slices(options, scenario, nodes, members)
        count_leftover_keys(scenario, nodes, members)
    except BaseException:
        patience_s = 0  # after an error no driver gets time to end by itself
        raise
    finally:
        nodes.continue_all()
        for one in members:
            one.close(patience_s)
        for proxy in proxies:
            proxy.close()
    return [figures.result(one, scenario, one.driver.version()) for one in members]


def names(parser, text, known, what):
    """Returns the names of a list option. Ends the program if one is not in `known`."""
    chosen = text.split(",")
    for name in chosen:
        if name not in known:
            parser.error(f"there is no {what} '{name}'; there are: {', '.join(known)}")
    return chosen


def between(kind, least, most):
    """Returns a function for argparse that accepts numbers from `least` to `most`."""

    def convert(text):
        """Returns the number, or raises the error that argparse prints."""
        number = kind(text)
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(f"'{text}' is not a number from {least} to {most}")
        return number

    convert.__name__ = "number"  # what argparse calls it
    return convert


def parse(words):
    """Parses the command line. Returns the options, with Driver and Scenario objects for the chosen
    names."""
    parser = Parser(prog="dev bench --peers", description=__doc__.split(":")[0])
    parser.add_argument("--build", default="build", help=argparse.SUPPRESS)
    parser.add_argument("--install-only", action="store_true", help="fetch and compile the drivers, measure nothing")
    parser.add_argument("--servers", default=os.environ.get("REDLOCK_SERVERS"), help="default: $REDLOCK_SERVERS")
    parser.add_argument("--tls", action="store_true", help="each driver also over TLS, at the addresses in $REDLOCK_TLS_SERVERS")
    parser.add_argument("--scenario", default=None, metavar="LIST",
                        help="; ".join(f"{one.name}: {one.summary}" for one in SCENARIOS))  # fmt: skip
    parser.add_argument("--driver", default=None, metavar="LIST",
                        help=", ".join(driver.name for driver in roster.DRIVERS))  # fmt: skip
    parser.add_argument("--slice", type=between(float, 0.01, 3600), default=1.5, metavar="S", help="length of a slice (1.5)")
    parser.add_argument("--warm", type=between(float, 0.01, 3600), default=1.0, metavar="S", help="longest first slice (1)")
    parser.add_argument("--rounds", type=between(int, 1, 1000), default=2, metavar="N", help="slices of each driver that count (2)")
    parser.add_argument("--ttl", type=between(int, 100, 30000), default=10000, metavar="MS", help="time to live of a lock (10000)")
    parser.add_argument("--seed", type=int, default=None, help="of the order in each round (default: from the clock; printed)")
    parser.add_argument("--json", action="store_true", help="instead of the table")
    parser.add_argument("--csv", action="store_true", help="instead of the table")
    options = parser.parse_args(words)
    all_drivers = [driver.name for driver in roster.DRIVERS]
    chosen = names(parser, options.driver, all_drivers, "driver") if options.driver else all_drivers
    options.drivers = [driver for driver in roster.DRIVERS if driver.name in chosen]
    all_scenarios = [one.name for one in SCENARIOS]
    chosen = names(parser, options.scenario, all_scenarios, "scenario") if options.scenario else all_scenarios
    options.scenarios = [one for one in SCENARIOS if one.name in chosen]
    options.build = os.path.abspath(options.build)
    options.seed = time.time_ns() & 0xFFFFFFFF if options.seed is None else options.seed
    options.random = random.Random(options.seed)
    return options


def tls_nodes(nodes):
    """Returns the same servers at their addresses for TLS. Raises ValueError if these are not known."""
    text = os.environ.get("REDLOCK_TLS_SERVERS", "")
    if text.count("rediss:") != len(nodes.list):
        raise ValueError("--tls needs as many addresses in REDLOCK_TLS_SERVERS; bench/with_tls.py sets it")
    return Nodes(text)


def measure(options, nodes, present, show):
    """Runs all scenarios. Returns the lines, and an exit status: 0, or why the comparison stopped early."""
    results = []
    for scenario in options.scenarios:
        try:
            lines = run_scenario(options, scenario, nodes, present)
        except NotPossible as error:
            print(f"compare: {scenario.name} is left out: {error}", file=sys.stderr)
            continue
        except OSError as error:
            print(f"compare: {scenario.name}: a server does not reply: {error}", file=sys.stderr)
            return results, 69
        except Ended as ended:
            print(f"compare: {scenario.name}: ended by a signal", file=sys.stderr)
            return results, 128 + ended.number
        figures.add_ratios(lines)
        results += lines
        show(scenario, lines)
    return results, 0


def main():
    """Runs the comparison or installs the drivers. Returns the exit status."""
    options = parse(sys.argv[1:])
    if options.install_only:
        for driver in options.drivers:
            roster.install(driver, options.build)
        return 0
    if not options.servers:
        print("compare: no servers: set REDLOCK_SERVERS, or run it as ./dev bench --peers", file=sys.stderr)
        return 64
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    try:
        nodes = Nodes(options.servers)
        options.tls = tls_nodes(nodes) if options.tls else None
    except ValueError as error:
        print(f"compare: servers: {error}", file=sys.stderr)
        return 64
    absent = {driver.name: why for driver in options.drivers if (why := roster.why_not(driver, options.build))}
    present = [driver for driver in options.drivers if driver.name not in absent]
    try:
        surroundings = report.environment(nodes, options.build)
    except OSError as error:
        print(f"compare: the first server does not reply: {error}", file=sys.stderr)
        return 69
    settings = {"seed": options.seed, "ttl_ms": options.ttl, "rounds": options.rounds, "slice_s": options.slice}
    versions = {driver.name: driver.version() for driver in present}
    head = report.header(surroundings, settings, versions, absent)
    table = not options.json and not options.csv
    if table:
        print(head, flush=True)

    def show(scenario, lines):
        """Prints the table of one scenario, unless the output is CSV or JSON."""
        if table:
            print(report.scenario_table(scenario, lines), flush=True)

    results, failed = measure(options, nodes, present, show)
    if options.json:
        report.print_json(surroundings, settings, absent, results)
    elif options.csv:
        report.print_csv(head, results)
    else:
        print("\n" + report.SAMPLES + report.CONTENDED + (report.TLS if options.tls else "") + report.CHECKS, end="")
    ours = [line for line in results if line["driver"].startswith("redlock") and not line["version"]]
    return failed or (0 if all(figures.passed(line) for line in ours) else 1)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Ended as ended:
        sys.exit(128 + ended.number)
