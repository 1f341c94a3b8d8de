# SPDX-License-Identifier: MIT
"""usage: ./dev fuzz [--minutes M] [--fast] [--keep] [TARGET]...

Builds the fuzz targets with clang, libFuzzer and the address and undefined-behaviour sanitizers, and
runs each for M minutes (default 1), one after the other. New inputs stay in build-fuzz/corpus/TARGET,
where the next run starts with them. The exit status is 1 if an error was found, or a run ended early.

With --fast there are no sanitizers and no hints from comparisons: several times as many executions,
which detect failed checks only. A later run without it starts with the inputs that they have found.
"""

import argparse
import glob
import os
import re
import shutil
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(SOURCE, "test", "runner"))
import builddir  # noqa: E402
import corpus  # noqa: E402
import processes  # noqa: E402

BUILD = os.path.join(SOURCE, "build-fuzz")
BUILD_FAST = os.path.join(SOURCE, "build-fuzz-fast")
SANITIZERS = ["-Db_sanitize=address,undefined"]
NO_HINTS = ["-Dc_args=-fno-sanitize-coverage=trace-cmp"]
OPTIONS = [
    "-Dfuzzing=true",
    "-Db_lundef=false",
    "-Ddefault_library=static",
    "-Dprefer_static=true",  # redirects calls of malloc inside of hiredis to alloc_wrap.c as well
    "-Dtools=disabled",
    "-Dexamples=disabled",
    "-Dbench=disabled",
]
# The longest inputs in bytes: longer runs find no more than more runs do.
LONGEST = {"cli": 1024, "engine": 512, "info": 4096, "lease": 1024, "line": 2048, "node": 1536, "push": 1024, "reply": 4096,
           "tls": 1024, "urls": 1024}
ENVIRONMENT = {
    **os.environ,
    "ASAN_OPTIONS": "quarantine_size_mb=16",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
}


def targets():
    found = glob.glob(os.path.join(HERE, "fuzz_*.c"))
    return sorted(os.path.basename(path)[len("fuzz_") : -len(".c")] for path in found)


def program(target, build=BUILD):
    return os.path.join(build, "test", "fuzz", "fuzz-" + target)


def seeds(target):
    """Returns the directory in which the inputs of the target's archive are unpacked for a campaign."""
    return os.path.join(BUILD, "seeds", target)


def dictionary(target):
    path = os.path.join(HERE, target + ".dict")
    return [f"-dict={path}"] if os.path.exists(path) else []


def run(words):
    return builddir.run(words, cwd=BUILD, env=ENVIRONMENT)


def number(output, name):
    found = re.search(rf"stat::{name}:\s+(\d+)", output)
    return int(found.group(1)) if found else 0


def show(target, build, path):
    """Runs a found input once more and prints what it breaks."""
    _, output = run([program(target, build), path])
    print("    | " + "\n    | ".join(output.split("\n")[-40:]))
    print(f"{target}: again: {os.path.relpath(program(target, build))} {os.path.relpath(path)}")
    print(f"{target}: once it is repaired, keep it: "
          f"python3 test/fuzz/corpus.py add {target} {os.path.relpath(path)}")


def fuzz(target, build, seconds):
    """Runs the fuzzer. Returns (executions, covered edges, inputs that found errors or other failures)."""
    reached = os.path.join(BUILD, "corpus", target)
    found = os.path.join(BUILD, "found", target) + os.sep
    shutil.rmtree(found, ignore_errors=True)
    os.makedirs(found)
    os.makedirs(reached, exist_ok=True)
    corpus.unpack(corpus.archive(target), seeds(target))
    started = time.monotonic()
    # Without -entropic=0 libFuzzer spends most of the time on weighing the inputs.
    status, output = run([
        program(target, build), f"-max_total_time={seconds}", f"-artifact_prefix={found}",
        "-close_fd_mask=3", "-print_final_stats=1", "-timeout=20", "-rss_limit_mb=1500", "-entropic=0",
        f"-max_len={LONGEST[target]}", *dictionary(target), reached, seeds(target),
    ])  # fmt: skip
    passed = time.monotonic() - started
    mistakes = sorted(os.listdir(found))
    for name in mistakes:
        show(target, build, os.path.join(found, name))
    if not mistakes and (status != 0 or passed < seconds):
        print(output[-4000:])
        mistakes = [f"exit status {status} after {passed:.0f} of {seconds} s"]
        print(f"{target}: {mistakes[0]}")
    edges = re.findall(r"cov: (\d+)", output)
    return number(output, "number_of_executed_units"), int(edges[-1]) if edges else 0, mistakes


def keep(target):
    """Adds the inputs to the target's archive that reach code which no input of it reaches."""
    run([
        program(target), "-merge=1", f"-max_len={LONGEST[target]}", "-use_counters=0", "-close_fd_mask=3",
        seeds(target), os.path.join(BUILD, "corpus", target),
    ])  # fmt: skip
    print(f"{target}: {corpus.pack(target, seeds(target))} inputs were added to its archive")


def arguments():
    parser = argparse.ArgumentParser(prog="./dev fuzz", description=__doc__.partition("\n\n")[2],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--minutes", type=float, default=1, metavar="M", help="for each target")
    parser.add_argument("--fast", action="store_true",
                        help="no sanitizers, several times as many executions")  # fmt: skip
    parser.add_argument("--keep", action="store_true",
                        help="add what reaches new code to test/fuzz/corpus/TARGET.tar.gz")  # fmt: skip
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(targets()))
    chosen = parser.parse_args()
    for name in chosen.targets:
        if name not in targets():
            parser.error(f"there is no target {name}; there are: {', '.join(targets())}")
    return chosen


def main():
    chosen = arguments()
    os.chdir(SOURCE)
    processes.end_on_signals()
    os.nice(10)
    build = BUILD_FAST if chosen.fast else BUILD
    try:
        if chosen.fast:
            builddir.ensure(BUILD_FAST, SOURCE, OPTIONS + NO_HINTS, "clang")
        if chosen.keep or not chosen.fast:
            builddir.ensure(BUILD, SOURCE, OPTIONS + SANITIZERS, "clang")
    except builddir.BuildFailure as failure:
        print(failure.args[1], end="")
        sys.exit(f"fuzz: {failure.args[0]}")
    print(f"{'target':10}{'executions':>14}{'a second':>12}{'edges':>8}{'wrong':>7}", flush=True)
    wrong = 0
    for target in chosen.targets or targets():
        seconds = max(1, round(chosen.minutes * 60))
        executions, edges, mistakes = fuzz(target, build, seconds)
        rate = executions // seconds
        print(f"{target:10}{executions:14}{rate:12}{edges:8}{len(mistakes):7}", flush=True)
        wrong += len(mistakes)
        if chosen.keep and not mistakes:
            keep(target)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
