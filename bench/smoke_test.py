# SPDX-License-Identifier: MIT
"""The benchmark works: every scenario, tiny, against five servers of a sandbox. Speed is not looked at."""

import csv
import json
import os
import shutil
import subprocess
import tempfile
import unittest

import tapcase

REDLOCK = os.environ["REDLOCK_TEST_COMMAND"]
BENCH = os.environ["REDLOCK_TEST_BENCH"]
FLOOR = os.environ["REDLOCK_TEST_FLOOR"]
SLOW = int(os.environ.get("REDLOCK_TEST_SLOW", "1"))
DEADLINE_S = 60 * SLOW
POINTS = ("p50", "p90", "p95", "p99", "p99_9", "max")


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
                "embedded-8",
                "embedded-64",
                "embedded-256",
                "threaded-1",
                "threaded-8",
                "threaded-64",
                "threaded-256",
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
                    self.assertEqual(list(side["pair_us"]), list(POINTS))
                    values = list(side["pair_us"].values())
                    self.assertEqual(values, sorted(values))
                    self.assertGreaterEqual(side["attempts_per_grant"], 1.0)
                    self.assertGreaterEqual(side["pair_us"]["p50"], side["acquire_us"]["p50"] / 2)

    def test_runs_in_csv(self):
        out = self.check(run(BENCH, "--ops", "40", "--runs", "2", "--scenario", "embedded-1", "--csv"))
        lines = out.splitlines(keepends=True)
        head = "".join(line for line in lines if line.startswith("#"))
        for word in ("machine", "load", "servers  5 x", "library  redlock", "compiler", "-O", "seed", "runs 2"):
            self.assertIn(word, head)
        rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
        self.assertEqual(
            [(row["run"], row["side"]) for row in rows],
            [("1", "library"), ("1", "floor"), ("2", "library"), ("2", "floor")],
        )
        for row in rows:
            self.assertEqual(row["pairs"], "40")  # those of the warm-up are not among them
            self.assertGreaterEqual(float(row["attempts_per_grant"]), 1.0)
            self.assertGreater(float(row["client_user_us_per_pair"]) + float(row["client_sys_us_per_pair"]), 0)
            values = [float(row[f"pair_{point}_us"]) for point in POINTS]
            self.assertEqual(values, sorted(values))

    def test_json_besides_the_table(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "result.json")
            out = self.check(run(BENCH, "--ops", "40", "--scenario", "embedded-1", "--save", path))
            with open(path) as file:
                document = json.load(file)
        self.assertRegex(out, r"p50 us +p90 us +p95 us +p99 us +p99.9 us +max us +att/gr +cpu us")
        for key in ("cpu", "kernel", "compiler", "flags", "server", "load"):
            self.assertTrue(document["environment"][key], key)
        for side in document["results"][0]["sides"]:
            curve = side["pair_curve"]
            self.assertEqual(curve, sorted(curve))
            self.assertEqual(curve[-1], [100.0, side["pair_us"]["max"]])
            self.assertIn([50.0, side["pair_us"]["p50"]], curve)

    @unittest.skipUnless(shutil.which("strace") and SLOW == 1, "no strace, or an instrumented build")
    def test_system_calls(self):
        out = self.check(run(BENCH, "--syscalls", "--scenario", "embedded-1", "--json"))
        counted = json.loads(out)
        # Five servers, two commands, a write and a read for each; and the waiting in between.
        for side in ("library", "floor"):
            self.assertGreater(counted[side], 15)
            self.assertLess(counted[side], 60)

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
