# SPDX-License-Identifier: MIT
"""What the build installs, and the package of each distribution in which each of these files belongs."""

import fnmatch
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "abi"))
import tree  # noqa: E402

# The parts that packages contain.
OPTIONS = ["--prefix=/usr", "-Dtools=enabled", "-Dtop=enabled", "-Dexamples=disabled", "-Dbench=disabled",
           "-Dtests=disabled"]  # fmt: skip
# What a file is, by its path below /usr. Each file must be of exactly one kind: a file of a new kind gets a line here, and a
# package in PLACES. {libdir} is the directory of libraries.
KINDS = {
    "command": ["bin/redlock"],
    "bash completion": ["share/bash-completion/completions/redlock"],
    "fish completion": ["share/fish/vendor_completions.d/redlock.fish"],
    "zsh completion": ["share/zsh/site-functions/_redlock"],
    "manual of the command": ["share/man/man1/redlock*.1"],
    "manual of the library": ["share/man/man3/*.3"],
    "shared library": ["{libdir}/libredlock.so.[0-9]*"],
    "static library": ["{libdir}/libredlock.a"],
    "for developers": ["include/redlock/*", "{libdir}/libredlock.so", "{libdir}/pkgconfig/redlock.pc",
                       "{libdir}/cmake/redlock/*.cmake"],
    "document": ["share/doc/redlock/*"],
}  # fmt: skip
PLACES = {
    "debian": {
        "command": "redlock",
        "bash completion": "redlock",
        "fish completion": "redlock",
        "zsh completion": "redlock",
        "manual of the command": "redlock",
        "manual of the library": "libredlock-dev",
        "shared library": "libredlock0",
        "static library": "libredlock-dev",
        "for developers": "libredlock-dev",
        "document": "redlock-doc",
    },
    "rpm": {
        "command": "redlock",
        "bash completion": "redlock",
        "fish completion": "redlock",
        "zsh completion": "redlock",
        "manual of the command": "redlock",
        "manual of the library": "redlock-devel",
        "shared library": "redlock-libs",
        "static library": "redlock-static",
        "for developers": "redlock-devel",
        "document": "redlock-doc",
    },
    "alpine": {
        "command": "redlock",
        "bash completion": "redlock-bash-completion",
        "fish completion": "redlock-fish-completion",
        "zsh completion": "redlock-zsh-completion",
        "manual of the command": "redlock-doc",
        "manual of the library": "redlock-doc",
        "shared library": "redlock-libs",
        "static library": "redlock-static",
        "for developers": "redlock-dev",
        "document": "redlock-doc",
    },
}
LIBDIRS = {"debian": f"lib/{platform.machine()}-linux-gnu", "rpm": "lib64", "alpine": "lib"}


def introspect(what, libdir):
    """Sets a build directory up as packages do, and returns what `meson introspect` says of it."""
    folder = tempfile.mkdtemp(prefix="manifest-")
    try:
        words = ["meson", "setup", *OPTIONS, f"--libdir={libdir}", folder, tree.SOURCE]
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              check=False, errors="replace")  # fmt: skip
        if done.returncode != 0:
            raise AssertionError(done.stdout)
        done = subprocess.run(["meson", "introspect", what, folder], stdout=subprocess.PIPE, check=True)
        return json.loads(done.stdout)
    finally:
        shutil.rmtree(folder)


def installed(distribution):
    """Returns the paths of all files that the build installs, without the first /."""
    return sorted({path.lstrip("/") for path in introspect("--installed", LIBDIRS[distribution]).values()})


def kinds_of(path, libdir):
    """Returns the kinds to which the path belongs."""
    return [kind for kind, patterns in KINDS.items()
            if any(fnmatch.fnmatchcase(path, "usr/" + pattern.format(libdir=libdir)) for pattern in patterns)]  # fmt: skip


def expected(distribution):
    """Returns {package: set of paths}: where each installed file belongs."""
    wanted = {}
    for path in installed(distribution):
        kinds = kinds_of(path, LIBDIRS[distribution])
        if len(kinds) != 1:
            raise AssertionError(f"{path} is of these kinds: {kinds}; give it one in {os.path.basename(__file__)}")
        wanted.setdefault(PLACES[distribution][kinds[0]], set()).add(path)
    return wanted


def without_extras(path):
    """Returns the path of a packaged file as it was installed: without the ending of a compressed manual page."""
    path = path.lstrip("./")
    return path[: -len(".gz")] if path.startswith("usr/share/man/") and path.endswith(".gz") else path


def is_added(path):
    """Returns whether a recipe adds this file: documents, licences, and links of debugging symbols."""
    folders = ("usr/share/doc/", "usr/share/licenses/", "usr/lib/.build-id/", "usr/lib/debug/")
    return path.startswith(folders) and path != "usr/share/doc/redlock/reference.html"


def compare(case, distribution, packaged, together=False):
    """Fails the test case unless {package: paths} has each installed file in its place, and nothing but what is_added() says.
    With `together`, there is one package for all."""
    wanted = expected(distribution)
    if together:
        wanted = {package: set().union(*wanted.values()) for package in packaged}
    found = {}
    for package, paths in packaged.items():
        kept = {path for path in map(without_extras, paths) if not is_added(path)}
        if kept:
            found[package] = kept
    for package in sorted({*wanted, *found}):
        there, here = found.get(package, set()), wanted.get(package, set())
        case.assertEqual((sorted(there - here), sorted(here - there)), ([], []), f"{package}: not wanted, and missing")
