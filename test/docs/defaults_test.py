# SPDX-License-Identifier: MIT
"""The table of defaults in docs/embedding.md: it says which defaults of the bindings differ from those of C, and the
values are those of the sources."""

import ast
import os
import re
import sys
import unittest

sys.dont_write_bytecode = True
SOURCE = os.environ["REDLOCK_SOURCE"]
sys.path[:0] = [os.path.join(SOURCE, "test", "lib")]
import tapcase


def read(*path):
    """Returns the text of a file of the source tree."""
    with open(os.path.join(SOURCE, *path), encoding="utf-8") as file:
        return file.read()


def rows():
    """Returns the rows of the table: what, and the rest of the line."""
    text = read("docs", "embedding.md").split("\n## Defaults\n")[1]
    found = re.findall(r"^\| (.+?) \| (.+) \|$", text, re.M)
    return {what.rstrip(" *"): rest for what, rest in found}


def python_default(path, owner, argument):
    """Returns the default of an argument of a method __init__ of the binding for Python."""
    tree = ast.parse(read("bindings", "python", "libredlock", path))
    [made] = [each for each in ast.walk(tree) if isinstance(each, ast.ClassDef) and each.name == owner]
    [init] = [each for each in made.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
    plain = init.args.args[len(init.args.args) - len(init.args.defaults) :]
    values = [*zip(plain, init.args.defaults), *zip(init.args.kwonlyargs, init.args.kw_defaults)]
    [value] = [default for name, default in values if name.arg == argument]
    return ast.literal_eval(value)


class Defaults(unittest.TestCase):
    """Each case compares a row with a source."""

    def test_waiting(self):
        """lock() of C++ and acquire() of Python wait without limit; C makes one attempt."""
        row = rows()["wait for a lock"]
        self.assertIsNone(python_default("_lock.py", "LockBase", "blocking_timeout"))
        self.assertTrue(python_default("_lock.py", "LockBase", "blocking"))
        self.assertIn("milliseconds wait = forever;", read("include", "redlock", "redlock.hpp"))
        self.assertIn("C: one attempt", row)
        self.assertIn("C++ and Python: no limit", row)
        for name in ("`wait_ms`", "`options::wait`", "`blocking_timeout`"):
            self.assertIn(name, row)

    def test_ttl(self):
        """Python has a TTL of its own for locks without a timeout."""
        default = python_default("_client.py", "Client", "default_timeout")
        self.assertIsNone(python_default("_lock.py", "LockBase", "timeout"))
        self.assertIn(f"Python: {default} s", rows()["TTL"])
        self.assertIn("`default_timeout`", rows()["TTL"])

    def test_longest_ttl(self):
        """Python sets it itself."""
        self.assertIn(f"| {python_default('_client.py', 'Client', 'max_ttl')} s |", f"| {rows()['longest TTL (`max_ttl`)']} |")

    def test_extension(self):
        """Who extends without being asked."""
        self.assertIsNone(python_default("_lock.py", "LockBase", "auto_extend"))
        self.assertIn("bool auto_extend = false;", read("include", "redlock", "redlock.hpp"))
        row = rows()["automatic extension"]
        self.assertIn("C and C++: off", row)
        self.assertIn("Python: on for a lock without `timeout`", row)


if __name__ == "__main__":
    tapcase.main()
