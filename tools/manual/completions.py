# SPDX-License-Identifier: MIT
"""Writes the completions for bash, zsh and fish. The parts that do not depend on the table are in the files completion.bash,
completion.zsh and completion.fish, in which a line @NAME@ stands for lines from table.py."""

import os
import re

import table
from help_texts import plain
from model import options_of

FOLDER = os.path.dirname(os.path.abspath(__file__))
COMMANDS = [command.name for command in table.COMMANDS]
SIGNALS = "HUP INT QUIT TERM USR1 USR2 KILL"


def words_of(option):
    """Returns the words that the option accepts as value, separated by blanks; empty if they are not known."""
    if "|" in option.argument:
        return option.argument.replace("|", " ")
    return SIGNALS if option.argument == "signal" else ""


def quoted(text):
    """Returns the text in single quotes, for any of the three shells, without [ ] and :, which have a meaning
    for zsh."""
    return "'" + re.sub(r"[\[\]:]", "", plain(text)).replace("'", "'\\''") + "'"


def excluded(option, command):
    """Returns the other options that a command line cannot have together with this one, and its own names unless it
    may be repeated."""
    names = [] if option.repeats else list(option.spellings)
    for row in table.CONFLICTS:
        pair = {f"OPT_{row.one}", f"OPT_{row.other}"}
        if command in row.commands.split() and option.c_name in pair and not row.needs and not row.unless:
            names += [name for other in options_of(table, command) if other.c_name in pair - {option.c_name}
                      for name in other.spellings]  # fmt: skip
    return names


def filled(name, sections):
    """Returns the text of a file of this folder, with each line @NAME@ replaced by the lines of that name."""
    result = []
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        for line in file.read().splitlines():
            mark = re.fullmatch(r"\s*@(\w+)@", line)
            result += sections[mark[1]] if mark else [line]
    return "\n".join(result) + "\n"


def bash():
    """Returns the completion for bash."""
    options, files, values = [], set(), {}
    for command in COMMANDS:
        words = []
        for option in options_of(table, command):
            words += [name + ("=" if option.argument else "") for name in option.spellings]
            files |= set(option.spellings) if option.argument == "file" else set()
            if words_of(option):
                values[" | ".join(option.spellings)] = words_of(option)
        options += [f'    {command}) options="{" ".join(words)}" ;;']
    cases = [f'    {" | ".join(sorted(files))}) mapfile -t COMPREPLY < <(compgen -f -- "$2") ;;']
    for names, words in values.items():
        cases.append(f'    {names}) mapfile -t COMPREPLY < <(compgen -W "{words}" -- "$2") ;;')
    return filled("completion.bash", {"options": options, "values": cases, "commands": [f'    local commands="{" ".join(COMMANDS)} help"']})


def zsh_option(option, command):
    """Returns the lines that describe an option to _arguments."""
    action = ""
    if option.argument:
        what = "_files" if option.argument == "file" else f"({words_of(option)})" if words_of(option) else " "
        action = f":{option.argument.split('|')[0] if '|' not in option.argument else 'action'}:{what}"
    guard = f"({' '.join(excluded(option, command))})" + ("*" if option.repeats else "")
    return [f"        '{guard}{name}{'=' if option.argument and name[1] == '-' else '+' if option.argument else ''}"
            f"['{quoted(option.hint)}']{action}'" for name in option.spellings]  # fmt: skip


def zsh():
    """Returns the completion for zsh."""
    cases = []
    for command in table.COMMANDS:
        cases.append(f"    {command.name})\n        options=(")
        for option in options_of(table, command.name):
            cases += ["    " + line for line in zsh_option(option, command.name)]
        cases.append("        )\n        ;;")
    names = [f"        {command.name}:{quoted(command.summary)}" for command in table.COMMANDS]
    return filled("completion.zsh", {"options": cases, "commands": names})


def fish_option(option, command):
    """Returns the line that describes an option to fish."""
    words = [f"complete -c redlock -n '__redlock_options_of {command}'"]
    words += [f"-s {option.letter}"] if option.letter else []
    words += [f"-l {name}" for name in option.long_names]
    if option.argument:
        words.append("-r -F" if option.argument == "file" else "-x")
        words += [f"-a '{words_of(option)}'"] if words_of(option) else []
    return " ".join(words) + f" -d {quoted(option.hint)}"


def fish():
    """Returns the completion for fish."""
    with_value, options, names = [], [], []
    for command in table.COMMANDS:
        names.append(f"complete -c redlock -n __redlock_no_command -x -a {command.name} -d {quoted(command.summary)}")
        names.append(f"complete -c redlock -n __redlock_is_help -x -a {command.name}")
        rows = options_of(table, command.name)
        valued = [name for option in rows if option.argument for name in option.spellings]
        with_value.append(f"        case {command.name}\n            set -a valued {' '.join(valued)}")
        options += [fish_option(option, command.name) for option in rows]
    return filled("completion.fish", {"options": options, "commands": names, "values": with_value})
