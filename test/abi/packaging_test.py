# SPDX-License-Identifier: MIT
"""README's lines for installation on a machine where only hiredis and libsodium are installed, and what the
options for packagers give. pkg-config sees the files of these two only."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest

import tree
import tapcase  # found through tree

CC = os.environ.get("CC", "cc")
SETUP = "meson setup build -Dprefix=/usr/local"
LEFT_OUT = {
    "tools": "left out, not found: jansson, inih",
    "examples": "left out, not found: sqlite3",
    "bench": "left out, not found: jansson",
    "tests": "left out, not found: jansson, inih, check",
}


def run(words, **more):
    return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                          universal_newlines=True, **more)  # fmt: skip


class Packaging(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = tempfile.mkdtemp(prefix="packaging-")
        cls.addClassCleanup(shutil.rmtree, cls.root)
        cls.packages = os.path.join(cls.root, "packages")
        os.mkdir(cls.packages)
        for name in ("hiredis", "libsodium"):
            folder = run(["pkg-config", "--variable=pcfiledir", name]).stdout.strip()
            shutil.copy(os.path.join(folder, f"{name}.pc"), cls.packages)
        cls.environment = {**os.environ, "PKG_CONFIG_LIBDIR": cls.packages, "CC": CC}
        cls.environment.pop("PKG_CONFIG_PATH", None)
        cls.build = os.path.join(cls.root, "build")
        # Not optimised, which takes less time.
        cls.told = cls.meson("setup", "-Dprefix=/usr/local", "-Doptimization=0", cls.build, tree.SOURCE)

    @classmethod
    def meson(cls, *words):
        done = run(["meson", *words], env=cls.environment)
        if done.returncode != 0:
            raise AssertionError(done.stdout)
        return done.stdout

    def install(self, name, hiredis):
        """Returns the folder of the shared library that was built with this -Dhiredis, and pkg-config's words."""
        root = os.path.join(self.root, name)
        self.meson("configure", f"-Dhiredis={hiredis}", self.build)
        self.meson("install", "-C", self.build, "--destdir", root)
        for folder, _, files in os.walk(root):
            if "redlock.pc" in files:
                self.environment["PKG_CONFIG_LIBDIR"] = f"{folder}:{self.packages}"
                return os.path.dirname(folder)
        raise AssertionError("redlock.pc is not installed")

    def dynamic(self, folder):
        return run(["readelf", "-W", "-d", "--dyn-syms", os.path.join(folder, "libredlock.so")]).stdout

    def pkg_config(self, *words, without=()):
        for name in without:
            os.rename(os.path.join(self.packages, name), os.path.join(self.root, name))
        try:
            done = run(["pkg-config", *words, "redlock"], env=self.environment)
        finally:
            for name in without:
                os.rename(os.path.join(self.root, name), os.path.join(self.packages, name))
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout.split()

    def test_these_are_the_lines_of_readme(self):
        self.assertIn(f"\n    {SETUP}\n    meson install -C build\n    ldconfig\n", tree.text("README.md"))

    def test_the_summary_says_what_is_left_out(self):
        for part, why in LEFT_OUT.items():
            self.assertRegex(self.told, rf"\n\s+{part} *: {why}\n")

    def test_a_part_that_is_wanted_is_not_left_out(self):
        for part, why in LEFT_OUT.items():
            again = os.path.join(self.root, f"with-{part}")
            done = run(["meson", "setup", f"-D{part}=enabled", again, tree.SOURCE], env=self.environment)
            self.assertNotEqual(done.returncode, 0, part)
            self.assertIn(f"-D{part}=enabled, but not found by pkg-config: {why.split(': ')[1]}\n", done.stdout)

    def test_readme_asks_for_the_versions_that_meson_asks_for(self):
        meson = tree.text("meson.build")
        readme = re.search(r"## Build and install\n(.*?)\n## ", tree.text("README.md"), re.DOTALL).group(1)
        told = " ".join(readme.split())
        for name in ("hiredis", "libsodium"):
            version = re.search(rf"dependency\('{name}', version: '>=([\d.]+)'", meson).group(1)
            self.assertIn(f"{name} ({version} or later)", told)
        self.assertIn("meson ({} or later)".format(re.search(r"meson_version: '>=([\d.]+)'", meson).group(1)), told)
        self.assertIn(re.search(r"glibc [\d.]+ or later", meson).group(0), told)

    def test_shared(self):
        folder = self.install("shared", "shared")
        self.assertRegex(self.dynamic(folder), r"NEEDED.*libhiredis\.so")
        self.assertEqual(self.pkg_config("--libs"), [f"-L{self.prefix()}", "-lredlock"])
        self.assertIn("-lhiredis", self.pkg_config("--libs", "--static"))

    def prefix(self):
        return run(["pkg-config", "--variable=libdir", "redlock"], env=self.environment).stdout.strip()

    def test_static(self):
        """hiredis is in the library, and nothing of it is seen from outside; another one does no harm."""
        archive = run([CC, "-print-file-name=libhiredis.a"]).stdout.strip()
        if not os.path.isabs(archive):
            self.skipTest("libhiredis.a is not installed")
        try:
            folder = self.install("static", "static")
        except AssertionError as refused:
            if "is not position-independent" in str(refused):
                self.skipTest(f"{archive} is not position-independent")
            raise
        told = self.dynamic(folder)
        self.assertIn(" redlock_new@", told)
        self.assertNotRegex(told, r"hiredis|\bredis[A-Z]|\bsds[a-z]")
        self.assertEqual(self.pkg_config("--libs", without=["hiredis.pc"]), [f"-L{self.prefix()}", "-lredlock"])
        self.pkg_config("--cflags", without=["hiredis.pc"])
        self.assertIn("-lhiredis", self.pkg_config("--libs", "--static"))
        for preloaded in ("", os.environ["READER"]):
            environment = {**os.environ, "LD_LIBRARY_PATH": folder, "LD_PRELOAD": preloaded}
            done = run([os.environ["GUEST"]], env=environment)
            self.assertEqual(done.stdout, "REDLOCK_OK: \n")


if __name__ == "__main__":
    tapcase.main()
