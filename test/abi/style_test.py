# SPDX-License-Identifier: MIT
"""Rules for all files of the tree: short functions, a licence, no notes about unfinished work, no paths of one machine.
./dev lint runs it, too."""

import ast
import os
import re
import unittest

import tree
import tapcase  # found through tree

FUNCTION_LINES_MAX = 70
C = (".c", ".h", ".cc")
CODE = C + (".hpp", ".py", ".sh")

# Each word is in two parts, so that this file is not found.
UNFINISHED = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|X" + r"XX|HA" + r"CK|T" + r"BD|W" + r"IP)\b")
MACHINE_PATH = re.compile(r"(?<![\w.~}$])/(work|root|home/\w+|Users/\w+)/")
SLEEP = re.compile(r"\b(u?sleep|nanosleep|clock_nanosleep)\s*\(")
FLOAT = re.compile(r"\b(float|double)\b")


def is_code(name):
    """Returns whether the file is a source: by its ending, or by #! in a file without one."""
    if name.endswith(CODE):
        return True
    return "." not in os.path.basename(name) and tree.text(name).startswith("#!")


def lines_of(name):
    """Returns the lines of the file."""
    return tree.text(name).split("\n")


def c_functions(name):
    """Yields (first line, length) of each function, from its name to the closing brace in the first column."""
    start = None
    lines = tree.without_comments(tree.text(name)).split("\n")
    for number, line in enumerate(lines, 1):
        if line.rstrip() == "{":
            start = number
        elif line.startswith("}") and start is not None:
            yield start - 1, number - start + 2
            start = None


def python_functions(name):
    """Yields (line, number of lines) of each function of a Python file."""
    for node in ast.walk(ast.parse(tree.text(name))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.lineno, node.end_lineno - node.lineno + 1


def shell_functions(name):
    """Yields the same for a shell script."""
    start = None
    for number, line in enumerate(lines_of(name), 1):
        if re.match(r"[\w]+\(\) *\{$", line):
            start = number
        elif line == "}" and start is not None:
            yield start, number - start + 1
            start = None


def functions(name):
    """Yields the same for a file of any of the three languages."""
    if name.endswith(C):
        return c_functions(name)
    if name.endswith(".py") or re.match(r"#!.*python", lines_of(name)[0]):
        return python_functions(name)
    return shell_functions(name)


class Style(unittest.TestCase):
    """Rules of style that can be checked file by file."""

    # The corpus of a fuzzer contains any bytes.
    files = [name for name in tree.tracked_files() if not name.startswith("test/fuzz/corpus/")]
    code = [name for name in files if is_code(name)]

    def fail_with(self, found):
        """Fails with these lines, if there are any."""
        if found:
            self.fail("\n" + "\n".join(found))

    def find(self, pattern, names, text=tree.text, allowed=()):
        """Fails if the pattern matches a line of one of the files. `text` is the function that reads a file,
        `allowed` are files that are left out."""
        found = []
        for name in names:
            if name in allowed:
                continue
            for number, line in enumerate(text(name).split("\n"), 1):
                if pattern.search(line):
                    found.append(f"{name}:{number}: {line.strip()[:100]}")
        self.fail_with(found)

    def test_files_are_found(self):
        """The control: there are files to look at."""
        self.assertGreater(len(self.code), 20)
        self.assertIn("dev", self.code)

    def test_functions_are_short(self):
        """Functions have at most FUNCTION_LINES_MAX lines."""
        found = []
        seen = 0
        for name in self.code:
            for line, length in functions(name):
                seen += 1
                if length > FUNCTION_LINES_MAX:
                    found.append(f"{name}:{line}: {length} lines, at most {FUNCTION_LINES_MAX}")
        self.assertGreater(seen, 100)
        self.fail_with(found)

    def test_each_source_file_begins_with_its_licence(self):
        """The first line of a source, or the second one behind #!, names the licence."""
        missing = []
        for name in self.code:
            lines = lines_of(name)
            first = lines[1] if lines[0].startswith("#!") else lines[0]
            if "SPDX-License-Identifier: MIT" not in first:
                missing.append(name)
        self.fail_with(missing)

    def test_no_notes_about_unfinished_work(self):
        """No file has a note about unfinished work."""
        self.find(UNFINISHED, self.files)

    def test_no_paths_of_one_machine(self):
        """No file has a path that exists on one machine only."""
        self.find(MACHINE_PATH, self.files)

    def test_no_tabs_and_no_blanks_at_the_end(self):
        """No tabs, and no blanks at the end of a line."""
        # Go's standard layout has tabs, and so have makefiles and the recipes of Alpine.
        self.find(re.compile(r"\t|[ \r]$"), [name for name in self.files if not name.endswith((".svg", ".go", "go.mod", "debian/rules", "APKBUILD"))],
                  text=lambda name: "" if b"\0" in tree.text(name).encode() else tree.text(name))  # fmt: skip

    def test_library_uses_no_floating_point(self):
        """lib/ has no floating point."""
        names = [name for name in self.files if name.startswith("lib/") and name.endswith(C)]
        self.find(FLOAT, names, text=lambda name: tree.without_comments(tree.text(name)))

    def test_tests_do_not_sleep(self):
        """C tests do not sleep; only wait.c may."""
        names = [name for name in self.files if name.startswith("test/") and name.endswith(C)]
        self.find(SLEEP, names, allowed={"test/lib/wait.c"},
                  text=lambda name: tree.without_comments(tree.text(name)))  # fmt: skip

    def test_header_guards_follow_the_path(self):
        """The guard of a header of lib/ is its path."""
        wrong = []
        for name in self.files:
            if name.startswith("lib/") and name.endswith(".h"):
                guard = "RL_" + re.sub(r"\W", "_", name[len("lib/"):]).upper()
                if f"#ifndef {guard}\n#define {guard}\n" not in tree.text(name):
                    wrong.append(f"{name}: guard should be {guard}")
        self.fail_with(wrong)


if __name__ == "__main__":
    tapcase.main()
