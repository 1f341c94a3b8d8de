# SPDX-License-Identifier: MIT
"""Runs the demo, and again with a worker that ignores the lock, which the demo must detect."""

import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["SOURCE_DIR"], "test", "lib"))
import lanes
import ledger
import tapcase
from ledger import Turn
from screen import Screen

HERE = os.path.dirname(os.path.abspath(__file__))
# A row of the demo's table: phase, sold, recorded, oversold, stock, overlaps.
ROW = re.compile(r"^([abc])  .*?(\d+) +(\d+) +(\d+) +(\d+) +(\d+) +[\d.]+ s$", re.M)


def run_demo(build):
    """Runs the demo with the programs of a build directory. Returns the finished process."""
    environment = {**os.environ, "PYTHONUTF8": "1"}
    # Each run has a sandbox of its own, because the last phase kills two servers.
    for name in ("REDLOCK_SERVERS", "REDLOCK_SANDBOX_DIR"):
        environment.pop(name, None)
    return subprocess.run(
        [os.path.join(HERE, "run"), build],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120 * int(os.environ.get("REDLOCK_TEST_SLOW", "1")),
        check=False,
    )


class Demo(unittest.TestCase):
    """The whole demo, in a sandbox of its own."""
    def test_the_lock_holds_and_its_absence_shows(self):
        done = run_demo(os.environ["BUILD_DIR"])
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertNotIn("\033", done.stdout)  # not a terminal
        rows = {row[0]: tuple(map(int, row[1:])) for row in ROW.findall(done.stdout)}
        sold, recorded, oversold, stock, overlaps = rows["a"]
        self.assertGreater(oversold, 0)
        self.assertGreater(overlaps, 0)
        self.assertEqual((sold + stock, recorded - oversold), (100, 100))
        self.assertEqual(rows["b"], (100, 100, 0, 0, 0))
        self.assertEqual(rows["c"], (100, 100, 0, 0, 0))
        self.assertEqual(done.stdout.count("▲ kill -9 #"), 2)

    def test_a_lock_that_does_not_hold_is_noticed(self):
        build = os.environ["BUILD_DIR"]
        with tempfile.TemporaryDirectory() as other:
            os.mkdir(os.path.join(other, "examples"))
            os.symlink(os.path.join(build, "tools"), os.path.join(other, "tools"))
            worker = os.path.join(other, "examples", "demo-worker")
            real = shlex.quote(os.path.join(build, "examples", "demo-worker"))
            with open(worker, "w", encoding="utf-8") as file:
                file.write(f'#!/bin/sh\n[ "$1" = --no-lock ] && shift\nexec {real} --no-lock "$@"\n')
            os.chmod(worker, 0o755)
            done = run_demo(other)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("The lock did not hold", done.stdout)


class Audit(unittest.TestCase):
    """The audit of ledger.py: overlaps of turns, and what counts as right."""
    def test_overlaps(self):
        apart = [Turn(1, 10, 20, True), Turn(2, 20, 30, True), Turn(1, 31, 40, False)]
        self.assertEqual(ledger.overlaps(apart), 0)
        inside_a_long_one = [Turn(1, 10, 90, True), Turn(2, 20, 30, True), Turn(3, 80, 95, True)]
        self.assertEqual(ledger.overlaps(inside_a_long_one), 2)

    def test_what_is_right(self):
        right = ledger.Audit(
            sales=100, oversold=0, stock=0, lowest=0, most_per_item=1, overlaps=0
        )
        self.assertTrue(ledger.is_right(right))
        for field, value in (
            ("sales", 101),
            ("sales", 99),
            ("stock", 1),
            ("stock", -1),
            ("lowest", -1),
            ("most_per_item", 2),
            ("overlaps", 1),
        ):
            self.assertFalse(ledger.is_right(right._replace(**{field: value})), field)


class Picture(unittest.TestCase):
    """The drawing of lanes.py."""
    def test_a_dot_for_each_worker_inside(self):
        turns = [Turn(1, 0, 10, True), Turn(4, 5, 25, True), Turn(5, 20, 30, True)]
        rows = lanes.grid(turns, [8, 22], workers=8)
        self.assertEqual([sum(row) for row in rows], [1, 0, 0, 2, 1, 0, 0, 0])
        self.assertEqual(lanes.draw_braille(rows), [(1, "\u28c1"), (5, "\u2808")])
        self.assertEqual(lanes.draw_ascii(rows)[3], (4, "#"))

    def test_thinned_out_evenly(self):
        self.assertEqual(lanes.thin(list(range(5)), 5), [0, 1, 2, 3, 4])
        self.assertEqual(lanes.thin(list(range(101)), 5), [0, 25, 50, 75, 100])

    def test_marks_stand_under_the_first_sale_after_them(self):
        axis = lanes.axis(20, 0, int(2e9), [10, 20, 30, 40], [(25, "kill")], "^")
        self.assertEqual(axis, "0 s ^ kill     2.0 s")


class Colour(unittest.TestCase):
    """Colours and the live line of screen.py."""
    class Terminal(io.StringIO):
        """A stream that claims to be a terminal."""
        encoding = "utf-8"

        def isatty(self):
            return True

    def test_only_on_a_terminal_and_without_no_color(self):
        before = dict(os.environ)
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(before)))
        os.environ.update(TERM="xterm")
        os.environ.pop("NO_COLOR", None)
        self.assertTrue(Screen(self.Terminal()).colour)
        self.assertFalse(Screen(io.StringIO()).colour)
        os.environ["NO_COLOR"] = "1"
        self.assertFalse(Screen(self.Terminal()).colour)

    def test_the_live_line_does_not_wrap(self):
        before = dict(os.environ)
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(before)))
        os.environ.update(TERM="xterm", COLUMNS="40")
        terminal = self.Terminal()
        Screen(terminal).live("x" * 100)
        self.assertEqual(terminal.getvalue(), "\r\033[K" + "x" * 39)


if __name__ == "__main__":
    tapcase.main()
