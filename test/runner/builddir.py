# SPDX-License-Identifier: MIT
"""Makes a meson build directory usable and compiles in it.

usage: python3 test/runner/builddir.py DIRECTORY [MESON-OPTION...]

A directory that meson cannot read, or that was set up for another source tree, compiler or set of options, is
wiped and set up again. One with damaged outputs is cleaned. A directory that meson did not create is never changed, and
errors in sources, C++ and meson.build included, are only reported.
"""

import json
import os
import re
import shutil
import subprocess
import sys

import processes

# What ccache does not have it compiles at once, and reads the names of the headers from what the compiler has written. It
# would run the preprocessor alone before, for a third of the time of a compilation. Tests that compile inherit the variable.
os.environ.setdefault("CCACHE_DEPEND", "1")

STAMP = "dev-stamp.json"
# A part whose packages are missing is an error here, not left out.
ALL_PARTS = "-Dauto_features=enabled"
# Messages of ar, GNU ld and gold about a file that the compiler or ar has not written, or not to its end.
DAMAGED = re.compile(r"file format not recognized|not an object or archive|file (?:is empty|too short|truncated)"
                     r"|file may be corrupt|run ranlib|past the end of file|in find_view")  # fmt: skip


class BuildFailure(Exception):
    """A step failed. Arguments: which one, and its output."""


def run(words, niceness=0, **more):
    """Runs a command with this niceness. Returns (exit status, output)."""
    if niceness:
        words = ["nice", "-n", str(niceness), *words]
    with processes.start(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more) as process:
        output = process.communicate()[0]
    return process.returncode, output.decode("utf-8", "replace")


def ninja():
    """Returns the name of the program ninja on this machine."""
    return shutil.which("ninja") or shutil.which("ninja-build") or "ninja"


def compilers(compiler):
    """Returns the variables for meson that choose this compiler of C, and g++, with which clang can link. Both run through
    ccache where it works: what an earlier build has compiled, of any copy of the tree, is not compiled again."""
    found = {"CC": compiler, **({"CXX": "g++"} if shutil.which("g++") else {})}
    works = shutil.which("ccache") is not None and run(["ccache", "--show-stats"])[0] == 0
    return {name: f"ccache {words}" if works else words for name, words in found.items()}


def wanted_stamp(source, options, compiler):
    """Returns what a build directory must have been set up with: sources, options, compiler and its version."""
    version = run([compiler, "--version"])[1].split("\n")[0]
    return {"source": source, "options": options, "compiler": compilers(compiler), "version": version}


def read_stamp(directory):
    """Returns what it was set up with, or None."""
    try:
        with open(os.path.join(directory, STAMP), encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def is_usable(directory, source, stamp):
    """Returns whether ninja can compile in the directory; meson writes build.ninja anew if that is broken. A directory
    without a stamp was set up by hand. Raises BuildFailure for an error in meson.build."""
    if not os.path.exists(os.path.join(directory, "meson-private", "coredata.dat")):
        return False
    if not os.path.exists(os.path.join(directory, STAMP)):
        if run(["meson", "configure", ALL_PARTS, directory])[0] != 0:
            return False
    elif read_stamp(directory) != stamp:
        return False
    if run([ninja(), "-C", directory, "build.ninja"])[0] == 0:
        return True
    status, output = run(["meson", "setup", "--reconfigure", directory, source], env={**os.environ, **stamp["compiler"]})
    if status != 0 and run(["meson", "configure", directory])[0] == 0:  # meson can read the directory
        raise BuildFailure(f"meson setup {directory} failed", output)
    return status == 0


def wipe(directory):
    """Removes the build directory. Fails if it contains other files than those of a build with meson."""
    entries = set(os.listdir(directory)) if os.path.isdir(directory) else set()
    if entries and not entries & {"meson-private", STAMP}:
        raise BuildFailure(f"{directory} is not a build directory of meson: move it away and try again", "")
    shutil.rmtree(directory, ignore_errors=True)


def setup(directory, source, options, stamp):
    """Sets up the build directory anew, and writes its stamp."""
    wipe(directory)
    environment = {**os.environ, **stamp["compiler"]}
    status, output = run(["meson", "setup", ALL_PARTS, *options, directory, source], env=environment)
    if status != 0:
        raise BuildFailure(f"meson setup {directory} failed", output)
    with open(os.path.join(directory, STAMP), "w", encoding="utf-8") as file:
        json.dump(stamp, file)


def compile_targets(directory, targets, niceness):
    """Runs ninja. Returns (exit status, output)."""
    return run([ninja(), "-C", directory, *targets(directory)], niceness)


def everything(_directory):
    """Returns the list of targets that stands for all."""
    return []


def objects(directory):
    """Returns the object files that ninja can compile, without those of test/mutations, for which warnings are off."""
    listed = run([ninja(), "-C", directory, "-t", "targets", "all"])[1]
    found = re.findall(r"^(.*): c(?:pp)?_COMPILER$", listed, re.MULTILINE)
    if not found:
        raise BuildFailure(f"ninja lists no object files in {directory}", listed)
    return [name for name in found if not name.startswith("test/mutations/")]


def ensure(directory, source, options, compiler, niceness=0, targets=everything):
    """Sets the directory up if needed and compiles the targets that targets(directory) returns. Raises BuildFailure."""
    stamp = wanted_stamp(source, options, compiler)
    if not is_usable(directory, source, stamp):
        setup(directory, source, options, stamp)
    status, output = compile_targets(directory, targets, niceness)
    if status != 0 and DAMAGED.search(output):
        run([ninja(), "-C", directory, "-t", "clean"])
        status, output = compile_targets(directory, targets, niceness)
    if status != 0:
        raise BuildFailure(f"{directory} does not compile", output)


def main():
    """Sets up and compiles the directory that the command line names, with the compiler in CC."""
    source = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    compiler = os.environ.get("CC", "cc")
    try:
        ensure(sys.argv[1], source, sys.argv[2:], compiler)
    except BuildFailure as failure:
        print(failure.args[1], end="", file=sys.stderr)
        sys.exit(f"build: {failure.args[0]}")


if __name__ == "__main__":
    processes.end_on_signals()
    main()
