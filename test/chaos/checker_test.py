# SPDX-License-Identifier: MIT
"""Tests the checker of chaos runs with forged histories: it reports each violation, reports no other, and lets a
fault excuse only what that fault can cause."""

import os
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

MS = 10**6
TTL = 1000


class Forged:
    """Writes the files of a run; times in ms."""

    def __init__(self):
        self.run = []
        self.clients = {}
        self.count = 0

    def note(self, when, words):
        self.run.append((when, words))

    def client(self, name, kind="threaded", ends=True):
        self.clients[name] = []
        self.note(0, f"born {name} {kind}")
        if ends:
            self.note(9500, f"exit {name} 0")
            self.turn(name, "own-" + name, 8000, 8001, 8002)
        return name

    def say(self, name, when, words):
        self.clients[name].append((when, words))

    def turn(self, name, resource, called, start, end=None, deadline=None, fence=0, ttl=TTL, held=None):
        self.count += 1
        number = str(self.count)
        deadline = start + ttl - 20 if deadline is None else deadline
        self.say(name, called, f"call {resource} {number} {ttl}")
        self.say(name, start, f"hold {held or resource} {number} {int(deadline * MS)} {fence}")
        if end is not None:
            self.say(name, end, f"end {resource} {number}")
        return number

    def fault(self, kind, target, begin, end=None):
        self.note(begin, f"fault {kind} {target}")
        self.note(begin if end is None else end, f"heal {kind} {target}")

    def read(self):
        with tempfile.TemporaryDirectory() as directory:
            for name, said in [("faults", self.run), *self.clients.items()]:
                with open(os.path.join(directory, name + ".log"), "w", encoding="ascii") as file:
                    for when, words in said:
                        file.write(f"{int(when * MS)} {words}\n")
                    if name != "faults":
                        file.write(f"{int(9999 * MS)} hold r0 torn")  # a line cut off by a kill
            return history.read(directory)


class Case(unittest.TestCase):
    def setUp(self):
        self.forged = Forged()
        self.forged.note(1, "peace")
        self.forged.run[0] = (7000, "peace")
        for when, word in ((9000, "finish"), (9900, "over")):
            self.forged.note(when, word)
        self.a = self.forged.client("a.0")
        self.b = self.forged.client("b.0")

    def two(self, end=200, start=150, called=120):
        self.forged.turn(self.a, "r0", 100, 101, end)
        return self.forged.turn(self.b, "r0", called, start, 300)

    def verdict(self):
        self.history = self.forged.read()
        return checker.check(self.history)

    def assert_right(self):
        verdict = self.verdict()
        self.assertEqual(verdict.violations, [])
        self.assertEqual(verdict.excused, [])

    def assert_wrong(self, word, count=1):
        found = self.verdict().violations
        self.assertEqual(len(found), count, found)
        self.assertIn(word, found[0])

    def assert_excused(self, kind):
        verdict = self.verdict()
        self.assertEqual(verdict.violations, [])
        self.assertEqual([why.kind for _, _, why in verdict.excused], [kind])


class Exclusion(Case):
    def test_one_after_the_other(self):
        self.two(end=149.999999)
        self.assert_right()

    def test_two_at_once(self):
        self.two()
        self.assert_wrong("exclusion: r0 was held by a.0")

    def test_two_for_a_microsecond(self):
        self.two(end=150.001)
        self.assert_wrong("exclusion")

    def test_two_resources(self):
        self.forged.turn(self.a, "r0", 100, 101, 200)
        self.forged.turn(self.b, "r1", 100, 101, 200)
        self.assert_right()

    def test_one_that_holds_through_several(self):
        self.forged.turn(self.a, "r0", 100, 101, 900)
        self.forged.turn(self.b, "r0", 200, 201, 202)
        self.forged.turn(self.b, "r0", 300, 301, 302)
        self.assert_wrong("exclusion", 2)

    def test_a_client_against_itself(self):
        self.forged.turn(self.a, "r0", 100, 101, 200)
        self.forged.turn(self.a, "r0", 100, 150, 300)
        self.assert_wrong("exclusion")

    def test_the_deadline_ends_it(self):
        self.forged.turn(self.a, "r0", 100, 101, 2000, deadline=1000)
        self.forged.turn(self.b, "r0", 900, 1000.1, 1100)
        self.assert_right()

    def test_nothing_but_the_deadline_ends_it(self):
        self.forged.turn(self.a, "r0", 100, 101, None, deadline=1000)
        self.forged.turn(self.b, "r0", 900, 999, 1100)
        self.assert_wrong("exclusion")

    def test_an_extension_makes_it_longer(self):
        number = self.forged.turn(self.a, "r0", 100, 101, 2000, deadline=1000)
        self.forged.say(self.a, 500, f"still r0 {number} {1500 * MS} 0")
        self.forged.turn(self.b, "r0", 900, 1400, 1450)
        self.assert_wrong("exclusion")

    def test_a_loss_that_was_seen_ends_it_where_it_was_last_held(self):
        number = self.forged.turn(self.a, "r0", 100, 101, None, deadline=1000)
        self.forged.say(self.a, 500, f"lost r0 {number} {490 * MS}")
        self.forged.turn(self.b, "r0", 450, 495, 600)
        self.assert_right()

    def test_a_loss_after_the_deadline_does_not(self):
        number = self.forged.turn(self.a, "r0", 100, 101, None, deadline=1000)
        self.forged.say(self.a, 1500, f"lost r0 {number} {490 * MS}")
        self.forged.turn(self.b, "r0", 450, 900, 1600)
        self.assert_wrong("exclusion")

    def test_death_ends_it(self):
        killed = self.forged.client("k.0", ends=False)
        self.forged.turn(killed, "r0", 100, 101, None, deadline=1000)
        self.forged.note(400, "died k.0")
        self.forged.turn(self.b, "r0", 300, 401, 500)
        self.assert_right()

    def test_death_does_not_end_it_before(self):
        killed = self.forged.client("k.0", ends=False)
        self.forged.turn(killed, "r0", 100, 101, None, deadline=1000)
        self.forged.note(400, "died k.0")
        self.forged.turn(self.b, "r0", 300, 399, 500)
        self.assert_wrong("exclusion")

    def test_what_the_command_runs_holds_as_long_as_it_lives(self):
        command = self.forged.client("c.0", "command")
        number = self.forged.turn(command, "r0", 100, 101, None, deadline=101, ttl=0)
        self.forged.say(command, 600, f"alive r0 {number}")
        self.forged.turn(self.b, "r0", 300, 599, 700)
        self.assert_wrong("exclusion")


class Several(Case):
    """Locks of several names: each name excludes all other locks that contain it."""

    def test_apart(self):
        self.forged.turn(self.a, "r0+r1", 100, 101, 200)
        self.forged.turn(self.b, "r2+r3", 100, 101, 200)
        self.forged.turn(self.b, "r1+r0", 190, 201, 300)
        self.assert_right()

    def test_one_of_them(self):
        self.forged.turn(self.a, "r0+r1", 100, 101, 200)
        self.forged.turn(self.b, "r1", 120, 150, 300)
        self.assert_wrong("exclusion: r1 was held by a.0 (#3, r0+r1)")

    def test_the_other_way_round(self):
        self.forged.turn(self.a, "r1", 100, 101, 200)
        self.forged.turn(self.b, "r3+r2+r1", 120, 150, 300)
        self.assert_wrong("exclusion: r1 was held by a.0")

    def test_sets_that_meet_in_one_name(self):
        self.forged.turn(self.a, "r0+r1", 100, 101, 200)
        self.forged.turn(self.b, "r2+r0", 120, 150, 300)
        self.assert_wrong("exclusion: r0 was held by a.0")

    def test_sets_that_meet_in_two(self):
        self.forged.turn(self.a, "r0+r1", 100, 101, 200)
        self.forged.turn(self.b, "r1+r0", 120, 150, 300)
        self.assert_wrong("exclusion", 2)

    def test_an_extension_is_for_all(self):
        number = self.forged.turn(self.a, "r0+r1", 100, 101, 2000, deadline=1000)
        self.forged.say(self.a, 500, f"still r0+r1 {number} {1500 * MS} 0")
        self.forged.turn(self.b, "r1", 900, 1400, 1450)
        self.assert_wrong("exclusion")

    def test_a_loss_is_of_all(self):
        number = self.forged.turn(self.a, "r0+r1", 100, 101, None, deadline=1000)
        self.forged.say(self.a, 500, f"lost r0+r1 {number} {490 * MS}")
        self.forged.turn(self.b, "r1", 450, 495, 600)
        self.assert_right()

    def test_a_part_only(self):
        self.forged.turn(self.a, "r0+r1", 100, 101, 200, held="r0")
        self.assert_wrong("names: a.0 (#3) asked for r0+r1 and has r0")

    def test_something_else(self):
        self.forged.turn(self.a, "r0+r1", 100, 101, 200, held="r0+r2")
        self.assert_wrong("names")

    def test_lost_keys_excuse(self):
        self.forged.turn(self.a, "r0+r1", 100, 101, 200)
        self.forged.turn(self.b, "r1+r2", 120, 150, 300)
        self.forged.fault("flushall", 3, 140)
        self.assert_excused("flushall")

    def test_nobody_gets_them(self):
        for i in range(30):
            self.forged.say(self.a, 8100 + 10 * i, f"call r0+r1 n{i} {TTL}")
            self.forged.say(self.a, 8105 + 10 * i, f"fail r0+r1 n{i} REDLOCK_ECONTENDED")
        self.assert_wrong("turns: nobody got several of 30")


class Permits(Case):
    def take(self, name, slot, start, end, called=None, **more):
        called = start - 30 if called is None else called
        return self.forged.turn(name, "s0*2", called, start, end, held=f"s0{{#{slot}}}", **more)

    def test_as_many_as_there_are(self):
        self.take(self.a, 0, 101, 200)
        self.take(self.b, 1, 150, 300)
        self.take(self.a, 0, 201, 300)
        self.assert_right()

    def test_two_on_a_slot(self):
        self.take(self.a, 0, 101, 200)
        self.take(self.b, 0, 150, 300)
        self.assert_wrong("exclusion: s0{#0} was held by a.0")

    def test_one_too_many(self):
        self.take(self.a, 0, 101, 200)
        self.take(self.b, 1, 120, 300)
        self.take(self.b, 2, 150, 300)
        found = self.verdict().violations
        self.assertEqual(len(found), 2, found)
        self.assertIn("permits: b.0 (#5) has s0{#2}, of 2", found[0])
        self.assertIn("permits: s0 has 3 holders, not 2, at", found[1])

    def test_a_slot_that_there_is_not(self):
        self.take(self.a, 2, 101, 200)
        self.assert_wrong("permits: a.0 (#3) has s0{#2}")

    def test_a_plain_lock_on_a_slot(self):
        self.take(self.a, 1, 101, 200)
        other = self.forged.client("f.0", "foreign")
        self.forged.turn(other, "s0{#1}", 120, 150, 300)
        self.assert_wrong("exclusion: s0{#1}")

    def test_a_plain_lock_counts(self):
        self.take(self.a, 1, 101, 200)
        self.take(self.b, 0, 101, 200)
        other = self.forged.client("f.0", "foreign")
        self.forged.turn(other, "s0{#7}", 120, 150, 300)
        self.assertIn("s0 has 3 holders", self.verdict().violations[-1])

    def test_another_semaphore(self):
        self.forged.turn(self.a, "s0*2", 100, 101, 200, held="s1{#0}")
        self.assert_wrong("names: a.0 (#3) asked for s0*2 and has s1{#0}")

    def test_what_is_excused_is_not_counted_twice(self):
        self.take(self.a, 0, 101, 200)
        self.take(self.b, 1, 101, 200)
        self.take(self.b, 0, 150, 190, called=120)
        self.forged.fault("flushall", 3, 140)
        self.assert_excused("flushall")

    def test_a_loss_ends_it(self):
        number = self.take(self.a, 0, 101, None, deadline=1000)
        self.forged.say(self.a, 500, f"lost s0{{#0}} {number} {490 * MS}")
        self.take(self.b, 0, 495, 600)
        self.assert_right()

    def test_an_extension_makes_it_longer(self):
        number = self.take(self.a, 0, 101, 2000, deadline=1000)
        self.forged.say(self.a, 500, f"still s0{{#0}} {number} {1500 * MS} 0")
        self.take(self.b, 0, 1400, 1450)
        self.assert_wrong("exclusion")

    def test_fences_are_those_of_a_slot(self):
        self.take(self.a, 0, 101, 110, fence=9)
        self.take(self.b, 1, 121, 130, called=115, fence=8)
        self.assert_right()
        self.setUp()
        self.take(self.a, 0, 101, 110, fence=9)
        self.take(self.b, 0, 121, 130, called=115, fence=8)
        self.assert_wrong("fences: s0{#0} b.0")

    def test_nobody_gets_one(self):
        for i in range(30):
            self.forged.say(self.a, 8100 + 10 * i, f"call s0*2 n{i} {TTL}")
        self.assert_wrong("turns: nobody got permit of 30")


class Excuses(Case):
    """The same pair, with faults before, between and after."""

    def test_lost_keys(self):
        for kind in ("flushall", "clock_ahead"):
            with self.subTest(kind):
                self.setUp()
                self.two()
                self.forged.fault(kind, 3, 140)
                self.assert_excused(kind)

    def test_lost_before_the_first_asked(self):
        self.two()
        self.forged.fault("flushall", 3, 99)
        self.assert_wrong("exclusion")

    def test_lost_after_the_second_had_it(self):
        self.two()
        self.forged.fault("flushall", 3, 151)
        self.assert_wrong("exclusion")

    def test_the_wait_of_the_first_is_no_excuse(self):
        self.forged.turn(self.a, "r0", 100, 3000, 3200, deadline=3900)
        self.forged.turn(self.b, "r0", 3050, 3100, 3300)
        self.forged.fault("flushall", 3, 2800)
        self.assert_wrong("exclusion")

    def test_a_fast_clock_until_its_keys_are_over(self):
        self.forged.fault("clock_fast", 3, 10, 50)
        self.two()
        self.assert_excused("clock_fast")

    def test_a_clock_that_goes_back_excuses_when_it_comes_forward(self):
        self.two()
        self.forged.fault("clock_back", 3, 140, 400)
        self.assert_wrong("exclusion")
        self.setUp()
        self.two()
        self.forged.fault("clock_back", 3, 10, 140)
        self.assert_excused("clock_back")

    def test_what_excuses_nothing(self):
        for kind in report.KINDS:
            if kind in ("flushall", "clock_ahead", "clock_fast", "clock_back"):
                continue
            with self.subTest(kind):
                self.setUp()
                self.two()
                self.forged.fault(kind, 3, 110, 140)
                self.assert_wrong("exclusion")

    def test_a_foreign_client_believes_a_server_that_forgot(self):
        other = self.forged.client("f.0", "foreign")
        self.forged.turn(self.a, "r0", 100, 101, 200)
        self.forged.turn(other, "r0", 120, 150, 300)
        self.forged.fault("kill_lose", 3, 110, 140)
        self.assert_excused("kill_lose")


class Fences(Case):
    def test_growing(self):
        self.forged.turn(self.a, "r0", 100, 101, 110, fence=5)
        self.forged.turn(self.b, "r0", 120, 121, 130, fence=6)
        self.forged.turn(self.b, "r1", 140, 141, 150, fence=1)
        self.assert_right()

    def test_the_same_twice(self):
        self.forged.turn(self.a, "r0", 100, 101, 110, fence=5)
        self.forged.turn(self.b, "r0", 90, 121, 130, fence=5)
        self.assert_wrong("fences: r0 had 5 twice")

    def test_falling(self):
        self.forged.turn(self.a, "r0", 100, 101, 110, fence=9)
        self.forged.turn(self.a, "r0", 111, 112, 113, fence=10)
        self.forged.turn(self.b, "r0", 120, 121, 130, fence=8)
        self.assert_wrong("though a.0")

    def test_asked_at_the_same_time(self):
        self.forged.turn(self.a, "r0", 100, 101, 110, fence=6)
        self.forged.turn(self.b, "r0", 100, 121, 130, fence=5)
        self.assert_right()

    def test_nothing_excuses(self):
        self.forged.turn(self.a, "r0", 100, 101, 110, fence=9)
        self.forged.turn(self.b, "r0", 120, 121, 130, fence=8)
        self.forged.fault("flushall", 3, 115)
        self.forged.fault("kill_lose", 3, 115)
        self.assert_wrong("fences")


class Rest(Case):
    def test_a_quiet_run(self):
        self.assert_right()
        totals = report.Totals()
        totals.add(self.history, checker.check(self.history))
        self.assertIn("violations: 0", list(totals.lines()))

    def test_a_crash(self):
        self.forged.clients["x.0"] = []
        self.forged.note(0, "born x.0 threaded")
        self.forged.note(5000, "exit x.0 139")
        self.assertTrue(any("x.0 ended by itself" in line for line in self.verdict().violations))

    def test_one_that_does_not_end(self):
        self.forged.note(9800, "stuck a.0")
        self.assert_wrong("did not end")

    def test_a_key_of_one_who_ended_in_order(self):
        self.forged.note(9600, "key 2 r0 00ff@a.0 700")
        self.assert_wrong("leftover")

    def test_a_key_of_one_who_was_killed(self):
        self.forged.note(400, "died k.0")
        self.forged.note(9600, "key 2 r0 00ff@k.0 700")
        self.assert_right()

    def test_a_key_for_ever(self):
        self.forged.note(9600, "key 2 r0 00ff@k.0 -1")
        self.assert_wrong("for ever")

    def test_a_key_that_should_have_expired(self):
        self.forged.note(9700, "left 2 r0 00ff@k.0 3599000")
        self.assert_wrong("still has r0")

    def test_one_without_a_turn(self):
        self.forged.clients["y.0"] = []
        self.forged.note(0, "born y.0 threaded")
        self.assert_wrong("y.0 got no lock")

    def test_a_run_that_broke_off(self):
        self.forged.run = [line for line in self.forged.run if line[1] != "over"]
        self.assert_wrong("did not come to its end")

    def test_a_picture(self):
        self.forged.turn(self.a, "r0", 100, 101, 200)
        self.forged.turn(self.b, "r0", 120, 150, 300)
        self.forged.fault("flushall", 3, 4000)
        verdict = self.verdict()
        picture = timeline.draw(self.history, verdict, "a <title>")
        for words in ("a &lt;title&gt;", "server 3", 'stroke="red"', "r0"):
            self.assertIn(words, picture)


if __name__ == "__main__":
    tapcase.main()
