# SPDX-License-Identifier: MIT
"""Runs redlock-growth and growth.py, and checks bounds: memory of a held lock and of a client, what a client keeps after a
burst, commands for each lock. Does not check times."""

import csv
import json
import os
import subprocess
import sys
import tempfile
import unittest

import tapcase

REDLOCK = os.environ["REDLOCK_TEST_COMMAND"]
GROWTH = os.environ["REDLOCK_TEST_GROWTH"]
DRIVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "growth.py")
WITH_TLS = os.path.join(os.path.dirname(DRIVER), "with_tls.py")
SLOW = int(os.environ.get("REDLOCK_TEST_SLOW", "1"))
DEADLINE_S = 120 * SLOW
KIB = 1024
CLIENT_MAX = 256 * KIB  # memory of a client without locks
HELD_MAX = 1408  # bytes for each held lock
KEPT_MAX = 768 * KIB  # memory besides the client: tables and buffers that thousands of locks have enlarged


def run(*words, nodes=5):
    """Runs redlock-growth in a sandbox of `nodes` servers. Returns the finished process."""
    # Servers may reply late on a busy machine, which these tests do not measure.
    command = [REDLOCK, "sandbox", "-n", str(nodes), "--", GROWTH, *[str(word) for word in words], "--node-timeout", "20000"]
    return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)


# Kills the parent of four processes that would work for a long time.
ORPHANS = """
import os, re, socket, subprocess, sys, time
growth = subprocess.Popen([sys.argv[1], "processes", "--size", "4", "--pairs", "1000000000"])
host, port = os.environ["REDLOCK_SERVERS"].split(",")[0].split("?")[0].split(":")
calls = 0
# Each process warms up with twenty pairs; later ones show that it works.
while calls < 500:
    time.sleep(0.02)
    with socket.create_connection((host, int(port))) as server:
        server.sendall(b"INFO commandstats\\r\\n")
        found = re.search(rb"cmdstat_set:calls=(\\d+)", server.recv(65536))
    calls = int(found[1]) if found else 0
pids = open(f"/proc/{growth.pid}/task/{growth.pid}/children").read().split()
growth.kill()
growth.wait()
def runs(pid):
    try:
        return open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
end = time.monotonic() + 20
while any(runs(pid) for pid in pids) and time.monotonic() < end:
    time.sleep(0.02)
print(f"{len(pids)} processes,", "some still run" if any(runs(pid) for pid in pids) else "all have ended")
"""


class Growth(unittest.TestCase):
    def measure(self, *words, **others):
        """Runs redlock-growth, which must succeed, and returns its JSON object."""
        done = run(*words, **others)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def test_memory_and_commands_of_a_held_lock_are_bounded(self):
        few, many = (self.measure("held", "--size", size, "--ttl", 30000, "--hold", 10) for size in (100, 5000))
        for row in (few, many):
            self.assertEqual(row["failed"], 0)
            self.assertEqual(row["left_bytes"], 0)
            self.assertLessEqual(row["client_bytes"], CLIENT_MAX)
            # Commands to a late server may be sent after the end of a phase. Each lock has a majority, so a command
            # whose undo is queued before it was sent is not sent at all.
            commands = row["acquire_commands"] + row["hold_commands"] + row["release_commands"]
            self.assertGreaterEqual(commands, 6 * row["held"])
            self.assertLessEqual(commands, 12 * row["held"])
        # The cost of one more lock, without what the first ones allocate once. Connections have grown their buffers by up
        # to 80 KiB if replies came late, so the least of several measurements counts.
        least = many["held_bytes"]
        for _ in range(9):
            if least - few["held_bytes"] <= HELD_MAX * (many["held"] - few["held"]):
                break
            least = min(least, self.measure("held", "--size", 5000, "--ttl", 30000, "--hold", 10)["held_bytes"])
        self.assertLessEqual((least - few["held_bytes"]) / (many["held"] - few["held"]), HELD_MAX)
        blocks = (many["held_blocks"] - few["held_blocks"]) / (many["held"] - few["held"])
        self.assertLess(blocks, 3.1)
        self.assertLessEqual(many["after_bytes"] - many["client_bytes"], KEPT_MAX)

    def test_extensions_are_sent_together(self):
        # Long enough for a busy machine, on which locks with a TTL of three seconds were lost.
        row = self.measure("held", "--size", 2000, "--ttl", 9000, "--hold", 7500)
        self.assertEqual(row["lost"], 0)
        self.assertGreaterEqual(row["renewed"], 2000)
        # Five commands for each extension. Rounds may be repeated on a busy machine, and some may be unfinished at the end.
        self.assertLessEqual(row["hold_commands"], 2 * 5 * row["renewed"])
        self.assertGreater(row["hold_commands"] / row["hold_reads"], 3)

    def test_commands_of_a_pair_are_bounded(self):
        for kind in ("loop", "threads", "processes"):
            with self.subTest(kind=kind):
                row = self.measure(kind, "--size", 4, "--pairs", 40)
                self.assertEqual(row["violations"], 0)
                self.assertEqual(row["failed"], 0)
                self.assertEqual(row["pairs"], 160 if kind == "processes" else 40)
                # Ten commands for a pair, and repeated or additional ones.
                self.assertGreaterEqual(row["commands_per_pair"], 8)
                self.assertLessEqual(row["commands_per_pair"], 13)

    def test_fewer_nodes_need_fewer_commands(self):
        row = self.measure("loop", "--nodes", 3, "--size", 8, "--pairs", 80)
        self.assertEqual(row["nodes"], 3)
        self.assertLessEqual(row["commands_per_pair"], 8)

    def test_growth_py_writes_json_csv_and_plots(self):
        with tempfile.TemporaryDirectory() as directory:
            command = [REDLOCK, "sandbox", "-n", "3", "--", sys.executable, DRIVER, GROWTH, "--quick", "--output", directory]
            command += ["--series", "nodes,loop"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
            # 1: a measurement has failed, as it may on a busy machine.
            self.assertIn(done.returncode, (0, 1), done.stderr)
            with open(os.path.join(directory, "growth.json"), encoding="utf-8") as file:
                document = json.load(file)
            self.assertEqual(document["schema"], "redlock.growth/1")
            found = [(row["series"], row["size"]) for row in document["results"]]
            self.assertEqual(found, [("nodes", 1), ("nodes", 3), ("loop", 1), ("loop", 256)])
            self.assertEqual(document["environment"]["servers"], 3)
            self.assertIn(f"machine  {document['environment']['cpu']}", done.stdout)
            with open(os.path.join(directory, "growth.csv"), encoding="utf-8") as file:
                lines = file.readlines()
            self.assertIn(f"# servers  3 x {document['environment']['server']}\n", lines)
            rows = csv.DictReader(line for line in lines if line[0] != "#")
            self.assertEqual([row["series"] for row in rows], ["nodes", "nodes", "loop", "loop"])
            for number in ("1", "256"):
                self.assertRegex(done.stdout, rf"(?m)^{number} ")
            if "gnuplot is missing" not in done.stderr:
                with open(os.path.join(directory, "growth.png"), "rb") as file:
                    self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n")

    @unittest.skipUnless(os.environ["REDLOCK_TEST_TLS"] == "1", "built without TLS")
    def test_the_loop_over_tls(self):
        command = [REDLOCK, "sandbox", "--", sys.executable, WITH_TLS, sys.executable, DRIVER, GROWTH, "--quick", "--tls"]
        done = subprocess.run([*command, "--series", "loop"], capture_output=True, text=True, timeout=DEADLINE_S, check=False)
        if "no port for TLS" in done.stderr or "apt-get install openssl" in done.stderr:
            self.skipTest(done.stderr.strip())
        self.assertIn(done.returncode, (0, 1), done.stderr)
        self.assertRegex(done.stdout, r"(?m)^  servers  5 x .*, TLS$")
        self.assertRegex(done.stdout, r"(?m)^256 +[1-9]")

    def test_no_valgrind_is_one_line(self):
        environment = dict(os.environ, REDLOCK_SERVERS="127.0.0.1:1", PATH="/nowhere")
        done = subprocess.run([sys.executable, DRIVER, GROWTH, "--series", "instructions"], capture_output=True,
                              text=True, env=environment, timeout=DEADLINE_S, check=False)  # fmt: skip
        self.assertEqual((done.returncode, done.stderr), (0, "no instructions: valgrind is missing (Debian: valgrind)\n"))

    def test_results_from_before_a_failure_are_kept(self):
        # One of two servers runs: all measurements work except those that need both.
        with tempfile.TemporaryDirectory() as directory:
            inner = [sys.executable, DRIVER, GROWTH, "--quick", "--series", "nodes", "--output", directory]
            script = "import os, sys; os.environ['REDLOCK_SERVERS'] += ',127.0.0.1:1'; os.execv(sys.argv[1], sys.argv[1:])"
            command = [REDLOCK, "sandbox", "-n", "1", "--", sys.executable, "-c", script, *inner]
            done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
            self.assertEqual(done.returncode, 69, done.stdout + done.stderr)
            self.assertIn("growth.py: ", done.stderr)
            self.assertNotIn("Traceback", done.stderr)
            with open(os.path.join(directory, "growth.json"), encoding="utf-8") as file:
                self.assertEqual([row["size"] for row in json.load(file)["results"]], [1])

    def test_processes_end_with_their_parent(self):
        done = subprocess.run([REDLOCK, "sandbox", "--", sys.executable, "-c", ORPHANS, GROWTH], capture_output=True,
                              text=True, timeout=DEADLINE_S, check=False)  # fmt: skip
        self.assertEqual(done.stdout, "4 processes, all have ended\n", done.stderr)

    def test_invalid_options_are_refused(self):
        for words in (["nonsense"], ["held", "--size"], ["held", "--size", "x"], ["held", "--size", "0"], ["loop", "--nodes", "9"]):
            with self.subTest(words=words):
                environment = dict(os.environ, REDLOCK_SERVERS="127.0.0.1:1,127.0.0.1:2")
                done = subprocess.run([GROWTH, *words], capture_output=True, text=True, env=environment, timeout=60, check=False)
                self.assertEqual(done.returncode, 64, done.stderr)


if __name__ == "__main__":
    tapcase.main()
