# SPDX-License-Identifier: MIT
"""redlock_stats_prometheus(3) lists the figures that the library writes: each family with its type, its text and its
labels, and no other."""

import ctypes
import glob
import os
import sys
import unittest

sys.dont_write_bytecode = True
SOURCE = os.environ["REDLOCK_SOURCE"]
BUILD = os.environ["REDLOCK_BUILD"]
sys.path[:0] = [os.path.join(SOURCE, "test", "lib"), os.path.join(SOURCE, "docs", "reference")]
import cpp
import figures
import headers
import pages
import prometheus
import tapcase

SIZE = 100000


def written():
    """Returns {name: family} of what a client writes whose two shards have a server each, which do not run."""
    library = ctypes.CDLL(glob.glob(os.path.join(BUILD, "lib", "libredlock.so.?"))[0])
    config, client, text = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.create_string_buffer(SIZE)
    for result in (library.redlock_config_new(ctypes.byref(config), None),
                   library.redlock_config_add_nodes(config, b"a=127.0.0.1:1; b=127.0.0.1:2"),
                   library.redlock_new(ctypes.byref(client), config)):  # fmt: skip
        assert result == 0, result
    length = library.redlock_stats_prometheus(client, None, ctypes.c_size_t(0), text, ctypes.c_size_t(SIZE))
    assert 0 < length < SIZE, length
    library.redlock_free(client)
    library.redlock_config_free(config)
    return prometheus.read_lines(text.value.decode())


class Figures(unittest.TestCase):
    """Compares the list with the output of the library."""

    output = written()
    listed = {family.name: family for family in figures.families()}

    def test_each_family_is_listed(self):
        """The list has the families of the output, with their types and their texts."""
        self.assertGreater(len(self.output), 35)
        self.assertEqual(sorted(self.listed), sorted(self.output))
        for name, family in self.output.items():
            self.assertEqual((self.listed[name].kind, self.listed[name].text), (family.type, family.help))

    def test_labels_are_listed(self):
        """Each label of the output is in the list, and so is each value of those that divide a family."""
        seen = 0
        for name, family in self.output.items():
            own = [labels for _, labels, _ in family.samples]
            of_server = {"server"} if name.startswith("redlock_server_") else set()
            for labels in own:
                extra = set(labels) - of_server - {"shard", "le"}
                self.assertEqual(extra, set(self.listed[name].labels), name)
                self.assertLessEqual(of_server, set(labels))
                seen += 1
            if self.listed[name].values:
                self.assertEqual({labels[self.listed[name].label] for labels in own}, set(self.listed[name].values), name)
        self.assertGreater(seen, 100)

    def test_page_has_the_list(self):
        """The section FIGURES of the page has each family with its type and its values."""
        include = os.path.join(SOURCE, "include", "redlock")
        page = pages.texts(headers.Reference(include), "0", cpp.read(include))["redlock_stats_prometheus.3"]
        section = page.partition(".SH FIGURES")[2]
        for family in self.listed.values():
            self.assertIn(f".B {family.name} ({family.kind})\n", section)
        self.assertIn("Label result: acquired, contended, no_quorum,", section)


if __name__ == "__main__":
    tapcase.main()
