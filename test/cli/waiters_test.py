# SPDX-License-Identifier: MIT
"""Who waits for a lock or for a permit, in the order of the line: what status, watch and top show of it, and what a waiter
says of its own place. set_line() gives all servers a line; wait_in_line() starts real waiters one after the other."""

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



class Unknown(LineCase):
    """Who waits is not known, because no server was asked or may say: the output has no number of waiters, not even 0."""

    FIELDS = {"waiting", "waiters", "waiting_more"}

    def setUp(self):
        """A held lock and a held permit, each with waiters."""
        super().setUp()
        self.set_line("t", TWO)
        self.set_line("p{#}", TWO)
        for name in "t", "p{#0}":
            self.hold(name)
        self.servers.command_all("ACL", "SETUSER", "reader", "on", ">pw", "~*", "+@all", "-getrange")
        self.reader = {"REDLOCK_USER": "reader", "REDLOCK_AUTH": "pw"}

    def check_status(self, **environment):
        """Checks what status prints of the lock and of the semaphore."""
        env = self.environment(**environment)
        for name in ["t"], ["--permits", "1", "p"]:
            found = json.loads(self.redlock("status", "--json", *name, env=env).stdout)
            self.assertEqual(self.FIELDS & set(found), set(), name)
            self.assertIn(1 if name[1:] else "held", (found.get("held"), found.get("state")))
            self.assertNotIn("waiting", self.redlock("status", *name, env=env).stdout)

    def test_status(self):
        """status says nothing of waiters."""
        self.check_status(REDLOCK_LINE="off")
        self.check_status(**self.reader)

    def test_watch(self):
        """watch says nothing of waiters, and prints no line when they change."""
        process = self.start("watch", "--interval", "20ms", "t", env=self.environment(REDLOCK_LINE="off"))
        permits = self.start("watch", "--interval", "20ms", "--permits", "1", "p", env=self.environment(**self.reader))
        for watcher in process, permits:
            self.assertEqual(self.FIELDS & set(json.loads(watcher.stdout.readline())), set())
        for name in "t", "p{#}":
            self.set_line(name, TWO * 2)
        self.servers.command_all("DEL", "t", "p{#0}")
        for watcher in process, permits:
            found = json.loads(watcher.stdout.readline())
            self.assertEqual((found["state"], self.FIELDS & set(found)), ("free", set()))

    def test_top(self):
        """top says nothing of waiters."""
        for environment in {"REDLOCK_LINE": "off"}, self.reader:
            found = json.loads(self.redlock("top", "--once", "--json", "t", env=self.environment(**environment)).stdout)
            self.assertEqual([(lock["state"], self.FIELDS & set(lock)) for lock in found["locks"]], [("held", set())])

    def test_key_of_another_type(self):
        """A key that is no text is no line, and that is known."""
        self.servers.command_all("DEL", "t{#q}")
        self.servers.command_all("RPUSH", "t{#q}", "element")
        self.assertEqual(self.status("t")["waiting"], 0)


class Permits(LineCase):
    """What is shown of the line of a semaphore, which has the key NAME{#}{#q}."""

    def permits(self, *more):
        """Returns what `redlock status --permits 2 --json` prints."""
        return json.loads(self.redlock("status", "--permits", "2", "--json", *more, "p").stdout)

    def test_status(self):
        """status names the waiters in order, behind the slots. In JSON they belong to the semaphore, not to a slot."""
        self.assertEqual((self.permits()["waiting"], self.permits()["waiters"]), (0, []))
        self.assertNotIn("waiting", self.redlock("status", "--permits", "2", "p").stdout)
        self.set_line("p{#}", TWO)
        lines = self.redlock("status", "--permits", "2", "p").stdout.splitlines()
        self.assertEqual(lines, ["p: 0 of 2 permits held, 2 free", "  0    free", "  1    free",
                                 "  waiting 1: web:1, since 2023-11-14T22:13:20.001Z",
                                 "  waiting 2: web-2, since 2023-11-14T22:13:20.002Z"])  # fmt: skip
        found = self.permits()
        self.assertEqual((found["waiting"], found["waiters"], "waiting_more" in found), (2, TWO_JSON, False))
        for slot in found["slots"]:
            self.assertNotIn("waiting", slot)

    def test_lines_of_others(self):
        """A lock with the name of the semaphore, and the second slot, have lines of their own."""
        self.set_line("p", TWO)
        self.set_line("p{#1}", TWO)
        self.assertEqual((self.permits()["waiting"], self.status("p")["waiting"], self.status("p{#1}")["waiting"]), (0, 2, 2))

    def test_the_first_slot(self):
        """As a lock, the first slot has the waiters of the semaphore; if there are none, those for itself."""
        self.set_line("p{#0}", TWO)
        self.assertEqual(self.status("p{#0}")["waiting"], 2)
        self.set_line("p{#}", "7 0 w 0 0 third\n")
        self.assertEqual(self.status("p{#0}")["waiters"], [{"owner": "third"}])

    def test_watch(self):
        """watch prints the first waiters with the first slot, and a line when they have changed."""
        process = self.start("watch", "--interval", "20ms", "--permits", "2", "p")
        first, second = (json.loads(process.stdout.readline()) for _ in range(2))
        self.assertEqual((first["slot"], first["waiting"], first["waiters"]), (0, 0, []))
        self.assertEqual((second["slot"], "waiting" in second, "waiters" in second), (1, False, False))
        self.set_line("p{#}", TWO)
        found = json.loads(process.stdout.readline())
        self.assertEqual((found["name"], found["slot"], found["waiting"], found["waiters"]), ("p{#0}", 0, 2, TWO_JSON))

    def test_top(self):
        """top counts the waiters at the first slot."""
        for name in "p{#0}", "p{#1}":
            self.hold(name)
        self.set_line("p{#}", TWO)
        found = json.loads(self.redlock("top", "--once", "--json").stdout)
        self.assertEqual([(lock["name"], lock["waiting"]) for lock in found["locks"]], [("p{#0}", 2), ("p{#1}", 0)])

    def test_real_waiters(self):
        """status shows real waiters for permits. A waiter says its place."""
        holders = [self.start("run", "--permits", "2", "p", "--", "sleep", "1000") for _ in range(2)]
        until(lambda: self.permits()["held"] == 2, "the holders")
        waiters = [self.start("run", "-v", "--permits", "2", "p", "--", "true")]
        until(lambda: self.permits()["waiting"] == 1, "the first waiter")
        waiters.append(self.start("run", "-v", "--permits", "2", "p", "--", "true"))
        until(lambda: self.permits()["waiting"] == 2, "the second waiter")
        pids = {str(waiter.pid) for waiter in waiters}
        until(lambda: {waiter["owner"].split("/")[1] for waiter in self.permits()["waiters"]} == pids, "both waiters")
        self.wait_error(r"redlock: waiting for p: (1st|2nd) in line, held by another client: all 2 permits are taken")
        for holder in holders:
            holder.terminate()
            holder.wait()
        for waiter in waiters:
            self.assertEqual(waiter.wait(), 0)
        until(lambda: self.permits()["waiting"] == 0, "the empty line")


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

    def test_place_of_a_permit(self):
        """The status line has the place in the line of a semaphore."""
        holder, first = [self.start("run", "--permits", "1", "t", "--", "sleep", "1000") for _ in range(2)]
        until(lambda: self.status("t{#0}")["waiting"] == 1, "the first waiter")
        self.spawn(REDLOCK, "run", "--permits", "1", "t", "--", "echo", "mine", columns=120)
        self.wait_line(r"^redlock: waiting for t: \d+s, 2nd in line, all 1 permits are taken$")
        for process in holder, first:
            self.let_go(process)
        self.assertEqual(self.wait_end(), 0)


if __name__ == "__main__":
    tapcase.main()
