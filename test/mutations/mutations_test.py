# SPDX-License-Identifier: MIT
"""Checks that the simulator catches every mutation. rules.txt names for each rule of the specification
the mutation that breaks it, and a seed or a case of contention that must be clean without the mutation
and must fail with it."""

import os
import re
import sys
import unittest
from collections import namedtuple

import tapcase

import apply
import search

RULES = 49  # R1 to R49
SEEDS_MAX = 6000  # tried in the place of a seed that does not catch its mutation any more
CASE_SEEDS = 30  # a case of contention exceeds its bounds with some seeds only

Row = namedtuple("Row", "rule mutation seed words")


def read_rows():
    """Returns the rows of rules.txt: rule, mutation, seed (or "case" or "fallback"), words."""
    with open(os.path.join(apply.HERE, "rules.txt"), encoding="utf-8") as file:
        lines = [line for line in file if line.strip() and not line.startswith("#")]
    return [Row(*(column.strip() for column in line.split("|", 3))) for line in lines]


ROWS = read_rows()
simulators = search.Simulators(os.environ["SIMULATOR"], os.environ["MUTATED"])


def check_case(row):
    """Checks that the case stays within its bounds, and exceeds them with the mutation and one of its seeds. A row of
    the fallback runs the case with clients that do not use lines."""
    lines = "off" if row.seed == "fallback" else "on"
    for seed in range(1, CASE_SEEDS + 1):
        options = ("--case", row.words, "--seed", seed, "--lines", lines)
        status, output = simulators.run_clean(*options)
        assert status == 0, f"{row.words} without the mutation: exit status {status}\n{output}"
        if simulators.run(simulators.path(row.mutation), *options)[0] == 1:
            return
    raise AssertionError(f"{row.mutation}: case {row.words} stays within its bounds with the mutation")


def check_seed(row):
    """Checks that the mutation is caught. A change of the library can turn a seed into another run. Then other
    seeds are tried: the mutation must still be caught, and the row needs a new seed."""
    if simulators.catches(row.mutation, row.seed, row.words):
        return
    found = simulators.find(row.mutation, row.words, SEEDS_MAX)
    assert found, f"{row.mutation}: no seed up to {SEEDS_MAX} ends in '{row.words}'"
    print(f"{row.mutation}: seed {row.seed} does not catch it any more, but {found[0]} does: {found[1]}", file=sys.stderr)


def check_row(row):
    """Checks that the row's mutation applies and is caught."""
    try:
        apply.check(apply.read(apply.path_of(row.mutation)), apply.SOURCE)
    except apply.Fault as fault:
        raise AssertionError(fault) from None
    (check_case if row.seed in ("case", "fallback") else check_seed)(row)


class Table(unittest.TestCase):
    """Checks rules.txt itself."""

    def test_each_rule_has_a_row(self):
        """Each rule of the specification has a row."""
        for number in range(1, RULES + 1):
            self.assertIn(f"R{number}", {row.rule for row in ROWS})

    def test_each_row_says_why(self):
        """Each row has words."""
        self.assertEqual([row for row in ROWS if not row.words], [])

    def test_each_mutation_has_a_row_and_the_other_way_round(self):
        """The mutations in rules.txt are the patches in this folder."""
        self.assertEqual(sorted({row.mutation for row in ROWS} - {"-"}), apply.names())

    def test_each_mutation_is_compiled(self):
        """Each mutation has a simulator in the build."""
        for name in apply.names():
            self.assertTrue(os.path.exists(simulators.path(name)), f"{name} is not in test/mutations/meson.build")

    def test_tests_that_are_named_exist(self):
        """The tests that rows without a mutation name exist."""
        named = [path for row in ROWS if row.mutation == "-" for path in re.findall(r"test/[^ ,;)]+", row.words)]
        self.assertGreater(len(named), 0)
        self.assertEqual([path for path in named if not os.path.exists(os.path.join(apply.SOURCE, path))], [])


class Caught(unittest.TestCase):
    """One test case for each row with a mutation. All rows run at once, on all processors."""

    results = {}

    @classmethod
    def setUpClass(cls):
        """Starts the checks of all rows."""
        cls.pool = search.workers()
        cls.results = {row: cls.pool.submit(check_row, row) for row in ROWS if row.mutation != "-"}

    @classmethod
    def tearDownClass(cls):
        """Waits for them."""
        cls.pool.shutdown()


for each in ROWS:
    if each.mutation != "-":
        case = {"case": each.words, "fallback": f"{each.words}_without_lines"}.get(each.seed, each.seed)
        title = f"test_{each.mutation}_{case}".replace("-", "_")
        setattr(Caught, title, lambda self, row=each: self.results[row].result())


if __name__ == "__main__":
    tapcase.main()
