# SPDX-License-Identifier: MIT
"""The recipes of packaging/ name the version and the packages of meson.build. RPMs are built with Debian's rpm, whose macros
for meson are given here; the recipe of Conan is run with the libraries of the machine; that of Alpine is read only."""

import glob
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "abi"))
import tapcase  # noqa: E402
import tree  # noqa: E402

SPEC = "packaging/rpm/redlock.spec"
APKBUILD = "packaging/alpine/APKBUILD"
# What redhat-rpm-config and the package meson of Fedora define.
MACROS = {
    "dist": ".test",
    "_isa": "(x86-64)",
    "_libdir": "/usr/lib64",
    "meson": "meson setup --buildtype=plain --prefix=/usr --libdir=/usr/lib64 --auto-features=enabled output",
    "meson_build": "meson compile -C output",
    "meson_install": "DESTDIR=%{buildroot} meson install -C output --no-rebuild",
    "meson_test": "meson test -C output --print-errorlogs",
    "__python3": "/usr/bin/python3",
    "debug_package": "%{nil}",
}
PACKAGES = ("redlock", "redlock-libs", "redlock-devel", "redlock-static", "redlock-doc")
CONAN_OPTIONS = [["&:shared=True"], ["&:shared=False", "&:assertions=False"]]


def run(words, **more):
    """Runs a command with nice and returns it with its output, stderr included."""
    return subprocess.run(["nice", "-n", "10", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False, errors="replace", **more)  # fmt: skip


def project_version():
    """Returns the version in meson.build."""
    return re.search(r"version: '([\d.]+)'", tree.text("meson.build")).group(1)


class Recipes(unittest.TestCase):
    """What the text of each recipe says."""

    def test_versions(self):
        """All recipes have the version of the project."""
        found = {
            "debian/changelog": re.match(r"redlock \(([\d.]+)", tree.text("debian/changelog")).group(1),
            SPEC: re.search(r"^Version: +([\d.]+)$", tree.text(SPEC), re.MULTILINE).group(1),
            APKBUILD: re.search(r"^pkgver=([\d.]+)$", tree.text(APKBUILD), re.MULTILINE).group(1),
            "packaging/meson/redlock.wrap": re.search(r"redlock-([\d.]+)$", tree.text("packaging/meson/redlock.wrap"),
                                                      re.MULTILINE).group(1),
        }  # fmt: skip
        self.assertEqual(found, {name: project_version() for name in found})

    def test_minimum_versions(self):
        """The recipes ask for the versions of hiredis, libsodium and Jansson that meson.build asks for."""
        for name in ("hiredis", "libsodium", "jansson"):
            version = re.search(rf"dependency\('{name}', version: '>=([\d.]+)'", tree.text("meson.build")).group(1)
            self.assertIn(f"pkgconfig({name}) >= {version}\n", tree.text(SPEC))
            self.assertIn(f"lib{name.replace('lib', '')}-dev (>= {version})", tree.text("debian/control"))
            if name != "jansson":
                self.assertIn(f'"{name}/[>={version} <2]"', tree.text("packaging/conan/conanfile.py"))

    def test_packages_of_the_command(self):
        """Each recipe of a system names the packages of the command, ncurses of `redlock top` among them, and demands the
        parts that meson would leave out without a word otherwise."""
        names = {"jansson": "jansson", "inih": "inih", "ncursesw": "ncurses"}
        for library, name in names.items():
            self.assertIn(f"pkgconfig({library})", tree.text(SPEC))
            self.assertRegex(tree.text("debian/control"), rf"\n +lib{name}-dev\b")
            self.assertRegex(tree.text(APKBUILD), rf"\n\t{name}-dev\n")
        for path in ("debian/rules", APKBUILD, SPEC):
            self.assertRegex(tree.text(path), r"-Dtools=enabled\s[^\n]*\n?\s*-Dtop=enabled|-Dtools=enabled -Dtop=enabled")

    def test_alpine_recipe_is_valid_shell(self):
        """A shell reads APKBUILD, and shellcheck finds nothing."""
        path = os.path.join(tree.SOURCE, APKBUILD)
        done = run(["sh", "-e", "-u", "-c", '. "$1"; echo "$pkgname-$pkgver-r$pkgrel $source"', "sh", path])
        version = project_version()
        self.assertEqual(done.stdout, f"redlock-{version}-r0 redlock-{version}.tar.xz\n")
        if shutil.which("shellcheck") is None:
            self.skipTest("shellcheck is not installed")
        done = run(["shellcheck", path])
        self.assertEqual(done.returncode, 0, done.stdout)


class Rpm(unittest.TestCase):
    """Builds the packages."""

    def test_packages_are_built(self):
        """rpmbuild makes all packages, and each installed file is in one of them."""
        if shutil.which("rpmbuild") is None:
            self.skipTest("rpmbuild is not installed")
        root = tempfile.mkdtemp(prefix="rpm-")
        self.addCleanup(shutil.rmtree, root)
        os.mkdir(os.path.join(root, "SOURCES"))
        folder = f"redlock-{project_version()}"
        with tarfile.open(os.path.join(root, "SOURCES", folder + ".tar.xz"), "w:xz", preset=0) as archive:
            for name in tree.tracked_files():
                archive.add(os.path.join(tree.SOURCE, name), f"{folder}/{name}")
        macros = [word for name, value in {**MACROS, "_topdir": root}.items() for word in ("--define", f"{name} {value}")]
        done = run(["rpmbuild", "-bb", "--nodeps", "--nocheck", *macros, os.path.join(tree.SOURCE, SPEC)])
        self.assertEqual(done.returncode, 0, done.stdout[-3000:])
        made = [os.path.basename(path).rsplit("-", 2)[0] for path in glob.glob(f"{root}/RPMS/*/*.rpm")]
        self.assertEqual(sorted(made), sorted(PACKAGES))


class Conan(unittest.TestCase):
    """Runs the recipe with Conan in PATH, or with one that pip installs in a temporary directory."""

    @classmethod
    def setUpClass(cls):
        """Finds or installs Conan and makes an empty home for it."""
        cls.root = tempfile.mkdtemp(prefix="conan-")
        cls.addClassCleanup(shutil.rmtree, cls.root)
        cls.conan = shutil.which("conan")
        cls.environment = {**os.environ, "CONAN_HOME": os.path.join(cls.root, "home"), "CC": "gcc"}
        if cls.conan is None:
            folder = os.path.join(cls.root, "program")
            done = run([sys.executable, "-m", "pip", "install", "--quiet", "--target", folder, "conan>=2,<3"])
            if done.returncode != 0:
                raise unittest.SkipTest(f"pip install conan: {done.stdout.strip().split(chr(10))[-1]}")
            cls.conan = os.path.join(folder, "bin", "conan")
            cls.environment["PYTHONPATH"] = folder
        done = run([cls.conan, "profile", "detect"], env=cls.environment)
        if done.returncode != 0:
            raise AssertionError(done.stdout)

    def test_packages_are_created(self):
        """`conan create` builds the library, shared and static, and its test program runs."""
        for options in CONAN_OPTIONS:
            words = [word for option in ["&:system=True", *options] for word in ("-o", option)]
            done = run([self.conan, "create", os.path.join(tree.SOURCE, "packaging", "conan"), *words], env=self.environment)
            self.assertEqual(done.returncode, 0, done.stdout[-3000:])
            version = project_version()
            self.assertIn(f"header {version}, library {version}\n", done.stdout)


if __name__ == "__main__":
    tapcase.main()
