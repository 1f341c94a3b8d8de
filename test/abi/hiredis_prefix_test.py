# SPDX-License-Identifier: MIT
"""Builds with a hiredis that is installed in a prefix of its own. The sources include <hiredis/hiredis.h>; the flags of
pkg-config may point into the folder hiredis/ only."""

import glob
import os
import shutil
import subprocess
import tempfile
import unittest

import tree
import tapcase  # found through tree

LEFT_OUT = [f"-D{part}=disabled" for part in ("tls", "tools", "examples", "bench", "tests", "probes")]
NINJA = shutil.which("ninja") or "ninja-build"
OBJECT = "lib/libredlock-internal.a.p/node_codec.c.o"
PACKAGE = """prefix={prefix}
{lines}
Name: hiredis
Description: a copy
Version: {version}
Libs: -L{libdir} -lhiredis
"""


def pkg_config(*words):
    """Returns what pkg-config prints about the hiredis of the system."""
    return subprocess.run(["pkg-config", *words, "hiredis"], stdout=subprocess.PIPE, check=True, text=True).stdout.strip()


class Prefix(unittest.TestCase):
    """The headers are a copy of those of the system."""

    def setUp(self):
        """Copies the headers."""
        self.prefix = tempfile.mkdtemp(prefix="hiredis-")
        self.addCleanup(shutil.rmtree, self.prefix)
        self.headers = os.path.join(self.prefix, "include", "hiredis")
        os.makedirs(self.headers)
        folder = pkg_config("--variable=includedir")
        for path in glob.glob(os.path.join(folder, "*.h")) + glob.glob(os.path.join(folder, "hiredis", "*.h")):
            shutil.copy(path, self.headers)

    def check_headers(self, name, *lines):
        """Compiles a source that includes hiredis with these lines in hiredis.pc. Fails unless it reads the copies."""
        build = os.path.join(self.prefix, name)
        with open(os.path.join(self.prefix, "hiredis.pc"), "w", encoding="ascii") as file:
            file.write(PACKAGE.format(prefix=self.prefix, lines="\n".join(lines), version=pkg_config("--modversion"),
                                      libdir=pkg_config("--variable=libdir")))  # fmt: skip
        path = os.pathsep.join(filter(None, (self.prefix, os.environ.get("PKG_CONFIG_PATH"))))
        for words in (["meson", "setup", "-Doptimization=0", "-Ddebug=false", *LEFT_OUT, build, tree.SOURCE],
                      [NINJA, "-C", build, OBJECT], [NINJA, "-C", build, "-t", "deps", OBJECT]):  # fmt: skip
            done = subprocess.run(words, check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  env={**os.environ, "CC": tree.MESON_CC, "PKG_CONFIG_PATH": path})  # fmt: skip
            self.assertEqual(done.returncode, 0, done.stdout)
        read = [line.strip() for line in done.stdout.splitlines() if line.endswith("/hiredis.h")]
        self.assertEqual([os.path.realpath(path) for path in read],
                         [os.path.realpath(os.path.join(self.headers, "hiredis.h"))])  # fmt: skip

    def test_folder_of_hiredis(self):
        """The variable includedir names the folder hiredis/, as on Debian."""
        self.check_headers("debian", "includedir=${prefix}/include/hiredis", "Cflags: -I${includedir}")

    def test_folder_above(self):
        """The variable includedir names the folder above, as in newer versions of hiredis."""
        self.check_headers("newer", "includedir=${prefix}/include", "Cflags: -I${includedir}/hiredis")


if __name__ == "__main__":
    tapcase.main()
