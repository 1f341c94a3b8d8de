# SPDX-License-Identifier: MIT
"""Reads the source tree and the build directory, for the tests of this folder."""

import functools
import glob
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
SOURCE = os.environ.get("REDLOCK_SOURCE") or os.path.dirname(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
)
BUILD = os.environ.get("REDLOCK_BUILD") or os.path.join(SOURCE, "build-gcc")
# For builds of the whole library: the compiler as that build runs it, through ccache or not.
MESON_CC = os.environ.get("MESON_CC") or os.environ.get("CC", "cc")
sys.path.insert(0, os.path.join(SOURCE, "test", "lib"))

LAYERS = ["core", "platform", "node", "engine", "api"]  # the layers of lib/, from the lowest to the highest
COMMENT_OR_STRING = re.compile(
    r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL
)


def tracked_files():
    """Returns the paths of all tracked files below SOURCE. Outside a git checkout: all but build directories."""
    listed = subprocess.run(
        ["git", "-C", SOURCE, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    if listed.returncode == 0:
        names = [name for name in listed.stdout.decode().split("\0") if name]
    else:
        names = []
        for folder, folders, files in os.walk(SOURCE):
            folders[:] = [name for name in folders if name != ".git" and not name.startswith("build")]
            names += [os.path.relpath(os.path.join(folder, name), SOURCE) for name in files]
    return sorted(name for name in names if os.path.isfile(os.path.join(SOURCE, name)))


def files_below(folder, *endings):
    """Returns the tracked files below the folder whose names end in one of `endings`."""
    return [
        name for name in tracked_files() if name.startswith(folder + "/") and name.endswith(endings)
    ]


def text(name):
    """Returns the content of a file, whose path is relative to SOURCE."""
    with open(os.path.join(SOURCE, name), encoding="utf-8", errors="replace") as file:
        return file.read()


def without_comments(source):
    """Returns the source with blanks for comments and literals; line numbers stay."""

    def blank(match):
        """Returns blanks in place of the match; newlines stay."""
        return re.sub(r"[^\n]", " ", match.group(0))

    return COMMENT_OR_STRING.sub(blank, source)


def includes(name):
    """Returns (line number, '"' or '<', path) of each #include."""
    found = []
    for number, line in enumerate(text(name).split("\n"), 1):
        match = re.match(r'\s*#\s*include\s*(["<])([^">]+)[">]', line)
        if match:
            found.append((number, match.group(1), match.group(2)))
    return found


def objects():
    """Returns {layer: [object file]} of the library in BUILD."""
    folder = glob.escape(os.path.join(BUILD, "lib"))
    return {layer: sorted(glob.glob(f"{folder}/libredlock-*.a.p/{layer}_*.o")) for layer in LAYERS}


def symbols(path, *options):
    """Returns [(name, type letter)], read by nm."""
    listed = subprocess.run(
        ["nm", "-P", *options, path], stdout=subprocess.PIPE, check=True, universal_newlines=True
    )
    fields = [line.split() for line in listed.stdout.split("\n")]
    return [(field[0].split("@")[0], field[1]) for field in fields if len(field) >= 2]


@functools.lru_cache(maxsize=None)
def symbols_of_objects():
    """Returns {object file of the library: [(name, type letter)]}. One nm reads all, because starting it takes longer than a file."""
    paths = [path for of_layer in objects().values() for path in of_layer]
    listed = subprocess.run(["nm", "-A", "-P", *paths], stdout=subprocess.PIPE, check=True, universal_newlines=True)
    table = {path: [] for path in paths}
    for line in listed.stdout.splitlines():
        path, fields = line.rsplit(": ", 1)
        table[path].append(tuple(fields.split()[:2]))
    return table


def undefined(path):
    """Returns the symbols that the object file of the library uses and does not define."""
    # U: undefined; v, w: undefined and weak.
    return {name for name, kind in symbols_of_objects()[path] if kind in "Uvw"}


def defined_globally(path):
    """Returns the global symbols that the object file of the library defines."""
    # Letters of global symbols are large, but for u: unique global.
    return {name for name, kind in symbols_of_objects()[path] if kind != "U" and (kind.isupper() or kind == "u")}
