# SPDX-License-Identifier: MIT
"""The table of the figures for Prometheus in examples/monitoring/README.md: it has what redlock_stats_prometheus() writes, in the
same order, with the same types, labels and results. A client that reaches no server writes all families."""

import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
SOURCE = os.environ["REDLOCK_SOURCE"]
BUILD = os.environ["REDLOCK_BUILD"]
CC = os.environ.get("CC", "cc")
sys.path[:0] = [os.path.join(SOURCE, "test", "lib")]
import tapcase

PROGRAM = """#include <redlock/redlock.h>
#include <stdio.h>

int main(void)
{
    static char text[100000];
    redlock_config_t *config = NULL;
    redlock_t *rl = NULL;

    if (redlock_config_new(&config, NULL) != 0 || redlock_config_add_nodes(config, "127.0.0.1:1") != 0 ||
        redlock_new(&rl, config) != 0 || redlock_stats_prometheus(rl, NULL, 0, text, sizeof text) <= 0)
        return 1;
    fputs(text, stdout);
    redlock_free(rl);
    redlock_config_free(config);
    return 0;
}
"""
SANITIZERS = re.compile(r"/lib\w*san\.so")


def table():
    """Returns the rows of the table: figure, type, labels with their values. The type is in the name and the labels."""
    with open(os.path.join(SOURCE, "examples", "monitoring", "README.md"), encoding="utf-8") as file:
        part = file.read().split("\n## Figures of the library\n")[1].split("\n## ")[0]
    found = []
    for name, words in re.findall(r"^\| `(\w+)` \| (.*?) ?\| .+ \|$", part, re.M):
        labels = re.findall(r"`(\w+)`", words)
        kind = "counter" if name.endswith("_total") else "histogram" if "le" in labels else "gauge"
        found.append((name, kind, labels))
    return found


def written():
    """Returns the text that a client without a reachable server writes."""
    library = os.path.join(BUILD, "lib")
    linked = subprocess.run(["ldd", os.path.join(library, "libredlock.so")], stdout=subprocess.PIPE, text=True, check=False)
    if SANITIZERS.search(linked.stdout):
        raise unittest.SkipTest("a program without the sanitizer cannot use this library")
    with tempfile.TemporaryDirectory(prefix="figures-") as folder:
        path = os.path.join(folder, "figures.c")
        with open(path, "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        words = [*CC.split(), f"-I{SOURCE}/include", f"-I{BUILD}/include", path, f"-L{library}", "-lredlock", "-o", path[:-2]]
        subprocess.run(words, check=True)
        environment = {**os.environ, "LD_LIBRARY_PATH": library}
        return subprocess.run([path[:-2]], env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout


class Figures(unittest.TestCase):
    """Each case compares one column with the text."""

    @classmethod
    def setUpClass(cls):
        cls.text = written()
        cls.families = re.findall(r"^# TYPE (\w+) (\w+)$", cls.text, re.M)

    def test_names_and_types(self):
        """All families, in their order, and no other ones."""
        self.assertGreater(len(self.families), 30)
        self.assertEqual([row[:2] for row in table()], self.families)

    def test_labels(self):
        """The labels of each family that has a line, with the values of those that have few."""
        compared = 0
        for name, _, shown in table():
            lines = re.findall(rf"^{name}(?:_bucket)?\{{(.*)\}} ", self.text, re.M)
            pairs = [pair for line in lines for pair in re.findall(r'(\w+)="([^"]*)"', line) if pair[0] != "server"]
            labels = list(dict.fromkeys(label for label, _ in pairs))
            with self.subTest(name=name):
                if not lines and not re.search(rf"^{name} ", self.text, re.M):
                    continue  # not known without a server
                compared += 1
                if "result" in labels or "rounds" in labels:
                    labels += [value for _, value in pairs]
                self.assertEqual(shown if name != "redlock_server_notification_state" else shown[:1], labels)
        self.assertGreater(compared, 25)


if __name__ == "__main__":
    tapcase.main()
