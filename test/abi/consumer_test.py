# SPDX-License-Identifier: MIT
"""A program outside the tree builds with `pkg-config --cflags --libs redlock` against an installed copy
and runs: as C99, C11 and C++, with the shared and with the static library."""

import glob
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import tree
import tapcase  # found through tree

CC = os.environ.get("CC", "cc")
CXX = {"clang": "clang++", "gcc": "g++"}.get(os.path.basename(CC), "c++")
WARNINGS = "-Wall -Wextra -pedantic -Werror".split()


def run(words, **more):
    """Runs a command and returns it with its output, stderr included."""
    return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                          universal_newlines=True, **more)  # fmt: skip


class Consumer(unittest.TestCase):
    """The library is installed into a directory, and the prefix in its .pc file is changed to it, as after the unpacking
    of a package; the tests use nothing of the source tree or the build directory after that."""

    @classmethod
    def setUpClass(cls):
        """Installs the library into a temporary directory and adapts the .pc file to that place."""
        cls.root = tempfile.mkdtemp(prefix="consumer-")
        cls.addClassCleanup(shutil.rmtree, cls.root)
        done = run(["meson", "install", "-C", tree.BUILD, "--no-rebuild", "--destdir", cls.root])
        if done.returncode != 0:
            raise AssertionError(done.stdout)
        [cls.pc] = glob.glob(f"{cls.root}/**/redlock.pc", recursive=True)
        with open(cls.pc, encoding="utf-8") as file:
            text = file.read()
        cls.prefix = cls.root + re.search(r"^prefix=(.*)$", text, re.MULTILINE).group(1)
        with open(cls.pc, "w", encoding="utf-8") as file:
            file.write(re.sub(r"^prefix=.*$", f"prefix={cls.prefix}", text, flags=re.MULTILINE))
        cls.libdir = os.path.dirname(os.path.dirname(cls.pc))
        cls.project = os.path.join(cls.root, "project")
        shutil.copytree(os.path.join(tree.SOURCE, "test", "abi", "consumer"), cls.project)

    def pkg_config(self, *words):
        """Returns the words that pkg-config prints for redlock."""
        environment = {**os.environ, "PKG_CONFIG_PATH": os.path.dirname(self.pc)}
        done = run(["pkg-config", *words, "redlock"], env=environment)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout.split()

    def build_and_run(self, compiler, language, standard, static=()):
        """Builds the consumer with the flags of pkg-config and checks its output and the libraries that it needs."""
        if shutil.which(compiler) is None:
            self.skipTest(f"{compiler} is not installed")
        program = os.path.join(self.project, "consumer")
        flags = self.pkg_config("--cflags", "--libs", *(["--static"] if static else []))
        source = f"consumer.{'c' if language == 'c' else 'cc'}"
        shutil.copy(os.path.join(self.project, "main.c"), os.path.join(self.project, source))
        done = run([compiler, f"-std={standard}", *WARNINGS, source, "-o", program, *static, *flags],
                   cwd=self.project)  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stdout)
        environment = {**os.environ, "LD_LIBRARY_PATH": "" if static else self.libdir}
        done = run([program], env=environment, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("REDLOCK_ENOQUORUM", done.stdout)
        [version] = self.pkg_config("--modversion")
        self.assertIn(f"header {version}, library {version}\n", done.stdout)
        needed = run(["objdump", "-p", program]).stdout
        self.assertEqual("libredlock.so" in needed, not static)

    def test_command_has_the_version_of_pkg_config(self):
        """The installed command, the .pc file and meson.build have one version."""
        command = os.path.join(self.prefix, "bin", "redlock")
        if not os.path.exists(command):
            self.skipTest("the command is not built")
        [version] = self.pkg_config("--modversion")
        done = run([command, "--version"], env={**os.environ, "LD_LIBRARY_PATH": self.libdir})
        self.assertTrue(done.stdout.startswith(f"redlock {version} ("), done.stdout)
        self.assertIn(f"version: '{version}'", tree.text("meson.build"))

    def test_shared_c99(self):
        """A C99 program is built and runs with the shared library."""
        self.build_and_run(CC, "c", "c99")

    def test_shared_c11(self):
        """The same in C11."""
        self.build_and_run(CC, "c", "c11")

    def test_shared_cxx(self):
        """The same in C++11."""
        self.build_and_run(CXX, "c++", "c++11")

    def test_shared_cxx20(self):
        """The same in C++20."""
        self.build_and_run(CXX, "c++", "c++20")

    def cmake(self, wanted):
        """Configures the project for CMake with this version of the library. Returns the directory, the exit status and
        the output."""
        if shutil.which("cmake") is None:
            self.skipTest("cmake is not installed")
        folder = os.path.join(self.root, f"cmake-{wanted}")
        done = run(["cmake", "-S", self.project, "-B", folder, f"-DCMAKE_C_COMPILER={CC}", f"-DWANTED={wanted}",
                    f"-DCMAKE_PREFIX_PATH={self.prefix}", "-DCMAKE_C_FLAGS=-Wall -Wextra -pedantic -Werror"])  # fmt: skip
        return folder, done.returncode, done.stdout

    def test_cmake_finds_the_library(self):
        """find_package(redlock) gives targets for the shared and the static library, and programs with them run."""
        folder, status, output = self.cmake(".".join(self.project_version().split(".")[:2]))
        self.assertEqual(status, 0, output)
        done = run(["cmake", "--build", folder])
        self.assertEqual(done.returncode, 0, done.stdout)
        for name, shared in (("shared", True), ("archive", False)):
            program = os.path.join(folder, name)
            done = run([program], env={**os.environ, "LD_LIBRARY_PATH": self.libdir if shared else ""}, timeout=60)
            self.assertIn("REDLOCK_ENOQUORUM", done.stdout)
            self.assertEqual("libredlock.so" in run(["objdump", "-p", program]).stdout, shared)

    def documented(self, language, pattern):
        """Returns the first block of embedding.md in this language that the pattern matches. Puts the first program of the
        document beside, as app.c and app.o."""
        text = tree.text("docs/embedding.md")
        folder = os.path.join(self.root, "documented")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "app.c"), "w", encoding="utf-8") as file:
            file.write(re.search(r"```c\n(.*?)```", text, re.DOTALL).group(1))
        done = run([CC, "-c", "app.c", *self.pkg_config("--cflags")], cwd=folder)
        self.assertEqual(done.returncode, 0, done.stdout)
        blocks = re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
        return folder, next(block for block in blocks if re.search(pattern, block))

    def libraries_of(self, program):
        """Runs a program, which must say that it was given no servers, and returns what ldd says of it."""
        done = run([program], env={"LD_LIBRARY_PATH": self.libdir}, timeout=60)
        self.assertIn("server addresses: NULL given", done.stdout)
        return run(["ldd", program], env={**os.environ, "LD_LIBRARY_PATH": self.libdir}).stdout

    def test_documented_static_link(self):
        """The command of embedding.md links the static library, and the libraries that it needs as shared ones; with the one
        word that the document names in place of another, it links all statically."""
        folder, block = self.documented("sh", r"libredlock\.a")
        environment = {**os.environ, "PKG_CONFIG_PATH": os.path.dirname(self.pc)}
        done = run(["sh", "-ec", block.replace("cc ", f"{CC} ")], cwd=folder, env=environment)
        self.assertEqual(done.returncode, 0, done.stdout)
        found = self.libraries_of(os.path.join(folder, "app"))
        self.assertNotIn("libredlock", found)
        self.assertIn("libsodium", found)
        self.assertIn("-Wl,--as-needed", block)
        done = run(["sh", "-ec", block.replace("cc ", f"{CC} ").replace("-Wl,--as-needed", "-static")], cwd=folder, env=environment)
        if re.search(r"cannot find -l", done.stdout):
            self.skipTest("a library that redlock needs has no static one here")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertNotIn("=>", self.libraries_of(os.path.join(folder, "app")))

    def test_documented_cmake(self):
        """The project file of embedding.md builds a program with the shared library, and with the static one if the other
        target that it names is used."""
        if shutil.which("cmake") is None:
            self.skipTest("cmake is not installed")
        folder, block = self.documented("cmake", "find_package")
        self.assertIn("redlock::archive", block)
        for target, shared in (("redlock::redlock", True), ("redlock::archive", False)):
            with open(os.path.join(folder, "CMakeLists.txt"), "w", encoding="utf-8") as file:
                file.write(block.replace("redlock::redlock", target))
            built = os.path.join(folder, target.replace("::", "-"))
            done = run(["cmake", "-S", folder, "-B", built, f"-DCMAKE_C_COMPILER={CC}", f"-DCMAKE_PREFIX_PATH={self.prefix}"])
            self.assertEqual(done.returncode, 0, done.stdout)
            done = run(["cmake", "--build", built])
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertEqual("libredlock.so" in self.libraries_of(os.path.join(built, "app")), shared)

    def test_cmake_refuses_other_versions(self):
        """CMake finds no library with a newer version, another minor version of 0, or another major version."""
        major, minor, patch = self.project_version().split(".")
        for wanted in (f"{major}.{minor}.{int(patch) + 1}", f"{major}.{int(minor) - 1}", f"{int(major) + 1}.0"):
            _, status, output = self.cmake(wanted)
            self.assertNotEqual(status, 0, wanted)
            self.assertIn(f'compatible with requested version "{wanted}"', " ".join(output.split()))

    def static_archive_only(self):
        """Returns flags for libredlock.a in a directory without libredlock.so, where -lredlock means the archive."""
        folder = os.path.join(self.root, "archive")
        if not os.path.isdir(folder):
            os.mkdir(folder)
            shutil.copy(os.path.join(self.libdir, "libredlock.a"), folder)
        return [f"-L{folder}", "-Wl,-Bstatic", "-lredlock", "-Wl,-Bdynamic"]

    def test_static_c99(self):
        """A C99 program is built and runs with the static library."""
        self.build_and_run(CC, "c", "c99", self.static_archive_only())

    def test_static_c11(self):
        """The same in C11."""
        self.build_and_run(CC, "c", "c11", self.static_archive_only())

    def test_static_cxx(self):
        """The same in C++11."""
        self.build_and_run(CXX, "c++", "c++11", self.static_archive_only())

    def test_fully_static_c11(self):
        """The same with all libraries linked statically, where they are installed."""
        for library in ("hiredis", "sodium"):
            found = run([CC, f"-print-file-name=lib{library}.a"]).stdout.strip()
            if not os.path.isabs(found):
                self.skipTest(f"lib{library}.a is not installed")
        self.build_and_run(CC, "c", "c11", ["-static"])

    def test_plugin_with_the_archive_is_never_unloaded(self):
        """As with the shared library, because the resolution of a host name may outlive dlclose()."""
        plugin = os.path.join(self.project, "plugin.so")
        source = "#include <redlock/redlock.h>\nvoid leave(redlock_t *rl);\nvoid leave(redlock_t *rl) { redlock_free(rl); }\n"
        flags = self.pkg_config("--cflags", "--libs", "--static")
        done = run([CC, "-shared", "-fPIC", "-xc", "-", "-o", plugin, *self.static_archive_only(), *flags], input=source)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(run(["readelf", "-d", plugin]).stdout, r"FLAGS_1.*NODELETE")

    def test_pc_file_names_what_static_linking_needs(self):
        """hiredis, libsodium and, for a library with TLS, OpenSSL are needed for static linking only."""
        with open(self.pc, encoding="utf-8") as file:
            text = file.read()
        private = re.search(r"^Requires\.private:(.*)$", text, re.MULTILINE).group(1)
        self.assertIn("hiredis", private)
        self.assertIn("libsodium", private)
        needed = run(["objdump", "-p", os.path.join(self.libdir, "libredlock.so")]).stdout
        self.assertEqual("openssl" in private, "libssl" in needed)
        self.assertNotIn("hiredis", " ".join(self.pkg_config("--libs")))
        self.assertEqual(self.pkg_config("--modversion"), [self.project_version()])

    @staticmethod
    def project_version():
        """Returns the version in meson.build."""
        return re.search(r"version: '([\d.]+)'", tree.text("meson.build")).group(1)

    def test_nothing_but_the_product_is_installed(self):
        """Only headers, libraries, the command and its documents are installed."""
        names = set()
        for folder, _, files in os.walk(self.prefix):
            names |= {os.path.relpath(os.path.join(folder, name), self.prefix) for name in files}
        names = {re.sub(r"^lib/[^/]+-linux-[^/]+/", "lib/", name) for name in names}
        names = {re.sub(r"^lib64/", "lib/", name) for name in names}
        product = r"include/redlock/((redlock|config|error|report|stats|version)\.h|redlock\.hpp|adapters/\w+\.(h|hpp))|lib/libredlock\.(a|so[\d.]*)|lib/pkgconfig/redlock\.pc"
        product += r"|lib/cmake/redlock/redlockConfig(Version)?\.cmake"
        product += r"|bin/redlock|share/(doc/redlock|man/man\d|bash-completion|zsh|fish)/.*"
        self.assertEqual([name for name in sorted(names) if not re.fullmatch(product, name)], [])


class Uninstalled(unittest.TestCase):
    """The .pc file for the build directory, which pkg-config prefers to the installed one: a program is built against
    a library that is not installed."""

    folder = os.path.join(tree.BUILD, "meson-uninstalled")

    def build_and_run(self, compiler, source, standard, static=()):
        """Builds a program with the flags of pkg-config, in a directory of its own, and runs it with the library of the
        build directory."""
        if shutil.which(compiler) is None:
            self.skipTest(f"{compiler} is not installed")
        root = tempfile.mkdtemp(prefix="uninstalled-")
        self.addCleanup(shutil.rmtree, root)
        words = ["pkg-config", "--cflags", "--libs", *(["--static"] if static else []), "redlock"]
        found = run(words, env={**os.environ, "PKG_CONFIG_PATH": self.folder})
        self.assertEqual(found.returncode, 0, found.stdout)
        flags = found.stdout.split()
        for flag in flags:
            if flag.startswith(("-I", "-L")):
                self.assertTrue(os.path.isdir(flag[2:]), flag)
        program = os.path.join(root, "program")
        done = run([compiler, f"-std={standard}", *WARNINGS, source, "-o", program, *static, *flags], cwd=root)
        self.assertEqual(done.returncode, 0, done.stdout)
        done = run([program], env={**os.environ, "LD_LIBRARY_PATH": os.path.join(tree.BUILD, "lib")}, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def test_shared_c11(self):
        """A C program is built and runs with the shared library of the build directory."""
        source = os.path.join(tree.SOURCE, "test", "abi", "consumer", "main.c")
        self.assertIn("REDLOCK_ENOQUORUM", self.build_and_run(CC, source, "c11"))

    def test_shared_cxx17(self):
        """The wrapper for C++ is found, too."""
        with tempfile.NamedTemporaryFile("w", suffix=".cc", delete=False) as file:
            file.write("#include <cstdio>\n#include <redlock/redlock.hpp>\n"
                       'int main() { std::printf("%s\\n", redlock::redlock_category().name()); }\n')  # fmt: skip
        self.addCleanup(os.unlink, file.name)
        self.assertEqual(self.build_and_run(CXX, file.name, "c++17"), "redlock\n")


if __name__ == "__main__":
    tapcase.main()
