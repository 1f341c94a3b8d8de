# SPDX-License-Identifier: MIT
"""Finds seeds with which the simulator catches mutations, for rules.txt.

usage: python3 test/mutations/search.py [--build DIRECTORY] [--seeds N] [MUTATION]...

Prints for each mutation the first seed that is clean without it and ends in a violation with it, and the
violation. The build directory must be up to date.
"""

import argparse
import concurrent.futures
import functools
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
import apply  # noqa: E402

BATCH = 100
VIOLATION = re.compile(r"^seed (\d+): (.*)$", re.MULTILINE)


class Simulators:
    """The unchanged simulator, and one for each mutation."""

    def __init__(self, clean, mutated):
        self.clean = clean  # path of redlock-sim
        self.mutated = mutated  # folder of sim-MUTATION

    def path(self, name):
        """Returns the path of the simulator with this mutation."""
        return os.path.join(self.mutated, "sim-" + name)

    def run(self, program, *options):
        """Returns the exit status and the output of one call."""
        words = [program, *map(str, options)]
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              universal_newlines=True, check=False)  # fmt: skip
        return done.returncode, done.stdout

    @functools.lru_cache(maxsize=None)
    def run_clean(self, *options):
        """The same as run() for the unchanged simulator; results are kept."""
        return self.run(self.clean, *options)

    def catches(self, name, seed, words):
        """Returns whether the seed is clean and the mutation turns it into a violation that contains `words`."""
        status, output = self.run(self.path(name), "--seed", seed)
        return status == 1 and words in output and self.run_clean("--seed", seed)[0] == 0

    def find(self, name, words, seeds):
        """Returns the first of so many seeds that catches the mutation, and its violation; None if there is none."""
        for first in range(1, seeds + 1, BATCH):
            count = min(BATCH, seeds + 1 - first)
            _, output = self.run(self.path(name), "--first", first, "--runs", count, "--jobs", 1)
            for seed, violation in VIOLATION.findall(output):
                if words in violation and self.catches(name, seed, words):
                    return int(seed), violation
        return None


def workers():
    """Returns a pool with a thread for each processor. Each waits for one simulator at a time."""
    return concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0)))


def main():
    """Prints the seeds that the head of this file describes, and returns the exit status."""
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    parser.add_argument("--build", default=os.path.join(apply.SOURCE, "build-gcc"))
    parser.add_argument("--seeds", type=int, default=2000)
    parser.add_argument("names", nargs="*", metavar="MUTATION")
    chosen = parser.parse_args()
    simulators = Simulators(os.path.join(chosen.build, "test", "sim", "redlock-sim"),
                            os.path.join(chosen.build, "test", "mutations"))  # fmt: skip
    names = chosen.names or apply.names()
    for name in names:
        if name not in apply.names():
            parser.error(f"no mutation is called {name}")
        apply.check(apply.read(apply.path_of(name)), apply.SOURCE)
    missing = 0
    with workers() as pool:
        for name, found in zip(names, pool.map(lambda name: simulators.find(name, "", chosen.seeds), names)):
            seed, violation = found or ("-", f"nothing in {chosen.seeds} seeds")
            print(f"{name} | {seed} | {violation}", flush=True)
            missing += found is None
    return 1 if missing else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except apply.Fault as fault:
        sys.exit(str(fault))
