# SPDX-License-Identifier: MIT
"""The USDT probes in the notes of the shared library: their names and arguments are those that
examples/tracing/README.md documents, and locks.bt uses each of them."""

import os
import re
import subprocess
import unittest

import tree
import tapcase  # found through tree

SHARED = os.path.join(tree.BUILD, "lib", "libredlock.so")
README = "examples/tracing/README.md"
# Sizes of the arguments in bytes; below 0: signed.
PROBES = {
    "acquire": [8, 8, 4, 8],
    "attempt_failed": [8, 8, -4, 4, 4],
    "grant": [8, 8, 8, 4, 8],
    "loss": [8, 8, 8],
    "release": [8, 8, -4],
    "notification": [8, 8, 8],
}


def notes():
    """Returns [(name, sizes of its arguments)] of the probes of the library; one probe may be in several places."""
    text = subprocess.run(["readelf", "--notes", "--wide", SHARED], stdout=subprocess.PIPE, check=True,
                          universal_newlines=True).stdout  # fmt: skip
    found = re.findall(r"Provider: redlock\n\s*Name: (\w+)\n.*\n\s*Arguments: (.*)", text)
    return [(name, [int(size) for size in re.findall(r"(?:^| )(-?\d+)@", places)]) for name, places in found]


class Probes(unittest.TestCase):
    """The notes that sys/sdt.h writes."""

    def test_library_has_the_probes(self):
        """Each probe is there, with its arguments, and there is no other."""
        options = os.path.join(tree.BUILD, "compile_commands.json")
        with open(options, encoding="utf-8") as file:
            if "-DRL_PROBES" not in file.read():
                self.skipTest("built without sys/sdt.h (Debian: systemtap-sdt-dev)")
        found = notes()
        self.assertEqual({name for name, _ in found}, set(PROBES))
        for name, sizes in found:
            self.assertEqual(sizes, PROBES[name], name)

    def test_probes_are_documented(self):
        """The table of the README has each probe, with as many arguments."""
        rows = re.findall(r"^\| `(\w+)` \| .*? \| (.*) \|$", tree.text(README), re.MULTILINE)
        documented = {name: len(re.split(r", (?![^(]*\))", arguments)) for name, arguments in rows}
        self.assertEqual(documented, {name: len(sizes) for name, sizes in PROBES.items()})

    def test_script_uses_each_probe(self):
        """The bpftrace script attaches to each probe, and to no other."""
        script = tree.text("examples/tracing/locks.bt")
        self.assertEqual(set(re.findall(r"^usdt:\$1:redlock:(\w+)$", script, re.MULTILINE)), set(PROBES))


if __name__ == "__main__":
    tapcase.main()
