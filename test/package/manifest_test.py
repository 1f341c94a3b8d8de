# SPDX-License-Identifier: MIT
"""The file lists of the packages name what the build installs: each file in one package, the right one, and no name that is
not installed. The recipes need what the build finds. debian_test and recipes_test look into real packages."""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import links  # noqa: E402
import manifest  # noqa: E402
import tapcase  # noqa: E402
import tree  # noqa: E402

SPEC = "packaging/rpm/redlock.spec"
APKBUILD = "packaging/alpine/APKBUILD"
RPM_FOLDERS = {"_bindir": "usr/bin", "_libdir": "usr/lib64", "_includedir": "usr/include", "_datadir": "usr/share",
               "_mandir": "usr/share/man", "_docdir": "usr/share/doc"}  # fmt: skip
# What each dependency of meson is called elsewhere.
DEBIAN_NAMES = {"hiredis": "libhiredis-dev", "libsodium": "libsodium-dev", "jansson": "libjansson-dev",
                "ncursesw": "libncurses-dev", "openssl": "libssl-dev", "check": "check"}  # fmt: skip
ALPINE_NAMES = {"hiredis": "hiredis-dev", "libsodium": "libsodium-dev", "jansson": "jansson-dev",
                "ncursesw": "ncurses-dev", "openssl": "openssl-dev", "check": "check-dev"}  # fmt: skip
NOT_PACKAGES = ("threads", "dl", "sqlite3")  # of the C library, and of the examples
# The directories that abuild moves into a subpackage, after its split functions, in the order of the recipe.
ALPINE_SPLITS = {
    "static": ["usr/lib/*.a"],
    "libs": ["usr/lib/lib*.so.[0-9]*"],
    "dev": ["usr/include", "usr/lib/pkgconfig", "usr/lib/cmake", "usr/lib/*.a", "usr/lib/*.so"],
    "doc": ["usr/share/doc", "usr/share/man", "usr/share/licenses"],
    "bash-completion": ["usr/share/bash-completion/completions"],
    "zsh-completion": ["usr/share/zsh/site-functions"],
    "fish-completion": ["usr/share/fish/vendor_completions.d"],
}


def files_below(root, pattern):
    """Returns the files that the pattern of a recipe names, relative to root: a directory stands for all in it."""
    found = set()
    for path in glob.glob(os.path.join(root, pattern)):
        inside = [os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names]
        found |= {os.path.relpath(each, root) for each in (inside if os.path.isdir(path) else [path])}
    return found


def sections(text):
    """Yields (package, line) of the lists of files of the spec file."""
    for match in re.finditer(r"^%files *(\w*)\n(.*?)(?=^%(?:files|changelog))", text, re.MULTILINE | re.DOTALL):
        package = f"redlock-{match.group(1)}" if match.group(1) else "redlock"
        for line in match.group(2).split("\n"):
            if line and not line.startswith(("%license", "%doc ")):
                yield package, line


def folder_of(text):
    """Replaces the macros of directories."""
    return re.sub(r"%\{(\w+)\}", lambda match: RPM_FOLDERS[match.group(1)], text)


class Lists(unittest.TestCase):
    """Each case lays out empty files with the names of what is installed."""

    def lay_out(self, distribution):
        """Returns a directory with these files."""
        root = tempfile.mkdtemp(prefix="manifest-")
        self.addCleanup(shutil.rmtree, root)
        for path in manifest.installed(distribution):
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8"):
                pass
        return root

    def check(self, distribution, lists):
        """Compares the (package, pattern) pairs with what is installed. No pattern is idle, and no file is in two packages."""
        root = self.lay_out(distribution)
        packaged = {}
        for package, pattern in lists:
            found = files_below(root, pattern)
            self.assertTrue(found, f"{package}: nothing is installed as {pattern}")
            for other, paths in packaged.items():
                if other != package:
                    self.assertFalse(found & paths, f"in {package} and in {other}")
            packaged.setdefault(package, set()).update(found)
        manifest.compare(self, distribution, packaged)

    def test_debian(self):
        """debian/*.install."""
        lists = []
        for path in sorted(glob.glob(os.path.join(tree.SOURCE, "debian", "*.install"))):
            package = os.path.basename(path)[: -len(".install")]
            lists += [(package, line) for line in tree.text(path).split("\n") if line]
        self.check("debian", lists)

    def test_rpm(self):
        """The %files of the spec file."""
        self.check("rpm", [(package, folder_of(line)) for package, line in sections(tree.text(SPEC))])

    def test_alpine(self):
        """The subpackages of APKBUILD, with the rules of abuild. The rest is in the main package."""
        root = self.lay_out("alpine")
        names = re.search(r'^subpackages="(.*?)"', tree.text(APKBUILD), re.MULTILINE | re.DOTALL).group(1).split()
        packaged = {}
        for name in names:
            for pattern in ALPINE_SPLITS[name.replace("$pkgname-", "")]:
                for path in files_below(root, pattern):
                    packaged.setdefault(name.replace("$pkgname", "redlock"), set()).add(path)
                    os.remove(os.path.join(root, path))
        packaged["redlock"] = files_below(root, "*")
        manifest.compare(self, "alpine", packaged)


class Documents(unittest.TestCase):
    """What packaging/documents.py copies for all packages."""

    def setUp(self):
        """Copies."""
        self.root = tempfile.mkdtemp(prefix="documents-")
        self.addCleanup(shutil.rmtree, self.root)
        subprocess.run([os.path.join(tree.SOURCE, "packaging", "documents.py"), self.root], check=True)

    def text(self, name):
        """Returns a document as it was copied."""
        with open(os.path.join(self.root, name), encoding="utf-8") as file:
            return file.read()

    def test_links_lead_to_files(self):
        """Each relative link leads to a copied file, and most links are kept."""
        links.check(self, self.root)

    def test_links_to_the_sources_become_text(self):
        """A link to a file that is not copied is text with the path; one to a file that is copied, and code, stay."""
        self.assertIn("MIT license (`LICENSE` in the sources)", self.text("README.md"))
        self.assertIn("(`test/docs/samples.py` (in the sources))", self.text("CONTRIBUTING.md"))
        for name in ("docs/operations.md", "examples/monitoring/README.md"):
            self.assertEqual(self.text(name), tree.text(name))

    def test_what_is_copied(self):
        """Each user document, each example and each header is copied, and no test and no description of a build."""
        found = files_below(self.root, "*")
        wanted = [name for name in tree.tracked_files() if name.startswith(("docs/", "examples/", "include/"))
                  and not re.search(r"meson.build$|^docs/reference/|^docs/.*\.py$|^examples/test/|/test_|\.in$", name)]  # fmt: skip
        self.assertEqual({name for name in found if name.startswith(("docs/", "examples/", "include/"))}, set(wanted))

    def test_control(self):
        """links.follow() finds a link to a missing file, to a file outside, and a missing picture."""
        for name, text in (("a.md", "[x](b.md) [y](../other.md) ![p](p.svg) `[z](none)` [a](#a)"), ("b.md", "[a](a.md#x)"),
                           ("c.html", '<a href="none.html">x</a><img src="a.md">')):  # fmt: skip
            with open(os.path.join(self.root, name), "w", encoding="utf-8") as file:
                file.write(text)
        count, broken = links.follow(self.root)
        self.assertEqual(broken, ["a.md: ../other.md", "a.md: p.svg", "c.html: none.html"])
        self.assertGreater(count, 100)


class Symbols(unittest.TestCase):
    """What libredlock0 exports."""

    def test_debian(self):
        """debian/libredlock0.symbols has the exported symbols, and no others."""
        listed = re.findall(r"^ (redlock_\w+)@REDLOCK_0 ", tree.text("debian/libredlock0.symbols"), re.MULTILINE)
        exported = re.findall(r"^redlock_\w+$", tree.text("test/abi/symbols.txt"), re.MULTILINE)
        self.assertEqual(set(listed) ^ set(exported), set())


class Dependencies(unittest.TestCase):
    """What the packaged parts are compiled with is installed before the build."""

    @classmethod
    def setUpClass(cls):
        """Asks meson for the names of the dependencies."""
        found = manifest.introspect("--dependencies", "lib")
        cls.names = sorted({each["name"] for each in found} - set(NOT_PACKAGES) | {"check"})

    def test_control(self):
        """Meson names the libraries."""
        self.assertLessEqual({"hiredis", "libsodium", "jansson", "ncursesw", "openssl"}, set(self.names))

    def test_debian(self):
        """Build-Depends."""
        listed = re.search(r"^Build-Depends:(.*?)\n\S", tree.text("debian/control"), re.MULTILINE | re.DOTALL).group(1)
        wanted = {DEBIAN_NAMES.get(name, name) for name in self.names} | {"systemtap-sdt-dev"}
        self.assertEqual(wanted - {text.split()[0] for text in listed.split(",")}, set())

    def test_rpm(self):
        """BuildRequires."""
        listed = set(re.findall(r"^BuildRequires: +(\S+)", tree.text(SPEC), re.MULTILINE))
        wanted = {f"pkgconfig({name})" for name in self.names} | {"systemtap-sdt-devel"}
        self.assertEqual(wanted - listed, set())

    def test_alpine(self):
        """makedepends. The headers of the kernel are a package of their own there."""
        listed = re.search(r'^makedepends="(.*?)"', tree.text(APKBUILD), re.MULTILINE | re.DOTALL).group(1).split()
        wanted = {ALPINE_NAMES.get(name, name) for name in self.names}
        sources = tree.files_below("lib", ".c", ".h") + tree.files_below("tools", ".c", ".h")
        if any("#include <linux/" in tree.text(name) for name in sources):
            wanted.add("linux-headers")
        self.assertEqual(wanted - set(listed), set())

    def test_parts_are_required(self):
        """Each recipe demands the command and the screen of `redlock top`, which meson would leave out without a word."""
        for name in ("debian/rules", SPEC, APKBUILD):
            self.assertLessEqual({"-Dtools=enabled", "-Dtop=enabled"}, set(tree.text(name).split()), name)


if __name__ == "__main__":
    tapcase.main()
