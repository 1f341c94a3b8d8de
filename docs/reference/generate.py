#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Generates the reference of the interfaces for C and C++ and of the adapters from the public headers.

usage: generate.py --list HEADERS
       generate.py HEADERS VERSION OUTPUT

HEADERS: directory of redlock.h. OUTPUT: directory that receives the manual pages and reference.html. --list prints the
names of the manual pages, one per line."""

import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cpp
import headers
import pages
import site_html


def main():
    """Reads the headers and writes all files."""
    if len(sys.argv) == 3 and sys.argv[1] == "--list":
        print("\n".join(pages.texts(headers.Reference(sys.argv[2]), "", cpp.read(sys.argv[2]))))
        return
    if len(sys.argv) != 4:
        sys.exit(__doc__.strip())
    folder, version, output = sys.argv[1:]
    reference = headers.Reference(folder)
    wrappers = cpp.read(folder)
    for name, text in pages.texts(reference, version, wrappers).items():
        with open(os.path.join(output, name), "w", encoding="utf-8") as file:
            file.write(text)
    with open(os.path.join(output, "reference.html"), "w", encoding="utf-8") as file:
        file.write(site_html.site(reference, version, wrappers))


if __name__ == "__main__":
    main()
