#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: documents.py DIRECTORY

Copies the documents, the examples and the headers that they name into DIRECTORY, for the recipes of packages. A link to a file
that is not copied becomes text that names the file in the sources.
"""

import os
import re
import shutil
import sys

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FILES = ("CHANGELOG.md", "CONTRIBUTING.md", "README.md", "SECURITY.md", "bench/README.md", "bench/peers/README.md",
         "bindings/python/README.md", "test/README.md")  # fmt: skip
# Directories with the endings of the files that are copied from them; () stands for all files.
FOLDERS = {"docs": (".md", ".svg"), "examples": (), "include": (".h", ".hpp")}
LEFT_OUT = re.compile(r"examples/(meson\.build$|test/|.*/test_)")  # what needs the tree of the sources
# Code, in which nothing is a link; or the text and the target of a link, with the ! of a picture.
LINK = re.compile(r"^```.*?^```$|(!?)\[((?:[^\[\]`]|`[^`\n]*`)*)\]\(([^()\s]+)\)|`[^`\n]*`", re.MULTILINE | re.DOTALL)
OUTSIDE = re.compile(r"[a-z]+:|#")


def names():
    """Returns the paths of the files that are copied, relative to the sources."""
    found = set(FILES)
    for top, endings in FOLDERS.items():
        for folder, folders, files in os.walk(os.path.join(SOURCE, top)):
            folders[:] = [name for name in folders if name != "__pycache__"]
            paths = [os.path.relpath(os.path.join(folder, name), SOURCE) for name in files]
            found |= {path for path in paths if path.endswith(endings or "") and not LEFT_OUT.match(path)}
    return found


def rewritten(text, name, known):
    """Returns the text of the document `name`, in which the links to files or directories that are not known are text."""
    def replace(match):
        picture, words, link = match.groups()
        if link is None or OUTSIDE.match(link):
            return match.group(0)
        path = os.path.normpath(os.path.join(os.path.dirname(name), link.partition("#")[0]))
        if path in known:
            return match.group(0)
        if picture:
            raise ValueError(f"{name}: the picture {link} is not copied")
        return f"`{path}` (in the sources)" if words == path else f"{words} (`{path}` in the sources)"

    return LINK.sub(replace, text)


def main():
    """Copies the files, with the permissions of the sources."""
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__.strip())
    files = names()
    known = set(files)
    for name in files:
        while name:
            name = os.path.dirname(name)
            known.add(name or ".")
    for name in sorted(files):
        target = os.path.join(sys.argv[1], name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy(os.path.join(SOURCE, name), target)
        if name.endswith(".md"):
            with open(target, encoding="utf-8") as file:
                text = file.read()
            with open(target, "w", encoding="utf-8") as file:
                file.write(rewritten(text, name, known))


if __name__ == "__main__":
    main()
