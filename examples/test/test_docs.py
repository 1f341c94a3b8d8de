# SPDX-License-Identifier: MIT
"""Extracts, compiles and runs the code in README.md and docs/embedding.md. meson passes CC, REDLOCK_INCLUDE and
REDLOCK_LIBRARY."""

import configparser
import os
import re
import shlex
import shutil
import tempfile
import unittest

from support import REDLOCK, SOURCE, held, run, tapcase

# Compiler options with which the documents' code must compile.
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-Wno-misleading-indentation"]
# Includes before a piece of code that has none of its own.
PREAMBLE = """
#include <redlock/redlock.h>
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>
"""


def blocks(path, language):
    """Returns the texts of all code blocks of this language in a document."""
    with open(os.path.join(SOURCE, path), encoding="utf-8") as file:
        return re.findall(rf"^```{language}\n(.*?)^```$", file.read(), re.M | re.S)


def compile_c(source, *arguments):
    """Compiles C source with warnings as errors. Returns the finished compiler process."""
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
                "-I" + os.path.join(os.environ["BUILD_DIR"], "include"),
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
        self.assertTrue(lines[0].startswith("export REDLOCK_SERVERS="))  # replaced by that of the sandbox
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
        self.assertEqual(done.returncode, 1, done.stdout)  # the lock is free
        self.assertIn("free", done.stdout)


class Recipes(unittest.TestCase):
    """Parses the systemd unit and the crontab line of the documents as those programs do."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def test_the_unit(self):
        (unit,) = blocks("docs/recipes.md", "ini")
        self.assertIn("redlock run importer --", unit)
        unit = unit.replace("/usr/local/bin/redlock", REDLOCK).replace("/usr/local/bin/importer", "/bin/true")
        parsed = configparser.ConfigParser(strict=True)
        parsed.optionxform = str
        parsed.read_string(unit)
        self.assertEqual(parsed["Service"]["KillMode"], "mixed")
        path = os.path.join(self.directory, "importer.service")
        with open(path, "w", encoding="ascii") as file:
            file.write(unit)
        analyze = shutil.which("systemd-analyze")
        if analyze is None:
            print("# no systemd-analyze: the unit was parsed only", flush=True)
            return
        done = run([analyze, "verify", path])
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))

    def test_the_line_of_a_crontab(self):
        lines = [line for block in blocks("docs/recipes.md", "sh") for line in block.splitlines()]
        (line,) = [line for line in lines if re.match(r"[0-9*]+ ", line)]
        *when, command = line.split(None, 5)
        for field, (least, most) in zip(when, [(0, 59), (0, 23), (1, 31), (1, 12), (0, 7)], strict=True):
            self.assertTrue(field == "*" or least <= int(field) <= most, field)
        self.assertNotIn("%", command)  # cron takes % as the end of the line
        command = command.replace("redlock", shlex.quote(REDLOCK), 1).replace("20s", "20ms")
        command = command.replace("/usr/local/bin/nightly-report", "/bin/true")
        self.assertEqual(run(["/bin/sh", "-c", command]).returncode, 0)
        with held("nightly-report"):
            self.assertEqual(run(["/bin/sh", "-c", command]).returncode, 75)
            self.assertEqual(run(["/bin/sh", "-c", command + " || [ $? = 75 ]"]).returncode, 0)


class Embedding(unittest.TestCase):
    def test_the_c_pieces_compile(self):
        pieces = blocks("docs/embedding.md", "c")
        self.assertGreaterEqual(len(pieces), 4)
        made = compile_c(PREAMBLE + "\n".join(pieces), "-fsyntax-only")
        self.assertEqual((made.returncode, made.stderr), (0, ""))


if __name__ == "__main__":
    tapcase.main()
