# SPDX-License-Identifier: MIT
"""Follows the links of the documents of a package."""

import os
import re
import urllib.parse

# A package has its files below this directory.
DOCUMENTS = os.path.join("usr", "share", "doc", "redlock")
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
LINKS = {".md": re.compile(r"\]\(([^()\s]+)\)"), ".html": re.compile(r"\b(?:href|src)=[\"']([^\"']*)[\"']")}
OUTSIDE = re.compile(r"[a-z]+:|#|$")


def without_code(text):
    """Returns the text of a Markdown file without fenced blocks and code spans, in which nothing is a link."""
    return CODE.sub("", text)


def follow(root):
    """Follows each relative link of the Markdown and HTML files below the directory. Returns how many there are, and
    "file: link" for each that leads to no file or directory below root."""
    count, broken = 0, []
    for folder, _, files in os.walk(root):
        for name in files:
            ending = os.path.splitext(name)[1]
            if ending not in LINKS:
                continue
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8") as file:
                text = file.read()
            for link in LINKS[ending].findall(without_code(text) if ending == ".md" else text):
                if OUTSIDE.match(link):
                    continue
                count += 1
                target = os.path.normpath(os.path.join(folder, urllib.parse.unquote(link.partition("#")[0])))
                inside = os.path.commonpath([os.path.abspath(root), os.path.abspath(target)]) == os.path.abspath(root)
                if not inside or not os.path.exists(target):
                    broken.append(f"{os.path.relpath(path, root)}: {link}")
    return count, sorted(broken)


def check(case, root):
    """Fails the test case if a link below root is broken, or if there are too few links for the documents."""
    count, broken = follow(root)
    case.assertEqual(broken, [])
    case.assertGreater(count, 100)
