# SPDX-License-Identifier: MIT
"""`--slots L`: a permit of a semaphore for a command, by token, and who holds them."""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import tapcase  # noqa: E402
from world import REDLOCK, SLOW, Case  # noqa: E402

LONG = "30s"


class Permits(Case):
    def environment(self, **more):
        return super().environment(**{"REDLOCK_FENCE_RECORDS": "volatile", **more})

    def status(self, *more):
        return self.redlock("status", "--slots", "2", *more, "pool")

    def json_status(self):
        return json.loads(self.status("--json").stdout)

    def test_run_tells_its_slot(self):
        result = self.redlock("run", "--slots", "1", "pool", "--", "sh", "-c",
                              "echo $REDLOCK_SLOT $REDLOCK_NAME $REDLOCK_KEY")
        self.assertEqual((result.returncode, result.stdout), (0, "0 pool pool{#0}\n"))
        self.assertEqual(self.status().returncode, 1)

    def test_a_slot_of_an_outer_run_is_not_passed_on(self):
        result = self.redlock("run", "--slots", "1", "pool", "--", REDLOCK, "run", "inner", "--",
                              "sh", "-c", "echo ${REDLOCK_SLOT-none}")
        self.assertEqual((result.returncode, result.stdout), (0, "none\n"))

    def test_as_many_as_there_are(self):
        first = self.redlock("acquire", "-t", LONG, "--slots", "2", "pool")
        second = json.loads(self.redlock("acquire", "-t", LONG, "--slots", "2", "--json", "pool").stdout)
        name, token = first.stdout.split()
        self.assertEqual({name, f"pool{{#{second['slot']}}}"}, {"pool{#0}", "pool{#1}"})
        self.assertEqual(second["key"], f"pool{{#{second['slot']}}}")
        shown = self.status()
        self.assertEqual(shown.returncode, 0)
        self.assertIn("pool: 2 of 2 permits held, 0 free", shown.stdout)
        self.assertIn(second["owner"], shown.stdout)
        refused = self.redlock("run", "-n", "--slots", "2", "pool", "--", "true")
        self.assertEqual(refused.returncode, 75)
        self.assertIn("all 2 permits are taken", refused.stderr)
        self.assertEqual(self.redlock("extend", "-t", LONG, name, token).returncode, 0)
        self.assertEqual(self.redlock("release", "--strict", name, token).returncode, 0)
        said = self.json_status()
        self.assertEqual((said["schema"], said["permits"], said["held"], said["free"], said["unknown"]),
                         ("redlock.permits/1", 2, 1, 1, 0))
        states = {slot["slot"]: slot["state"] for slot in said["slots"]}
        self.assertEqual(states[second["slot"]], "held")
        self.assertEqual(states[1 - second["slot"]], "free")
        self.assertEqual(self.redlock("break", "--yes", second["key"]).returncode, 0)
        self.assertEqual(self.status().returncode, 1)

    def test_fences_of_a_slot(self):
        numbers = []
        for _ in range(2):
            words = self.redlock("acquire", "--slots", "1", "--fence", "-w", "10s", "pool").stdout.split()
            self.assertEqual(words[0], "pool{#0}")
            numbers.append(int(words[2]))
            self.assertEqual(self.redlock("release", words[0], words[1]).returncode, 0)
        self.assertLess(numbers[0], numbers[1])

    def test_who_waits_gets_what_is_released(self):
        name, token = self.redlock("acquire", "-t", LONG, "--slots", "1", "pool").stdout.split()
        waiter = self.start("run", "--slots", "1", "pool", "--", "echo", "mine")
        self.wait_error("waiting for pool: held by another client: all 1 permits are taken")
        self.assertEqual(self.redlock("release", name, token).returncode, 0)
        self.assertEqual(waiter.stdout.readline(), "mine\n")
        self.assertEqual(waiter.wait(10 * SLOW), 0)

    def test_mistakes(self):
        for words, code in ((["run", "--slots", "0", "pool", "--", "true"], 64),
                            (["run", "--slots", "1025", "pool", "--", "true"], 64),
                            (["status", "--slots", "x", "pool"], 64),
                            (["run", "--slots", "2", "pool", "-a", "other", "--", "true"], 64),
                            (["extend", "--slots", "2", "pool", "token"], 64)):
            with self.subTest(words=words):
                self.assertEqual(self.redlock(*words).returncode, code)


if __name__ == "__main__":
    tapcase.main()
