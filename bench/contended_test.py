# SPDX-License-Identifier: MIT
"""Runs redlock-contended briefly against five servers of a sandbox. Does not check speed."""

import csv
import json
import os
import subprocess
import sys
import unittest

import tapcase

REDLOCK = os.environ["REDLOCK_TEST_COMMAND"]
CONTENDED = os.environ["REDLOCK_TEST_CONTENDED"]
TLS = os.environ["REDLOCK_TEST_TLS"] == "1"
WITH_TLS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "with_tls.py")
SLOW = int(os.environ.get("REDLOCK_TEST_SLOW", "1"))
DEADLINE_S = 60 * SLOW

# A script in place of node: in each process two contenders hold the lock at the same time.
OVERLAPPING = """
print("ready", flush=True)
end = int(input())
print("hold 0", end - 900000000, end - 800000000, end - 700000000)
print("hold 1", end - 900000000, end - 750000000, end - 600000000)
print("sums 0 1 1 0 0")
print("sums 1 1 2 1 0")
"""

# A script in place of java: the contenders hold the lock one after the other, if the only server is the first one.
FAIR = """
import sys
option, path, name, servers, first, count = sys.argv[1], sys.argv[4], sys.argv[5], sys.argv[6], sys.argv[10], sys.argv[11]
assert (option, name, count) == ("-Dkind=fair", "Driver", "1") and path.endswith("/target/lib/*")
assert servers.startswith("redis://127.0.0.1:") and servers[18:].isdigit(), servers
print("ready", flush=True)
start = int(input()) - 400000000 + int(first) * 100000000
print("hold", first, start, start + 1, start + 2, start + 3)
print("over", flush=True)
sys.stdin.readline()
"""


# A script in place of node: never becomes ready and never ends.
UNREADY = """
import select
print("no", flush=True)
select.select([], [], [])
"""


def run(*words, sandbox=True, through=(), **environment):
    """Runs redlock-contended with additional environment variables. Returns the finished
    process."""
    command = ([REDLOCK, "sandbox", "--"] if sandbox else []) + [*through, CONTENDED, *words]
    surroundings = {key: value for key, value in os.environ.items() if key != "REDLOCK_BENCH_PEER"}
    surroundings.update(environment)
    return subprocess.run(
        command, capture_output=True, text=True, timeout=DEADLINE_S, check=False, env=surroundings
    )


class Contended(unittest.TestCase):
    def test_csv_has_a_row_without_violations(self):
        done = run("--contenders", "2", "--delay", "0/1ms/0/0/0", "--seconds", "1", "--csv", "--driver", "redlock")
        self.assertIn(done.returncode, (0, 1), done.stdout + done.stderr)
        lines = done.stdout.splitlines()
        self.assertIn("servers  5 x", "".join(line for line in lines if line.startswith("#")))
        (row,) = csv.DictReader(line for line in lines if not line.startswith("#"))
        self.assertEqual((row["driver"], row["contenders"], row["delay"]), ("redlock", "2", "0,1ms,0,0,0"))
        self.assertEqual(row["violations"], "0")
        times = [float(row[name + "_ms"]) for name in ("p50", "p90", "p95", "p99", "p99_9", "max")]
        self.assertEqual(times, sorted(times))
        self.assertGreater(times[0], 0)
        self.assertNotIn(None, row)
        self.assertNotIn(None, row.values())

    def test_cases_without_and_with_a_delay(self):
        done = run("--contenders", "2,6", "--delay", "0,2ms", "--jitter", "1ms", "--hold", "1ms",
                   "--seconds", "1", "--seed", "11", "--json")  # fmt: skip
        # On a busy machine a server may reply too late, and in so short a run one call is one in a hundred.
        self.assertIn(done.returncode, (0, 1), done.stdout + done.stderr)
        self.assertIn("node-redlock is left out", done.stderr)
        document = json.loads(done.stdout)
        self.assertEqual(done.returncode == 0, all(result["passed"] for result in document["results"]))
        self.assertEqual(document["schema"], "redlock.contended/1")
        self.assertEqual(document["seed"], 11)
        cases = [(result["delay"], result["contenders"]) for result in document["results"]]
        self.assertEqual(cases, [("0", 2), ("0", 6), ("2ms", 2), ("2ms", 6)])
        for result in document["results"]:
            with self.subTest(delay=result["delay"], contenders=result["contenders"]):
                self.assertEqual(result["violations"], 0, f"two at once: {result}\n{done.stderr}")
                self.assertEqual(result["leftover_keys"], 0, f"keys are left: {result}\n{done.stderr}")
                self.assertEqual(result["passed"], result["errors"] * 100 <= result["grants"])
                self.assertLess(result["errors"], result["grants"])
                self.assertGreater(result["grants"], 0)
                self.assertLessEqual(result["handovers"] + result["self_reacquires"], result["grants"])
                self.assertGreaterEqual(result["commands_per_grant"], 6)
                # A lock takes at least two calls that sleep.
                self.assertGreater(result["client_us_per_grant"], 5)
                self.assertLess(result["client_us_per_grant"] * result["grants"], 60e6 * SLOW)
                self.assertLessEqual(result["jain"], 1.0)
                times = list(result["handover_ms"].values())
                self.assertEqual((len(times), times), (6, sorted(times)))
                if result["delay"] == "2ms":
                    self.assertGreaterEqual(result["round_trip_idle_ms"], 4)

    def test_progress_is_printed_unless_quiet(self):
        words = ("--contenders", "2", "--delay", "0", "--seconds", "3", "--driver", "redlock", "--json")
        shown = r"(?m)^redlock-contended: redlock, 2 contenders, delay 0, hold 0\.0 ms: \d+ %$"
        self.assertRegex(run(*words).stderr, shown)
        self.assertNotRegex(run(*words, "--quiet").stderr, shown)

    def run_with(self, script, program="node", driver="node-redlock", option="--peer"):
        """Runs the benchmark with this script as `program`, which it finds in PATH."""
        directory = os.path.dirname(os.path.abspath(__file__))
        names = os.environ["REDLOCK_TEST_SCRATCH"]
        os.makedirs(names, exist_ok=True)
        node = os.path.join(names, program)
        with open(node, "w", encoding="ascii") as file:
            file.write(f"#!{sys.executable}\n{script}")
        os.chmod(node, 0o755)
        return run("--contenders", "2", "--delay", "0", "--seconds", "1", "--driver", driver,
                   option, directory, "--json", PATH=names + os.pathsep + os.environ["PATH"])  # fmt: skip

    def test_a_peer_that_is_never_ready_is_killed(self):
        done = self.run_with(UNREADY)
        self.assertEqual(done.returncode, 69, done.stdout + done.stderr)
        self.assertIn("the peer's processes are not ready", done.stderr)

    def test_two_holders_at_once_are_a_violation(self):
        done = self.run_with(OVERLAPPING)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        result = json.loads(done.stdout)["results"][0]
        self.assertGreaterEqual(result["violations"], 1)
        self.assertFalse(result["passed"])

    def test_the_fair_lock_of_redisson_gets_one_server(self):
        done = self.run_with(FAIR, "java", "redisson-fair", "--redisson")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        (result,) = json.loads(done.stdout)["results"]
        self.assertEqual((result["driver"], result["grants"]), ("redisson-fair", 2))

    def test_requests_upkeep_and_notifications_are_counted(self):
        done = run("--contenders", "4", "--delay", "1ms", "--seconds", "1", "--driver", "redlock", "--json")
        self.assertIn(done.returncode, (0, 1), done.stdout + done.stderr)
        (result,) = json.loads(done.stdout)["results"]
        # Each grant needs a request and a release on three servers at least, and others wait for it.
        self.assertGreaterEqual(result["commands_per_grant"], 6)
        self.assertGreater(result["upkeep_per_grant"], 0)
        self.assertGreater(result["notifications_per_grant"], 0)
        self.assertGreaterEqual(result["notifications_per_grant"] * 2, result["turns_per_grant"])
        self.assertIn("evalsha", result["commands_by_name"])

    def test_invalid_options_are_refused(self):
        for words, text in [
            (["--contenders", "1"], "--contenders"),
            (["--contenders", "2,x"], "--contenders"),
            (["--contenders", ",".join("2" * 17)], "--contenders: too many"),
            (["--nonsense"], "see redlock-contended --help"),
            (["--delay", "5min"], "--delay"),
            (["--hold", ""], "--hold"),
            (["--driver", "other"], "other"),
            (["extra"], "extra"),
        ]:
            with self.subTest(words=words):
                done = run(*words, sandbox=False)
                self.assertEqual(done.returncode, 64, done.stderr)
                self.assertIn(text, done.stderr)

    @unittest.skipUnless(TLS, "built without TLS")
    def test_contenders_connect_with_tls(self):
        words = ["--tls", "--contenders", "2", "--delay", "0,1ms", "--seconds", "1", "--json"]
        done = run(*words, through=["python3", WITH_TLS])
        self.assertEqual(done.returncode, 0, done.stderr)
        document = json.loads(done.stdout)
        self.assertIn(", TLS", document["environment"]["server"])
        self.assertEqual([result["driver"] for result in document["results"]], ["redlock", "redlock"])
        for result in document["results"]:
            self.assertGreater(result["grants"], 0)
        self.assertIn("--tls: set REDLOCK_TLS_SERVERS", run("--tls").stderr)

    def test_unreachable_servers_are_an_error(self):
        done = run("--servers", "127.0.0.1:1", "--delay", "0", "--contenders", "2", sandbox=False)
        self.assertEqual(done.returncode, 69, done.stderr)


if __name__ == "__main__":
    tapcase.main()
