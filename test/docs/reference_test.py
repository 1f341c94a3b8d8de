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
import site_html
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
        returned |= {name.removeprefix("REDLOCK_") for name, _ in pages.BLOCKING}
        unused = [name for name, _, _ in self.reference.error_texts if name.removeprefix("REDLOCK_") not in returned]
        self.assertEqual(unused, [])

    def test_each_function_says_where_it_may_be_called(self):
        """A contract ends with a mark of threads, or has a sentence about threads."""
        silent = [item.name for item in self.functions if not item.mark and "thread" not in str(item.errors + item.paragraphs)]
        self.assertEqual(silent, [])


class Results(unittest.TestCase):
    """The section RETURN VALUE of the manual pages: one for each function that returns something."""

    # The functions of type int whose result is a number, and a word that says which.
    NUMBERS = {"redlock_get_fd": "descriptor", "redlock_lock_fd": "descriptor", "redlock_lock_slot": "slot",
               "redlock_shard_of": "index", "redlock_stats_prometheus": "length"}  # fmt: skip
    texts = pages.texts(Contracts.reference, "0")

    def section(self, name):
        """Returns the text of RETURN VALUE on the page of a function, or ""."""
        found = re.search(r"^\.SH RETURN VALUE\n(.*?)^\.SH ", self.texts[f"{name}.3"], re.M | re.S)
        return re.sub(r"\\f[BR]|\n\.PP", "", found[1]).replace("\n", " ") if found else ""

    def test_each_function_says_what_it_returns(self):
        """A page has the section unless the function returns nothing."""
        for item in Contracts.functions:
            with self.subTest(name=item.name):
                self.assertEqual(self.section(item.name) == "", item.code.startswith("void "))

    def test_functions_of_type_int(self):
        """Those that return numbers say which; the others return 0. Both say that errors are negative."""
        seen = 0
        for item in Contracts.functions:
            if not item.code.startswith("int ") or item.name == "redlock_error_at":
                continue
            seen += 1
            text = self.section(item.name)
            with self.subTest(name=item.name, text=text):
                self.assertIn("the errors below, which are negative constants", text)
                if item.name in self.NUMBERS:
                    self.assertIn(self.NUMBERS[item.name], text)
                    self.assertIn("0 or more on success", text)
                else:
                    self.assertTrue(text.startswith("0 (REDLOCK_OK)"), text)
                    self.assertNotIn("0 or more", text)
        self.assertGreater(seen, 50)

    def test_other_types(self):
        """Functions of other types say what they return, when it is NULL, and how long it lives."""
        for name, words in (("redlock_lock_token", ["the value of its keys", "NULL: lock is NULL.", "Borrowed until"]),
                            ("redlock_lock_remaining_ms", ["in milliseconds", "0: the lock is not held"]),
                            ("redlock_error_at", ["REDLOCK_OK for an index past"]),
                            ("redlock_report_ref", ["NULL if report is NULL", "frees each reference"])):  # fmt: skip
            for word in words:
                self.assertIn(word, self.section(name))

    def test_html_says_the_same(self):
        """The page of HTML has the same text for each function."""
        html = site_html.site(Contracts.reference, "0")
        for name, word in self.NUMBERS.items():
            part = re.search(rf'<section id="{name}">.*?</section>', html, re.S)[0]
            self.assertRegex(re.sub(r"<.*?>", "", part), rf"Return value.*{word}.*0 or more on success")


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
