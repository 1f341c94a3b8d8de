# SPDX-License-Identifier: MIT
"""Options that contradict each other, or of which one would be ignored, are refused: one case for each row of the
table CONFLICTS in tools/manual/table.py. So is another value of an option that counts once. Needs no server."""

import os
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(FOLDER, "..", "lib"))
sys.path.insert(0, os.path.join(FOLDER, "..", "..", "tools", "manual"))

import model  # noqa: E402 (in tools/manual)
import table  # noqa: E402
import tapcase  # noqa: E402
from world import CommandCase, clean_environment  # noqa: E402

# Two values of an argument that the command accepts.
VALUES = {
    "address": ("a:1", "a:2"),
    "count": ("1", "2"),
    "descriptor": ("1", "2"),
    "duration": ("5s", "6s"),
    "limit": ("2", "3"),
    "number": ("3", "4"),
    "signal": ("TERM", "INT"),
}
# Operands with which the command ends before it uses a setting, and what it says then. With this message a test sees
# that the options were accepted.
REFUSED_OPERANDS = {
    "run": ([], "no name and no command"),
    "nodes": (["word"], "unexpected word"),
    "config": (["word"], "unexpected word"),
    "sandbox": (["no-such-command-here"], "command not found"),
    "extend": ([], "no name"),
    "release": ([], "no name"),
    "break": ([], "no name"),
    "top": ([""], "the name of the lock is empty"),
}


def values_of(option):
    """Returns two values of the option."""
    return tuple(option.argument.split("|")) if "|" in option.argument else VALUES.get(option.argument, ("one", "two"))


class Conflicts(CommandCase):
    """The table of conflicts, and values that are given twice."""

    def option(self, command, name):
        """Returns the option of the subcommand with this C name, without OPT_."""
        (found,) = [row for row in model.options_of(table, command) if row.c_name == f"OPT_{name}"]
        return found

    def words(self, command, name, value=""):
        """Returns the words that give the option: its name, and a value if it takes one."""
        option = self.option(command, name)
        return [option.spellings[0], value or values_of(option)[0]] if option.argument else [option.spellings[0]]

    def refusal(self, command, words):
        """Runs the subcommand and returns its message, which is a refusal of the usage on one line."""
        result = self.redlock(command, *words, env=clean_environment())
        self.assertCode(result, 64)
        self.assertEqual(result.stderr.count("\n"), 1)
        return result.stderr

    def accepts(self, command, words):
        """Checks that the options are accepted: the command ends later, because of its operands."""
        operands, message = REFUSED_OPERANDS.get(command, ([], "no name"))
        result = self.redlock(command, *words, *operands, env=clean_environment())
        self.assertIn(message, result.stderr)

    def test_each_pair_is_refused(self):
        """Each row is refused in each of its subcommands, in both orders, with its text; one of the two is accepted."""
        for row in table.CONFLICTS:
            for command in row.commands.split():
                with self.subTest(command=command, one=row.one, other=row.other):
                    name, _, value = row.one.partition("=")
                    one, other = self.words(command, name, value), self.words(command, row.other)
                    link = "without" if row.needs else "with"
                    if row.needs:
                        other = self.option(command, row.other).spellings[:1]
                    expected = f"redlock: {command}: {' '.join(one)} {link} {' '.join(other)}: {row.text}\n"
                    if row.needs:
                        self.assertEqual(self.refusal(command, one), expected)
                        self.accepts(command, one + other)
                    else:
                        self.assertEqual(self.refusal(command, one + other), expected)
                        self.assertEqual(self.refusal(command, other + one), expected)
                        self.accepts(command, one)
                    self.accepts(command, other)
                    self.assertRegex(row.text, "; ")

    def test_exceptions_are_accepted(self):
        """A row does not apply with the option that excuses it, with another value, or with a wait of 0."""
        for row in table.CONFLICTS:
            command = row.commands.split()[0]
            name, _, value = row.one.partition("=")
            other = self.words(command, row.other)
            with self.subTest(one=row.one, other=row.other):
                if row.unless:
                    self.accepts(command, self.words(command, name, value) + other + self.words(command, row.unless))
                if row.unless_zero:
                    self.accepts(command, self.words(command, name, value) + [other[0], "0s"])
                if value:
                    another = next(text for text in values_of(self.option(command, name)) if text != value)
                    self.accepts(command, self.words(command, name, another) + other)

    def test_rows_name_options_of_their_subcommands(self):
        """There are rows, and each subcommand of a row has both options."""
        self.assertGreater(len(table.CONFLICTS), 8)
        for row in table.CONFLICTS:
            for command in row.commands.split():
                for name in row.one.partition("=")[0], row.other, row.unless or row.other:
                    self.option(command, name)

    def test_second_value_is_refused(self):
        """Another value of an option is refused, unless the option may be repeated; the same value is not."""
        for command in [row.name for row in table.COMMANDS]:
            for option in model.options_of(table, command):
                if not option.argument:
                    continue
                with self.subTest(command=command, option=option.name):
                    name, other_name = option.spellings[0], option.spellings[-1]
                    first, second = values_of(option)[:2]
                    needed = [self.option(command, row.other).spellings[0] for row in table.CONFLICTS
                              if row.needs and f"OPT_{row.one}" == option.c_name]  # fmt: skip
                    self.accepts(command, needed + [name, first, other_name, first])
                    if option.repeats:
                        self.accepts(command, [name, first, other_name, second])
                    else:
                        self.assertEqual(
                            self.refusal(command, [name, first, other_name, second]),
                            f"redlock: {command}: {name} {second} after {name} {first}: only one value counts; "
                            "give this option once\n",
                        )

    def test_password_is_not_shown(self):
        """A value that may contain a password is masked in the message."""
        message = self.refusal("nodes", ["--prefix", "u:secret@host", "--prefix", "redis://x"])
        self.assertIn("--prefix *** after --prefix ***", message)


if __name__ == "__main__":
    tapcase.main()
