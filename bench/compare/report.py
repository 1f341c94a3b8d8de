# SPDX-License-Identifier: MIT
"""Prints the comparison as a table, CSV or JSON."""

import csv
import json
import os
import platform
import subprocess
import sys

# Explanations of the columns below the tables: of callers with own locks, of contenders, and of
# both.
SAMPLES = """\
pairs/s: acquisitions with their releases per second; p50, p99: time of such a pair; x ours, x baseline: divided by those
of redlock and of the baseline in the same scenario; cpu: processor time of the driver per pair; fail: failed calls
"""
CONTENDED = """\
over/s: hand-overs to another caller per second; p50, p99: from the call of release to the next grant; self: grants to
the same caller again, not counted; jain: fairness, 1 means equal shares; never: callers without any grant; longest:
longest wait, ms
"""
TLS = """\
x plain, x ours: of the same round without TLS, and of redlock over TLS; the median of the rounds (least to most)
"""
CHECKS = """\
two: grants while another caller held the lock; left: keys that stayed for 2 s after a slice, or 5 s after stopped servers
were continued
"""


def processor():
    """Returns the model of the processor."""
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def first_line_of(*command):
    """Runs a program that prints its version. Returns the first line, "" if there is none."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
        return (done.stdout + done.stderr).strip().splitlines()[0]
    except (OSError, IndexError, subprocess.TimeoutExpired):
        return ""


def environment(nodes, build):
    """Returns the properties of machine, servers and toolchains as a dictionary for the head and
    JSON."""
    version = first_line_of(os.path.join(build, "tools", "redlock"), "--version")
    return {
        "cpu": processor(),
        "cpus": os.cpu_count(),
        "load": os.getloadavg()[0],
        "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
        "servers": len(nodes.list),
        "server": nodes.list[0].version(),
        "redlock": version,
        "toolchains": {name: text for name, text in (
            ("node", first_line_of("node", "--version")), ("java", first_line_of("java", "-version")),
            ("python", platform.python_version()), ("go", first_line_of("go", "version")),
            ("rust", first_line_of("rustc", "--version"))) if text},
    }  # fmt: skip


def header(surroundings, settings, versions, absent):
    """Returns the head of the report. versions: of the peers that run; absent: why others are left
    out."""
    lines = [
        "redlock and its peers, in alternating slices on the same servers",
        f"  machine  {surroundings['cpu']}, {surroundings['cpus']} CPUs, {surroundings['kernel']}, "
        f"load {surroundings['load']:.1f} before",
        f"  servers  {surroundings['servers']} x {surroundings['server']}",
        f"  library  {surroundings['redlock']}",
        f"  seed     {settings['seed']}, ttl {settings['ttl_ms']} ms, {settings['rounds']} slices of "
        f"{settings['slice_s']} s for each, after one that does not count",
        "  peers    " + ", ".join(f"{name} {version}" for name, version in versions.items() if version),
        "  with     " + ", ".join(surroundings["toolchains"].values()),
    ]
    lines += [f"  left out {name}: {reason}" for name, reason in absent.items()]
    return "\n".join(lines)


def ratio(line, key):
    """Returns a ratio of a line of the table as text, "-" if there is none."""
    value = line["ratio"].get(key)
    return "-" if value is None else f"{value:.2f}"


def remark(line):
    """Returns why the driver is broken, or its last failure."""
    if line["broken"]:
        return "  " + line["broken"]
    return f"  {line['failure']}"[:60] if line["failures"] else ""


def label(line):
    """Returns the name of a line."""
    return line["driver"] + (" tls" if line["tls"] else "")


def own_lines(lines):
    """Yields the rows of a table for callers with a lock of their own, the heading first."""
    yield (f"{'':20}{'pairs/s':>9}{'x ours':>8}{'x baseline':>12}{'p50 ms':>9}{'x ours':>8}{'x baseline':>12}"
           f"{'p99 ms':>9}{'cpu us':>8}{'fail':>6}{'two':>5}{'left':>6}")  # fmt: skip
    for line in lines:
        yield (f"{label(line):20}{line['pairs_per_s']:9.1f}{ratio(line, 'rate_redlock'):>8}"
               f"{ratio(line, 'rate_baseline'):>12}{line['pair_ms']['p50']:9.2f}{ratio(line, 'p50_redlock'):>8}"
               f"{ratio(line, 'p50_baseline'):>12}{line['pair_ms']['p99']:9.2f}{line['cpu_us_per_pair']:8.0f}"
               f"{line['failures']:6}{line['violations']:5}{line['leftover_keys']:6}{remark(line)}")  # fmt: skip


def contended_lines(lines):
    """Yields the rows of a table for callers that contend for one lock, the heading first."""
    yield (f"{'':20}{'over/s':>9}{'x ours':>8}{'p50 ms':>9}{'x ours':>8}{'p99 ms':>9}{'self':>6}{'jain':>7}"
           f"{'never':>6}{'longest':>9}{'cpu us':>8}{'fail':>6}{'two':>5}{'left':>6}")  # fmt: skip
    for line in lines:
        yield (f"{label(line):20}{line['handovers_per_s']:9.1f}{ratio(line, 'rate_redlock'):>8}"
               f"{line['handover_ms']['p50']:9.2f}{ratio(line, 'p50_redlock'):>8}"
               f"{line['handover_ms']['p99']:9.2f}{line['self_share']:6.0%}{line['jain']:7.3f}"
               f"{line['never_granted']:6}{line['longest_wait_ms']:9.0f}{line['cpu_us_per_pair']:8.0f}"
               f"{line['failures']:6}{line['violations']:5}{line['leftover_keys']:6}{remark(line)}")  # fmt: skip


def spread(ratios, key):
    """Returns the ratios of all rounds as text: the median, and the smallest and the largest."""
    if key not in ratios:
        return "-"
    return "{median:.2f} ({least:.2f} to {most:.2f})".format(**ratios[key])


def tls_lines(lines):
    """Yields the rows of a table for the drivers over TLS, the heading first. Yields nothing without TLS."""
    of_tls = [line for line in lines if line["tls"]]
    if of_tls:
        yield (f"\n{'':20}{'rate x plain':>28}{'p50 x plain':>28}{'cpu x plain':>28}{'rate x ours, TLS':>28}"
               f"{'p50 x ours, TLS':>28}")  # fmt: skip
    for line in of_tls:
        yield (f"{line['driver']:20}{spread(line['to_plain'], 'rate'):>28}{spread(line['to_plain'], 'p50'):>28}"
               f"{spread(line['to_plain'], 'cpu'):>28}{spread(line['to_redlock'], 'rate'):>28}"
               f"{spread(line['to_redlock'], 'p50'):>28}")  # fmt: skip


def scenario_table(scenario, lines):
    """Returns the table of one scenario."""
    rows = [*(own_lines(lines) if scenario.own else contended_lines(lines)), *tls_lines(lines)]
    return "\n".join([f"\n{scenario.name}: {scenario.summary}", *(row.rstrip() for row in rows)])


def flat(line, prefix=""):
    """Yields (name, value) with the keys of nested dictionaries joined by '_', without lists."""
    for key, value in line.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{key}_")
        elif not isinstance(value, list):
            yield prefix + key, value


def print_csv(head, results):
    """Prints the head as comments and one row for each result."""
    for line in head.splitlines():
        print(f"# {line.strip()}")
    rows = [dict(flat(line)) for line in results]
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(sys.stdout, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


def print_json(surroundings, settings, absent, results):
    """Prints everything as one JSON document."""
    document = {"schema": "redlock.peers/1", "environment": surroundings, **settings, "left_out": absent,
                "results": results}  # fmt: skip
    print(json.dumps(document, indent=2))
