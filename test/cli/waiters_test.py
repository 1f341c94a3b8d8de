# SPDX-License-Identifier: MIT
"""Who waits for a lock, in the order of its line: what status, watch and top show of it, and what a waiter says of its
own place. set_line() gives all servers a line; wait_in_line() starts real waiters one after the other."""

import datetime
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import tapcase  # noqa: E402
from screen import ScreenCase  # noqa: E402
from world import REDLOCK, Case, until  # noqa: E402

MARK = "redlock-line\n"
TWO = "71 3 h 250 1700000000001 web:1\n8 0 w 0 1700000000002 web-2\n"
TWO_JSON = [{"owner": "web:1", "since": "2023-11-14T22:13:20.001Z"}, {"owner": "web-2", "since": "2023-11-14T22:13:20.002Z"}]


class LineCase(Case):
    """A test case with lines that the test writes."""

    def set_line(self, name, records):
        """Gives all servers a line of the lock."""
        self.servers.command_all("SET", name + "{#q}", MARK + records, "PX", "60000")

    def status(self, name):
        """Returns what `redlock status --json` prints."""
        return json.loads(self.redlock("status", "--json", name).stdout)


class Shown(LineCase):
    """What is shown of a line."""

    def test_status(self):
        """status names the waiters in order, of a held lock and of one that is free."""
        self.set_line("t", TWO)
        free = self.redlock("status", "t")
        self.assertCode(free, 1)
        expected = ["  waiting 1: web:1, since 2023-11-14T22:13:20.001Z", "  waiting 2: web-2, since 2023-11-14T22:13:20.002Z"]
        self.assertEqual([line for line in free.stdout.splitlines() if "waiting" in line], expected)
        self.hold("t")
        held = self.redlock("status", "t")
        self.assertCode(held, 0)
        self.assertEqual(held.stdout.splitlines()[-2:], expected)
        found = self.status("t")
        self.assertEqual((found["state"], found["waiting"], found["waiters"]), ("held", 2, TWO_JSON))

    def test_nobody_waits(self):
        """Without a line nobody waits."""
        self.hold("t")
        self.assertNotIn("waiting", self.redlock("status", "t").stdout)
        found = self.status("t")
        self.assertEqual((found["waiting"], found["waiters"], "waiting_more" in found), (0, [], False))

    def test_many_waiters(self):
        """status prints 100 waiters and the number of the others; JSON has all that were read."""
        self.set_line("t", "".join(f"{i} 0 w 0 1700000000000 w{i}\n" for i in range(1, 104)))
        lines = self.redlock("status", "t").stdout.splitlines()
        self.assertEqual(lines[-2:], ["  waiting 100: w100, since 2023-11-14T22:13:20.000Z", "  and 3 more"])
        self.assertEqual([waiter["owner"] for waiter in self.status("t")["waiters"]], [f"w{i}" for i in range(1, 104)])
        self.set_line("t", "".join(f"{i} 0 w 0 1700000000000 {'x' * 100}\n" for i in range(1, 1001)))
        found = self.status("t")
        self.assertTrue(found["waiting_more"])
        self.assertLess(len(found["waiters"]), 1000)
        self.assertEqual(self.redlock("status", "t").stdout.splitlines()[-1], f"  and at least {found['waiting'] - 100 + 1} more")

    def test_hostile_values(self):
        """Whatever the key holds, status works, and prints no control characters."""
        self.hold("t")
        for value in ("", "x", MARK, MARK + "\n\n", MARK + "7 0 w", "x" * 100000, MARK + "\0" * 100):
            self.servers.command_all("SET", "t{#q}", value, "PX", "60000")
            found = self.status("t")
            self.assertEqual((found["state"], found["waiting"]), ("held", 0), value[:40])
        self.servers.command_all("DEL", "t{#q}")
        self.servers.command_all("RPUSH", "t{#q}", "element")
        self.assertEqual(self.status("t")["waiting"], 0)
        self.servers.command_all("DEL", "t{#q}")
        self.set_line("t", "7 0 w 0 99999999999999999 a\x1b[31mb\xc3\xa4 c\n8 0 w 0 x y\n")
        printed = self.redlock("status", "t").stdout
        self.assertNotIn("\x1b", printed)
        self.assertEqual(printed.splitlines()[-1], "  waiting 2: x?y")
        self.assertEqual([sorted(waiter) for waiter in self.status("t")["waiters"]], [["owner"], ["owner"]])

    def test_watch(self):
        """watch prints the first waiters, and a line when they have changed."""
        self.hold("t")
        process = self.start("watch", "--interval", "20ms", "t")
        self.assertEqual(json.loads(process.stdout.readline())["waiters"], [])
        self.set_line("t", TWO)
        found = json.loads(process.stdout.readline())
        self.assertEqual((found["state"], found["waiting"], found["waiters"]), ("held", 2, TWO_JSON))
        self.set_line("t", TWO + "".join(f"{i} 0 w 0 0 w{i}\n" for i in range(3, 31)))
        while found["waiting"] != 30:  # the servers got it one after the other
            found = json.loads(process.stdout.readline())
        self.assertEqual([waiter["owner"] for waiter in found["waiters"]], ["web:1", "web-2"] + [f"w{i}" for i in range(3, 11)])

    def test_top(self):
        """top counts the waiters, and does not list the line as a lock."""
        self.hold("t")
        self.set_line("t", TWO)
        result = self.redlock("top", "--once", "--json")
        self.assertEqual([(lock["name"], lock["waiting"]) for lock in json.loads(result.stdout)["locks"]], [("t", 2)])
        table = self.redlock("top", "--once").stdout.splitlines()
        self.assertRegex(table[-2], "^LOCK +STATE +VOTES +LEFT +WAITING +HOLDER$")
        self.assertRegex(table[-1], r"^t +held +5/5 +\d+s +2 +\S+$")

    def test_user_without_the_right(self):
        """For a user who may not read the line, the lock is shown without waiters."""
        self.set_line("t", TWO)
        self.hold("t")
        self.servers.command_all("ACL", "SETUSER", "reader", "on", ">pw", "~*", "+@all", "-getrange")
        environment = self.environment(REDLOCK_USER="reader", REDLOCK_AUTH="pw")
        result = self.redlock("status", "--json", "t", env=environment)
        found = json.loads(result.stdout)
        self.assertEqual((found["state"], found["votes"], found["waiting"]), ("held", 5, 0))


class PlacesCase(LineCase):
    """A test case with real waiters."""

    def hold_on(self):
        """Starts a process that holds the lock, and returns it."""
        process = self.start("run", "t", "--", "sleep", "1000")
        until(lambda: json.loads(self.redlock("status", "--json", "t").stdout)["state"] == "held", "the holder")
        return process

    def let_go(self, holder):
        """Ends the holder, which releases the lock."""
        holder.terminate()
        holder.wait()

    def waiting_pids(self):
        """Returns the process ids in the labels of the waiters, in the order of the line."""
        found = json.loads(self.redlock("status", "--json", "t").stdout)
        return [int(waiter["owner"].split("/")[1]) for waiter in found["waiters"]]

    def wait_in_line(self, count):
        """Starts waiters one after the other, each when the one before is in the line. Returns [(process, events)]."""
        waiters = []
        for i in range(count):
            path = self.path(f"events{i}", "")
            with open(path, "ab") as file:
                fd = file.fileno()
                process = self.start("run", "--status-fd", str(fd), "t", "--", "true", pass_fds=[fd])
            waiters.append((process, path))
            until(lambda pid=waiters[i][0].pid: pid in self.waiting_pids(), f"waiter {i + 1} in the line")
        return waiters

    def first_places(self, waiters):
        """Returns the first place that each waiter has said."""
        places = []
        for _, path in waiters:
            event = until(lambda path=path: next((event for event in self.events(path) if "line_place" in event), None), "a place")
            self.assertGreaterEqual(event["line_length"], event["line_place"])
            self.assertEqual((event["event"], event["error"]), ("waiting", "REDLOCK_ECONTENDED"))
            places.append(event["line_place"])
        return places

    def status_waiting(self):
        """Returns how many clients wait."""
        return json.loads(self.redlock("status", "--json", "t").stdout)["waiting"]


class Places(PlacesCase):
    """What waiters say of their places."""

    def test_order_of_arrival(self):
        """status shows waiters in the order in which they came, with the times, and each says its place. A busy machine
        may stop the waiter in front for so long that it loses its place, so the order may take another try."""
        for _ in range(5):
            holder = self.hold_on()
            waiters = self.wait_in_line(4)
            found = json.loads(self.redlock("status", "--json", "t").stdout)["waiters"]
            pids = [int(waiter["owner"].split("/")[1]) for waiter in found]
            places = self.first_places(waiters)
            self.let_go(holder)
            for process, _ in waiters:
                self.assertEqual(process.wait(), 0)
            self.assertEqual(self.status_waiting(), 0)
            if pids == [process.pid for process, _ in waiters] and places == [1, 2, 3, 4]:
                times = [waiter["since"] for waiter in found]
                self.assertEqual(times, sorted(times))
                return
        self.fail(f"{pids} instead of {[process.pid for process, _ in waiters]}, places {places}")

    def test_time_is_kept(self):
        """The time is that at which the wait began, and stays the same when the waiter has to join again."""
        holder = self.hold_on()
        before = time.time()
        process, _ = self.wait_in_line(1)[0]
        after = time.time()
        first = self.status("t")["waiters"]
        began = datetime.datetime.fromisoformat(first[0]["since"].replace("Z", "+00:00")).timestamp()
        self.assertTrue(before - 0.001 <= began <= after, (before, began, after))
        self.servers.command_all("DEL", "t{#q}")
        until(lambda: self.status("t")["waiting"] == 1, "the waiter in the line again")
        self.assertEqual(self.status("t")["waiters"], first)
        self.let_go(holder)
        self.assertEqual(process.wait(), 0)

    def test_lines_of_a_log(self):
        """Where stderr is no terminal, the second line about the wait has the place: the first comes too early."""
        holder = self.hold_on()
        self.wait_in_line(2)
        result = self.start("run", "-v", "t", "--", "true")
        until(lambda: self.status_waiting() >= 3, "the third waiter")
        self.wait_error(r"redlock: waiting for t: ([23](nd|rd)|1st) in line, held by another client")
        self.let_go(holder)
        self.assertEqual(result.wait(), 0)


class PlaceOnScreen(PlacesCase, ScreenCase):
    """What a waiter on a terminal says of its place."""

    def test_place_is_updated(self):
        """A waiter whose turn comes nearer says so on its status line."""
        holder = self.hold_on()
        first, _ = self.wait_in_line(2)[0]
        self.spawn(REDLOCK, "run", "t", "--", "echo", "mine", columns=120)
        self.wait_line(r"^redlock: waiting for t: \d+s, 3rd in line, held \(\d+s left\) by ")
        first.kill()
        self.wait_line(r"^redlock: waiting for t: \d+s, 2nd in line, held \(\d+s left\) by ")
        self.let_go(holder)
        self.assertEqual(self.wait_end(), 0)
        self.assertEqual(self.lines(), ["mine"])


if __name__ == "__main__":
    tapcase.main()
