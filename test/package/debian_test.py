# SPDX-License-Identifier: MIT
"""Builds the Debian packages in a clean system, with the tests of a package build; checks them with lintian; installs them
in another clean system and runs the tests of debian/tests there."""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "abi"))
import chroot  # noqa: E402
import links  # noqa: E402
import manifest  # noqa: E402
import tapcase  # noqa: E402
import tree  # noqa: E402

SUITE = os.environ.get("REDLOCK_DEBIAN_SUITE", "bookworm")
PACKAGES = ("libredlock0", "libredlock-dev", "redlock", "redlock-doc")


def version():
    """Returns the version of the packages, which is that of debian/changelog."""
    return re.match(r"redlock \((.*?)\)", tree.text("debian/changelog")).group(1)


def paragraphs(text):
    """Returns the paragraphs of a control file as dictionaries."""
    found = []
    for block in re.split(r"\n\s*\n", text.strip()):
        fields = re.findall(r"^([\w-]+):((?:.*\n?)(?:[ \t].*\n?)*)", block + "\n", re.MULTILINE)
        found.append({name: " ".join(value.split()) for name, value in fields})
    return found


class Debian(unittest.TestCase):
    """One build, whose results the cases look at in the order of their names."""

    @classmethod
    def setUpClass(cls):
        """Builds the packages in a system that has the essential packages and apt only."""
        cls.results = tempfile.mkdtemp(prefix="debian-")
        cls.addClassCleanup(shutil.rmtree, cls.results)
        try:
            with chroot.Chroot(SUITE, ["build-essential", "devscripts", "fakeroot", "lintian"]) as system:
                cls.build(system)
        except chroot.Unavailable as reason:
            raise unittest.SkipTest(str(reason)) from reason

    @classmethod
    def build(cls, system):
        """Builds and checks the packages, and copies them to `results`."""
        folder = f"/build/redlock-{version()}"
        system.copy_tree(tree.SOURCE, tree.tracked_files(), folder)
        prepared = system.run("apt-get update -q\napt-get build-dep -qy --no-install-recommends ./", folder)
        if prepared.returncode != 0:
            raise AssertionError(prepared.stdout)
        cls.built = system.run("useradd -m builder\nchown -R builder /build\n"
                               "runuser -u builder -- dpkg-buildpackage -us -uc", folder)  # fmt: skip
        cls.lintian = system.run("runuser -u builder -- lintian --fail-on error,warning ../*.changes", folder)
        cls.lintian_control = system.run(
            "rm -rf obj-*\nsed -i '/^Maintainer:/d' debian/control\nrunuser -u builder -- dpkg-source -b . >/dev/null 2>&1 || true\n"
            "cd ..\nrunuser -u builder -- lintian --fail-on error,warning *.dsc", folder)  # fmt: skip
        for path in glob.glob(os.path.join(system.root, "build", "*.*deb")):
            shutil.copy(path, cls.results)

    def test_1_packages_are_built(self):
        """dpkg-buildpackage succeeds, with its tests, and makes the packages."""
        self.assertEqual(self.built.returncode, 0, self.built.stdout)
        self.assertRegex(self.built.stdout, r"\nFail: +0 *\n")
        names = {os.path.basename(path).split("_")[0] for path in glob.glob(f"{self.results}/*.deb")}
        self.assertLessEqual(set(PACKAGES), names)

    def test_2_lintian_is_silent(self):
        """lintian finds no error and no warning, and nothing is overridden."""
        self.assertEqual(self.lintian.returncode, 0, self.lintian.stdout)
        self.assertNotRegex(self.lintian.stdout, r"(?m)^[EWO]:")
        self.assertEqual([name for name in tree.tracked_files() if "lintian-overrides" in name], [])

    def test_3_lintian_works(self):
        """The control: lintian finds an error in a source package without a maintainer."""
        self.assertNotEqual(self.lintian_control.returncode, 0, self.lintian_control.stdout)

    def test_4_symbols_are_complete(self):
        """dpkg-gensymbols found no function that debian/libredlock0.symbols does not have."""
        self.assertNotIn("dpkg-gensymbols: warning", self.built.stdout)

    def test_5_packages_have_all_files(self):
        """Each file that the build installs is in the package to which it belongs, and the packages have the version."""
        packaged = {}
        for path in glob.glob(f"{self.results}/*.deb"):
            package = os.path.basename(path).split("_")[0]
            lines = subprocess.run(["dpkg-deb", "--contents", path], stdout=subprocess.PIPE, check=True,
                                   universal_newlines=True).stdout.splitlines()  # fmt: skip
            packaged[package] = [line.split()[5] for line in lines if not line.startswith("d")]
            self.assertEqual(os.path.basename(path).split("_")[1], version())
        manifest.compare(self, "debian", packaged)

    def test_6_links_lead_to_files(self):
        """Each relative link of the documents in redlock-doc leads to a file of that package."""
        root = tempfile.mkdtemp(prefix="debian-")
        self.addCleanup(shutil.rmtree, root)
        [path] = glob.glob(f"{self.results}/redlock-doc_*.deb")
        subprocess.run(["dpkg-deb", "--extract", path, root], check=True)
        links.check(self, os.path.join(root, links.DOCUMENTS))

    def test_7_packages_work_when_installed(self):
        """Each test of debian/tests passes in a clean system that has only what it asks for."""
        files = [path for path in glob.glob(f"{self.results}/*.deb") if "dbgsym" not in path]
        self.assertEqual(len(files), len(PACKAGES))
        for test in paragraphs(tree.text("debian/tests/control")):
            with chroot.Chroot(SUITE) as system:
                system.copy_tree(self.results, [os.path.basename(path) for path in files], "/packages")
                system.copy_tree(tree.SOURCE, tree.tracked_files(), "/source")
                self.run_tests(system, test["Tests"].split(), test["Depends"].split(", "))

    def run_tests(self, system, names, wanted):
        """Installs the packages that the tests ask for, ours from files, and runs the tests."""
        ours = [f"/packages/{os.path.basename(path)}" for path in sorted(glob.glob(f"{self.results}/*.deb"))
                if os.path.basename(path).split("_")[0] in (*wanted, "libredlock0")]  # fmt: skip
        others = [name for name in wanted if name not in PACKAGES]
        done = system.run("mkdir -p /packages\ncd /packages\napt-get update -q\n"
                          f"apt-get install -qy --no-install-recommends {' '.join(ours + others)}")  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stdout)
        for name in names:
            done = system.run(f"useradd -m tester 2>/dev/null || true\nrm -rf /tmp/t\nmkdir /tmp/t\nchown tester /tmp/t\n"
                              f"AUTOPKGTEST_TMP=/tmp/t runuser -u tester -- debian/tests/{name}", "/source")  # fmt: skip
            self.assertEqual(done.returncode, 0, f"debian/tests/{name}:\n{done.stdout}")


if __name__ == "__main__":
    tapcase.main()
