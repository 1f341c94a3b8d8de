# SPDX-License-Identifier: MIT
"""usage: ./dev package [NAME]...

Builds as packagers do: release builds of all kinds, two builds that must be equal, Debian packages in a clean system, and
recipes for other systems. NAME is a program of test/package/ without _test.py. A step that is not possible here is skipped
with a reason. The last line is `N passed, N failed, N skipped`.
"""

import glob
import os
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "runner"))
import tap  # noqa: E402

ENDING = "_test.py"


def run(name):
    """Runs one program and shows each of its lines at once. Returns its result."""
    words = [sys.executable, os.path.join(HERE, name + ENDING)]
    lines = []
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, universal_newlines=True) as process:
        for line in process.stdout:
            lines.append(line)
            if not line.startswith("1.."):
                print(f"  {line}", end="", flush=True)
    return tap.read("".join(lines), process.returncode)


def main():
    """Runs the programs with the given names, or all, and returns the exit status."""
    known = sorted(os.path.basename(path)[: -len(ENDING)] for path in glob.glob(os.path.join(HERE, "*" + ENDING)))
    names = sys.argv[1:]
    if names and set(names) & {"-h", "--help"}:
        print(__doc__.strip() + "\n\nNAME: " + " ".join(known))
        return 0
    for name in names:
        if name not in known:
            sys.exit(f"dev package: no program is named {name}; there are: {', '.join(known)}")
    sums = [0, 0, 0]
    for name in names or known:
        started = time.monotonic()
        print(f"{name}:", flush=True)
        result = run(name)
        sums = [sums[0] + result.passed, sums[1] + result.failed, sums[2] + result.skipped]
        print(f"  {name}: {time.monotonic() - started:.0f} s", flush=True)
    print(f"{sums[0]} passed, {sums[1]} failed, {sums[2]} skipped")
    return 0 if sums[1] == 0 and sums[0] > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
