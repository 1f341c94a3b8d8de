# SPDX-License-Identifier: MIT
"""The exported symbols are part of the interface: the shared library, the version script, the public headers and the
list in symbols.txt must agree."""

import glob
import os
import re
import subprocess
import unittest

import tree
import tapcase  # found through tree

LISTED = os.path.join(tree.SOURCE, "test", "abi", "symbols.txt")
SHARED = os.path.join(tree.BUILD, "lib", "libredlock.so")
STATIC = os.path.join(tree.BUILD, "lib", "libredlock.a")


def listed():
    """Returns the names in symbols.txt."""
    with open(LISTED, encoding="ascii") as file:
        return [line.strip() for line in file if line.strip() and not line.startswith("#")]


def declared():
    """Functions that the headers mark as public."""
    texts = [tree.text(name) for name in tree.files_below("include", ".h")]
    header = tree.without_comments("\n".join(texts))
    marked = re.findall(r"^REDLOCK_API\b([^;{]*?)\(", header, re.MULTILINE)
    return {words.split()[-1].lstrip("*") for words in marked}


def without_runtime(names):
    """Returns the names without those that the linker adds."""
    return {name for name in names if not re.match(r"_init$|_fini$|_edata$|_end$|__bss_start$", name)}


class Exports(unittest.TestCase):
    """The symbols of the libraries, against the list symbols.txt."""

    maxDiff = None

    def test_list_is_sorted_and_valid(self):
        """The list is sorted, without doubles, and all names begin with redlock_."""
        self.assertEqual(listed(), sorted(set(listed())))
        for name in listed():
            self.assertRegex(name, r"^redlock_[a-z0-9_]+$")

    def test_header_declares_the_list(self):
        """The headers declare exactly the functions of the list."""
        self.assertEqual(sorted(declared()), listed())

    def test_shared_library_exports_the_list(self):
        """The shared library exports exactly the list."""
        exported = {
            name for name, kind in tree.symbols(SHARED, "-D", "--defined-only") if kind != "A"
        }
        self.assertEqual(sorted(without_runtime(exported)), listed())

    def test_exports_carry_the_version_of_the_map(self):
        """Each export has the symbol version of lib/redlock.map."""
        table = subprocess.run(["objdump", "-T", SHARED], stdout=subprocess.PIPE, check=True,
                               universal_newlines=True).stdout  # fmt: skip
        version = re.match(r"\s*(\w+)\s*{", tree.text("lib/redlock.map")).group(1)
        for name in listed():
            lines = [line for line in table.split("\n") if line.endswith(" " + name)]
            self.assertTrue(lines and version in lines[0], f"{name} without version {version}: {lines}")

    def test_map_exports_nothing_else(self):
        """The map exports redlock_* and hides the rest."""
        body = re.search(r"global:(.*?)local:(.*?)}", tree.text("lib/redlock.map"), re.DOTALL)
        self.assertEqual(body.group(1).split(), ["redlock_*;"])
        self.assertEqual(body.group(2).split(), ["*;"])

    def test_debian_package_names_the_list(self):
        """debian/libredlock0.symbols has each function of the list, with the version that added it."""
        lines = tree.text("debian/libredlock0.symbols").split("\n")
        names = [line.split("@")[0].strip() for line in lines if re.fullmatch(r" redlock_\w+@REDLOCK_0 [\d.]+", line)]
        self.assertEqual(names, listed())

    def test_static_library_has_only_prefixed_symbols(self):
        """All global symbols of the static library begin with redlock_ or rl_. sys/sdt.h adds a weak one, hidden."""
        names = {name for name, _ in tree.symbols(STATIC, "-g", "--defined-only")}
        self.assertEqual(sorted(name for name in names if not re.match(r"redlock_|rl_|_\.stapsdt\.base$", name)), [])

    def test_soname(self):
        """The shared library is libredlock.so.0."""
        table = subprocess.run(["objdump", "-p", SHARED], stdout=subprocess.PIPE, check=True,
                               universal_newlines=True).stdout  # fmt: skip
        self.assertEqual(re.findall(r"SONAME\s+(\S+)", table), ["libredlock.so.0"])

    def test_needs_only_the_documented_libraries(self):
        """It needs only the libraries that the documents name."""
        table = subprocess.run(["objdump", "-p", SHARED], stdout=subprocess.PIPE, check=True,
                               universal_newlines=True).stdout  # fmt: skip
        needed = {re.sub(r"\.so.*", "", name) for name in re.findall(r"NEEDED\s+(\S+)", table)}
        self.assertLessEqual(needed, {"libhiredis", "libsodium", "libssl", "libcrypto", "libc", "libpthread", "libdl"})

    def test_calls_within_the_library_stay_there(self):
        """No function of the same name elsewhere in the process can replace one of the library's."""
        table = subprocess.run(["readelf", "-r", "-W", SHARED], stdout=subprocess.PIPE, check=True,
                               universal_newlines=True).stdout  # fmt: skip
        self.assertIn(" malloc@", table)
        self.assertEqual(re.findall(r"\s((?:redlock|rl)_\w+)", table), [])

    def test_stack_is_not_executable_and_text_is_not_relocated(self):
        """Its stack is not executable, and its code is not relocated."""
        table = subprocess.run(["objdump", "-p", SHARED], stdout=subprocess.PIPE, check=True,
                               universal_newlines=True).stdout  # fmt: skip
        self.assertNotIn("TEXTREL", table)
        stack = re.search(r"STACK off.*\n.*flags (\S+)", table)
        self.assertTrue(stack and "x" not in stack.group(1), stack)

    def test_one_shared_library_is_built(self):
        """The build has one shared library."""
        real = [path for path in glob.glob(SHARED + "*")
                if os.path.isfile(path) and not os.path.islink(path) and ".symbols" not in path]  # fmt: skip
        self.assertEqual(len(real), 1, real)


if __name__ == "__main__":
    tapcase.main()
