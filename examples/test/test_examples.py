# SPDX-License-Identifier: MIT
"""Runs the example programs on real servers: output, exit status, and keys that are left."""

import os
import re
import signal
import subprocess
import time
import unittest

from support import EXAMPLES, REDLOCK, SECONDS_MAX, example, held, run, status_of, tapcase
import prometheus  # found through support

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


@unittest.skipUnless(os.path.exists(os.path.join(EXAMPLES, "cpp-transfer")), "no C++ compiler was found")
class Cpp(unittest.TestCase):
    def test_locks_both_accounts(self):
        done = example("cpp-transfer", "alice", "bob")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"^both accounts are held for 9[0-9]{3} ms\nmoved from alice to bob\n$")
        self.assertEqual((status_of("account:alice"), status_of("account:bob")), (1, 1))

    def test_says_who_holds_an_account(self):
        with held("account:bob"):
            done = example("cpp-transfer", "alice", "bob")
        self.assertEqual((done.returncode, done.stdout), (75, ""))
        self.assertIn("held by another client", done.stderr)
        self.assertEqual(status_of("account:alice"), 1)

    def test_no_quorum(self):
        done = example("cpp-transfer", "alice", "bob", REDLOCK_SERVERS=NOBODY_THERE)
        self.assertEqual((done.returncode, done.stdout), (69, ""))
        self.assertIn("refused", done.stderr)


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


class Metrics(unittest.TestCase):
    """The program that prints the figures of its client for Prometheus."""

    def test_prints_valid_figures_of_a_held_lock(self):
        """The text has the strict format, the label of the program and the figures of one lock."""
        done = example("metrics", "t:metrics")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        figures = prometheus.parse(done.stdout)
        own = {"service": "billing"}
        for family in figures.values():
            for _, labels, _ in family.samples:
                self.assertLessEqual(own.items(), labels.items())
        self.assertEqual(prometheus.value(figures, "redlock_locks_held"), 1)
        self.assertEqual(prometheus.value(figures, "redlock_acquisitions_total", result="acquired"), 1)
        self.assertEqual(prometheus.value(figures, "redlock_servers_configured"), 5)
        self.assertIn(prometheus.value(figures, "redlock_servers_eligible"), (3, 4, 5))  # some may still connect
        self.assertEqual(len(figures["redlock_server_eligible"].samples), 5)
        self.assertEqual(status_of("t:metrics"), 1)

    def test_prometheus_accepts_the_figures(self):
        """promtool has neither an error nor advice."""
        found = prometheus.promtool("check", "metrics", text=example("metrics").stdout)
        if found is None:
            self.skipTest("no promtool (Debian: prometheus)")
        self.assertEqual(found, "")

    def test_figures_without_a_quorum(self):
        """Servers that cannot be reached have a cause in the figures."""
        done = example("metrics", REDLOCK_SERVERS=NOBODY_THERE)
        self.assertEqual(done.returncode, 1)
        figures = prometheus.parse(done.stdout)
        self.assertEqual(prometheus.value(figures, "redlock_acquisitions_total", result="no_quorum"), 1)
        self.assertEqual(prometheus.value(figures, "redlock_servers_eligible"), 0)
        causes = [labels["cause"] for _, labels, _ in figures["redlock_server_excluded"].samples]
        self.assertEqual(causes, ["connect"] * 3)

    def test_the_reader_of_the_tests_is_strict(self):
        """Texts that break one rule each are rejected."""
        good = "# HELP redlock_a_total Text.\n# TYPE redlock_a_total counter\nredlock_a_total{l=\"1\"} 1\n"
        self.assertEqual(prometheus.value(prometheus.parse(good), "redlock_a_total", l="1"), 1)
        for old, new in [("# HELP redlock_a_total Text.\n", ""), ("counter", "gauge"), ("_total", ""), (" 1\n", " 1"),
                         (" 1\n", " x\n"), ('"1"', '"\\x"'), ('"1"', '"1",l="2"'), ('"1"', '"1",'), ("l=", "__l="),
                         (" 1\n", " -1\n"), ("redlock_a_total{", "redlock_b_total{"), ("_a_", "_a_ms_"), ("} 1", "}  1"),
                         ("# TYPE redlock_a_total counter\n", "")]:  # fmt: skip
            with self.subTest(new=new):
                with self.assertRaises(prometheus.FormatError):
                    prometheus.parse(good.replace(old, new))


if __name__ == "__main__":
    tapcase.main()
