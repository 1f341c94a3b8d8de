# SPDX-License-Identifier: MIT
"""The builds that packagers choose compile without a warning, with gcc and with clang, and two builds in different
directories are equal. The tests pass without TLS. Each package that is missing leaves out its parts, and no others."""

import glob
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "abi"))
import tapcase  # noqa: E402
import tree  # noqa: E402

PARTS = ("tools", "examples", "bench", "tests")
SCREEN = "screen of redlock top"  # a part of the tools
TLS = "tls"  # a part of the library
PACKAGES = ("hiredis", "libsodium", "jansson", "sqlite3", "check", "ncursesw", "openssl")
# The parts that are left out if only this package is not found.
LEFT_OUT_WITHOUT = {"jansson": ["tools", "bench", "tests"], "sqlite3": ["examples"],
                    "check": ["tests"], "ncursesw": [SCREEN], "openssl": [TLS]}  # fmt: skip
NO_TESTS = ["-Dtests=disabled", "-Dwerror=true"]
BUILDS = {
    "static": [*NO_TESTS, "-Dbuildtype=release", "-Ddefault_library=static"],
    "shared_only": [*NO_TESTS, "-Dbuildtype=plain", "-Ddefault_library=shared"],
    "link_time_optimization": [*NO_TESTS, "-Dbuildtype=release", "-Db_lto=true"],
    "small": [*NO_TESTS, "-Dbuildtype=minsize"],
    "hardened": [*NO_TESTS, "-Dc_args=-D_FORTIFY_SOURCE=2 -fstack-protector-strong", "-Dbuildtype=release"],
    # The tests, too, because they have code that only assertions, or only TLS, use.
    "without_tls": ["-Dwerror=true", "-Dtls=disabled"],
    "no_assertions": ["-Dwerror=true", "-Dbuildtype=release", "-Db_ndebug=true", "-Dassertions=false"],
}
# Suites that run in a build with gcc, because `./dev test` has no such build.
SUITES = {"without_tls": ("unit", "io", "live", "cli")}
INSIDE = os.path.join(tree.SOURCE, "test", "matrix", "inside.py")
EQUAL = ("lib/libredlock.so", "tools/redlock")


def run(words, **more):
    """Runs a command with nice and returns it with its output, stderr included."""
    return subprocess.run(["nice", "-n", "10", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False, universal_newlines=True, **more)  # fmt: skip


class Builds(unittest.TestCase):
    """Each case builds in a temporary directory."""

    def setUp(self):
        """Makes the directory."""
        self.root = tempfile.mkdtemp(prefix="builds-")
        self.addCleanup(shutil.rmtree, self.root)

    def build(self, compiler, options, directory="build", source=tree.SOURCE):
        """Sets up and compiles. Returns the build directory and all output."""
        if shutil.which(compiler) is None:
            self.skipTest(f"{compiler} is not installed")
        folder = os.path.join(self.root, directory)
        output = ""
        for words in (["meson", "setup", *options, folder, source], ["meson", "compile", "-C", folder]):
            done = run(words, env={**os.environ, "CC": compiler})
            self.assertEqual(done.returncode, 0, done.stdout)
            output += done.stdout
        self.assertNotIn("warning:", output)
        return folder, output

    def run_suites(self, folder, options, suites):
        """Runs suites of tests in a build with gcc and these options, as a row of the matrix does. All must pass or be skipped."""
        words = [f"--option={option}" for option in ("-Dauto_features=auto", *options)]
        done = run([sys.executable, INSIDE, "--directory", folder, "--compiler", "gcc", *words, *suites])
        self.assertEqual(done.returncode, 0, done.stdout)

    def symbols(self, library):
        """Returns the undefined symbols of a shared library."""
        return {name for name, kind in tree.symbols(library, "-D", "-u")}

    def test_assertions_do_not_depend_on_ndebug(self):
        """With b_ndebug the library has assertions; without -Dassertions it has none. Its programs follow b_ndebug."""
        options = [*NO_TESTS, "-Dtools=disabled", "-Dexamples=disabled", "-Dbench=disabled", "-Db_ndebug=true"]
        for assertions in (True, False):
            folder, _ = self.build("gcc", [*options, f"-Dassertions={str(assertions).lower()}"], f"build-{assertions}")
            found = "__assert_fail" in self.symbols(os.path.join(folder, "lib", "libredlock.so"))
            self.assertEqual(found, assertions)

    def test_builds_in_different_directories_are_equal(self):
        """The shared library and the command are the same bytes, wherever the sources and the build directory are."""
        copy = os.path.join(self.root, "a", "longer", "path")
        for name in tree.tracked_files():
            os.makedirs(os.path.dirname(os.path.join(copy, name)), exist_ok=True)
            shutil.copy2(os.path.join(tree.SOURCE, name), os.path.join(copy, name))
        for buildtype in ("debugoptimized", "release"):
            options = [*NO_TESTS, f"-Dbuildtype={buildtype}", "-Dexamples=disabled", "-Dbench=disabled"]
            one, _ = self.build("gcc", options, f"one-{buildtype}")
            two, _ = self.build("gcc", options, os.path.join(copy, f"two-{buildtype}"), copy)
            for name in EQUAL:
                with open(os.path.join(one, name), "rb") as first, open(os.path.join(two, name), "rb") as second:
                    self.assertEqual(first.read() == second.read(), True, f"{name} differs, {buildtype}")

    def pkg_config_files(self):
        """Returns {name: path} of all that pkg-config finds: a package may require others, as check does."""
        folders = run(["pkg-config", "--variable=pc_path", "pkg-config"]).stdout.strip().split(":")
        paths = [path for folder in reversed(folders) for path in glob.glob(os.path.join(folder, "*.pc"))]
        return {os.path.basename(path)[: -len(".pc")]: path for path in paths}

    def test_missing_packages_leave_out_their_parts(self):
        """With one package hidden, the summary of meson names it at each part that needs it, and at no other part."""
        known = self.pkg_config_files()
        for name in PACKAGES:
            if name not in known:
                self.skipTest(f"{name} is not installed")
        for hidden, parts in LEFT_OUT_WITHOUT.items():
            folder = os.path.join(self.root, hidden)
            os.mkdir(folder)
            for name, path in known.items():
                if name != hidden:
                    os.symlink(path, os.path.join(folder, f"{name}.pc"))
            environment = {**os.environ, "PKG_CONFIG_LIBDIR": folder}
            environment.pop("PKG_CONFIG_PATH", None)
            done = run(["meson", "setup", os.path.join(self.root, f"build-{hidden}"), tree.SOURCE], env=environment)
            self.assertEqual(done.returncode, 0, done.stdout)
            for part in [*PARTS, TLS, *([] if "tools" in parts else [SCREEN])]:
                verdict = f"left out, not found: {hidden}" if part in parts else "built"
                self.assertRegex(done.stdout, rf"\n +{part} *: {verdict}\n")


def add(compiler, name, options):
    """Adds a case that builds in this way with this compiler."""
    def test(self):
        folder, _ = self.build(compiler, options)
        if compiler == "gcc" and name in SUITES:
            self.run_suites(folder, options, SUITES[name])

    test.__doc__ = f"{name} with {compiler}: compiles without a warning, and the tests of SUITES pass."
    setattr(Builds, f"test_{name}_{compiler}", test)


for each in ("gcc", "clang"):
    for build_name, build_options in BUILDS.items():
        add(each, build_name, build_options)

if __name__ == "__main__":
    tapcase.main()
