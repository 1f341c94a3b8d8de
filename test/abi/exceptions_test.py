# SPDX-License-Identifier: MIT
"""A C++ exception that leaves a callback ends the program where it is thrown. It never passes through the library,
whose state would then be that of a running callback."""

import os
import shutil
import subprocess
import tempfile
import unittest

import tree
import tapcase  # found through tree

CC = os.environ.get("CC", "cc")
CXX = {"clang": "clang++", "gcc": "g++"}.get(os.path.basename(CC), "c++")
TERMINATED = 42  # exit status of exceptions.cc when std::terminate() was called
SERVERS = ("redis-server", "valkey-server", "redis-check-rdb")


def run(words, **more):
    """Runs a command, for at most 60 s, and returns it with its output, stderr included."""
    return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                          universal_newlines=True, timeout=60, **more)  # fmt: skip


class Exceptions(unittest.TestCase):
    """Runs exceptions.cc, one callback after the other."""

    @classmethod
    def setUpClass(cls):
        """Compiles the C++ program."""
        if shutil.which(CXX) is None:
            raise unittest.SkipTest(f"{CXX} is not installed")
        cls.root = tempfile.mkdtemp(prefix="exceptions-")
        cls.addClassCleanup(shutil.rmtree, cls.root)
        cls.folder = os.path.join(tree.BUILD, "lib")
        cls.program = os.path.join(cls.root, "exceptions")
        source = os.path.join(tree.SOURCE, "test", "abi", "exceptions.cc")
        includes = [f"-I{os.path.join(folder, 'include')}" for folder in (tree.SOURCE, tree.BUILD)]
        done = run([CXX, "-std=c++11", "-Wall", "-Wextra", "-Werror", *includes, source,
                    "-o", cls.program, f"-L{cls.folder}", "-lredlock"])  # fmt: skip
        if done.returncode != 0:
            raise AssertionError(done.stdout)

    def check(self, which, before=(), servers="redis://127.0.0.1:1,redis://127.0.0.1:2"):
        """Runs exceptions.cc with that callback throwing, and checks that it ended there."""
        environment = {**os.environ, "LD_LIBRARY_PATH": self.folder}
        if servers:
            environment["REDLOCK_SERVERS"] = servers  # nothing listens there
        done = run([*before, self.program, which], env=environment)
        self.assertEqual((done.returncode, done.stdout), (TERMINATED, ""))

    def test_body_of_redlock_with(self):
        """The function of redlock_with() throws; needs servers, from a sandbox."""
        command = os.environ["REDLOCK"]
        if not os.path.exists(command) or not any(shutil.which(name) for name in SERVERS):
            self.skipTest("the command and a server program are needed")
        self.check("body", [command, "sandbox", "-q", "-n", "1", "--"], servers=None)


def add(which):
    """Adds a test for the callback `which`."""
    def test(self):
        """The callback throws."""
        self.check(which)

    setattr(Exceptions, f"test_{which.replace('-', '_')}", test)


for each in ("done", "done-hybrid", "done-in-free", "event", "event-on-the-thread", "shutdown",
             "log", "malloc", "realloc", "free"):  # fmt: skip
    add(each)

if __name__ == "__main__":
    tapcase.main()
