# SPDX-License-Identifier: MIT
"""What README.md and docs/embedding.md show is extracted, compiled and run. meson passes CC,
REDLOCK_INCLUDE and REDLOCK_LIBRARY."""

import os
import re
import shlex
import tempfile
import unittest

from support import REDLOCK, SOURCE, held, run, tapcase

WARNINGS = ["-Wall", "-Wextra", "-Werror", "-Wno-misleading-indentation"]
PREAMBLE = """
#include <redlock/redlock.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>
"""


def blocks(path, language):
    with open(os.path.join(SOURCE, path), encoding="utf-8") as file:
        return re.findall(rf"^```{language}\n(.*?)^```$", file.read(), re.M | re.S)


def compile_c(source, *arguments):
    with tempfile.NamedTemporaryFile("w", suffix=".c") as file:
        file.write(source)
        file.flush()
        return run(
            [
                *shlex.split(os.environ["CC"]),
                *WARNINGS,
                "-std=c11",
                "-D_GNU_SOURCE",
                "-I" + os.environ["REDLOCK_INCLUDE"],
                file.name,
                *arguments,
            ]
        )


class Readme(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def test_the_c_program(self):
        (source,) = blocks("README.md", "c")
        program = os.path.join(self.directory, "bill")
        library = os.environ["REDLOCK_LIBRARY"]
        made = compile_c(
            source, library, "-Wl,-rpath," + os.path.dirname(library), "-o", program
        )
        self.assertEqual((made.returncode, made.stderr), (0, ""))
        done = run([program])
        self.assertEqual((done.returncode, done.stdout), (0, "billing customer 42\n"))
        with held("customer:42"):
            done = run([program])
        self.assertEqual((done.returncode, done.stdout), (1, "held by another client\n"))

    def test_the_command_in_three_lines(self):
        (script,) = blocks("README.md", "sh")
        lines = script.splitlines()
        self.assertEqual(len(lines), 3)
        self.assertTrue(lines[0].startswith("export REDLOCK_SERVERS="))  # the sandbox has its own
        backup = os.path.join(self.directory, "backup.sh")
        with open(backup, "w", encoding="ascii") as file:
            file.write("#!/bin/sh\nredlock status backup; echo backed up\n")
        os.chmod(backup, 0o755)
        path = os.path.dirname(REDLOCK) + ":" + os.environ["PATH"]
        shell = f"cd {shlex.quote(self.directory)}; "
        done = run(["sh", "-c", shell + lines[1]], PATH=path)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"(?s)held.*backed up\n")
        done = run(["sh", "-c", shell + lines[2]], PATH=path)
        self.assertEqual(done.returncode, 1, done.stdout)  # free again
        self.assertIn("free", done.stdout)

    def test_links_lead_somewhere(self):
        for path in ("README.md", "docs/guarantees.md", "docs/embedding.md", "docs/recipes.md"):
            with open(os.path.join(SOURCE, path), encoding="utf-8") as file:
                links = re.findall(r"\]\(([^)#]+)", file.read())
            for link in links:
                target = os.path.join(SOURCE, os.path.dirname(path), link)
                self.assertTrue(os.path.exists(target), f"{path}: {link}")


class Embedding(unittest.TestCase):
    def test_the_c_pieces_compile(self):
        pieces = blocks("docs/embedding.md", "c")
        self.assertGreaterEqual(len(pieces), 4)
        made = compile_c(PREAMBLE + "\n".join(pieces), "-fsyntax-only")
        self.assertEqual((made.returncode, made.stderr), (0, ""))


if __name__ == "__main__":
    tapcase.main()
