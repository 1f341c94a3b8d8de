# SPDX-License-Identifier: MIT
"""Tests the checker of chaos runs with forged histories: it finds each violation and no other, and a fault excuses
only what it can cause.

A history is what the processes of a run logged (history.py). Forged writes such logs with chosen times; Case checks
them. A turn is one lock: requested, held, ended. Each test forges turns and faults at times below 7000 ms, then
expects no violation, one violation, or an excused one. Resources are r0, r1 and so on; s0 is a semaphore. Locks have
the numbers 1, 2 and so on in the order of turn(); 1 and 2 are those that setUp() gives to the two clients."""

import os
import re
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "lib")]
import checker
import history
import report
import tapcase  # found below test/lib
import timeline

MS = 10**6  # ns
TTL = 1000  # ms, of all locks that a test does not give another one


class Forged:
    """Forges the logs of a run; times in ms."""

    def __init__(self):
        self.run = []  # lines of faults.log: (when, words)
        self.clients = {}  # name: lines of its log
        self.count = 0  # number of locks

    def run_line(self, when, words):
        """Adds a line to faults.log, the log of the run itself."""
        self.run.append((when, words))

    def client(self, name, kind="threaded", ends=True):
        """Adds a client. If it `ends`, it gets a lock in the time without faults and ends with status 0."""
        self.clients[name] = []
        self.run_line(0, f"born {name} {kind}")
        if ends:
            self.run_line(9500, f"exit {name} 0")
            self.turn(name, "own-" + name, 8000, 8001, 8002)
        return name

    def client_line(self, name, when, words):
        """Adds a line to the log of a client."""
        self.clients[name].append((when, words))

    def turn(self, name, resource, called, start, end=None, deadline=None, fence=0, ttl=TTL, held=None):
        """Adds a lock that was requested at `called` and held from `start` until `end` (None: its end is not logged).
        `resource` is what was requested, `held` what the lock has (None: the same). The deadline is 20 ms before the
        end of the TTL unless it is given, as if 20 ms were lost to drift. Returns the number of the lock, a text."""
        self.count += 1
        number = str(self.count)
        deadline = start + ttl - 20 if deadline is None else deadline
        self.client_line(name, called, f"call {resource} {number} {ttl}")
        self.client_line(name, start, f"hold {held or resource} {number} {int(deadline * MS)} {fence}")
        if end is not None:
            self.client_line(name, end, f"end {resource} {number}")
        return number

    def fault(self, kind, target, begin, end=None):
        """Adds a fault of a server or client, `target`; `end` None: it has no length."""
        self.run_line(begin, f"fault {kind} {target}")
        self.run_line(begin if end is None else end, f"heal {kind} {target}")

    def read(self):
        """Writes the logs and returns the History that is read from them."""
        with tempfile.TemporaryDirectory() as directory:
            for name, lines in [("faults", self.run), *self.clients.items()]:
                with open(os.path.join(directory, name + ".log"), "w", encoding="ascii") as file:
                    for when, words in lines:
                        if name != "faults":
                            file.write(f"\n{int(when * MS)} alive r0 13")  # a line cut off by a kill
                        file.write(f"\n{int(when * MS)} {words} ;")
                    if name != "faults":
                        file.write(f"\n{int(9999 * MS)} hold r0 torn")  # the same at the end
            return history.read(directory)


class Case(unittest.TestCase):
    """A run with two clients, a and b, and without a violation."""

    def setUp(self):
        """Forges the run: faults until 7000 ms, the end of the clients from 9000 ms on, the end of the run at 9900."""
        self.forged = Forged()
        self.forged.run_line(1, "peace")
        self.forged.run[0] = (7000, "peace")
        for when, word in ((9000, "finish"), (9900, "over")):
            self.forged.run_line(when, word)
        self.a = self.forged.client("a.0")
        self.b = self.forged.client("b.0")

    def two_turns(self, end=200, start=150, called=120):
        """Lets `a` hold r0 from 101 to `end`, and `b` from `start` to 300, requested at `called`. Without arguments,
        both hold r0 from 150 to 200, which is a violation. Returns the number of the second lock."""
        self.forged.turn(self.a, "r0", 100, 101, end)
        return self.forged.turn(self.b, "r0", called, start, 300)

    def verdict(self):
        """Reads the run and returns the checker's verdict."""
        self.history = self.forged.read()
        return checker.check(self.history)

    def assert_no_violation(self):
        """Requires that the checker finds nothing."""
        verdict = self.verdict()
        self.assertEqual(verdict.violations, [])
        self.assertEqual(verdict.excused, [])

    def assert_violation(self, word, count=1):
        """Requires `count` violations, and `word` in the text of the first."""
        found = self.verdict().violations
        self.assertEqual(len(found), count, found)
        self.assertIn(word, found[0])

    def assert_excused(self, kind):
        """Requires no violation, but one pair of holders that a fault of this kind excuses."""
        verdict = self.verdict()
        self.assertEqual(verdict.violations, [])
        self.assertEqual([why.kind for _, _, why in verdict.excused], [kind])


class Exclusion(Case):
    """Locks of one resource: which time each lock covers, and that no two overlap."""

    def test_second_starts_when_first_ends(self):
        self.two_turns(end=149.999999)
        self.assert_no_violation()

    def test_two_holders_at_once(self):
        self.two_turns()
        self.assert_violation("exclusion: r0 was held by a.0")

    def test_two_holders_for_a_microsecond(self):
        self.two_turns(end=150.001)
        self.assert_violation("exclusion")

    def test_two_resources_at_once(self):
        self.forged.turn(self.a, "r0", 100, 101, 200)
        self.forged.turn(self.b, "r1", 100, 101, 200)
        self.assert_no_violation()

    def test_two_holders_during_a_third_lock(self):
        self.forged.turn(self.a, "r0", 100, 101, 900)
        self.forged.turn(self.b, "r0", 200, 201, 202)
        self.forged.turn(self.b, "r0", 300, 301, 302)
        self.assert_violation("exclusion", 2)

    def test_one_client_twice_at_once(self):
        self.forged.turn(self.a, "r0", 100, 101, 200)
        self.forged.turn(self.a, "r0", 100, 150, 300)
        self.assert_violation("exclusion")

    def test_deadline_ends_lock(self):
        self.forged.turn(self.a, "r0", 100, 101, 2000, deadline=1000)
        self.forged.turn(self.b, "r0", 900, 1000.1, 1100)
        self.assert_no_violation()

    def test_lock_lasts_until_deadline(self):
        self.forged.turn(self.a, "r0", 100, 101, None, deadline=1000)
        self.forged.turn(self.b, "r0", 900, 999, 1100)
        self.assert_violation("exclusion")

    def test_extension_prolongs_lock(self):
        number = self.forged.turn(self.a, "r0", 100, 101, 2000, deadline=1000)
        self.forged.client_line(self.a, 500, f"still r0 {number} {1500 * MS} 0")
        self.forged.turn(self.b, "r0", 900, 1400, 1450)
        self.assert_violation("exclusion")

    def test_loss_ends_lock_when_it_was_last_held(self):
        number = self.forged.turn(self.a, "r0", 100, 101, None, deadline=1000)
        self.forged.client_line(self.a, 500, f"lost r0 {number} {490 * MS}")
        self.forged.turn(self.b, "r0", 450, 495, 600)
        self.assert_no_violation()

    def test_loss_after_deadline_does_not_shorten_lock(self):
        number = self.forged.turn(self.a, "r0", 100, 101, None, deadline=1000)
        self.forged.client_line(self.a, 1500, f"lost r0 {number} {490 * MS}")
        self.forged.turn(self.b, "r0", 450, 900, 1600)
        self.assert_violation("exclusion")

    def test_kill_ends_lock(self):
        killed = self.forged.client("k.0", ends=False)
        self.forged.turn(killed, "r0", 100, 101, None, deadline=1000)
        self.forged.run_line(400, "died k.0")
        self.forged.turn(self.b, "r0", 300, 401, 500)
        self.assert_no_violation()

    def test_lock_lasts_until_kill(self):
        killed = self.forged.client("k.0", ends=False)
        self.forged.turn(killed, "r0", 100, 101, None, deadline=1000)
        self.forged.run_line(400, "died k.0")
        self.forged.turn(self.b, "r0", 300, 399, 500)
        self.assert_violation("exclusion")

    def test_program_under_run_holds_as_long_as_it_runs(self):
        command = self.forged.client("c.0", "command")
        number = self.forged.turn(command, "r0", 100, 101, None, deadline=101, ttl=0)
        self.forged.client_line(command, 600, f"alive r0 {number}")
        self.forged.turn(self.b, "r0", 300, 599, 700)
        self.assert_violation("exclusion")


class SeveralResources(Case):
    """Locks of several resources: each resource excludes all other locks that contain it."""

    def test_disjoint_locks_at_once(self):
        self.forged.turn(self.a, "r0+r1", 100, 101, 200)
        self.forged.turn(self.b, "r2+r3", 100, 101, 200)
        self.forged.turn(self.b, "r1+r0", 190, 201, 300)
        self.assert_no_violation()

    def test_second_lock_has_one_of_the_resources(self):
        self.forged.turn(self.a, "r0+r1", 100, 101, 200)
        self.forged.turn(self.b, "r1", 120, 150, 300)
        self.assert_violation("exclusion: r1 was held by a.0 (#3, r0+r1)")

    def test_first_lock_has_one_of_the_resources(self):
        self.forged.turn(self.a, "r1", 100, 101, 200)
        self.forged.turn(self.b, "r3+r2+r1", 120, 150, 300)
        self.assert_violation("exclusion: r1 was held by a.0")

    def test_two_locks_with_one_common_resource(self):
        self.forged.turn(self.a, "r0+r1", 100, 101, 200)
        self.forged.turn(self.b, "r2+r0", 120, 150, 300)
        self.assert_violation("exclusion: r0 was held by a.0")

    def test_two_locks_with_two_common_resources(self):
        self.forged.turn(self.a, "r0+r1", 100, 101, 200)
        self.forged.turn(self.b, "r1+r0", 120, 150, 300)
        self.assert_violation("exclusion", 2)

    def test_extension_is_of_all_resources(self):
        number = self.forged.turn(self.a, "r0+r1", 100, 101, 2000, deadline=1000)
        self.forged.client_line(self.a, 500, f"still r0+r1 {number} {1500 * MS} 0")
        self.forged.turn(self.b, "r1", 900, 1400, 1450)
        self.assert_violation("exclusion")

    def test_loss_is_of_all_resources(self):
        number = self.forged.turn(self.a, "r0+r1", 100, 101, None, deadline=1000)
        self.forged.client_line(self.a, 500, f"lost r0+r1 {number} {490 * MS}")
        self.forged.turn(self.b, "r1", 450, 495, 600)
        self.assert_no_violation()

    def test_lock_on_a_part_of_the_resources(self):
        self.forged.turn(self.a, "r0+r1", 100, 101, 200, held="r0")
        self.assert_violation("names: a.0 (#3) requested r0+r1 and has r0")

    def test_lock_on_another_resource(self):
        self.forged.turn(self.a, "r0+r1", 100, 101, 200, held="r0+r2")
        self.assert_violation("names")

    def test_lost_keys_excuse_two_holders(self):
        self.forged.turn(self.a, "r0+r1", 100, 101, 200)
        self.forged.turn(self.b, "r1+r2", 120, 150, 300)
        self.forged.fault("flushall", 3, 140)
        self.assert_excused("flushall")

    def test_no_lock_of_several_resources_succeeds(self):
        for i in range(30):
            self.forged.client_line(self.a, 8100 + 10 * i, f"call r0+r1 n{i} {TTL}")
            self.forged.client_line(self.a, 8105 + 10 * i, f"fail r0+r1 n{i} REDLOCK_ECONTENDED")
        self.assert_violation("turns: nobody got several of 30")


class Permits(Case):
    """Permits of the semaphore s0, which has two (`s0*2`): slots 0 and 1."""

    def take(self, name, slot, start, end, called=None, **more):
        """Lets a client hold a permit, requested 30 ms before `start` unless `called` is given. Returns its number."""
        called = start - 30 if called is None else called
        return self.forged.turn(name, "s0*2", called, start, end, held=f"s0{{#{slot}}}", **more)

    def test_as_many_holders_as_permits(self):
        self.take(self.a, 0, 101, 200)
        self.take(self.b, 1, 150, 300)
        self.take(self.a, 0, 201, 300)
        self.assert_no_violation()

    def test_two_holders_of_a_slot(self):
        self.take(self.a, 0, 101, 200)
        self.take(self.b, 0, 150, 300)
        self.assert_violation("exclusion: s0{#0} was held by a.0")

    def test_more_holders_than_permits(self):
        self.take(self.a, 0, 101, 200)
        self.take(self.b, 1, 120, 300)
        self.take(self.b, 2, 150, 300)
        found = self.verdict().violations
        self.assertEqual(len(found), 2, found)
        self.assertIn("permits: b.0 (#5) has s0{#2}, of 2", found[0])
        self.assertIn("permits: s0 has 3 holders, not 2, at", found[1])

    def test_slot_number_too_large(self):
        self.take(self.a, 2, 101, 200)
        self.assert_violation("permits: a.0 (#3) has s0{#2}")

    def test_plain_lock_excludes_slot(self):
        self.take(self.a, 1, 101, 200)
        other = self.forged.client("f.0", "foreign")
        self.forged.turn(other, "s0{#1}", 120, 150, 300)
        self.assert_violation("exclusion: s0{#1}")

    def test_plain_lock_on_a_slot_counts_as_holder(self):
        self.take(self.a, 1, 101, 200)
        self.take(self.b, 0, 101, 200)
        other = self.forged.client("f.0", "foreign")
        self.forged.turn(other, "s0{#7}", 120, 150, 300)
        self.assertIn("s0 has 3 holders", self.verdict().violations[-1])

    def test_permit_of_another_semaphore(self):
        self.forged.turn(self.a, "s0*2", 100, 101, 200, held="s1{#0}")
        self.assert_violation("names: a.0 (#3) requested s0*2 and has s1{#0}")

    def test_excused_holder_is_not_counted_as_too_many(self):
        self.take(self.a, 0, 101, 200)
        self.take(self.b, 1, 101, 200)
        self.take(self.b, 0, 150, 190, called=120)
        self.forged.fault("flushall", 3, 140)
        self.assert_excused("flushall")

    def test_loss_ends_permit(self):
        number = self.take(self.a, 0, 101, None, deadline=1000)
        self.forged.client_line(self.a, 500, f"lost s0{{#0}} {number} {490 * MS}")
        self.take(self.b, 0, 495, 600)
        self.assert_no_violation()

    def test_extension_prolongs_lock(self):
        number = self.take(self.a, 0, 101, 2000, deadline=1000)
        self.forged.client_line(self.a, 500, f"still s0{{#0}} {number} {1500 * MS} 0")
        self.take(self.b, 0, 1400, 1450)
        self.assert_violation("exclusion")

    def test_fencing_tokens_are_per_slot(self):
        self.take(self.a, 0, 101, 110, fence=9)
        self.take(self.b, 1, 121, 130, called=115, fence=8)
        self.assert_no_violation()
        self.setUp()
        self.take(self.a, 0, 101, 110, fence=9)
        self.take(self.b, 0, 121, 130, called=115, fence=8)
        self.assert_violation("fences: s0{#0} b.0")

    def test_no_permit_is_granted(self):
        for i in range(30):
            self.forged.client_line(self.a, 8100 + 10 * i, f"call s0*2 n{i} {TTL}")
        self.assert_violation("turns: nobody got permit of 30")


class Excuses(Case):
    """Two holders at once, with faults before, between and after the grants."""

    def test_lost_keys_excuse_two_clients(self):
        for kind in ("flushall", "clock_ahead"):
            with self.subTest(kind):
                self.setUp()
                self.two_turns()
                self.forged.fault(kind, 3, 140)
                self.assert_excused(kind)

    def test_keys_lost_before_the_first_request(self):
        self.two_turns()
        self.forged.fault("flushall", 3, 99)
        self.assert_violation("exclusion")

    def test_keys_lost_after_the_second_grant(self):
        self.two_turns()
        self.forged.fault("flushall", 3, 151)
        self.assert_violation("exclusion")

    def test_keys_lost_while_the_first_waited(self):
        self.forged.turn(self.a, "r0", 100, 3000, 3200, deadline=3900)
        self.forged.turn(self.b, "r0", 3050, 3100, 3300)
        self.forged.fault("flushall", 3, 2800)
        self.assert_violation("exclusion")

    def test_fast_clock_excuses_until_its_keys_expire(self):
        self.forged.fault("clock_fast", 3, 10, 50)
        self.two_turns()
        self.assert_excused("clock_fast")

    def test_clock_step_back_excuses_at_its_end(self):
        self.two_turns()
        self.forged.fault("clock_back", 3, 140, 400)
        self.assert_violation("exclusion")
        self.setUp()
        self.two_turns()
        self.forged.fault("clock_back", 3, 10, 140)
        self.assert_excused("clock_back")

    def test_other_faults_excuse_nothing(self):
        for kind in report.KINDS:
            if kind in ("flushall", "clock_ahead", "clock_fast", "clock_back"):
                continue
            with self.subTest(kind):
                self.setUp()
                self.two_turns()
                self.forged.fault(kind, 3, 110, 140)
                self.assert_violation("exclusion")

    def test_restart_without_keys_excuses_foreign_client(self):
        other = self.forged.client("f.0", "foreign")
        self.forged.turn(self.a, "r0", 100, 101, 200)
        self.forged.turn(other, "r0", 120, 150, 300)
        self.forged.fault("kill_lose", 3, 110, 140)
        self.assert_excused("kill_lose")


class Fences(Case):
    """The order of fencing tokens: one requested after another was returned must be larger."""

    def test_growing_fencing_tokens(self):
        self.forged.turn(self.a, "r0", 100, 101, 110, fence=5)
        self.forged.turn(self.b, "r0", 120, 121, 130, fence=6)
        self.forged.turn(self.b, "r1", 140, 141, 150, fence=1)
        self.assert_no_violation()

    def test_fencing_token_twice(self):
        self.forged.turn(self.a, "r0", 100, 101, 110, fence=5)
        self.forged.turn(self.b, "r0", 90, 121, 130, fence=5)
        self.assert_violation("fences: r0 had 5 twice")

    def test_falling_fencing_token(self):
        self.forged.turn(self.a, "r0", 100, 101, 110, fence=9)
        self.forged.turn(self.a, "r0", 111, 112, 113, fence=10)
        self.forged.turn(self.b, "r0", 120, 121, 130, fence=8)
        self.assert_violation("though a.0")

    def test_any_order_for_simultaneous_requests(self):
        self.forged.turn(self.a, "r0", 100, 101, 110, fence=6)
        self.forged.turn(self.b, "r0", 100, 121, 130, fence=5)
        self.assert_no_violation()

    def test_faults_do_not_excuse_fencing_tokens(self):
        self.forged.turn(self.a, "r0", 100, 101, 110, fence=9)
        self.forged.turn(self.b, "r0", 120, 121, 130, fence=8)
        self.forged.fault("flushall", 3, 115)
        self.forged.fault("kill_lose", 3, 115)
        self.assert_violation("fences")


class Processes(Case):
    """The end of the processes, the keys that they leave, the end of the run, and the timeline."""

    def test_run_without_violations(self):
        self.assert_no_violation()
        totals = report.Totals()
        totals.add(self.history, checker.check(self.history))
        self.assertIn("violations: 0", list(totals.lines()))

    def test_crash(self):
        self.forged.clients["x.0"] = []
        self.forged.run_line(0, "born x.0 threaded")
        self.forged.run_line(5000, "exit x.0 139")
        self.assertTrue(any("x.0 ended by itself" in line for line in self.verdict().violations))

    def test_client_that_does_not_end(self):
        self.forged.run_line(9800, "stuck a.0")
        self.assert_violation("did not end")

    def test_leftover_key_of_client_that_ended(self):
        self.forged.run_line(9600, "key 2 r0 00ff@a.0 700")
        self.assert_violation("leftover")

    def test_key_of_killed_client_may_stay(self):
        self.forged.run_line(400, "died k.0")
        self.forged.run_line(9600, "key 2 r0 00ff@k.0 700")
        self.assert_no_violation()

    def test_key_without_expiry(self):
        self.forged.run_line(9600, "key 2 r0 00ff@k.0 -1")
        self.assert_violation("without an expiry")

    def test_key_that_should_have_expired(self):
        self.forged.run_line(9700, "left 2 r0 00ff@k.0 3599000")
        self.assert_violation("still has r0")

    def test_client_without_a_lock(self):
        self.forged.clients["y.0"] = []
        self.forged.run_line(0, "born y.0 threaded")
        self.assert_violation("y.0 got no lock")

    def test_run_without_an_end(self):
        self.forged.run = [line for line in self.forged.run if line[1] != "over"]
        self.assert_violation("did not come to its end")

    def test_timeline_shows_violation(self):
        self.forged.turn(self.a, "r0", 100, 101, 200)
        self.forged.turn(self.b, "r0", 120, 150, 300)
        self.forged.fault("flushall", 3, 4000)
        verdict = self.verdict()
        picture = timeline.draw(self.history, verdict, "a <title>")
        for words in ("a &lt;title&gt;", "server 3", 'stroke="red"', "r0"):
            self.assertIn(words, picture)

    def test_colours_of_faults_are_those_of_the_legend(self):
        with open(os.path.join(HERE, "faults.c"), encoding="utf-8") as file:
            kinds = re.findall(r'^    \{"(\w+)", ', file.read(), re.M)
        down = [kind for kind in kinds if timeline.colour_of_fault(kind) == timeline.DOWN]
        self.assertEqual(down, ["kill_keep", "kill_lose", "restart", "stop", "cut_there", "cut_back", "cut_both",
                                "cut_connections", "client_stop", "client_kill"])  # fmt: skip

    def test_clients_of_one_kind_differ(self):
        names = [letter + number for letter in "cefht" for number in "12"]
        colours = {timeline.colour_of(name) for name in names}
        self.assertEqual(len(colours | {timeline.DOWN, timeline.IMPAIRED}), len(names) + 2)


if __name__ == "__main__":
    tapcase.main()
