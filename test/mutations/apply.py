# SPDX-License-Identifier: MIT
"""Reads mutations and applies them. README.md describes their format.

usage: apply.py SOURCE OUTPUT PATCH...

Writes to the directory OUTPUT what each PATCH makes of each file of the source tree SOURCE that it names, as
NAME.lib_node_closing_c.c. A PATCH that does not apply leaves the file as it is: the build goes on, and mutations_test.py
reports the patch. An output that stays as it was is not written, so that the build does not compile it again.
"""

import os
import re
import sys
from collections import namedtuple

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))

# Only words and signs count. A string is one word, so that its blanks are kept.
TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|\w+|[^\w\s]')
COMMENT = re.compile(r'("(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')|/\*.*?\*/|//[^\n]*', re.DOTALL)

Hunk = namedtuple("Hunk", "file old new")  # the path below the source tree; text before and after
Mutation = namedtuple("Mutation", "name path description hunks")


class Fault(Exception):
    """A mutation cannot be used. The text says which, why, and what to do."""


def names():
    """Returns the names of all mutations, sorted."""
    return sorted(name[:-len(".patch")] for name in os.listdir(HERE) if name.endswith(".patch"))


def path_of(name):
    """Returns the path of the patch of a mutation."""
    return os.path.join(HERE, name + ".patch")


def side(lines, other):
    """Returns the text of a hunk without the lines of the other side."""
    return "\n".join(line[1:] for line in lines if not line.startswith(other))


def read(path):
    """Returns the Mutation in that file."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    description, hunks, target, current = [], [], None, None
    for line in lines:
        if line.startswith("--- "):
            current = None
        elif line.startswith("+++ b/"):
            target = line[len("+++ b/"):].strip()
        elif target is None:
            description.append(line)
        elif line.startswith("@@"):
            current = []
            hunks.append((target, current))
        elif current is not None and line[:1] in ("+", "-", " "):
            current.append(line)
    name = os.path.basename(path)[:-len(".patch")]
    found = [Hunk(target, side(lines, "+"), side(lines, "-")) for target, lines in hunks]
    return Mutation(name, path, " ".join(description).strip(), found)


def without_comments(text):
    """Returns the text with a blank for each character of a comment."""
    return COMMENT.sub(lambda match: match.group(1) or " " * len(match.group()), text)


def places(text, wanted):
    """Returns the positions [(start, end)] where the words of `wanted` follow each other in text."""
    found = list(TOKEN.finditer(without_comments(text)))
    words = [match.group() for match in found]
    looked_for = TOKEN.findall(without_comments(wanted))
    if not looked_for:
        return []
    return [(found[at].start(), found[at + len(looked_for) - 1].end())
            for at in range(len(words) - len(looked_for) + 1)
            if words[at:at + len(looked_for)] == looked_for]  # fmt: skip


def complain(mutation, hunk, count):
    """Raises Fault: the old text of the hunk occurs `count` times in its file, not once."""
    path = os.path.relpath(mutation.path, SOURCE)
    how = f"contains {count} times" if count else "does not contain"
    advice = (
        "add lines of context until the text is unique."
        if count else
        "adapt it to the code so that it breaks the same rule again, or delete it and its rows in rules.txt."
    )  # fmt: skip
    raise Fault(f"{hunk.file} {how}:\n{hunk.old}\n{path} does not apply: {advice}")


def content(path):
    """Returns the text of a file."""
    with open(path, encoding="utf-8") as opened:
        return opened.read()


def apply(mutation, source, file):
    """Returns the text of that file with the mutation. Raises Fault if a hunk does not match exactly once."""
    text = content(os.path.join(source, file))
    for hunk in mutation.hunks:
        if hunk.file != file:
            continue
        found = places(text, hunk.old)
        if len(found) != 1:
            complain(mutation, hunk, len(found))
        start, end = found[0]
        text = text[:start] + hunk.new.strip() + text[end:]
    return text


def check(mutation, source):
    """Raises Fault unless the mutation says what it does, changes a C source and applies."""
    path = os.path.relpath(mutation.path, SOURCE)
    if not mutation.description or not mutation.hunks:
        raise Fault(f"{path}: needs a line that says what it does, and a change: see README.md")
    for file in sorted({hunk.file for hunk in mutation.hunks}):
        if not file.endswith(".c"):
            raise Fault(f"{path}: {file} is not a C source: only those are compiled for a mutation")
        if not os.path.isfile(os.path.join(source, file)):
            raise Fault(f"{path}: there is no {file}: correct the path in the patch")
        apply(mutation, source, file)


def main():
    """Writes the files with the mutations to OUTPUT, as the head of this file says."""
    source, output, *paths = sys.argv[1:]
    for path in paths:
        mutation = read(path)
        for file in {hunk.file for hunk in mutation.hunks if os.path.isfile(os.path.join(source, hunk.file))}:
            try:
                text = apply(mutation, source, file)
            except Fault:
                text = content(os.path.join(source, file))
            target = os.path.join(output, f"{mutation.name}.{re.sub('[^A-Za-z0-9]', '_', file)}.c")
            if not os.path.exists(target) or content(target) != text:
                with open(target, "w", encoding="utf-8") as opened:
                    opened.write(text)


if __name__ == "__main__":
    main()
