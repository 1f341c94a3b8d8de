# SPDX-License-Identifier: MIT
"""README's lines for installation on a machine with only hiredis and libsodium, and the results of the options for
packagers. pkg-config finds only these two, so the library is built without TLS."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest

import tree
import tapcase  # found through tree

CC = os.environ.get("CC", "cc")
REDLOCK = os.path.join(tree.BUILD, "tools", "redlock")
OPTIONS = ["-Dprefix=/usr/local", "-Dlibdir=lib"]
SETUP = "meson setup build " + " ".join(OPTIONS)
WITHOUT_TLS = "this library was built without TLS; build it with -Dtls=enabled"  # begins what redlock says of rediss://
LEFT_OUT = {
    "tools": "left out, not found: jansson",
    "examples": "left out, not found: sqlite3",
    "bench": "left out, not found: jansson",
    "tests": "left out, not found: jansson, check",
}


def run(words, **more):
    """Runs a command and returns it with its output, stderr included."""
    return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                          universal_newlines=True, **more)  # fmt: skip


class Packaging(unittest.TestCase):
    """Builds as a packager does, with only the required packages to be found."""

    @classmethod
    def setUpClass(cls):
        """Sets up a build with hiredis and libsodium only, and installs it."""
        cls.root = tempfile.mkdtemp(prefix="packaging-")
        cls.addClassCleanup(shutil.rmtree, cls.root)
        cls.packages = os.path.join(cls.root, "packages")
        os.mkdir(cls.packages)
        for name in ("hiredis", "libsodium"):
            folder = run(["pkg-config", "--variable=pcfiledir", name]).stdout.strip()
            shutil.copy(os.path.join(folder, f"{name}.pc"), cls.packages)
        cls.environment = {**os.environ, "PKG_CONFIG_LIBDIR": cls.packages, "CC": tree.MESON_CC}
        cls.environment.pop("PKG_CONFIG_PATH", None)
        cls.build = os.path.join(cls.root, "build")
        # Without optimisation and debug information, so that the build is faster.
        cls.output = cls.meson("setup", *OPTIONS, "-Dwerror=true", "-Doptimization=0", "-Ddebug=false", cls.build, tree.SOURCE)

    @classmethod
    def meson(cls, *words):
        """Runs meson there and returns its output. It must succeed."""
        done = run(["meson", *words], env=cls.environment)
        if done.returncode != 0:
            raise AssertionError(done.stdout)
        return done.stdout

    def install(self, name, hiredis):
        """Builds with this -Dhiredis and installs. Returns the directory of the library, in which pkg-config finds it."""
        root = os.path.join(self.root, name)
        self.meson("configure", f"-Dhiredis={hiredis}", self.build)
        self.meson("install", "-C", self.build, "--destdir", root)
        for folder, _, files in os.walk(root):
            if "redlock.pc" in files:
                self.environment["PKG_CONFIG_LIBDIR"] = f"{folder}:{self.packages}"
                return os.path.dirname(folder)
        raise AssertionError("redlock.pc is not installed")

    def dynamic(self, folder):
        """Returns the dynamic section and the dynamic symbols of the shared library."""
        return run(["readelf", "-W", "-d", "--dyn-syms", os.path.join(folder, "libredlock.so")]).stdout

    def pkg_config(self, *words, without=()):
        """Runs pkg-config for redlock, with the files `without` removed meanwhile, and returns the words it prints."""
        for name in without:
            os.rename(os.path.join(self.packages, name), os.path.join(self.root, name))
        try:
            done = run(["pkg-config", *words, "redlock"], env=self.environment)
        finally:
            for name in without:
                os.rename(os.path.join(self.root, name), os.path.join(self.packages, name))
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout.split()

    def test_readme_has_the_tested_lines(self):
        """The README has the lines that this test runs."""
        self.assertIn(f"\n{SETUP}\nmeson install -C build\nldconfig\n", tree.text("README.md"))

    def test_summary_names_omitted_parts(self):
        """The summary of meson names each part that is left out, with the reason."""
        for part, why in {**LEFT_OUT, "tls": "left out, not found: openssl"}.items():
            self.assertRegex(self.output, rf"\n\s+{part} *: {why}\n")

    def test_enabled_part_is_not_omitted(self):
        """A part that is enabled and cannot be built is an error."""
        for part, why in LEFT_OUT.items():
            again = os.path.join(self.root, f"with-{part}")
            done = run(["meson", "setup", f"-D{part}=enabled", again, tree.SOURCE], env=self.environment)
            self.assertNotEqual(done.returncode, 0, part)
            self.assertIn(f"-D{part}=enabled, but not found by pkg-config: {why.split(': ')[1]}\n", done.stdout)
        done = run(["meson", "setup", "-Dtls=enabled", os.path.join(self.root, "with-tls"), tree.SOURCE], env=self.environment)
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r'Dependency "openssl" not found')

    def test_readme_has_the_versions_of_meson(self):
        """The README names the versions that meson.build requires."""
        meson = tree.text("meson.build")
        readme = re.search(r"## Build and install\n(.*?)\n## ", tree.text("README.md"), re.DOTALL).group(1)
        output = " ".join(readme.split())
        for name, title in {"hiredis": "hiredis", "libsodium": "libsodium", "openssl": "OpenSSL"}.items():
            version = re.search(rf"dependency\('{name}', version: '>=([\d.]+)'", meson).group(1)
            self.assertIn(f"{title} ({version} or later)", output)
        self.assertIn("meson ({} or later)".format(re.search(r"meson_version: '>=([\d.]+)'", meson).group(1)), output)
        self.assertIn(re.search(r"glibc [\d.]+ or later, or musl", meson).group(0), output)

    def test_documents_name_the_c_libraries_of_meson(self):
        """README and operations.md name both C libraries with which meson.build accepts a system."""
        version = re.search(r"Linux with glibc ([\d.]+) or later, or with musl'", tree.text("meson.build")).group(1)
        self.assertIn(f"Linux with glibc {version} or later, or with musl.", tree.text("docs/operations.md"))
        self.assertIn("· Linux (glibc or musl) ·", tree.text("README.md"))

    def test_shared_hiredis(self):
        """With a shared hiredis, the library needs it at run time and programs do not name it."""
        folder = self.install("shared", "shared")
        self.assertRegex(self.dynamic(folder), r"NEEDED.*libhiredis\.so")
        self.assertEqual(self.pkg_config("--libs"), [f"-L{self.prefix()}", "-lredlock"])
        self.assertIn("-lhiredis", self.pkg_config("--libs", "--static"))
        self.refuses_tls(folder)

    def refuses_tls(self, folder):
        """Checks that this library needs nothing of OpenSSL, and refuses an address with TLS in words that say what to do."""
        self.assertNotRegex(self.dynamic(folder), r"libssl|libcrypto|\bSSL_")
        self.assertNotIn("openssl", self.pkg_config("--print-requires-private"))
        if not os.path.exists(REDLOCK):
            self.skipTest("redlock is not built")
        environment = {**os.environ, "LD_LIBRARY_PATH": folder}
        done = run([REDLOCK, "run", "-s", "rediss://a", "x", "true"], env=environment)
        self.assertEqual(done.returncode, 78, done.stdout)
        self.assertIn(WITHOUT_TLS, done.stdout)
        done = run([REDLOCK, "run", "-n", "-s", "redis://127.0.0.1:1", "x", "true"], env=environment)
        self.assertEqual(done.returncode, 69, done.stdout)

    def prefix(self):
        """Returns the directory of the installed library."""
        return run(["pkg-config", "--variable=libdir", "redlock"], env=self.environment).stdout.strip()

    def test_static_hiredis(self):
        """The library contains hiredis, exports none of its symbols, and works beside another hiredis."""
        archive = run([CC, "-print-file-name=libhiredis.a"]).stdout.strip()
        if not os.path.isabs(archive):
            self.skipTest("libhiredis.a is not installed")
        try:
            folder = self.install("static", "static")
        except AssertionError as refused:
            if "is not position-independent" in str(refused):
                self.skipTest(f"{archive} is not position-independent")
            raise
        output = self.dynamic(folder)
        self.assertIn(" redlock_new@", output)
        self.assertNotRegex(output, r"hiredis|\bredis[A-Z]|\bsds[a-z]")
        self.assertEqual(self.pkg_config("--libs", without=["hiredis.pc"]), [f"-L{self.prefix()}", "-lredlock"])
        self.pkg_config("--cflags", without=["hiredis.pc"])
        self.assertIn("-lhiredis", self.pkg_config("--libs", "--static"))
        for preloaded in ("", os.environ["READER"]):
            environment = {**os.environ, "LD_LIBRARY_PATH": folder, "LD_PRELOAD": preloaded}
            done = run([os.environ["GUEST"]], env=environment)
            self.assertEqual(done.stdout, "REDLOCK_OK: \n")


if __name__ == "__main__":
    tapcase.main()
