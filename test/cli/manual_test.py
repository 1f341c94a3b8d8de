# SPDX-License-Identifier: MIT
"""The manual pages: each subcommand has one with exactly its options, their markup is valid, they fit 80 columns, they
have all variables and exit codes, and the build makes them the same everywhere. MANUAL is the directory in which the
build has made them."""

import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(FOLDER, "..", "abi"))
sys.path.insert(0, os.path.join(FOLDER, "..", "..", "tools", "manual"))

import model  # noqa: E402 (in tools/manual)
import pages  # noqa: E402
import table  # noqa: E402
import tree  # noqa: E402
import tapcase  # noqa: E402 (found through tree)

MANUAL = os.environ["MANUAL"]
GENERATOR = os.path.join(FOLDER, "..", "..", "tools", "manual", "generate.py")
FORMAT = {**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "80"}


def page(command):
    """Returns the source of the page of a subcommand, of redlock(1) for ""."""
    with open(os.path.join(MANUAL, f"redlock-{command}.1" if command else "redlock.1"), encoding="utf-8") as file:
        return file.read()


def items(text):
    """Returns the options that the text has an entry for."""
    found = set()
    for line in re.findall(r"^\.It (Fl .*)$", text, re.MULTILINE):
        found |= {f"-{word}" for word in re.findall(r"Fl ([A-Za-z-]+)", line)}
    return found


def spellings(options):
    """Returns all names of the options."""
    return {name for option in options for name in option.spellings}


class Manual(unittest.TestCase):
    """Compares the manual pages with the table of options and with the sources of the command."""

    commands = [command.name for command in table.COMMANDS]

    def test_each_subcommand_has_a_page(self):
        """The build makes the pages of all subcommands, and no others."""
        self.assertGreater(len(self.commands), 9)
        made = {name for name in os.listdir(MANUAL) if name.endswith(".1")}
        self.assertEqual(made, {"redlock.1"} | {f"redlock-{command}.1" for command in self.commands})

    def test_pages_have_the_options_of_their_subcommands(self):
        """A page has the options of its own and names the common ones, which redlock(1) has."""
        run = {option.c_name: option for option in model.options_of(table, "run")}
        common = [option for option in run.values() if pages.is_common(option)]
        self.assertGreater(len(common), 10)
        self.assertEqual(items(page("")), spellings(common))
        for command in self.commands:
            with self.subTest(command=command):
                options = model.options_of(table, command)
                own = [option for option in options if option not in common]
                self.assertEqual(items(page(command)), spellings(own))
                names = re.search(r"\.Ss Common options\n(.*?)\.S[hs] ", page(command), re.DOTALL).group(1)
                shown = {f"-{word}" for word in re.findall(r"^\.Fl ([\w-]+)", names, re.MULTILINE)}
                self.assertEqual(shown, {option.spellings[0] for option in options if option in common})

    def test_pages_lead_to_each_other(self):
        """redlock(1) names each page, each page names redlock(1), and each reference leads to a page or a known program."""
        known = {"redlock"} | {f"redlock-{command}" for command in self.commands}
        known |= {"flock", "redis-cli", "redis-server", "valkey-server"}
        for command in ["", *self.commands]:
            with self.subTest(command=command):
                names = set(re.findall(r"^\.(?:It )?Xr ([\w-]+) 1", page(command), re.MULTILINE))
                self.assertLessEqual(names, known)
                wanted = {"redlock"} if command else {f"redlock-{name}" for name in self.commands}
                self.assertLessEqual(wanted, names)

    def test_pages_have_all_variables(self):
        """The pages name the variables that tools/ reads or sets, and no others."""
        named = set()
        for command in ["", *self.commands]:
            named |= set(re.findall(r"RED(?:IS|LOCK)_[A-Z_]*[A-Z]", page(command).replace("REDLOCK_CAUSE_", "")))
        set_or_read = set()
        for name in tree.tracked_files():
            if name.startswith("tools/") and name.endswith(".c"):
                set_or_read |= set(re.findall(r'"(RED(?:IS|LOCK)_[A-Z_]*[A-Z])"', tree.text(name)))
        self.assertGreater(len(set_or_read), 20)
        self.assertEqual(named, set_or_read)

    def test_pages_have_all_exit_codes(self):
        """redlock(1) has each exit code of tools/exits.h that several subcommands use; the pages have only codes of it."""
        text = tree.text("tools/exits.h")
        common = set(re.findall(r"= (\d+)", re.search(r"enum exit_code \{(.*?)\}", text, re.DOTALL).group(1)))
        codes = {code for found in re.findall(r"enum \w+ \{(.*?)\}", text, re.DOTALL) for code in re.findall(r"= (\d+)", found)}
        self.assertGreater(len(common), 12)
        for command in ["", *self.commands]:
            section = re.search(r"\.Sh EXIT STATUS\n(.*?)\.El", page(command), re.DOTALL).group(1)
            shown = set(re.findall(r"^\.It (\d+)", section, re.MULTILINE))
            with self.subTest(command=command):
                self.assertLessEqual(shown, codes)
                self.assertEqual(shown & common, common if not command else shown & common)

    def test_nodes_has_the_exit_code_of_init(self):
        """`nodes --init` exits with 69 if nothing was changed, so EXIT STATUS has that code."""
        section = re.search(r"\.Sh EXIT STATUS\n(.*?)\.El", page("nodes"), re.DOTALL).group(1)
        self.assertRegex(section, r"\.It 69\nWith\n\.Fl -init")

    def test_an_upgrade_is_that_of_the_documents(self):
        """The loop for a rolling upgrade in redlock-nodes(1) is that of docs/operations.md."""
        loops = [re.search(r"^for host in [a-e ]+; do\n.*?^done$", text.replace("\\e", "\\"), re.DOTALL | re.MULTILINE).group()
                 for text in (page("nodes"), tree.text("docs/operations.md"))]  # fmt: skip
        self.assertEqual(*loops)

    def test_gauges_of_the_library_are_found(self):
        """A page that names the gauges of servers says which page lists them."""
        for command in ("run", "nodes"):
            section = re.search(r"\.Sh FIGURES\n(.*?)\.Sh ", page(command), re.DOTALL).group(1)
            self.assertIn(".Li redlock_server .", section)
            self.assertIn(".Xr redlock_stats_prometheus 3\nlists them.", section)

    def test_documents_that_pages_name(self):
        """A document is named by its path in the sources, and with the place where packages install it."""
        for command in ["", *self.commands]:
            for name in re.findall(r"[\w./-]+\.md\b", page(command)):
                with self.subTest(command=command, name=name):
                    self.assertTrue(os.path.exists(os.path.join(tree.SOURCE, name)), name)
                    self.assertIn("/usr/share/doc/redlock", page(command))

    def test_markup_is_valid(self):
        """The pages are formatted without warnings."""
        found = [words for words in (["mandoc", "-Tlint", "-Wwarning"], ["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8"])
                 if shutil.which(words[0])]  # fmt: skip
        if not found:
            self.skipTest("neither mandoc nor man")
        for command in ["", *self.commands]:
            for words in found:
                path = os.path.join(MANUAL, f"redlock-{command}.1" if command else "redlock.1")
                run = subprocess.run([*words, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                                     universal_newlines=True, env=FORMAT)  # fmt: skip
                with self.subTest(command=command, program=words[0]):
                    self.assertEqual((run.stdout if words[0] == "mandoc" else run.stderr, run.returncode), ("", 0))

    def test_pages_fit_80_columns(self):
        """Formatted for 80 columns, no line is longer, and no mark of the sources is left."""
        found = [words for words in (["mandoc", "-Tutf8", "-Owidth=80"], ["man", "-P", "cat", "-l"]) if shutil.which(words[0])]
        if not found:
            self.skipTest("neither mandoc nor man")
        for command, words in itertools.product(["", *self.commands], found):
            path = os.path.join(MANUAL, f"redlock-{command}.1" if command else "redlock.1")
            run = subprocess.run([*words, path], stdout=subprocess.PIPE, check=True, universal_newlines=True, encoding="utf-8",
                                 env=FORMAT)  # fmt: skip
            text = re.sub(r".\x08|\x1b\[\d+m", "", run.stdout)
            with self.subTest(command=command, program=words[0]):
                self.assertGreater(len(text.splitlines()), 30)
                self.assertLessEqual(max(map(len, text.splitlines())), 80)
                self.assertNotRegex(text, r"`|^@|NAME \{")

    def test_build_is_reproducible(self):
        """Another locale, another time zone and another order of hashes give the same files."""
        names = [name for name in os.listdir(MANUAL) if os.path.isfile(os.path.join(MANUAL, name))]
        self.assertGreater(len(names), 14)
        with tempfile.TemporaryDirectory() as directory:
            subprocess.run([sys.executable, "-B", GENERATOR, directory, *names], check=True, cwd="/",
                           env={"PATH": os.environ["PATH"], "LC_ALL": "C", "TZ": "Asia/Tokyo", "PYTHONHASHSEED": "7"})  # fmt: skip
            for name in names:
                with open(os.path.join(MANUAL, name), "rb") as mine, open(os.path.join(directory, name), "rb") as other:
                    self.assertEqual(mine.read(), other.read(), name)


if __name__ == "__main__":
    tapcase.main()
