# SPDX-License-Identifier: MIT
"""The public header compiles alone and included twice, as C and as C++, without a warning."""

import os
import re
import shutil
import subprocess
import unittest

import tree
import tapcase  # found through tree

FLAGS = "-Wall -Wextra -pedantic -Werror -Wundef -Wshadow -fsyntax-only".split()
C_FLAGS = ["-Wstrict-prototypes", "-Wc++-compat", "-Wconversion"]
INCLUDES = [f"-I{os.path.join(folder, 'include')}" for folder in (tree.SOURCE, tree.BUILD)]
CXX_FLAGS = ["-Wold-style-cast", "-Wnon-virtual-dtor"]
USE = """
#include <redlock/redlock.h>
#include <redlock/redlock.h>
#if REDLOCK_VERSION_NUMBER < 0x000200 || REDLOCK_VERSION_MAJOR > 255
#error "the version cannot be compared"
#endif
int main(void)
{
    redlock_opts_t opts = redlock_opts(1000);
    opts.wait_ms = REDLOCK_WAIT_FOREVER;
    return opts.size == sizeof opts && REDLOCK_ENOMEM < REDLOCK_OK ? 0 : 1;
}
"""
IGNORES = """
#include <redlock/redlock.h>
int main(void)
{
    redlock_%s;
    return 0;
}
"""


class Header(unittest.TestCase):
    """Compiles the public headers with different compilers and standards."""

    def compile(self, compiler, language, standard, flags):
        """Compiles a program that includes the header, and one that uses it, without warnings."""
        if shutil.which(compiler) is None:
            self.skipTest(f"{compiler} is not installed")
        for source in ("#include <redlock/redlock.h>\n", USE):
            done = subprocess.run(
                [compiler, "-x", language, f"-std={standard}", *FLAGS, *flags,
                 *INCLUDES, "-"],
                input=source, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                universal_newlines=True)  # fmt: skip
            self.assertEqual(done.returncode, 0, done.stdout)

    def test_only_functions_marked_so_warn_of_an_ignored_result(self):
        """An ignored result gives a warning for redlock_extend(), and none for redlock_release()."""
        for call, warns in (("extend(NULL, 0, NULL)", True), ("release(NULL, NULL)", False)):
            for compiler, language in (("gcc", "c"), ("g++", "c++"), ("clang", "c"), ("clang++", "c++")):
                if shutil.which(compiler) is None:
                    continue
                done = subprocess.run([compiler, "-x", language, "-Wall", "-Werror", "-c", "-o", os.devnull, *INCLUDES, "-"],
                                      input=IGNORES % call, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      check=False, universal_newlines=True)  # fmt: skip
                self.assertEqual("unused-result" in done.stdout, warns, f"{compiler} {call}: {done.stdout}")
                self.assertEqual(done.returncode != 0, warns, done.stdout)

    def test_nodiscard_mark_is_next_to_the_export_mark(self):
        """REDLOCK_NODISCARD stands right behind REDLOCK_API."""
        for name in tree.files_below("include", ".h"):
            marked = re.findall(r"^.*\bREDLOCK_NODISCARD\b.*$", tree.without_comments(tree.text(name)), re.MULTILINE)
            alone = [line for line in marked if not line.startswith(("REDLOCK_API REDLOCK_NODISCARD ", "#define "))]
            self.assertEqual(alone, [], name)

    def test_functions_of_the_installed_header_have_c_linkage(self):
        """Each header has extern "C"."""
        for name in tree.files_below("include", ".h"):
            self.assertIn('extern "C" {', tree.text(name), name)


def add(name, compiler, language, standard, flags):
    """Adds a test for one compiler and one standard."""
    def test(self):
        """The headers compile."""
        self.compile(compiler, language, standard, flags)

    setattr(Header, f"test_{name}_{standard.replace('+', 'p')}", test)


for each in ("gcc", "clang"):
    for c_standard in ("c99", "c11", "gnu11", "c17"):
        add(each, each, "c", c_standard, C_FLAGS)
for each in ("g++", "clang++"):
    for cxx_standard in ("c++11", "c++17", "c++20"):
        add(each, each, "c++", cxx_standard, CXX_FLAGS)

if __name__ == "__main__":
    tapcase.main()
