# SPDX-License-Identifier: MIT
"""Writes the help texts: the card of `-h`, which fits a screen, and the list of `--help`."""

import re
import textwrap

import table
from model import SHORT_ARGUMENTS, of_command, options_of

WIDTH = 80
HEIGHT = 24
HALF = 40  # columns of the left one of two entries in a line of the card
NAMES_WIDTH = 30  # columns of the names of options in `--help`


def plain(text):
    """Returns the text without its marks."""
    text = re.sub(r"\{(\w+)\}", lambda match: SHORT_ARGUMENTS.get(match[1], match[1].upper()), text)
    return text.replace("`", "")


def wrapped(text, first="", rest=""):
    """Returns the lines of the text, none longer than the screen is wide. `first` and `rest` begin the lines."""
    return textwrap.wrap(plain(text), WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False,
                         break_long_words=False)  # fmt: skip


def listed(items, first="", rest=""):
    """Returns lines with the items, none of which is divided."""
    return [line.replace("\0", " ") for line in wrapped(" ".join(item.replace(" ", "\0") for item in items), first, rest)]


def is_common(option):
    """Returns whether all subcommands that connect to servers have the option."""
    return set(table.CLIENTS.split()) <= set(option.commands.split())


def with_argument(name, option):
    """Returns a name of the option, followed by its argument."""
    return f"{name} {option.short_argument}" if option.argument else name


def usage(command):
    """Returns the lines that show how the subcommand is called."""
    starts = ["Usage: "] + ["       "] * (len(command.synopsis) - 1)
    return [f"{start}redlock {command.name} {words}" for start, words in zip(starts, command.synopsis)]


def entries(options):
    """Returns the lines of the card for the options: two in a line where both are short enough. A long entry moves
    before a short one that still lacks a neighbour."""
    lines, first = [], ""
    for option in options:
        default = f" ({option.default_card or option.default})" if option.default_card or option.default else ""
        entry = f"{with_argument(option.spellings[0], option)}  {option.card}{default}"
        if first and len(entry) <= WIDTH - HALF:
            lines.append(f"  {first:{HALF - 2}}{entry}")
            first = ""
        elif not first and len(entry) <= HALF - 4:
            first = entry
        else:
            lines.append(f"  {entry}")
    return lines + ([f"  {first}"] if first else [])


def exits(command):
    """Returns the lines with the exit codes."""
    words = []
    for row in of_command(table.EXITS, command.name):
        if row.card == "CMD's":
            words.append(row.card)
        elif row.card or row.code == "0":
            words.append(f"{row.code} {row.card}".strip())
    return listed([f"{word}," for word in words[:-1]] + words[-1:], "Exit: ", "      ")


def example(command):
    """Returns the lines of the first example."""
    first, *rest = command.examples[0][1].split("\n")
    return [f"Example: {first}"] + [f"         {line}" for line in rest]


def card(command):
    """Returns the lines of `redlock COMMAND -h`."""
    options = options_of(table, command.name)
    before = usage(command) + wrapped(command.about)
    after = command.notes.splitlines() + exits(command) + example(command)
    after.append(f"More: redlock {command.name} --help, man redlock-{command.name}")
    lines = before + entries(options) + after
    if len(lines) <= HEIGHT:
        return lines
    # The common options are shown without a text where the screen is too small.
    common = [with_argument(row.spellings[0], row) for row in options if is_common(row)]
    return before + entries([row for row in options if not is_common(row)]) + listed(common, "  ", "  ") + after


def item(option):
    """Returns the lines of `--help` for an option."""
    names = "  " if option.letter else "      "
    names += ", ".join(option.spellings[: 2 if option.letter else 1])
    names = with_argument(names, option)
    text = option.text
    more = [f"`--{alias}` is the same." for alias in option.aliases]
    more += [f"Default: {option.default}."] if option.default else []
    indent = " " * NAMES_WIDTH
    lines = wrapped(" ".join([text, *more]), indent, indent)
    if len(names) + 1 < NAMES_WIDTH:
        return [names + lines[0][len(names) :], *lines[1:]]
    return [names, *lines]


def full(command):
    """Returns the lines of `redlock COMMAND --help`."""
    options = options_of(table, command.name)
    lines = usage(command) + [""] + wrapped(command.about)
    for group, heading in table.GROUPS.items():
        rows = [row for row in options if row.group == group]
        if rows:
            lines += ["", f"{heading}:"]
        for row in rows:
            lines += item(row)
    if any(row.argument == "duration" for row in options):
        lines += ["", *wrapped("D is a duration: 250ms, 30s, 5m, 2h, 1d; a bare number is seconds.")]
    if command.notes:
        lines += ["", *command.notes.splitlines()]
    lines += ["", *exits(command), ""]
    for text, words in command.examples:
        lines += wrapped(text) + [f"  {line}" for line in words.split("\n")]
    return lines + ["", f"The manual page is redlock-{command.name}(1)."]


def overview():
    """Returns the lines of `redlock --help`."""
    lines = ["Usage: redlock COMMAND [options] ...", ""]
    for command in table.COMMANDS:
        words = command.synopsis[0].replace("[options] ", "").replace("[options]", "")
        words = f"{command.name} {words}".strip()
        lines.append(f"  {OVERVIEW_NAMES.get(command.name, words):22} {command.summary}")
    return lines + OVERVIEW_REST.splitlines()


# Names and operands of those subcommands that are too long for the overview.
OVERVIEW_NAMES = {
    "run": "run NAME -- CMD",
    "sandbox": "sandbox [-- CMD]",
}

OVERVIEW_REST = """
  redlock COMMAND -h       its options on one screen, and an example
  redlock COMMAND --help   the same in sentences      redlock --version

Servers: -s LIST, or REDLOCK_SERVERS, or a file (-f, REDLOCK_CONFIG,
~/.config/redlock/redlock.conf, /etc/redlock.conf). Durations: 250ms 30s 5m
2h 1d; a bare number is seconds.
Exit: 0 done, 75 held by another client, 69 no quorum, 64 usage, 77 user refused
by the servers, 78 configuration. `run`: also the status of CMD, and 124.
"""

START = """\
redlock holds a lock on a majority of independent Redis servers.

  to try it:               redlock sandbox -- sh -c 'redlock run hello -- date'
  to run one job at a time:
      export REDLOCK_SERVERS=a:6379,b:6379,c:6379
      redlock run -w 10s backup -- ./backup.sh
  to see the holder:       redlock status backup

All commands: redlock --help
"""
