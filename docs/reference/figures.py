# SPDX-License-Identifier: MIT
"""Reads the figures that redlock_stats_prometheus() writes from its source, for the section FIGURES of its page.
test/docs/manual_figures_test.py compares them with what the library writes."""

import os
import re

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "lib", "api", "prometheus.c")
TEXT = r'"((?:[^"\\]|\\.|"\s*")+)"'
ROW = re.compile(rf"^    (GAUGE|GAUGE_IN|COUNTER|PARTS|PART|TIMES)\((.*?)\),$", re.M | re.S)
TYPES = {"GAUGE": "gauge", "GAUGE_IN": "gauge", "COUNTER": "counter", "PARTS": "counter", "TIMES": "histogram"}
# The families that are not in a table: their types are gauges, and these are the labels that only they have.
LABELS = {"build_info": "version", "shortest_validity_seconds": "", "server_excluded": "cause", "server_info": "version, role, policy",
          "server_notification_state": "state"}  # fmt: skip
VALUES = {"server_excluded": "the names of enum redlock_cause in small letters, without the prefix",
          "server_notification_state": "off, idle, pending, on, refused"}  # fmt: skip


class Family:
    """The figures of one name."""

    def __init__(self, name, kind, text):
        self.name, self.kind, self.text = f"redlock_{name}", kind, text
        self.label, self.values = "", []  # the label that distinguishes its figures, and the values of that

    @property
    def labels(self):
        """Returns the names of the labels that only this family has."""
        return [self.label] if self.label else [name for name in LABELS.get(self.name.removeprefix("redlock_"), "").split(", ") if name]

    @property
    def about(self):
        """Returns what the figures are, with their own label."""
        short = self.name.removeprefix("redlock_")
        if self.label:
            return f"{self.text} Label {self.label}: {', '.join(self.values)}."
        if LABELS.get(short):
            return f"{self.text} Label{'s' if ',' in LABELS[short] else ''} {LABELS[short]}" + (f": {VALUES[short]}." if short in VALUES else ".")
        return self.text


def joined(text):
    """Returns the text of literals that stand one after the other."""
    return re.sub(r'"\s*"', "", text)


def families():
    """Returns the families in the order of the output, as far as they are of the client, of shards and of servers."""
    with open(SOURCE, encoding="utf-8") as file:
        source = file.read()
    found = []
    for row in ROW.finditer(source):
        words = [joined(word) for word in re.findall(TEXT, row[2])]
        if row[1] == "PART":
            found[-1].values.append(words[2])
            continue
        found.append(Family(words[0], TYPES[row[1]], words[-1]))
        if row[1] == "PARTS":
            found[-1].label, found[-1].values = words[1], [words[2]]
    for name in LABELS:
        literal = re.search(rf'"{name}"(?:, "gauge")?,\s*{TEXT}', source) or re.search(rf'"{name}";.*?"gauge",\s*{TEXT}', source, re.S)
        found.append(Family(name, "gauge", joined(literal[1])))
    return found


ABOUT = (
    "The figures of a shard have the label shard if the client has several. Those whose names begin with redlock_server_ are of one "
    "server, with the label server, its address. A figure that is not known has no line. A histogram has the figures _bucket with "
    "the label le, _sum and _count."
)


def rows():
    """Returns [(name and type, what the figure is)] for a list."""
    return [(f"{family.name} ({family.kind})", family.about) for family in families()]
