# SPDX-License-Identifier: MIT
"""Runs fresh.py: a row for each number of loops and each delay, all runs succeed, and no key is left. Does not check
speed."""

import json
import os
import subprocess
import sys
import unittest

import tapcase

REDLOCK = os.environ["REDLOCK_TEST_COMMAND"]
BUILD = os.environ["REDLOCK_TEST_BUILD"]
SLOW = int(os.environ.get("REDLOCK_TEST_SLOW", "1"))
# A script in place of redlock: sets the key of the line on the first server.
LEAVES_A_KEY = """
import os, re, socket, sys
host, port = re.search(r"([\\w.-]+):(\\d+)", os.environ["REDLOCK_SERVERS"]).groups()
with socket.create_connection((host, int(port))) as server:
    server.sendall(b"SET %s{#q} x PX 60000\\r\\n" % sys.argv[4].encode())
    server.recv(100)
"""
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fresh.py")


def run(*words, sandbox=True):
    """Runs fresh.py, in a sandbox or without one. Returns the finished process."""
    command = [sys.executable, PROGRAM, "--build", BUILD, *words]
    if sandbox:
        command = [REDLOCK, "sandbox", "-q", "--", *command]
    environment = {name: value for name, value in os.environ.items() if name != "REDLOCK_SERVERS"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120 * SLOW, check=False)


class Fresh(unittest.TestCase):
    def test_a_row_for_each_case(self):
        done = run("--loops", "2,4", "--delay", "0,1ms", "--seconds", "1", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        document = json.loads(done.stdout)
        self.assertFalse(document["keys_left"])
        self.assertEqual([(row["delay"], row["loops"]) for row in document["rows"]], [("0", 2), ("0", 4), ("1ms", 2), ("1ms", 4)])
        for row in document["rows"]:
            self.assertEqual(row["failed"], 0, done.stderr)
            self.assertGreaterEqual(row["runs"], row["loops"])
            self.assertGreaterEqual(row["least"], 1)
            self.assertLessEqual(row["p50_ms"], row["longest_ms"])
            self.assertLessEqual(row["jain"], 1.0001)

    def test_a_run_that_fails_is_an_error(self):
        done = run("--redlock", "false", "--loops", "1", "--delay", "0", "--seconds", "0.1", "--json")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertGreater(json.loads(done.stdout)["rows"][0]["failed"], 0)

    def test_a_key_that_is_left_is_an_error(self):
        path = os.path.join(BUILD, "fresh-leaves-a-key")
        with open(path, "w", encoding="ascii") as file:
            file.write(f"#!{sys.executable}\n{LEAVES_A_KEY}")
        os.chmod(path, 0o755)
        done = run("--redlock", path, "--loops", "1", "--delay", "0", "--seconds", "0.1")
        os.unlink(path)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("keys are left", done.stderr)

    def test_without_servers(self):
        done = run(sandbox=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("no servers", done.stderr)


if __name__ == "__main__":
    tapcase.main()
