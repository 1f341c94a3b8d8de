# SPDX-License-Identifier: MIT
"""Divides the declaration of a struct or an enum into its members and their comments, for pages of 80 columns, and reads
the examples of the pages."""

import os
import re

WIDTH = 72  # columns for code on a page of 80, whose margins are 7 and 1

# A comment in lines of its own, or a member with the comment behind it.
MEMBER = re.compile(
    r"[ \t]*/\*(?P<before>.*?)\*/[ \t]*\n|(?P<code>[^\n]*?[;,]|[^\n,;/]+?)[ \t]*(?:/\*(?P<behind>.*?)\*/)?[ \t]*(?:\n|\Z)", re.S
)
# The comment before an example (names of pages, a colon, what the example does), and its code.
EXAMPLE = re.compile(r"^/\* (?P<names>redlock_[\w,\s*]*?):(?P<text>.*?)\*/\n(?P<code>.*?)(?=^/\* |\Z)", re.M | re.S)


def without_stars(comment):
    """Returns the text of a comment in one line."""
    return " ".join(re.sub(r"^\s*\*(?: |$)", "", comment, flags=re.M).split())


def members(code):
    """Returns [(declaration, text)] of a struct or an enum; the text is "" without a comment. A comment stands behind its
    member, or in lines of its own before it. `code`: with or without the first and the last line."""
    inside = re.search(r"\{\n(.*)\n\}", code, re.S)
    found, before = [], ""
    for part in MEMBER.finditer(inside[1] if inside else code):
        if part["before"] is not None:
            before = without_stars(part["before"])
        elif part["code"].strip():
            found.append((part["code"].strip(), without_stars(part["behind"] or "") or before))
            before = ""
    return found


def bare(code):
    """Returns the declaration of a struct or an enum without comments and empty lines."""
    first, *_, last = code.split("\n")
    return "\n".join([first, *[f"    {declaration}" for declaration, _ in members(code)], last])


def term(declaration, kind):
    """Returns what a list of members shows of one: the name of an enum's value, or a field with its type."""
    return re.match(r"\w+", declaration)[0] if kind == "enum" else declaration.rstrip(";")


def examples(folder):
    """Returns {name of a page: (text, code)} of examples.c. The text says what the code does."""
    with open(os.path.join(folder, "examples.c"), encoding="utf-8") as file:
        source = file.read()
    found = {}
    for example in EXAMPLE.finditer(source):
        for name in re.findall(r"\w+", example["names"]):
            code = re.sub(r"^static ", "", example["code"].strip("\n"), flags=re.M)
            found[name] = (without_stars(example["text"]), code)
    return found


def smallest(folder):
    """Returns the smallest program, without the comment at its beginning."""
    with open(os.path.join(folder, "smallest.c"), encoding="utf-8") as file:
        return file.read().partition("*/\n")[2].strip("\n")
