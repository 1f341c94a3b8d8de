# SPDX-License-Identifier: MIT
"""Another project builds the library as a Meson subproject, from its sources or from a wrap file with an archive."""

import os
import shutil
import subprocess
import tarfile
import tempfile
import unittest

import tree
import tapcase  # found through tree

WRAP = os.path.join(tree.SOURCE, "packaging", "meson", "redlock.wrap")
SOURCES = ("meson.build", "meson_options.txt", "include", "lib")


def run(words, **more):
    """Runs a command and returns it with its output, stderr included."""
    return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                          universal_newlines=True, **more)  # fmt: skip


class Subproject(unittest.TestCase):
    """The consumer program takes redlock from subprojects/, because pkg-config does not find it."""

    def setUp(self):
        """Copies the project of the consumer."""
        self.root = tempfile.mkdtemp(prefix="subproject-")
        self.addCleanup(shutil.rmtree, self.root)
        self.project = os.path.join(self.root, "project")
        shutil.copytree(os.path.join(tree.SOURCE, "test", "abi", "consumer"), self.project)
        self.subprojects = os.path.join(self.project, "subprojects")
        os.mkdir(self.subprojects)

    def meson_setup(self):
        """Sets the project up and returns the output of meson. It must succeed, and leave out all parts."""
        done = run(["meson", "setup", "-Doptimization=0", "-Ddebug=false", "build"], cwd=self.project,
                   env={**os.environ, "CC": tree.MESON_CC})  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(done.stdout.count("left out, a subproject"), 4, done.stdout)
        return done.stdout

    def test_sources_below_subprojects(self):
        """The program is built with the library from a link to the sources, and runs."""
        os.symlink(tree.SOURCE, os.path.join(self.subprojects, "redlock"))
        self.meson_setup()
        done = run(["meson", "compile", "-C", "build", "consumer"], cwd=self.project)
        self.assertEqual(done.returncode, 0, done.stdout)
        done = run([os.path.join(self.project, "build", "consumer")], timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("REDLOCK_ENOQUORUM", done.stdout)

    def test_wrap_file(self):
        """With the wrap file, meson unpacks the archive of a release that lies in subprojects/packagefiles/."""
        version = run(["meson", "introspect", "--projectinfo", tree.BUILD]).stdout.split('"version": "')[1].split('"')[0]
        shutil.copy(WRAP, self.subprojects)
        files = os.path.join(self.subprojects, "packagefiles")
        os.mkdir(files)
        with tarfile.open(os.path.join(files, f"redlock-{version}.tar.xz"), "w:xz", preset=0) as archive:
            for name in SOURCES:
                archive.add(os.path.join(tree.SOURCE, name), f"redlock-{version}/{name}")
        self.meson_setup()
        self.assertTrue(os.path.isfile(os.path.join(self.subprojects, f"redlock-{version}", "lib", "meson.build")))


if __name__ == "__main__":
    tapcase.main()
