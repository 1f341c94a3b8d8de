# SPDX-License-Identifier: MIT
"""Writes the manual pages, in the mdoc language: redlock(1), and a page for each subcommand. Synopsis, options, exit
codes and examples come from table.py. The rest comes from the files in pages/, in which a line @NAME@ stands for a
generated section or for another file of that folder."""

import os
import re

import table
from help_texts import is_common
from model import SHORT_ARGUMENTS, of_command, options_of

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pages")
LONG_ARGUMENTS = {short: long for long, short in SHORT_ARGUMENTS.items() if short.isupper() and len(short) > 1}
LONG_ARGUMENTS["N"] = "number"
LONG_ARGUMENTS["FILE"] = "file"
COMMANDS = [command.name for command in table.COMMANDS]


def escaped(word):
    """Returns the word so that it is no macro, no escape sequence and no request."""
    word = word.replace("\\", "\\e")
    return "\\&" + word if re.fullmatch(r"[A-Z][a-z]|[.,:;()\[\]?!|]|['.].*", word) else word


def macro_of(words):
    """Returns the mdoc words for literal text, a list of words."""
    first = words[0]
    if first.startswith("-") and len(first) > 1:
        return ["Fl", first[1:]] + arguments(words[1:])
    if first == "redlock" and len(words) > 1 and words[1] in COMMANDS:
        return ["Nm", "redlock", "Cm", words[1]] + arguments(words[2:])
    if first in COMMANDS and len(words) == 1:
        return ["Cm", first]
    if re.fullmatch(r"RED(IS|LOCK)_[A-Z_]+", first):
        return ["Ev", first]
    if re.match(r"[/~$]", first):
        return ["Pa", *map(escaped, words)]
    return ["Li", *map(escaped, words)]


def arguments(words):
    """Returns the mdoc words for what follows an option or a subcommand: options, operands and literal words."""
    result = []
    for word in words:
        bare = word.rstrip(".") if word.endswith("...") else word
        if word.startswith("{"):
            result += ["Ar", word.strip("{}")]
        elif word.startswith("-"):
            result += ["Fl", word[1:]]
        elif bare in LONG_ARGUMENTS:
            result += ["Ar", LONG_ARGUMENTS[bare]] + (["..."] if word != bare else [])
        else:
            result += ["Cm", escaped(word)]
    return result


MARK = re.compile(r"(\(?)(?:`([^`]*)`|\{(\w+)\})([.,;:)?!]*)")


def sentence(text):
    """Returns the mdoc lines of one sentence."""
    lines, at = [], 0
    for match in MARK.finditer(text):
        before = text[at : match.start()].strip()
        lines += [escaped(before)] if before else []
        words = ["Ar", match[3]] if match[3] else macro_of(match[2].split())
        opening = [words[0], "(", *words[1:]] if match[1] else words
        lines.append("." + " ".join(opening + list(match[4])))
        at = match.end()
    rest = text[at:].strip()
    return lines + ([escaped(rest)] if rest else [])


def prose(text):
    """Returns the mdoc lines of a text, each sentence on lines of its own."""
    sentences = re.split(r"(?<=[.?!]) (?=[A-Z`{])", text)
    return [line for part in sentences for line in sentence(part)]


def synopsis_of(command):
    """Returns the mdoc lines of the synopsis of a subcommand."""
    lines = []
    for words in command.synopsis:
        lines += [".Nm redlock", f".Cm {command.name}"]
        words = words.replace("[CMD [ARG...]]", "[CMD_ARGS]")
        for word in re.findall(r"\[[^\]]*\]|\S+", words):
            inner = word.strip("[]")
            parts = {"options": ["Ar", "options"], "--": ["Fl", "-"], "CMD_ARGS": ["Ar", "command", "Op", "Ar", "argument ..."],
                     "ARG...": ["Ar", "argument ..."]}.get(inner) or arguments(inner.split())  # fmt: skip
            lines.append("." + " ".join((["Op"] if word.startswith("[") else []) + parts))
    return lines


def item(option, command):
    """Returns the mdoc lines for an option."""
    argument = ""
    if "|" in option.argument:
        argument = " Cm " + " | ".join(option.argument.split("|"))
    elif option.argument:
        argument = f" Ar {option.argument}"
    lines = [".It " + " , ".join(f"Fl {name[1:]}{argument}" for name in option.spellings)]
    lines += prose(option.text)
    lines += prose(f"Default: {option.default}.") if option.default else []
    return lines + (contradictions(option, command) if command else [])


def contradictions(option, command):
    """Returns the lines that say with which others of the subcommand's options this one is refused."""
    names = {row.c_name: row.spellings[0] for row in options_of(table, command)}
    others = {}  # (value of this option, option that excuses it): the other options
    for row in table.CONFLICTS:
        one, _, value = row.one.partition("=")
        if command not in row.commands.split() or row.needs:
            continue
        if option.c_name == f"OPT_{one}":
            others.setdefault((value, row.unless), []).append(f"`{names[f'OPT_{row.other}']}`")
        elif option.c_name == f"OPT_{row.other}":
            other = f"`{names[f'OPT_{one}']} {value}`" if value else f"`{names[f'OPT_{one}']}`"
            others.setdefault(("", row.unless), []).append(other)
    lines = []
    for (value, unless), found in others.items():
        text = f"With the value `{value}` it contradicts " if value else "Contradicts "
        text += " and ".join(found) + (f" unless `{names[f'OPT_{unless}']}` is given" if unless else "")
        lines += sentence(text + ".")
    return lines


def option_list(options, command):
    """Returns the mdoc list of the options."""
    return [".Bl -tag -width Ds"] + [line for option in options for line in item(option, command)] + [".El"]


def options_section(command):
    """Returns the section with the options of the subcommand: those of its own, and the names of the others."""
    options = options_of(table, command.name)
    own = [option for option in options if not is_common(option)]
    lines = [".Sh OPTIONS"]
    for group, heading in table.GROUPS.items():
        rows = [option for option in own if option.group == group]
        if rows:
            lines += [f".Ss {heading}"] if len({option.group for option in own}) > 1 else []
            lines += option_list(rows, command.name)
    common = [option for option in options if is_common(option)]
    lines += [".Ss Common options", ".Xr redlock 1", "explains these:"]
    for option in common:
        end = " ." if option is common[-1] else " ,"
        argument = f" Ar {option.argument}" if option.argument else ""
        lines.append(f".Fl {option.spellings[0][1:]}{argument}{end}")
    return lines


def exit_section(command):
    """Returns the section with the exit codes of the subcommand."""
    lines = [".Sh EXIT STATUS", '.Bl -tag -width "128+n" -compact']
    for row in of_command(table.EXITS, command.name):
        lines += [f".It {row.code}"] + prose(row.text)
    return lines + [".El"]


def examples_section(command):
    """Returns the section with the examples of the subcommand."""
    lines = [".Sh EXAMPLES"]
    for index, (text, words) in enumerate(command.examples):
        lines += ([".Pp"] if index else []) + prose(text) + [".Bd -literal -offset indent"]
        lines += [escaped(line) for line in words.split("\n")] + [".Ed"]
    return lines


def read_lines(name):
    """Returns the lines of a file in pages/."""
    with open(os.path.join(FOLDER, name + ".mdoc"), encoding="utf-8") as file:
        return [line for line in file.read().splitlines() if not line.startswith('.\\" SPDX')]


def filled(lines, sections):
    """Returns the lines, with each @NAME@ replaced by the section or the file of that name."""
    result = []
    for line in lines:
        name = re.fullmatch(r"@([\w-]+)@", line)
        if not name:
            result.append(line)
        elif name[1] in sections:
            result += sections[name[1]]
        else:
            result += filled(read_lines(name[1]), sections)
    return result


def head(title, name, summary):
    """Returns the lines with which a page begins."""
    return ['.\\" SPDX-License-Identifier: MIT', f".Dd {table.DATE}", f".Dt {title} 1", ".Os", ".Sh NAME", f".Nm {name}",
            f".Nd {summary}", ".Sh SYNOPSIS"]  # fmt: skip


def command_page(command):
    """Returns the page of a subcommand."""
    sections = {
        "options": options_section(command),
        "exits": exit_section(command),
        "examples": examples_section(command),
    }
    lines = head(f"REDLOCK-{command.name.upper()}", f"redlock-{command.name}", command.summary)
    lines += synopsis_of(command) + [".Sh DESCRIPTION"] + prose(command.about)
    return "\n".join(lines + filled(read_lines(command.name), sections)) + "\n"


def main_page():
    """Returns redlock(1)."""
    lines = head("REDLOCK", "redlock", "hold a lock on a majority of independent Redis servers")
    for command in table.COMMANDS:
        lines += synopsis_of(command)
    lines += [".Nm", ".Fl -help | -version"]
    commands = [".Bl -tag -width Ds"]
    for command in table.COMMANDS:
        commands += [f".It Xr redlock-{command.name} 1"] + [command.summary[0].upper() + command.summary[1:] + "."]
    options = [option for option in options_of(table, "run") if is_common(option)]
    sections = {"commands": commands + [".El"], "options": [".Sh OPTIONS", *COMMON_LEAD, *option_list(options, "")]}
    return "\n".join(lines + filled(read_lines("redlock"), sections)) + "\n"


COMMON_LEAD = [
    "All subcommands have these options, except that",
    ".Cm sandbox",
    "has the last three of them only.",
]


def pages():
    """Returns {file name: text} of all manual pages."""
    result = {"redlock.1": main_page()}
    for command in table.COMMANDS:
        result[f"redlock-{command.name}.1"] = command_page(command)
    return result
