# SPDX-License-Identifier: MIT
"""The manual page and the completion have exactly the options of the command, the page has all variables and exit
codes, and its markup is valid."""

import os
import re
import shutil
import subprocess
import sys
import unittest

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(FOLDER, "..", "abi"))

import tree  # noqa: E402
import tapcase  # noqa: E402 (found through tree)

REDLOCK = os.environ.get("REDLOCK", "redlock")
PAGE = "docs/redlock.1"
COMPLETION = os.path.join(tree.SOURCE, "tools", "redlock.bash")


def rows():
    """Reads the option table of the command: (commands, names with dashes, takes a value, id) for each option."""
    text = tree.text("tools/options_table.c")
    names = re.findall(r'"(\w+)"', re.search(r"command_names\[\] = \{(.*?)NULL\}", text, re.DOTALL).group(1))
    members = {f"CMD_{name.upper()}": {name} for name in names}
    macros = dict(re.findall(r"#define (\w+)\s+\((.*?)\)", text))

    def commands_of(expression):
        """Returns the commands that the C expression CMD_... | CMD_... names."""
        found = set()
        for word in re.findall(r"\w+", expression):
            found |= members[word] if word in members else commands_of(macros[word])
        return found

    found = re.findall(r"\{\"([a-z-]+)\", (0|'.'), (true|false), (\w+),\s+([A-Z_| \n]+)\}", text)
    return [
        (commands_of(which), {f"--{name}"} | ({f"-{letter[1]}"} if letter != "0" else set()), takes == "true", what)
        for name, letter, takes, what, which in found
    ]


def commands():
    """Returns {command: names of its options}."""
    options = {}
    for having, names, _, _ in rows():
        for command in having:
            options[command] = options.get(command, set()) | names
    return options


def with_value(command):
    """Returns the names of the command's options that take a value."""
    return {name for having, names, takes, _ in rows() if takes and command in having for name in names}


def items(section):
    """Returns the options that a section of the page has an entry for."""
    found = set()
    for line in re.findall(r"^\.It (Fl .*)$", section, re.MULTILINE):
        found |= {f"-{word}" for word in re.findall(r"Fl ([A-Za-z-]+)", line)}
    return found


def bash(script, *words):
    """Runs a script after the completion file, and returns the words that it prints."""
    run = subprocess.run(["bash", "--norc", "-c", f'source "$0"\n{script}', COMPLETION, *words],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, universal_newlines=True)  # fmt: skip
    return run.stdout.split()


def complete(*words):
    """Returns what the completion offers for the last of the words."""
    return bash('COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))\n_redlock\nprintf "%s\\n" "${COMPREPLY[@]}"', *words)


class Manual(unittest.TestCase):
    """Compares the manual page and the completion with the option table in tools/options_table.c."""

    @classmethod
    def setUpClass(cls):
        """Reads the option table and the manual page."""
        cls.page = tree.text(PAGE)
        cls.options = commands()
        cls.common = set.intersection(*(options for name, options in cls.options.items() if name != "sandbox"))
        cls.sections = dict(re.findall(r"^\.Ss (.*?)\n(.*?)(?=^\.S[sh] )", cls.page, re.MULTILINE | re.DOTALL))

    def test_option_table_can_be_read(self):
        """The table is found and has entries: otherwise the other tests would compare nothing."""
        self.assertEqual(len(self.options), 10)
        self.assertIn("--servers", self.common)
        self.assertLess({"-n", "--nodes", "-q", "--help"}, self.options["sandbox"])
        self.assertGreater(len(self.options["run"]), 40)

    def test_page_has_the_options_of_each_command(self):
        """The page has exactly the options of each command."""
        everywhere = items(self.sections["Options of all commands"])
        self.assertEqual(everywhere, self.common)
        for command, options in self.options.items():
            with self.subTest(command=command):
                self.assertEqual(items(self.sections[f"redlock {command}"]), options - self.common)
                self.assertRegex(self.page, rf"\.Sh SYNOPSIS\n(.*\n)*\.Cm {command}\n(.*\n)*\.Sh DESCRIPTION")

    def test_page_lists_options_of_the_sandbox_last(self):
        """Among the options of all commands, those that `sandbox` has, too, come last."""
        last = re.findall(r"^\.It .*$", self.sections["Options of all commands"], re.MULTILINE)[-3:]
        self.assertEqual(items("\n".join(last)), self.options["sandbox"] & self.common)

    def test_help_has_the_options_of_each_command(self):
        """Every option in the help exists, and every option is in the help under one of its names."""
        for command, options in self.options.items():
            text = subprocess.run([REDLOCK, command, "--help"], stdout=subprocess.PIPE, check=True,
                                  universal_newlines=True).stdout  # fmt: skip
            text = re.sub(r"(?m)^(Example:|Exit:).*(\n +.*)*", "", text)
            named = set(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", text))
            names = {}
            for having, words, _, what in rows():
                if command in having:
                    names[what] = names.get(what, set()) | words
            with self.subTest(command=command):
                self.assertLessEqual(named, options)
                missing = [what for what, words in names.items() if not words & (named | {"--help"})]
                self.assertEqual(missing, [])

    def test_page_has_all_variables(self):
        """The page names each variable that tools/ reads or sets."""
        named = set(re.findall(r"RED(?:IS|LOCK)_[A-Z_]+", self.page))
        set_or_read = set()
        for name in os.listdir(os.path.join(tree.SOURCE, "tools")):
            if not name.endswith(".c") or name == "help.c":
                continue
            text = tree.text(f"tools/{name}")
            set_or_read |= set(re.findall(r'"(RED(?:IS|LOCK)_[A-Z_]*[A-Z])"', text))
        self.assertGreater(len(set_or_read), 20)
        self.assertEqual(named, set_or_read)

    def test_page_has_all_exit_codes(self):
        """The page names each exit code."""
        codes = re.search(r"enum exit_code \{(.*?)\}", tree.text("tools/exits.h"), re.DOTALL).group(1)
        text = re.search(r"\.Sh EXIT STATUS\n(.*?)\.El", self.page, re.DOTALL).group(1)
        self.assertEqual(set(re.findall(r"^\.It (\d+)", text, re.MULTILINE)), set(re.findall(r"= (\d+)", codes)))

    def test_page_has_valid_markup(self):
        """The page is formatted without warnings."""
        checked = False
        for words in (["mandoc", "-Tlint", "-Wwarning"], ["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8"]):
            if not shutil.which(words[0]):
                continue
            run = subprocess.run([*words, os.path.join(tree.SOURCE, PAGE)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                                 universal_newlines=True, env={**os.environ, "LC_ALL": "C.UTF-8"})  # fmt: skip
            output = run.stdout if words[0] == "mandoc" else run.stderr
            self.assertEqual((output, run.returncode), ("", 0))
            checked = True
        if not checked:
            self.skipTest("neither mandoc nor man")

    def test_completion_of_options(self):
        """The completion offers exactly the options of each command."""
        for command, options in self.options.items():
            with self.subTest(command=command):
                self.assertEqual(set(complete("redlock", command, "-")), options)
                values = bash('_redlock_options "$1"; printf "%s\\n" $options', command)
                self.assertEqual({word[:-1] for word in values if word.endswith("=")}, with_value(command))

    def test_completion_of_words(self):
        """The completion offers the words that an option accepts."""
        self.assertEqual(set(complete("redlock", "")), set(self.options) | {"--help", "--version"})
        self.assertEqual(complete("redlock", "st"), ["status"])
        self.assertEqual(complete("redlock", "run", "--on-loss", ""), ["stop", "warn"])
        self.assertEqual(complete("redlock", "run", "-w", ""), [])
        self.assertEqual(complete("redlock", "run", "-w", "1s", "name", "--", "cat", "/etc/hostn"), ["/etc/hostname"])
        self.assertIn("bash", complete("redlock", "run", "-w", "1s", "name", "bas"))
        self.assertIn("bash", complete("redlock", "sandbox", "-n", "3", "bas"))
        self.assertEqual(complete("redlock", "status", "na"), [])
        self.assertEqual(complete("redlock", "run", "name", "cat", "--fen"), [])


if __name__ == "__main__":
    tapcase.main()
