# SPDX-License-Identifier: MIT
"""Runs examples/tracing/locks.bt with bpftrace while a program acquires a lock. meson passes REDLOCK_LIBRARY. bpftrace
sees all processes that use the library, so no other test has locks with these names."""

import contextlib
import itertools
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

    @contextlib.contextmanager
    def tracer(self):
        """Runs the script in this context, which begins when the probes are attached. In it self.text() returns what the
        script has printed until now, and self.end() ends it. Wait for a line before end(): what is on its way is lost."""
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

            def end():
                """Ends the script, and returns all that it has printed."""
                tracer.send_signal(signal.SIGINT)
                tracer.wait(SECONDS_MAX)
                return text()

            self.text, self.end = text, end
            try:
                wait_until(attached, "bpftrace attaches")
                yield
            finally:
                tracer.kill()

    def setUp(self):
        """Skips the test where bpftrace cannot run."""
        reason = why_not()
        if reason:
            self.skipTest(reason)

    def events(self, name):
        """Returns the printed events about this lock, without time and process."""
        lines = [line.split(None, 2)[2] for line in self.text().split("\n") if re.search(rf" {name}[,:]", line)]
        return [re.sub(r"\d+ ms", "N ms", line) for line in lines]

    def acquired(self):
        """Acquires and releases a lock on one processor: the tracer prints the events of one processor in their order.
        Returns its name; on a busy machine it is not that of the first lock that was tried."""
        processors = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(processors)})
        self.addCleanup(os.sched_setaffinity, 0, processors)
        names = (f"t:traced{number}" for number in itertools.count())
        found = []

        def succeeds():
            """Returns whether a lock was acquired and released without a failure."""
            found.append(next(names))
            done = example("blocking", found[-1])
            return done.returncode == 0 and "released: success" in done.stdout

        wait_until(succeeds, "a lock is acquired and released")
        return found[-1]

    def test_events_of_a_lock(self):
        """One lock is acquired, granted and released, in this order; the key is complete."""
        with self.tracer():
            name = self.acquired()
            wait_until(lambda: any(line.startswith("release ") for line in self.events(name)), "the release is printed")
            acquire, *failures, grant, release = self.events(name)
            self.assertEqual(acquire, f"acquire        {name}, TTL N ms")
            self.assertEqual([line for line in failures if not line.startswith(f"attempt failed {name}: error -")], [])
            self.assertEqual(grant, f"grant          {name}: valid for N ms, attempt {len(failures) + 1}")
            self.assertEqual(release, f"release        {name}: 0")
            self.assertRegex(self.end(), r"(?m)^@waited_us:")

    def test_failed_attempts(self):
        """An attempt at a lock that another client holds fails with ECONTENDED."""
        name = "t:traced-taken"

        def failed():
            """Tries to acquire the lock, and returns whether a failure for this reason has been printed."""
            example("blocking", name)
            return any(line.startswith(f"attempt failed {name}: error -20, ") for line in self.events(name))

        with held(name), self.tracer():
            wait_until(failed, "a failed attempt is printed")
            text = self.end()
        self.assertNotRegex(text, rf" grant +{name}:")


if __name__ == "__main__":
    tapcase.main()
