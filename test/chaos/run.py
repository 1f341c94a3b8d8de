# SPDX-License-Identifier: MIT
"""Runs chaos runs, one after the other, and checks the logs of each at its end.

usage: ./dev chaos [--minutes M] [--seed N] [--pace MS] [--plain] [--tls | --no-tls] [--keep DIRECTORY]

Writes chaos-timeline.svg and chaos-report.txt into the build directory. The exit status is 0 if there was no
violation. The logs of a run with a violation are kept in a directory whose name ends in the seed.
"""

import argparse
import os
import secrets
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "interop")]
import checker
import history
import node_packages
import report
import timeline

PART_S = 120  # seconds of one run: enough for every kind of fault several times
FOREIGN = os.path.join(HERE, "foreign.cjs")


def foreign_client(build):
    """Returns the arguments and the environment for the node-redlock client, and why there is none or None."""
    try:
        packages = node_packages.directory(os.path.join(build, "test", "interop"))
    except node_packages.Missing as missing:
        return [], {}, f"node-redlock: {missing}"
    return [FOREIGN], {"NODE_PATH": packages, "NODE_DISABLE_COMPILE_CACHE": "1"}, None


def run_once(build, directory, seconds, pace, seed, fences, tls="tls"):
    """Runs the program chaos once, with the logs in `directory`. `pace`: ms between faults; `fences`: "plain" or
    "fenced"; `tls`: "tls" for half of the clients, if possible, or "tcp". Returns the history and its verdict."""
    words, environment, missing = foreign_client(build)
    programs = os.path.join(build, "test", "chaos")
    command = [
        os.path.join(programs, "chaos"), str(seconds), str(pace), str(seed), directory, fences, tls, programs,
        os.path.join(build, "tools", "redlock"), *words,
    ]  # fmt: skip
    clean = {name: value for name, value in os.environ.items() if not name.startswith("REDLOCK_")}
    for name in ("REDLOCK_TEST_SERVER", "REDLOCK_TEST_SLOW"):
        if name in os.environ:
            clean[name] = os.environ[name]
    home = {"HOME": "/nonexistent", "XDG_CONFIG_HOME": "/nonexistent"}
    done = subprocess.run(command, env={**clean, **home, **environment}, check=False)
    run_history = history.read(directory)
    if missing:
        run_history.skips.append(missing)
    verdict = checker.check(run_history)
    if done.returncode != 0:
        verdict.violations.append(f"process: the run ended with status {done.returncode}")
    return run_history, verdict


def write(path, text):
    """Writes a file."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def run_part(build, options, seconds, seed, totals):
    """Runs once, adds to the totals, writes the timeline, and keeps the logs if there was a violation."""
    directory = tempfile.mkdtemp(prefix="chaos-")
    transport = "tcp" if options.tls is False else "tls"
    run_history, verdict = run_once(build, directory, seconds, options.pace, seed, options.fences, transport)
    if options.tls and not run_history.tls:
        verdict.violations.append("process: --tls was given, and no client has used TLS")
    totals.add(run_history, verdict)
    title = f"chaos, seed {seed}: locks that clients believed to hold, and faults of servers and clients"
    write(os.path.join(build, "chaos-timeline.svg"), timeline.draw(run_history, verdict, title))
    print(f"seed {seed}: {len(run_history.grants)} grants, {len(run_history.faults)} faults, "
          f"{len(verdict.excused)} excused, {len(verdict.violations)} violations", flush=True)  # fmt: skip
    if verdict.violations:
        kept = os.path.join(build, f"chaos-{seed}")
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(directory, kept)
        write(os.path.join(kept, "timeline.svg"), timeline.draw(run_history, verdict, title))
        print(f"    kept in {kept}", flush=True)
    shutil.rmtree(directory)


def main():
    """Makes runs until the time limit; each has a seed larger by one than the one before."""
    parser = argparse.ArgumentParser(prog="./dev chaos")
    parser.add_argument("build", help=argparse.SUPPRESS)
    parser.add_argument("--minutes", type=float, default=2, help="with faults (2)")
    parser.add_argument("--seed", type=int, default=None, help="of the first run; chance otherwise")
    parser.add_argument("--pace", type=int, default=600, help="ms between faults, on average (600)")
    parser.add_argument("--plain", dest="fences", action="store_const", const="plain", default="fenced",
                        help="locks without fences")  # fmt: skip
    parser.add_argument("--tls", action=argparse.BooleanOptionalAction, default=None,
                        help="half of the clients over TLS; --tls fails where that is not possible (if possible)")  # fmt: skip
    options = parser.parse_args()
    left, seed = options.minutes * 60, options.seed
    if seed is None:
        seed = secrets.randbelow(1 << 31)
    totals = report.Totals()
    build = os.path.abspath(options.build)
    while left > 0:
        run_part(build, options, max(1, int(min(left, PART_S))), seed, totals)
        write(os.path.join(build, "chaos-report.txt"), "\n".join(totals.lines()) + "\n")
        left -= PART_S
        seed += 1
    print("\n".join(totals.lines()))
    sys.exit(1 if totals.violations else 0)


if __name__ == "__main__":
    main()
