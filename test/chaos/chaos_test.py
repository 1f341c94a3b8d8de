# SPDX-License-Identifier: MIT
"""A short chaos run: every kind of fault, every kind of client, no violation."""

import os
import secrets
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "lib"), os.path.join(HERE, "..", "interop")]
import report
import run
import servers
import tapcase  # found below test/lib

SECONDS = 35  # with faults: enough for each kind at least once
PACE_MS = 500  # between faults, on average
STDERR_LINES = 20  # of the clients' messages, how many a failure shows
# Normal ends of `redlock run`, as wait() statuses: success, no quorum, held by another, lock lost, killed.
ENDS = {0, 69 << 8, 75 << 8, 124 << 8, 9}


def log_excerpts(directory):
    """Yields the last messages of the clients, and the runs of the command that ended with another status."""
    with open(os.path.join(directory, "stderr"), encoding="utf-8", errors="replace") as file:
        yield from file.read().splitlines()[-STDERR_LINES:]
    for name in sorted(os.listdir(directory)):
        if not name.endswith(".log"):
            continue
        with open(os.path.join(directory, name), encoding="utf-8", errors="replace") as file:
            for line in file:
                words = line.split()
                if words[1:2] == ["ran"] and int(words[-1]) not in ENDS:
                    yield f"{name}: {line.strip()}"


class Chaos(unittest.TestCase):
    def test_short_run_has_no_violation(self):
        seed = int(os.environ.get("REDLOCK_TEST_SEED") or secrets.randbelow(1 << 31))
        print(f"# REDLOCK_TEST_SEED={seed}", flush=True)
        with tempfile.TemporaryDirectory() as directory:
            run_history, verdict = run.run_once(
                os.environ["BUILD"], directory, SECONDS, PACE_MS, seed, os.environ["FENCES"]
            )
            details = list(log_excerpts(directory)) if verdict.violations else []
        totals = report.Totals()
        totals.add(run_history, verdict)
        for line in totals.lines():
            print(f"# {line}", flush=True)
        self.assertEqual(verdict.violations, [], "\n".join(details))
        links = not any("links" in reason for reason in run_history.skips)
        for kind in report.KINDS:
            if links or kind not in report.NEED_LINKS:
                self.assertGreater(totals.faults[kind], 0, kind)
        foreign = not any("node-redlock" in reason for reason in run_history.skips)
        for kind in report.CLIENTS:
            if foreign or kind != "foreign":
                self.assertGreater(totals.grants[kind], 0, kind)
        if not any("TLS" in reason for reason in run_history.skips):
            self.assertGreater(totals.tls, 0, "grants over TLS")
        for lock in report.LOCKS:
            self.assertGreater(totals.locks[lock], 0, lock)


if __name__ == "__main__":
    if servers.program() is None:
        tapcase.skip_all(servers.MISSING)
    tapcase.main()
