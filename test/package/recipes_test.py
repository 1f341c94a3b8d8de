# SPDX-License-Identifier: MIT
"""The recipes of packaging/ name the version and the packages of meson.build. RPMs are built with Debian's rpm, whose macros
for meson are given here; the recipe of Conan is run with the libraries of the machine; the functions of that of Alpine are run
with the program that abuild gives them."""

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
import links  # noqa: E402
import manifest  # noqa: E402
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
# What this program of Alpine does, and less to compile.
ABUILD_MESON = """#!/bin/sh
exec meson setup --prefix=/usr --libdir=/usr/lib --buildtype=plain --auto-features=auto --wrap-mode=nodownload \\
    -Db_staticpic=true -Db_pie=true "$@" -Dtests=disabled -Doptimization=0
"""
PACKAGES = ("redlock", "redlock-libs", "redlock-devel", "redlock-static", "redlock-doc")
CONAN_OPTIONS = [["&:shared=True"], ["&:shared=False"], ["&:shared=True", "&:assertions=False", "&:tls=False"]]


def run(words, **more):
    """Runs a command with nice and returns it with its output, stderr included."""
    return subprocess.run(["nice", "-n", "10", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False, errors="replace", **more)  # fmt: skip


def project_version():
    """Returns the version in meson.build."""
    return re.search(r"version: '([\d.]+)'", tree.text("meson.build")).group(1)


def documents():
    """Returns the names of the files that packaging/documents.py copies."""
    with tempfile.TemporaryDirectory(prefix="documents-") as root:
        subprocess.run([os.path.join(tree.SOURCE, "packaging", "documents.py"), root], check=True)
        return [os.path.relpath(os.path.join(folder, name), root) for folder, _, names in os.walk(root) for name in names]


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
            "bindings/python/meson.build": re.search(r"version: '([\d.]+)'", tree.text("bindings/python/meson.build")).group(1),
            "README.md": re.search(r"^\*\*Status:\*\* version ([\d.]+)", tree.text("README.md"), re.MULTILINE).group(1),
            SPEC + ", %changelog": re.search(r"^%changelog\n\* .* - ([\d.]+)-1$", tree.text(SPEC), re.MULTILINE).group(1),
        }  # fmt: skip
        self.assertEqual(found, {name: project_version() for name in found})

    def test_minimum_versions(self):
        """The recipes ask for the versions of the libraries that meson.build asks for."""
        debian_names = {"hiredis": "libhiredis", "libsodium": "libsodium", "jansson": "libjansson", "openssl": "libssl"}
        for name, debian in debian_names.items():
            version = re.search(rf"dependency\('{name}', version: '>=([\d.]+)'", tree.text("meson.build")).group(1)
            self.assertIn(f"pkgconfig({name}) >= {version}\n", tree.text(SPEC))
            self.assertIn(f"{debian}-dev (>= {version})", tree.text("debian/control"))
            if name != "jansson":
                self.assertIn(f'"{name}/[>={version} <', tree.text("packaging/conan/conanfile.py"))

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


class Alpine(unittest.TestCase):
    """Runs build() and package() of APKBUILD."""

    def test_files_are_installed(self):
        """They install what the build installs, the documents, and the licence."""
        root = tempfile.mkdtemp(prefix="alpine-")
        self.addCleanup(shutil.rmtree, root)
        for name in tree.tracked_files():
            target = os.path.join(root, "source", name)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy2(os.path.join(tree.SOURCE, name), target)
        os.mkdir(os.path.join(root, "bin"))
        with open(os.path.join(root, "bin", "abuild-meson"), "w", encoding="utf-8") as file:
            file.write(ABUILD_MESON)
        os.chmod(file.name, 0o755)
        environment = {**os.environ, "PATH": f"{root}/bin:{os.environ['PATH']}", "pkgdir": os.path.join(root, "package")}
        done = run(["sh", "-e", "-u", "-c", ". packaging/alpine/APKBUILD; build; package"], env=environment, cwd=f"{root}/source")
        self.assertEqual(done.returncode, 0, done.stdout[-3000:])
        found = {os.path.relpath(os.path.join(folder, name), environment["pkgdir"])
                 for folder, _, names in os.walk(environment["pkgdir"]) for name in names}  # fmt: skip
        manifest.compare(self, "alpine", {"all": found}, together=True)
        self.assertLessEqual({"usr/share/licenses/redlock/LICENSE", "usr/share/doc/redlock/docs/operations.md"}, found)
        links.check(self, os.path.join(environment["pkgdir"], links.DOCUMENTS))


class Rpm(unittest.TestCase):
    """Builds the packages."""

    def test_packages_are_built(self):
        """rpmbuild makes all packages, and each installed file is in the one to which it belongs."""
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
        packaged = {os.path.basename(path).rsplit("-", 2)[0]: run(["rpm", "-qlp", path]).stdout.split()
                    for path in glob.glob(f"{root}/RPMS/*/*.rpm")}  # fmt: skip
        self.assertEqual(sorted(packaged), sorted(PACKAGES))
        folders = {os.path.dirname(path) for paths in packaged.values() for path in paths}
        manifest.compare(self, "rpm", {name: set(paths) - folders for name, paths in packaged.items()})
        self.assertLessEqual({f"/usr/share/doc/redlock/{name}" for name in documents()}, set(packaged["redlock-doc"]))


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
        headers = {path for path in manifest.installed("alpine") if path.startswith("usr/include/")}
        folders = glob.glob(f"{self.root}/home/p/b/*/p/include")
        self.assertEqual(len(folders), len(CONAN_OPTIONS))
        for folder in folders:
            found = glob.glob(f"{folder}/**/*.h*", recursive=True)
            self.assertEqual({f"usr/include/{os.path.relpath(path, folder)}" for path in found}, headers)


if __name__ == "__main__":
    tapcase.main()
