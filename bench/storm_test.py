# SPDX-License-Identifier: MIT
"""Runs storm.py: a row for each round of each number of clients, in which all clients connect. Does not check speed."""

import json
import os
import subprocess
import sys
import time
import types
import unittest

import tapcase

REDLOCK = os.environ["REDLOCK_TEST_COMMAND"]
BUILD = os.environ["REDLOCK_TEST_BUILD"]
TLS = os.environ["REDLOCK_TEST_TLS"] == "1"
SLOW = int(os.environ.get("REDLOCK_TEST_SLOW", "1"))
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "storm.py")
CLIENTS = os.path.join(BUILD, "bench", "redlock-storm")
EXIT_USAGE = 64

sys.path.insert(0, os.path.dirname(PROGRAM))
import storm  # noqa: E402


def run(*words, sandbox=True):
    """Runs storm.py, in a sandbox or without one. Returns the finished process."""
    command = [sys.executable, PROGRAM, "--build", BUILD, *words]
    if sandbox:
        command = [REDLOCK, "sandbox", "-q", "--", *command]
    names = ("REDLOCK_SERVERS", "REDLOCK_SANDBOX_DIR")
    environment = {name: value for name, value in os.environ.items() if name not in names}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120 * SLOW, check=False)


class Storm(unittest.TestCase):
    @unittest.skipUnless(TLS, "built without TLS")
    def test_all_clients_connect_in_each_round(self):
        done = run("--clients", "3,5", "--processes", "2", "--keys", "ec,rsa2048", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = json.loads(done.stdout)["rows"]
        expected = [(key, count, kind) for key in ("ec", "rsa2048") for count in (3, 5) for kind in ("start", "ended", "restart")]
        self.assertEqual([(row["key"], row["clients"], row["round"]) for row in rows], expected)
        for row in rows:
            self.assertEqual((row["without_quorum"], row["not_to_all"]), (0, 0), row)
            self.assertGreater(row["first_s"], 0)
            self.assertLessEqual(row["first_s"], row["median_s"])
            self.assertLessEqual(row["median_s"], row["last_s"])
            self.assertLessEqual(row["last_s"], row["all_s"])
            self.assertGreaterEqual(row["tries"], 1)
            self.assertGreaterEqual(row["unused"], 0)

    @unittest.skipUnless(TLS, "built without TLS")
    def test_a_client_that_does_not_connect_in_time_is_an_error(self):
        done = run("--clients", "2", "--keys", "ec", "--limit", "0.001", "--rounds", "start,restart", "--down", "1", "--json")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertTrue(any(row["not_to_all"] for row in json.loads(done.stdout)["rows"]))

    def test_a_server_is_not_asked_for_its_processor_time(self):
        # A server that is busy with handshakes may not reply before the end of a round.
        server = object.__new__(storm.Server)
        server.node = types.SimpleNamespace(pid=os.getpid())
        before_s, spent_s, after_s = time.process_time(), server.cpu_s(), time.process_time()
        self.assertLessEqual(before_s, spent_s)
        self.assertLessEqual(spent_s, after_s)

    def test_invalid_options_are_refused(self):
        for words, text in (
            (("--clients", "many"), "numbers from 1"),
            (("--keys", "dsa"), "needs some of ec"),
            (("--rounds", "restart"), "begins with start"),
            ((), "no servers"),
        ):
            done = run(*words, sandbox=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn(text, done.stderr)
        for words in ((), ("0",), ("1", "x"), ("1", "2", "3")):
            done = subprocess.run([CLIENTS, *words], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, EXIT_USAGE)
            self.assertIn("usage: redlock-storm", done.stderr)


if __name__ == "__main__":
    tapcase.main()
