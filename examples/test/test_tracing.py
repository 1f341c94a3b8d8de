# SPDX-License-Identifier: MIT
"""Runs examples/tracing/locks.bt with bpftrace while a program acquires a lock. meson passes REDLOCK_LIBRARY. bpftrace
sees all processes that use the library, so no other test has locks with these names."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

from support import SECONDS_MAX, SOURCE, example, held, wait_until
import tapcase  # found through support

SCRIPT = os.path.join(SOURCE, "examples", "tracing", "locks.bt")
LIBRARY = os.environ["REDLOCK_LIBRARY"]


def why_not():
    """Returns why bpftrace cannot run here, or None."""
    if shutil.which("bpftrace") is None:
        return "no bpftrace"
    if os.geteuid() != 0:
        return "bpftrace needs root"
    tried = subprocess.run(["bpftrace", "-l", f"usdt:{LIBRARY}:redlock:*"], capture_output=True, text=True, check=False)
    if "redlock:grant" not in tried.stdout:
        return "built without probes, or bpftrace cannot read them"
    tried = subprocess.run(["bpftrace", "-e", f"usdt:{LIBRARY}:redlock:grant {{ }} BEGIN {{ exit(); }}"],
                           capture_output=True, text=True, check=False)  # fmt: skip
    return None if tried.returncode == 0 else f"bpftrace cannot attach: {(tried.stderr.split(chr(10)) + [''])[-2][:100]}"


class Tracing(unittest.TestCase):
    """The script in a real tracer."""

    def traced(self, action):
        """Calls action() while the script runs. Returns the lines of the script."""
        with tempfile.TemporaryFile("w+") as output, subprocess.Popen(
            ["bpftrace", SCRIPT, LIBRARY], stdout=output, stderr=subprocess.STDOUT
        ) as tracer:

            def text():
                """Returns what the script has printed until now."""
                output.seek(0)
                return output.read()

            def attached():
                """Acquires a lock, and returns whether each kind of line about such locks has been printed."""
                self.assertIsNone(tracer.poll(), text())
                example("blocking", "t:traced-ready")
                return all(re.search(rf" {what} +t:traced-ready", text()) for what in ("acquire", "grant", "release"))

            try:
                wait_until(attached, "bpftrace attaches")
                action()
            finally:
                tracer.send_signal(signal.SIGINT)
                tracer.wait(SECONDS_MAX)
            return text().split("\n")

    def setUp(self):
        """Skips the test where bpftrace cannot run."""
        reason = why_not()
        if reason:
            self.skipTest(reason)

    def test_events_of_a_lock(self):
        """One lock is acquired, granted and released, in this order; the key is complete."""
        lines = self.traced(lambda: example("blocking", "t:traced"))
        mine = [re.sub(r"\d+ ms", "N ms", line.split(None, 2)[2]) for line in lines if re.search(r"t:traced\b(?!-)", line)]
        self.assertEqual(mine, ["acquire        t:traced, TTL N ms", "grant          t:traced: valid for N ms, attempt 1",
                                "release        t:traced: 0"])  # fmt: skip
        self.assertTrue(any(line.startswith("@waited_us:") for line in lines), lines)

    def test_failed_attempts(self):
        """An attempt at a lock that another client holds fails with ECONTENDED."""
        with held("t:traced-taken"):
            lines = self.traced(lambda: example("blocking", "t:traced-taken"))
        failed = [line for line in lines if "attempt failed t:traced-taken: error -20, " in line]
        self.assertGreater(len(failed), 0, lines)
        self.assertFalse([line for line in lines if " grant " in line and "t:traced-taken" in line])


if __name__ == "__main__":
    tapcase.main()
