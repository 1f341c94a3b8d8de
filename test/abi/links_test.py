# SPDX-License-Identifier: MIT
"""Links between documents, and files and functions that documents name, exist. Tables of documents are complete."""

import os
import re
import subprocess
import sys
import unittest

import tree
import tapcase  # found through tree

LINK = re.compile(r"\]\(([^()\s]+)\)")
OUTSIDE = re.compile(r"^[a-z]+:")
DOCUMENT = re.compile(r"(?<![\w./-])((?:docs|test|bench|examples)/[\w./-]+\.(?:md|svg|1))\b")
SOURCE = re.compile(r"`((?:include|lib|test|tools|bench|examples|core|platform|node|engine|api)/[\w./-]+\.(?:[ch]|py|txt|pml|build))`")

FUNCTION = re.compile(r"`((?:rl|redlock)_\w+)\(\)`")


def prose(name):
    """Returns the text without fenced blocks and without brackets in code spans, where nothing is a link."""
    text = re.sub(r"^```.*?^```$", "", tree.text(name), flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", lambda code: re.sub(r"[\[\]()]", "", code.group(0)), text)


def anchors(name):
    """Returns the anchors that hosting sites give to the headings of a document."""
    found = set()
    for heading in re.findall(r"^#+ +(.*)$", prose(name), re.M):
        words = re.sub(r"[^\w\- ]", "", re.sub(r"\]\([^)]*\)", "", heading).lower())
        found.add(words.strip().replace(" ", "-"))
    return found


def exists(path):
    """Returns whether the path exists below the source tree."""
    return os.path.exists(os.path.join(tree.SOURCE, path))


class Links(unittest.TestCase):
    """What documents name must exist."""

    files = tree.tracked_files()
    documents = [name for name in files if name.endswith(".md")]

    def test_links_lead_to_files_and_headings(self):
        """Links between documents lead to files, and their anchors to headings."""
        wrong = []
        seen = 0
        for name in self.documents:
            for link in LINK.findall(prose(name)):
                if OUTSIDE.match(link):
                    continue
                seen += 1
                path, _, anchor = link.partition("#")
                target = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
                if not exists(target):
                    wrong.append(f"{name}: {link}: no such file")
                elif anchor and target.endswith(".md") and anchor not in anchors(target):
                    wrong.append(f"{name}: {link}: no such heading")
        self.assertGreater(seen, 20)
        self.assertEqual(wrong, [])

    def test_documents_that_are_named_exist(self):
        """Each document that any file names exists."""
        wrong = []
        for name in self.files:
            if name.startswith("test/fuzz/corpus/") or name.endswith(".svg"):
                continue
            wrong += [f"{name}: {path}" for path in DOCUMENT.findall(tree.text(name)) if not exists(path)]
        self.assertEqual(wrong, [])

    def test_sources_that_documents_name_exist(self):
        """Each source file that a document names exists, also without lib/ in front."""
        wrong = []
        for name in self.documents:
            for path in SOURCE.findall(tree.text(name)):
                if not exists(path) and not exists("lib/" + path):
                    wrong.append(f"{name}: {path}")
        self.assertEqual(wrong, [])

    def test_functions_that_documents_name_exist(self):
        """Each function rl_…() or redlock_…() in a document exists."""
        sources = "".join(tree.text(name) for name in tree.files_below("lib", ".c", ".h") + tree.files_below("include", ".h"))
        known = set(re.findall(r"\b((?:rl|redlock)_\w+)\(", sources))
        self.assertGreater(len(known), 100)
        wrong = [f"{name}: {function}()" for name in self.documents for function in FUNCTION.findall(tree.text(name))
                 if function not in known]  # fmt: skip
        self.assertEqual(wrong, [])

    def test_troubleshooting_names_each_error_cause_and_exit_code(self):
        """docs/troubleshooting.md has each public error, each cause and each exit code of the command in a table."""
        names = ["REDLOCK_" + name for name in re.findall(r"^ +XX\((E\w+), -", tree.text("include/redlock/error.h"), re.M)]
        self.assertGreater(len(names), 15)
        causes = re.findall(r"\b(REDLOCK_CAUSE_\w+) = \d", tree.text("include/redlock/report.h"))
        self.assertGreater(len(causes), 25)
        codes = re.findall(r"\bEXIT_\w+ = (\d+)", tree.text("tools/exits.h"))
        self.assertGreater(len(codes), 10)
        rows = [row for row in tree.text("docs/troubleshooting.md").split("\n") if row.startswith("| ")]
        first = " ".join(row.split("|")[1] for row in rows)
        missing = [name for name in names + causes if f"`{name}`" not in first]
        missing += [code for code in codes if not re.search(rf"(?<!\w){code}(?!\w)", first)]
        self.assertEqual(missing, [])

    def test_matrix_has_the_rows_of_its_table(self):
        """The newest table of the matrix has the rows of ./dev matrix. docs/operations.md names the versions of the servers, and
        the systems, that were not skipped, and no others."""
        matrix = [name for name in self.documents if name.endswith("-matrix.md")][-1]
        listed = subprocess.run([sys.executable, os.path.join(tree.SOURCE, "test", "matrix"), "--list"], check=True,
                                stdout=subprocess.PIPE, universal_newlines=True).stdout.splitlines()  # fmt: skip
        self.assertGreater(len(listed), 15)
        rows = [[cell.strip() for cell in line.strip("|").split("|")]
                for line in tree.text(matrix).split("\n") if line.startswith("| ")][1:]  # fmt: skip
        self.assertEqual([cells[0] for cells in rows], listed)
        users = tree.text("docs/operations.md").partition("\n## Platforms and servers\n")[2].partition("\n## ")[0]
        ran = {}
        for name, versions, *_ in rows:
            wanted = versions.split()[1] if versions.startswith("server ") else name.split(",")[0]
            ran[wanted] = ran.get(wanted, False) or not versions.startswith("skipped: ")
        self.assertEqual({wanted: wanted in users for wanted in ran}, ran)


if __name__ == "__main__":
    tapcase.main()
