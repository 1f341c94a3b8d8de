# SPDX-License-Identifier: MIT
"""Runs the patterns of docs/recipes.md on real servers: each does its work, and avoids the failures that a version
without a lock, or with a simpler one, has."""

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.environ["SOURCE_DIR"], "examples", "test"))
from support import EXAMPLES, REDLOCK, SECONDS_MAX, example, held, run, status_of, tapcase, wait_until

FREE = 1  # exit status of `redlock status`


@contextlib.contextmanager
def program(name, *arguments):
    """Starts an example with pipes as its stdin and stdout."""
    with subprocess.Popen(
        [os.path.join(EXAMPLES, name), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def end(process, text=""):
    """Writes `text` to stdin and waits for the end. Returns exit status, stdout and stderr."""
    output, errors = process.communicate(text, timeout=SECONDS_MAX)
    return process.returncode, output, errors


class Directory(unittest.TestCase):
    """A case with a directory of its own."""
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def path(self, name):
        """Returns the path of a file in the case's directory."""
        return os.path.join(self.directory, name)


class CountUp(Directory):
    """A function under a lock."""

    def test_no_count_is_lost(self):
        path = self.path("count")
        with open(path, "w", encoding="utf-8") as file:
            file.write("0\n")
        with contextlib.ExitStack() as stack:
            counters = [
                stack.enter_context(program("pattern-count_up", path, "20")) for _ in range(6)
            ]
            ends = [end(counter) for counter in counters]
        self.assertEqual(ends, [(0, "", "")] * 6)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), "120\n")

    def test_a_function_that_fails_leaves_no_lock(self):
        done = example("pattern-count_up", self.path("missing"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("missing", done.stderr)
        self.assertEqual(status_of("example:count"), FREE)


class WaitTurn(unittest.TestCase):
    """Waiting with a time limit, and the result of the release."""

    def test_waits_and_works(self):
        with contextlib.ExitStack() as stack:
            with held("t:turn"):
                waiter = stack.enter_context(
                    program("pattern-wait_turn", "t:turn", "20000", "10000")
                )
            self.assertIn("working on t:turn", waiter.stdout.readline())
            self.assertEqual(status_of("t:turn"), 0)
            code, output, errors = end(waiter, "\n")
        self.assertEqual((code, errors), (0, ""))
        self.assertIn("released", output)

    def test_gives_up(self):
        with held("t:turn"):
            done = example("pattern-wait_turn", "t:turn", "1000", "10000")
        self.assertEqual(done.returncode, 75)
        self.assertIn("held by another client", done.stderr)

    def test_hears_of_a_lock_that_was_lost(self):
        with program("pattern-wait_turn", "t:turn", "20000", "10000") as worker:
            self.assertIn("working on t:turn", worker.stdout.readline())
            self.assertEqual(run([REDLOCK, "break", "--yes", "t:turn"]).returncode, 0)
            code, _, errors = end(worker, "\n")
        self.assertEqual(code, 1)
        self.assertIn("was lost before the release", errors)

    def test_what_cannot_be_is_no_lack_of_servers(self):
        done = example("pattern-wait_turn", "t:turn", "0", "30001")
        self.assertEqual(done.returncode, 64)
        self.assertIn("more than max_ttl_ms", done.stderr)


class Once(Directory):
    """A duplicate-request filter."""

    def once(self, request, keep_ms, *command):
        return example("pattern-once", request, str(keep_ms), *command)

    def test_a_duplicate_is_turned_away_while_and_after(self):
        with program("pattern-once", "t:request", "20000", "cat") as first:
            wait_until(lambda: status_of("t:request") == 0, "the first request is being worked on")
            self.assertEqual(self.once("t:request", 20000, "echo", "twice").returncode, 75)
            code, output, _ = end(first, "worked\n")
        self.assertEqual((code, output), (0, "worked\n"))
        again = self.once("t:request", 20000, "echo", "twice")
        self.assertEqual((again.returncode, again.stdout), (75, ""))
        self.assertIn("a duplicate", again.stderr)
        self.assertEqual(self.once("t:another", 0, "true").returncode, 0)
        self.assertEqual(run([REDLOCK, "break", "--yes", "t:request"]).returncode, 0)

    def test_it_is_forgotten_in_time(self):
        self.assertEqual(self.once("t:short", 50, "true").returncode, 0)
        wait_until(
            lambda: self.once("t:short", 0, "true").returncode == 0, "the request may come again"
        )

    def test_what_failed_may_be_tried_again_at_once(self):
        self.assertEqual(self.once("t:failed", 20000, "false").returncode, 1)
        done = self.once("t:failed", 0, "echo", "now")
        self.assertEqual((done.returncode, done.stdout), (0, "now\n"))

    def test_what_could_not_be_kept_is_not_run(self):
        for keep_ms in "30001", "soon", "-1", "":
            done = self.once("t:kept", keep_ms, "echo", "ran")
            self.assertEqual((done.returncode, done.stdout), (64, ""), keep_ms)


class Handler(unittest.TestCase):
    """A bounded queue for each resource."""

    def test_those_who_find_the_line_full_are_sent_away_at_once(self):
        with program("pattern-handler", "3") as handler:
            with held("t:thing"):
                handler.stdin.write("t:thing\n" * 20 + "t:other\n")
                handler.stdin.flush()
                answers = [handler.stdout.readline().strip() for _ in range(17)]
            code, output, errors = end(handler)
        self.assertEqual((code, errors), (0, ""))
        self.assertEqual(answers.count("t:thing: busy, try later"), 16)  # one request runs, three wait
        self.assertEqual(answers.count("t:other: done"), 1)
        self.assertEqual(output.splitlines(), ["t:thing: done"] * 4)

    def test_every_request_has_its_answer(self):
        requests = [f"t:{i}" for i in range(150)] + ["t:" + "x" * 300, "t:" + "x" * 600]
        with program("pattern-handler", "3") as handler:
            code, output, errors = end(handler, "\n".join(requests))
        self.assertEqual((code, errors), (0, ""))
        wanted = [f"{request}: done" for request in requests[:-1]] + [f"{requests[-1]}: invalid argument"]
        self.assertEqual(sorted(output.splitlines()), sorted(wanted))

    def test_a_limit_that_is_none(self):
        for limit in "three", "-1", "1000001", "":
            self.assertIn(example("pattern-handler", limit).returncode, (64, 78), limit)


class Purchase(Directory):
    """A scope guard, a second read, and a fencing token."""

    def setUp(self):
        super().setUp()
        self.database = self.path("shop.db")
        with contextlib.closing(sqlite3.connect(self.database)) as shop, shop:
            shop.execute(
                "CREATE TABLE item"
                " (id TEXT PRIMARY KEY, buyer TEXT, fence INTEGER NOT NULL DEFAULT 0)"
            )
            shop.execute("INSERT INTO item (id) VALUES ('lamp')")

    def execute(self, text):
        with contextlib.closing(sqlite3.connect(self.database, timeout=20)) as shop, shop:
            return shop.execute(text).fetchall()

    def test_one_of_many_buys(self):
        with contextlib.ExitStack() as stack:
            buyers = [
                stack.enter_context(program("pattern-purchase", self.database, "lamp", f"b{i}"))
                for i in range(8)
            ]
            codes = [end(buyer)[0] for buyer in buyers]
        self.assertEqual(sorted(codes), [0] + [1] * 7)
        ((buyer,),) = self.execute("SELECT buyer FROM item")
        self.assertEqual(buyer, f"b{codes.index(0)}")
        self.assertEqual(status_of("item:lamp:buyer"), FREE)

    def test_a_buyer_who_was_stopped_is_refused_even_if_the_row_looks_as_before(self):
        with program(
            "pattern-purchase", self.database, "lamp", "late", "--stop-before-write"
        ) as late:
            self.assertEqual(late.stdout.readline(), "about to write\n")
            late.send_signal(signal.SIGSTOP)
            done = example("pattern-purchase", self.database, "lamp", "quick")  # after the TTL
            self.assertEqual(done.returncode, 0, done.stderr)
            self.execute("UPDATE item SET buyer = NULL")  # returned: for sale again
            late.send_signal(signal.SIGCONT)
            code, output, _ = end(late, "\n")
        self.assertEqual(code, 3, output)
        self.assertIn("rejected", output)
        self.assertEqual(self.execute("SELECT buyer FROM item"), [(None,)])


class Transfer(Directory):
    """Two resources in one lock."""

    def setUp(self):
        super().setUp()
        self.database = self.path("bank.db")
        with contextlib.closing(sqlite3.connect(self.database)) as bank, bank:
            bank.execute("CREATE TABLE account (id TEXT PRIMARY KEY, balance INTEGER NOT NULL)")
            bank.execute("INSERT INTO account VALUES ('a', 1000), ('b', 1000), ('c', 1000)")

    def balances(self):
        with contextlib.closing(sqlite3.connect(self.database, timeout=20)) as bank:
            return dict(bank.execute("SELECT id, balance FROM account"))

    def test_nothing_is_lost_and_nobody_is_stuck(self):
        ways = [("a", "b", 1), ("b", "a", 2), ("b", "c", 3), ("c", "b", 1), ("c", "a", 2), ("a", "c", 3)]
        with contextlib.ExitStack() as stack:
            movers = [
                stack.enter_context(program("pattern-transfer", self.database, source, to, str(amount), "10"))
                for source, to, amount in ways
            ]
            self.assertEqual([end(mover)[0] for mover in movers], [0] * 6)
        self.assertEqual(self.balances(), {"a": 1000, "b": 970, "c": 1030})

    def test_one_of_the_two_is_held(self):
        with held("account:b"):
            with program("pattern-transfer", self.database, "a", "b", "5") as mover:
                self.assertEqual(example("pattern-transfer", self.database, "a", "c", "7").returncode, 0)
                mover.kill()  # while it waits, it holds neither account
        self.assertEqual(self.balances(), {"a": 993, "b": 1000, "c": 1007})

    def test_what_fails_half_way_was_not_begun(self):
        with contextlib.closing(sqlite3.connect(self.database)) as bank, bank:
            bank.execute(
                "CREATE TRIGGER closed BEFORE UPDATE ON account WHEN new.id = 'b'"
                " BEGIN SELECT raise(ABORT, 'this account is closed'); END"
            )
        done = example("pattern-transfer", self.database, "a", "b", "5")
        self.assertEqual(done.returncode, 2)
        self.assertIn("this account is closed", done.stderr)
        self.assertEqual(self.balances(), {"a": 1000, "b": 1000, "c": 1000})

    def test_what_makes_no_sense(self):
        for arguments in ("a", "a", "5"), ("a", "b", "-5"), ("a", "b", "0"), ("a", "b", "all"), ("a", "b", "5x"):
            self.assertEqual(example("pattern-transfer", self.database, *arguments).returncode, 64, arguments)
        self.assertEqual(self.balances(), {"a": 1000, "b": 1000, "c": 1000})


class Command(Directory):
    """Recipes of the command."""

    def test_a_cron_job_that_runs_on_one_machine(self):
        line = [REDLOCK, "run", "-q", "-n", "-E", "0", "--min-hold", "20s", "t:nightly", "--", "echo", "ran"]
        done = [run(line) for _ in range(3)]  # three machines whose clocks differ a little
        self.assertEqual([one.returncode for one in done], [0, 0, 0])
        self.assertEqual([one.stdout + one.stderr for one in done], ["ran\n", "", ""])
        self.assertEqual(run([REDLOCK, "break", "--yes", "t:nightly"]).returncode, 0)

    def test_a_leader_is_replaced(self):
        lead = [REDLOCK, "run", "-t", "2s", "-w", "20s", "t:leader", "--", "sh", "-c", "echo leads; exec cat"]
        with contextlib.ExitStack() as stack:
            first, second = (
                stack.enter_context(
                    subprocess.Popen(lead, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                )
                for _ in range(2)
            )
            stack.callback(second.kill)
            stack.callback(first.kill)
            wait_until(lambda: status_of("t:leader") == 0, "one of them leads")
            owner = json.loads(run([REDLOCK, "status", "--json", "t:leader"]).stdout)["owner"]
            _, pid, _ = owner.rsplit("/", 2)
            leader, other = (first, second) if int(pid) == first.pid else (second, first)
            self.assertEqual(leader.stdout.readline(), "leads\n")
            leader.kill()
            self.assertEqual(other.stdout.readline(), "leads\n")
            other.stdin.close()
            self.assertEqual(other.wait(SECONDS_MAX), 0)


if __name__ == "__main__":
    tapcase.main()
