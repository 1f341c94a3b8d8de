# SPDX-License-Identifier: MIT
"""The benchmark works: every scenario, tiny, against five servers of a sandbox. Speed is not looked at."""

import csv
import io
import json
import os
import subprocess
import unittest

import tapcase

REDLOCK = os.environ["REDLOCK_TEST_COMMAND"]
BENCH = os.environ["REDLOCK_TEST_BENCH"]
FLOOR = os.environ["REDLOCK_TEST_FLOOR"]
SLOW = int(os.environ.get("REDLOCK_TEST_SLOW", "1"))
DEADLINE_S = 60 * SLOW


def run(*words, sandbox=True):
    command = ([REDLOCK, "sandbox", "--"] if sandbox else []) + list(words)
    return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)


class Bench(unittest.TestCase):
    def check(self, done):
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_every_scenario_in_json(self):
        done = run(BENCH, "--ops", "60", "--seed", "7", "--json")
        # 1 also means that more than one in a hundred failed: so few tell nothing on a busy machine.
        self.assertIn(done.returncode, (0, 1), done.stderr)
        document = json.loads(done.stdout)
        self.assertEqual(document["schema"], "redlock.bench/1")
        self.assertEqual(document["seed"], 7)
        self.assertEqual(document["environment"]["servers"], 5)
        names = [result["scenario"] for result in document["results"]]
        self.assertEqual(
            names,
            [
                "embedded-1",
                "embedded-64",
                "embedded-256",
                "threaded-1",
                "threaded-64",
                "contended",
                "fenced-1",
                "fenced-64",
                "fenced-busy",
                "stopped",
            ],
        )
        for result in document["results"]:
            with self.subTest(scenario=result["scenario"]):
                self.assertEqual(result["leftover_keys"], 0)
                for side in result["sides"]:
                    self.assertEqual(side["pairs"], 60)
                    self.assertEqual(side["violations"], 0)
                    self.assertLess(side["failed"], 60)
                    self.assertGreater(side["pair_us"]["p50"], 0)
                    self.assertGreaterEqual(side["pair_us"]["max"], side["pair_us"]["p50"])
                    self.assertGreaterEqual(side["pair_us"]["p50"], side["acquire_us"]["p50"] / 2)

    def test_runs_in_csv(self):
        out = self.check(run(BENCH, "--ops", "40", "--runs", "2", "--scenario", "embedded-1", "--csv"))
        rows = list(csv.DictReader(io.StringIO(out)))
        self.assertEqual(
            [(row["run"], row["side"]) for row in rows],
            [("1", "library"), ("1", "floor"), ("2", "library"), ("2", "floor")],
        )

    def test_one_side_in_a_table(self):
        out = self.check(run(BENCH, "--ops", "40", "--scenario", "threaded-1", "--side", "library"))
        self.assertIn("threaded-1    library", out)
        self.assertNotIn("floor", out)

    def test_floor_alone(self):
        out = self.check(run(FLOOR, "--depth", "64", "--ops", "200", "--json"))
        self.assertEqual(json.loads(out)["pairs"], 200)
        self.assertEqual(json.loads(out)["failed"], 0)

    def test_leftover_keys_are_an_error(self):
        # A server that is nobody's business keeps a key of ours: the run must not pass.
        script = (
            "import os, re, socket\n"
            "port = int(re.search(r':(\\d+)', os.environ['REDLOCK_SERVERS']).group(1))\n"
            "s = socket.create_connection(('127.0.0.1', port))\n"
            "s.sendall(b'SET redlock-bench:%d:x y\\r\\n' % os.getpid())\n"
            "s.recv(100)\n"
            "os.execv(os.environ['REDLOCK_TEST_FLOOR'], ['floor', '--ops', '5'])\n"
        )
        done = run("python3", "-c", script)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("1 keys left behind", done.stderr)

    def test_refusals(self):
        for words, text in [
            (["--scenario", "nonsense"], "nonsense"),
            (["--ops", "0"], "--ops"),
            (["--ops", "12x"], "12x"),
            (["--side", "left"], "left"),
            (["--servers", "unix:///tmp/x"], "host:port"),
            (["--servers", "redis://:secret@127.0.0.1:1"], "sandbox"),
            (["extra"], "extra"),
        ]:
            with self.subTest(words=words):
                done = run(BENCH, *words, sandbox=False)
                self.assertEqual(done.returncode, 64, done.stderr)
                self.assertIn(text, done.stderr)
                self.assertNotIn("secret", done.stderr)

    def test_no_servers(self):
        done = run(BENCH, "--servers", "127.0.0.1:1", "--scenario", "embedded-1", sandbox=False)
        self.assertEqual(done.returncode, 69, done.stderr)
        self.assertIn("127.0.0.1:1", done.stderr)


if __name__ == "__main__":
    tapcase.main()
