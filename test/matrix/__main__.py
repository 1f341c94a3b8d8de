# SPDX-License-Identifier: MIT
"""usage: ./dev matrix [--list] [--server NAME=PATH]... [WORD]...

Runs the tests with other servers, compilers, C libraries, versions of hiredis and processors, and prints a table. WORD chooses
the rows whose name contains it, in any case of letters; without words all run, one after the other, in about an hour and a half
on two cores. A row that is not possible here is skipped with a reason. --server adds a row with the server program at PATH.
The last line is `N passed, N failed, N skipped`, in rows.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "lib"), os.path.join(HERE, "..", "abi")]
import row  # noqa: E402
import servers  # noqa: E402
import systems  # noqa: E402

HEAD = ("row", "with", "suites", "passed", "failed", "skipped")


def cells_of(each, result):
    """Returns the cells of the table for a row with a result."""
    return (each.name, result.versions, " ".join(each.suites), str(result.passed), str(result.failed), str(result.skipped))


def run_row(each):
    """Runs a row in a directory of its own, and prints what came out. Returns its result, or the reason why not."""
    started = time.monotonic()
    folder = tempfile.mkdtemp(prefix="redlock-matrix-")
    print(f"{each.name}: ", end="", flush=True)
    try:
        result = each.run(folder)
    except row.Skipped as reason:
        print(f"skipped: {reason}", flush=True)
        return str(reason)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{result.versions}: {result.passed} passed, {result.failed} failed, {result.skipped} skipped, "
          f"{time.monotonic() - started:.0f} s", flush=True)  # fmt: skip
    for text in result.failures:
        print("    " + text.replace("\n", "\n    "), flush=True)
    return result


def print_table(seen):
    """Prints the table in Markdown."""
    print("\n| " + " | ".join(HEAD) + " |\n|" + "---|" * len(HEAD))
    for each, result in seen:
        cells = (each.name, f"skipped: {result}", "", "", "", "") if isinstance(result, str) else cells_of(each, result)
        print("| " + " | ".join(cells) + " |")


def main():
    """Runs the rows that the command line chooses, and returns the exit status."""
    parser = argparse.ArgumentParser(prog="./dev matrix", description=__doc__.partition("\n\n")[2],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--list", action="store_true", help="print the names of the rows and run nothing")
    parser.add_argument("--server", action="append", default=[], metavar="NAME=PATH", help="a row with this server program")
    parser.add_argument("words", nargs="*", metavar="WORD")
    chosen = parser.parse_args()
    rows = servers.rows(chosen.server) + systems.rows()
    words = [word.lower() for word in chosen.words]
    rows = [each for each in rows if not words or any(word in each.name.lower() for word in words)]
    if not rows:
        sys.exit("dev matrix: no row has such a name; ./dev matrix --list prints all")
    if chosen.list:
        print("\n".join(each.name for each in rows))
        return 0
    seen = [(each, run_row(each)) for each in rows]
    print_table(seen)
    ran = [result for _, result in seen if not isinstance(result, str)]
    failed = sum(result.failed > 0 or result.passed == 0 for result in ran)
    print(f"\n{len(ran) - failed} passed, {failed} failed, {len(seen) - len(ran)} skipped")
    return 0 if failed == 0 and ran else 1


if __name__ == "__main__":
    sys.exit(main())
