# SPDX-License-Identifier: MIT
"""A strict reader of Prometheus' text format: rejects what the format forbids, and what Prometheus' conventions advise
against. promtool() runs Prometheus' own check."""

import math
import re
import shutil
import subprocess

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(,|$)')
VALUE = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|Inf)|NaN")
ESCAPES = {r"\\": "\\", r"\"": '"', r"\n": "\n"}
# Units that are not base units, as part of a name.
OTHER_UNITS = re.compile(r"_(ns|us|ms|msec|milliseconds|microseconds|nanoseconds|minutes|hours|days|kb|mb|kilobytes)(_|$)")
SUFFIXES = {"counter": ("",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}


class FormatError(ValueError):
    """The text breaks a rule of the format."""


class Family:
    """One family: its type, its help, and `samples`, a list of (name, labels, value)."""

    def __init__(self, name, text):
        self.name, self.help, self.type, self.samples = name, text, None, []


def labels_of(text, where):
    """Returns the labels between braces as dict."""
    found, at = {}, 0
    while at < len(text):
        match = LABEL.match(text, at)
        if not match:
            raise FormatError(f"{where}: labels: {text[at:]}")
        name, value, end = match.groups()
        if name in found or name.startswith("__"):
            raise FormatError(f"{where}: label {name}")
        found[name] = re.sub(r"\\.", lambda escape: ESCAPES[escape.group()], value)
        at = match.end()
        if end == "," and at == len(text):
            raise FormatError(f"{where}: comma at the end")
    return found


def sample_of(line, where):
    """Returns (name, labels, value) of a line."""
    match = re.fullmatch(rf"({NAME})(?:\{{(.*)\}})? (\S+)", line)
    if not match or match.group(2) == "":
        raise FormatError(f"{where}: not a sample: {line}")
    if not VALUE.fullmatch(match.group(3)):
        raise FormatError(f"{where}: value {match.group(3)}")
    return match.group(1), labels_of(match.group(2) or "", where), float(match.group(3))


def read_lines(text):
    """Returns {name: Family} of a text, in its order."""
    families, family = {}, None
    if not text.endswith("\n"):
        raise FormatError("no line end at the end")
    for number, line in enumerate(text[:-1].split("\n"), 1):
        where = f"line {number}"
        comment = re.fullmatch(rf"# (HELP|TYPE) ({NAME}) (\S.*\S)", line)
        if line.startswith("#") and not comment:
            raise FormatError(f"{where}: {line}")
        if comment and comment.group(1) == "HELP":
            family = Family(comment.group(2), comment.group(3))
            if family.name in families:
                raise FormatError(f"{where}: {family.name} comes twice")
            families[family.name] = family
        elif comment:
            if family is None or comment.group(2) != family.name or family.type or family.samples:
                raise FormatError(f"{where}: TYPE without HELP before it")
            family.type = comment.group(3)
        else:
            sample = sample_of(line, where)
            suffixes = SUFFIXES.get(family.type if family else None, ())
            if sample[0] not in [family.name + suffix for suffix in suffixes]:
                raise FormatError(f"{where}: {sample[0]} does not belong to the family before it")
            family.samples.append(sample)
    return families


def check_names(family):
    """Rejects names and types against Prometheus' conventions, and samples that come twice."""
    if family.type not in SUFFIXES:
        raise FormatError(f"{family.name}: type {family.type}")
    if family.name.endswith("_total") != (family.type == "counter"):
        raise FormatError(f"{family.name}: a {family.type} with this name")
    if re.search(r"_(count|sum|bucket)$", family.name) or OTHER_UNITS.search(family.name):
        raise FormatError(f"{family.name}: this name")
    seen = set()
    for name, labels, value in family.samples:
        key = (name, *sorted(labels.items()))
        if key in seen:
            raise FormatError(f"{family.name}: {key} comes twice")
        seen.add(key)
        if family.type == "counter" and not value >= 0:
            raise FormatError(f"{family.name}: counter with the value {value}")


def check_histogram(family):
    """Rejects histograms whose buckets are not cumulative, or without sum or count."""
    series = {}
    for name, labels, value in family.samples:
        rest = tuple(sorted((key, text) for key, text in labels.items() if key != "le"))
        parts = series.setdefault(rest, {"_bucket": [], "_sum": [], "_count": []})
        part = name[len(family.name):]
        if ("le" in labels) != (part == "_bucket"):
            raise FormatError(f"{family.name}: le in {labels}")
        parts[part].append((float(labels["le"]) if part == "_bucket" else None, value))
    for rest, parts in series.items():
        ends = [end for end, _ in parts["_bucket"]]
        counts = [count for _, count in parts["_bucket"]]
        if not ends or ends != sorted(set(ends)) or ends[-1] != math.inf or counts != sorted(counts):
            raise FormatError(f"{family.name}: buckets of {rest}: {parts['_bucket']}")
        if len(parts["_sum"]) != 1 or [count for _, count in parts["_count"]] != [counts[-1]]:
            raise FormatError(f"{family.name}: sum and count of {rest}")


def parse(text):
    """Returns {name: Family} of a text. Raises FormatError for each broken rule."""
    families = read_lines(text)
    for family in families.values():
        check_names(family)
        if family.type == "histogram":
            check_histogram(family)
    return families


def collisions(texts):
    """Returns the samples, as (name, labels), that more than one of these texts has. Of such samples, node_exporter's
    textfile collector passes on one, and drops the others with a message in its log."""
    seen, twice = set(), set()
    for text in texts:
        samples = {(name, *sorted(labels.items())) for family in parse(text).values() for name, labels, _ in family.samples}
        twice |= seen & samples
        seen |= samples
    return twice


def value(families, name, **labels):
    """Returns the value of the one sample with this name and, among others, these labels; None if there is none."""
    family = families[re.sub(r"_(bucket|sum|count)$", "", name)]
    found = [number for sample, having, number in family.samples
             if sample == name and labels.items() <= having.items()]  # fmt: skip
    if len(found) > 1:
        raise AssertionError(f"{name}{labels}: {len(found)} samples")
    return found[0] if found else None


def promtool(*words, text=None, cwd=None):
    """Runs promtool, of Debian's package prometheus. Returns what it found wrong, "" if nothing; None if there is no
    promtool."""
    program = shutil.which("promtool")
    if program is None:
        return None
    run = subprocess.run([program, *words], input=text, cwd=cwd, capture_output=True, text=True, timeout=60, check=False)  # fmt: skip
    if run.returncode == 0 and words[0] == "check" and words[1] == "metrics":
        return run.stdout + run.stderr  # advice alone does not change the status
    return "" if run.returncode == 0 else (run.stdout + run.stderr) or f"status {run.returncode}"
