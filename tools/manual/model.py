# SPDX-License-Identifier: MIT
"""The classes of which table.py consists. Texts are plain sentences with two marks: `--renew` is literal text, and
{duration} is the argument of the option or an operand."""

import dataclasses
from typing import Dict, List, Tuple

# How help texts shorten the arguments. Manual pages write them in full.
SHORT_ARGUMENTS = {
    "address": "LIST",
    "argument": "ARG",
    "command": "CMD",
    "descriptor": "N",
    "duration": "D",
    "file": "F",
    "limit": "L",
    "name": "NAME",
    "number": "N",
    "pattern": "PATTERN",
    "prefix": "P",
    "signal": "S",
    "string": "STRING",
    "token": "TOKEN",
    "user": "U",
}


@dataclasses.dataclass(frozen=True)
class Option:
    """One option. `special` maps a subcommand to the fields that differ there."""

    name: str  # long name without "--"; also makes the C name, unless `id` is given
    commands: str  # the subcommands that accept it, separated by blanks
    group: str  # a key of table.GROUPS
    card: str  # what it does, in few words that follow its name and its argument, for `-h`
    hint: str  # the same in words that make sense alone, for the completions
    text: str  # what it does, in sentences
    letter: str = ""  # short form without "-"
    aliases: Tuple[str, ...] = ()  # more long names
    argument: str = ""  # what the value is; words separated by | are the only values
    default: str = ""  # the default, in words
    default_card: str = ""  # the same for `-h`, if it is shorter
    repeats: bool = False  # may be given several times
    id: str = ""  # C name without OPT_, if it is not that of the long name
    special: Dict[str, Dict[str, str]] = dataclasses.field(default_factory=dict)

    def for_command(self, command):
        """Returns the option as the subcommand has it."""
        return dataclasses.replace(self, **self.special.get(command, {}))

    @property
    def c_name(self):
        """The name of its constant in C."""
        return "OPT_" + (self.id or self.name.upper().replace("-", "_"))

    @property
    def long_names(self):
        """All long names, without dashes."""
        return (self.name, *self.aliases)

    @property
    def spellings(self):
        """All names with their dashes, the short one first."""
        return ([f"-{self.letter}"] if self.letter else []) + [f"--{name}" for name in self.long_names]

    @property
    def short_argument(self):
        """The argument as help texts write it."""
        return SHORT_ARGUMENTS.get(self.argument, self.argument)


@dataclasses.dataclass(frozen=True)
class Command:
    """One subcommand."""

    name: str
    synopsis: Tuple[str, ...]  # what follows its name on the command line; words in capitals are operands
    summary: str  # what it does, in a few words
    about: str  # what it does, in sentences
    examples: Tuple[Tuple[str, str], ...]  # (what it shows, command lines); the first one is on the card
    notes: str = ""  # lines that follow the options in help texts, unchanged


@dataclasses.dataclass(frozen=True)
class Conflict:
    """Two options that a command line may not have together; with `needs`, one that is refused without the other. An
    option is a C name without OPT_, because the same long name may belong to two options."""

    commands: str
    one: str  # followed by "=VALUE" if only that value is refused
    other: str
    text: str  # the reason, and after a semicolon what to do
    needs: bool = False  # `other` must be given
    unless: str = ""  # no conflict if this option is given
    unless_zero: bool = False  # no conflict if the value of `other` is a duration of 0


@dataclasses.dataclass(frozen=True)
class Exit:
    """One exit code of some subcommands."""

    code: str
    commands: str
    card: str  # few words for help texts; empty: only in the manual page
    text: str


def of_command(rows, command):
    """Returns the rows of options or exit codes that the subcommand has."""
    return [row for row in rows if command in row.commands.split()]


def options_of(table, command) -> List[Option]:
    """Returns the options of the subcommand, in the order of the groups and of the table."""
    rows = [row.for_command(command) for row in of_command(table.OPTIONS, command)]
    order = list(table.GROUPS)
    return sorted(rows, key=lambda row: order.index(row.group))
