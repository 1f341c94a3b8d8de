# SPDX-License-Identifier: MIT
"""The reference of the C interface: complete, and readable by man."""

import os
import re
import shutil
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
SOURCE = os.environ["REDLOCK_SOURCE"]
BUILD = os.environ["REDLOCK_BUILD"]
sys.path[:0] = [os.path.join(SOURCE, "test", "lib"), os.path.join(SOURCE, "docs", "reference")]
import headers
import pages
import tapcase


class Contracts(unittest.TestCase):
    """What the headers say about each function."""

    reference = headers.Reference(os.path.join(SOURCE, "include", "redlock"))
    functions = [item for item in reference.items.values() if item.kind == "function"]

    def test_each_exported_function_has_an_entry(self):
        """No symbol of the library is missing."""
        with open(os.path.join(SOURCE, "test", "abi", "symbols.txt"), encoding="utf-8") as file:
            exported = set(re.findall(r"^redlock_\w+", file.read(), re.M))
        self.assertGreater(len(exported), 50)
        self.assertEqual(sorted(exported - set(self.reference.items)), [])

    def test_each_parameter_is_explained(self):
        """A function explains its parameters, itself or by those that all functions have in common."""
        missing = [f"{item.name}: {name}" for item in self.functions
                   for name, text in item.explained(self.reference.blocking_of(item)) if not text]  # fmt: skip
        self.assertEqual(missing, [])

    def test_errors_exist_and_have_a_cause(self):
        """Each error of a contract is one of the library, and has a text of its own or a common one."""
        known = {name.removeprefix("REDLOCK_") for name, _, _ in self.reference.error_texts} | {"OK"}
        wrong = []
        for item in self.functions:
            for names, text in item.errors:
                wrong += [f"{item.name}: {name}" for name in names if name not in known or not text and name not in pages.PLAIN]
        self.assertEqual(wrong, [])

    def test_each_error_is_in_a_contract(self):
        """No error exists that no function returns."""
        returned = {name for item in self.functions for names, text in item.errors for name in names}
        returned |= set(re.findall(r"\bE[A-Z]{3,}\b", " ".join(pages.MARKS.values()).replace("REDLOCK_", "")))
        unused = [name for name, _, _ in self.reference.error_texts if name.removeprefix("REDLOCK_") not in returned]
        self.assertEqual(unused, [])

    def test_each_function_says_where_it_may_be_called(self):
        """A contract ends with a mark of threads, or has a sentence about threads."""
        silent = [item.name for item in self.functions if not item.mark and "thread" not in str(item.errors + item.paragraphs)]
        self.assertEqual(silent, [])


class Pages(unittest.TestCase):
    """The files that the build has made."""

    folder = os.path.join(BUILD, "docs", "reference")

    def test_pages_are_what_the_headers_say(self):
        """The build has made the pages again after the last change of a header."""
        with open(os.path.join(self.folder, "redlock_extend.3"), encoding="utf-8") as file:
            text = file.read()
        version = re.search(r'"redlock ([\d.]+)"', text)[1]
        self.assertEqual(text, pages.texts(Contracts.reference, version)["redlock_extend.3"])

    def test_man_reads_each_page(self):
        """man formats each page at 80 columns without a warning."""
        if not shutil.which("man"):
            self.skipTest("no man")
        names = sorted(name for name in os.listdir(self.folder) if name.endswith(".3"))
        self.assertGreater(len(names), 80)
        paths = [os.path.join(self.folder, name) for name in names]
        shown = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", *paths], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env={**os.environ, "MANWIDTH": "80", "LC_ALL": "C.UTF-8", "MANPAGER": "cat"}, check=False, text=True)  # fmt: skip
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))
        self.assertIn("REDLOCK_ELOST", shown.stdout)

    def test_html_has_each_item_and_no_dead_link(self):
        """The page of HTML has a section for each item, and each link leads to one."""
        with open(os.path.join(self.folder, "reference.html"), encoding="utf-8") as file:
            text = file.read()
        sections = re.findall(r'<section id="(\w+)">', text)
        self.assertEqual(sorted(sections), sorted(Contracts.reference.items))
        self.assertEqual(sorted(set(re.findall(r'href="#(\w+)"', text)) - set(sections)), [])


if __name__ == "__main__":
    tapcase.main()
