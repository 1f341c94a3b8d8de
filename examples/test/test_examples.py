# SPDX-License-Identifier: MIT
"""Runs the example programs on real servers: output, exit status, and keys that are left."""

import os
import re
import signal
import subprocess
import time
import unittest

from support import EXAMPLES, REDLOCK, SECONDS_MAX, example, held, run, status_of, tapcase

NOBODY_THERE = "127.0.0.1:1,127.0.0.1:2,127.0.0.1:3"


class Blocking(unittest.TestCase):
    def test_works_under_the_lock_and_leaves_nothing(self):
        done = example("blocking", "t:blocking")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"^t:blocking is held for 9[0-9]{3} ms\n")
        self.assertIn("the side effect\nreleased: ", done.stdout)
        self.assertEqual(status_of("t:blocking"), 1)

    def test_says_who_stands_in_the_way(self):
        with held("t:taken"):
            done = example("blocking", "t:taken")
        self.assertEqual((done.returncode, done.stdout), (75, ""))
        self.assertIn("not acquired: ", done.stderr)
        self.assertEqual(done.stderr.count("\n  127.0.0.1:"), 5)  # a line for each server

    def test_no_quorum(self):
        done = example("blocking", REDLOCK_SERVERS=NOBODY_THERE)
        self.assertEqual((done.returncode, done.stdout), (69, ""))
        self.assertIn("refused", done.stderr)

    def test_bad_address(self):
        done = example("blocking", REDLOCK_SERVERS="redis://a:99999")
        self.assertEqual(done.returncode, 78)
        self.assertIn("99999", done.stderr)

    def test_no_address(self):
        self.assertEqual(example("blocking", REDLOCK_SERVERS=None).returncode, 64)


class AutoExtend(unittest.TestCase):
    def test_outlives_its_ttl(self):
        begin = time.monotonic()
        done = example("auto_extend", "t:long", "40")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertGreater(time.monotonic() - begin, 2.0)  # the TTL is one second
        self.assertEqual(done.stdout.count("step "), 40)
        self.assertIn("extended in time", done.stdout)
        self.assertEqual(status_of("t:long"), 1)

    def test_stops_when_the_lock_is_lost(self):
        command = [os.path.join(EXAMPLES, "auto_extend"), "t:lost", "600"]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as program:
            while not program.stdout.readline().startswith("step 5"):
                pass
            broken = run([REDLOCK, "break", "--yes", "t:lost"])
            self.assertEqual(broken.returncode, 0, broken.stderr)
            output, errors = program.communicate(timeout=SECONDS_MAX)
        self.assertEqual(program.returncode, 1)
        lost = re.search(r"lost after (\d+) steps", errors)
        self.assertIsNotNone(lost, errors)
        self.assertLess(int(lost.group(1)), 300)
        self.assertNotIn("600 steps", output)


class PollLoop(unittest.TestCase):
    def test_several_locks_in_one_thread(self):
        done = example("poll_loop", "t:a", "t:b", "t:c")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = done.stdout.splitlines()
        for name in ("t:a", "t:b", "t:c"):
            mine = [line for line in lines if line.startswith(name)]
            self.assertEqual(len(mine), 3, mine)
            self.assertEqual(mine[:2], [f"{name}: held", f"{name}: done"])
            self.assertEqual(status_of(name), 1)

    def test_one_is_held_by_another(self):
        with held("t:b"):
            done = example("poll_loop", "t:a", "t:b")
        self.assertEqual(done.returncode, 1)
        self.assertIn("t:a: done", done.stdout)
        self.assertIn("t:b: ", done.stderr)
        self.assertNotIn("t:b: done", done.stdout)

    def test_a_signal_cancels_what_waits(self):
        terminal, lines = os.openpty()  # on a terminal, stdout is line-buffered
        with held("t:b"), open(terminal, encoding="utf-8") as said:
            program = subprocess.Popen(
                [os.path.join(EXAMPLES, "poll_loop"), "t:a", "t:b"],
                stdout=lines,
                stderr=subprocess.PIPE,
                text=True,
            )
            os.close(lines)
            self.assertEqual(said.readline().strip(), "t:a: held")
            program.send_signal(signal.SIGTERM)
            _, errors = program.communicate(timeout=SECONDS_MAX)
        self.assertEqual(program.returncode, 1)
        self.assertIn("cancel", errors)  # an expired wait has another text

    def test_usage(self):
        self.assertEqual(example("poll_loop").returncode, 64)


if __name__ == "__main__":
    tapcase.main()
