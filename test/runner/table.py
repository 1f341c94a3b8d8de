# SPDX-License-Identifier: MIT
"""Which suite runs in which build: the one place where that is decided.

A suite is a folder of test/ and the `suite:` of its tests in meson. A test in a suite that no row
names counts as failed: nothing is left out silently.
"""

from collections import namedtuple

import lanes

Build = namedtuple(
    "Build",
    [
        "name",
        "directory",  # builds with the same directory share what was compiled
        "compiler",
        "options",  # of meson setup
        "suites",
        "wrapper",  # words before the program; then scripts are left out
        "slow",  # factor for all deadlines
        "environment",
        "whole",  # compile everything, not only what its suites need
    ],
)

# All cases in one process: a forked child hides leaks from LeakSanitizer and does not go with threads.
ONE_PROCESS = {"CK_FORK": "no"}

# Not for sanitizer builds: their instrumentation makes gcc warn about things that are not there.
WERROR = ["-Dwerror=true"]

VALGRIND = (
    "valgrind --quiet --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite,indirect"
    " --soname-synonyms=somalloc=nouserintercepts --num-callers=30"
).split()

BUILDS = [
    Build(
        name="gcc",
        directory="build-gcc",
        compiler="gcc",
        options=WERROR,
        suites="runner unit exhaustive model fuzz io oom sim crowd live bench scenario interop chaos cli examples abi".split(),
        wrapper=[],
        slow=1,
        environment={},
        whole=True,
    ),
    Build(
        name="clang",
        directory="build-clang",
        compiler="clang",
        options=[*WERROR, "-Doptimization=0"],
        suites="unit abi".split(),
        wrapper=[],
        slow=1,
        environment={},
        whole=True,
    ),
    Build(
        name="asan",
        directory="build-asan",
        compiler="gcc",
        options=["-Db_sanitize=address,undefined", "-Doptimization=1"],
        suites="unit fuzz io oom torture sim live cli examples".split(),
        wrapper=[],
        slow=3,
        environment={
            **ONE_PROCESS,
            "ASAN_OPTIONS": "detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1",
            "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
        },
        whole=False,
    ),
    Build(
        name="tsan",
        directory="build-tsan",
        compiler="gcc",
        options=["-Db_sanitize=thread", "-Doptimization=1"],
        suites="unit io live".split(),
        wrapper=[],
        slow=5,
        environment={
            **ONE_PROCESS,
            "TSAN_OPTIONS": "halt_on_error=0:exitcode=66:second_deadlock_stack=1",
        },
        whole=False,
    ),
    Build(
        name="valgrind",
        directory="build-gcc",
        compiler="gcc",
        options=WERROR,
        suites="unit".split(),
        wrapper=VALGRIND,
        slow=10,
        environment=ONE_PROCESS,
        whole=True,
    ),
]

# Statistics over thousands of draws on the stack, minutes under valgrind; the other programs of the leases take the same
# code through it.
LEFT_OUT = {"valgrind": {"core_contest", "core_lease_extension_times"}}

# What mostly computes; all others wait for servers and deadlines (test/runner/lanes.py).
COMPUTING_SUITES = {"unit", "exhaustive", "fuzz", "model", "sim", "crowd", "abi"}


# So long that they begin first: else the end of all is one of them, alone.
LONG_TESTS = {
    "sim", "teeth", "chaos", "io_hostile", "live_fence_records", "torture_syscalls", "torture_syscalls_threaded",
    "oom_lock", "oom_threaded", "cli_Waiting", "bench_smoke", "live_every_lock_kind",
}


def rank(test):
    """Jobs with a small number begin first; 0 is that of compilers."""
    return 1 if test["name"] in LONG_TESTS else 2


def lane(build, suite):
    computes = build.wrapper or suite in COMPUTING_SUITES
    return lanes.COMPUTING if computes else lanes.WAITING
