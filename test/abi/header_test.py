# SPDX-License-Identifier: MIT
"""The public header compiles alone and included twice, as C and as C++, without a warning: with the compiler of the build
and the one for C++ that belongs to it."""

import os
import re
import shutil
import subprocess
import unittest

import tree
import tapcase  # found through tree

CC = os.path.basename(os.environ.get("CC", "gcc"))
CXX = {"gcc": "g++", "clang": "clang++"}.get(CC, "c++")
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
USE_CPP = """
#include <redlock/redlock.hpp>
#include <redlock/redlock.hpp>
using namespace std::chrono_literals;
int one(redlock::client &client);
int one(redlock::client &client)
{
    std::unique_lock guard(*std::make_unique<redlock::unique_lock>(client, "a", redlock::options(10s), std::defer_lock), 1min);
    return redlock::with(client, {"a", "b"}, redlock::options(10s), [](redlock::unique_lock &lock) { return lock ? 1 : 0; });
}
"""
# Asio as a library of its own and as one of Boost. Asio takes two seconds to compile. Each pair of a compiler, a standard and
# a header is compiled by the build of that compiler, but not each combination of the three.
ASIO_FLAGS = {"asio.hpp": ["-DASIO_STANDALONE"], "boost/asio.hpp": []}
ASIO = {
    ("g++", "c++11"): "asio.hpp",
    ("g++", "c++20"): "boost/asio.hpp",
    ("clang++", "c++11"): "boost/asio.hpp",
    ("clang++", "c++20"): "asio.hpp",
}
# The adapters for event loops, with the name of the loop for pkg-config; asio.hpp is for C++ only.
ADAPTERS = {"libuv": "libuv", "libevent": "libevent_core", "glib": "glib-2.0", "sdevent": "libsystemd"}
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
        """Compiles a program that includes the header before anything else, and uses it, without warnings."""
        if shutil.which(compiler) is None:
            self.skipTest(f"{compiler} is not installed")
        done = subprocess.run([compiler, "-x", language, f"-std={standard}", *FLAGS, *flags, *INCLUDES, "-"], input=USE,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, universal_newlines=True)  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stdout)

    def compile_adapters(self, compiler, language, standard):
        """Compiles the header of each adapter, included twice, whose event loop is installed. libuv needs the names that
        GNU's forms of the standards have."""
        if shutil.which(compiler) is None:
            self.skipTest(f"{compiler} is not installed")
        seen = 0
        for adapter, package in ADAPTERS.items():
            found = subprocess.run(["pkg-config", "--cflags", package], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                   check=False, universal_newlines=True)  # fmt: skip
            if found.returncode != 0:
                continue
            seen += 1
            system = [word.replace("-I", "-isystem", 1) for word in found.stdout.split()]
            gnu = standard.replace("c", "gnu", 1)
            done = subprocess.run([compiler, "-x", language, f"-std={gnu}", *FLAGS, *INCLUDES, *system, "-"],
                                  input=f"#include <redlock/adapters/{adapter}.h>\n" * 2, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, check=False, universal_newlines=True)  # fmt: skip
            self.assertEqual(done.returncode, 0, done.stdout)
        if seen == 0:
            self.skipTest("the development files of no event loop are installed")

    def compile_asio(self, compiler, standard, header):
        """Compiles the adapter for Asio with this header of Asio, if it is installed."""
        if shutil.which(compiler) is None:
            self.skipTest(f"{compiler} is not installed")
        # Only whether the header exists: preprocessing all of it takes a second.
        probe = subprocess.run([compiler, "-x", "c++", "-E", "-"], input=f"#if !__has_include(<{header}>)\n#error\n#endif\n",
                               capture_output=True, check=False, text=True)  # fmt: skip
        if probe.returncode != 0:
            self.skipTest(f"{header} is not installed")
        done = subprocess.run([compiler, "-x", "c++", f"-std={standard}", *FLAGS, *CXX_FLAGS, *ASIO_FLAGS[header], *INCLUDES, "-"],
                              input="#include <redlock/adapters/asio.hpp>\n" * 2, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False, text=True)  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stdout)

    def compile_cpp(self, compiler, standard):
        """Compiles the C++ wrapper, included twice, and uses of its templates, without warnings."""
        if shutil.which(compiler) is None:
            self.skipTest(f"{compiler} is not installed")
        done = subprocess.run([compiler, "-x", "c++", f"-std={standard}", *FLAGS, *CXX_FLAGS, "-Wconversion", "-Wsign-conversion",
                               *INCLUDES, "-"], input=USE_CPP, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                              universal_newlines=True)  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_only_functions_marked_so_warn_of_an_ignored_result(self):
        """An ignored result gives a warning for redlock_extend(), and none for redlock_release()."""
        for call, warns in (("extend(NULL, 0, NULL)", True), ("release(NULL, NULL)", False)):
            for compiler, language in ((CC, "c"), (CXX, "c++")):
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
    """Adds tests for one compiler and one standard."""
    def test(self):
        """The headers compile."""
        self.compile(compiler, language, standard, flags)

    def test_adapters(self):
        """The headers of the adapters compile."""
        self.compile_adapters(compiler, language, standard)

    def test_asio(self):
        """The header of the adapter for Asio compiles."""
        self.compile_asio(compiler, standard, ASIO[compiler, standard])

    def test_cpp(self):
        """The C++ wrapper compiles."""
        self.compile_cpp(compiler, standard)

    suffix = f"{name}_{standard.replace('+', 'p')}"
    setattr(Header, f"test_{suffix}", test)
    if standard in ("c99", "c17", "c++11", "c++20"):
        setattr(Header, f"test_adapters_{suffix}", test_adapters)
    if (compiler, standard) in ASIO:
        setattr(Header, f"test_asio_{suffix}", test_asio)
    if standard in ("c++17", "c++20"):
        setattr(Header, f"test_cpp_{suffix}", test_cpp)


for c_standard in ("c99", "c11", "gnu11", "c17"):
    add(CC, CC, "c", c_standard, C_FLAGS)
for cxx_standard in ("c++11", "c++17", "c++20"):
    add(CXX, CXX, "c++", cxx_standard, CXX_FLAGS)

class Wrappers(unittest.TestCase):
    """What redlock.hpp and the binding for Python cover of redlock.h. A new function must be wrapped, or named as one that
    is not."""

    # What the binding for Python leaves out; its README says why. Started calls have only those that asyncio needs.
    NOT_IN_PYTHON = set(
        "redlock_adopt redlock_with redlock_release_token redlock_lock_retain redlock_lock_resource redlock_get_fd"
        " redlock_process redlock_init_fence_records redlock_report_ref redlock_config_add_shard redlock_config_set_mode"
        " redlock_config_set_log redlock_config_set_event redlock_config_validity_ms redlock_error_at"
        " redlock_cause_count redlock_version_number redlock_build_text".split()
    )

    def setUp(self):
        """Reads the names of the exported functions."""
        self.exported = {name for name in re.findall(r"^redlock_\w+", tree.text("test/abi/symbols.txt"), re.M)}
        self.assertGreater(len(self.exported), 80)

    def test_cpp(self):
        """redlock.hpp calls each function, or its first comment names it; started calls are named as a group."""
        text = tree.text("include/redlock/redlock.hpp")
        missing = {name for name in self.exported if not name.endswith("_start") and not re.search(rf"\b{name}\(", text)}
        self.assertEqual(missing, set())

    def test_python(self):
        """The binding uses each function that it declares, and declares all but NOT_IN_PYTHON."""
        declared = set(re.findall(r"\bredlock_\w+(?=\()", tree.text("bindings/python/libredlock/declarations.h")))
        code = "".join(tree.text(name) for name in tree.files_below("bindings/python/libredlock", ".py", ".c"))
        self.assertEqual({name for name in declared if not re.search(rf"\b{name}\b", code)}, set())
        missing = {name for name in self.exported - declared if not name.endswith("_start")}
        self.assertEqual(missing, self.NOT_IN_PYTHON)


if __name__ == "__main__":
    tapcase.main()
