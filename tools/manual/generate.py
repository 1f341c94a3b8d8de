#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes files that the build makes from table.py:

    generate.py DIRECTORY FILE...

Each FILE is a path whose last part is the name of such a file; it is written to DIRECTORY. The build runs this with the
Python of the machine that compiles, so it also works when cross compiling. The output depends on the files of this
directory only."""

import os
import sys

import c_source
import completions
import pages


def main():
    """Writes the files."""
    directory, *wanted = sys.argv[1:]
    texts = {
        "options_ids.h": c_source.header(),
        "options_rows.inc": c_source.rows(),
        "conflicts_rows.inc": c_source.conflicts(),
        "help_texts.inc": c_source.help_arrays(),
        **pages.pages(),
        "redlock": completions.bash(),
        "_redlock": completions.zsh(),
        "redlock.fish": completions.fish(),
    }
    for name in map(os.path.basename, wanted):
        with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
            file.write(texts[name])


if __name__ == "__main__":
    main()
