# SPDX-License-Identifier: MIT
"""The table that decides which suite runs in which build.

A suite is a folder of test/ and the `suite:` of its tests in meson. A test in a suite that no row
names counts as failed: nothing is left out silently.
"""

import shutil
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
        "wrapper",  # words before the program; with them scripts are left out
        "slow",  # factor for all deadlines
        "environment",
        # The files to compile. "all"; "needed": what its tests need; "objects": that, what is installed, and all object
        # files, for their warnings.
        "targets",
    ],
)

# Ends the names of the builds of over_tls.py, which run what the build without it does.
OVER_TLS = "-tls"

# All cases in one process: a forked child hides leaks from LeakSanitizer and breaks programs with threads.
ONE_PROCESS = {"CK_FORK": "no"}

# Line numbers for traces but no variables, which take longer to compile.
LINE_NUMBERS = ["-Ddebug=false", "-Dc_args=-g1", "-Dcpp_args=-g1"]


def link_options(*flags):
    """Returns the options of meson for these flags of the linker, and for gold where it is installed: it takes half as long
    as GNU ld, which links the build clang and the packages."""
    gold = ["-fuse-ld=gold"] if shutil.which("ld.gold") else []
    return [f"-D{language}_link_args={' '.join([*gold, *flags])}" for language in ("c", "cpp")]


# Sanitizer builds have no -Dwerror, because their instrumentation causes false warnings of gcc.
WERROR = ["-Dwerror=true"]
GCC_OPTIONS = [*WERROR, *LINE_NUMBERS, *link_options()]

VALGRIND = (
    "valgrind --quiet --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite,indirect"
    " --soname-synonyms=somalloc=nouserintercepts --num-callers=30"
).split()

# In the order in which they are compiled. asan comes early, because its programs wait longest.
BUILDS = [
    Build(
        name="gcc",
        directory="build-gcc",
        compiler="gcc",
        options=GCC_OPTIONS,
        suites="runner unit exhaustive model fuzz io oom sim contention mutations live tls bench bindings scenario interop chaos cli examples abi docs".split(),
        wrapper=[],
        slow=1,
        environment={},
        targets="all",
    ),
    Build(
        name="asan",
        directory="build-asan",
        compiler="gcc",
        # LeakSanitizer searches the data of a shared libubsan at the end of each program.
        options=["-Db_sanitize=address,undefined", "-Doptimization=1", *LINE_NUMBERS, *link_options("-static-libubsan")],
        suites="unit fuzz io oom torture sim live bindings cli examples".split(),
        wrapper=[],
        slow=3,
        environment={
            **ONE_PROCESS,
            "ASAN_OPTIONS": "detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1",
            "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
        },
        targets="needed",
    ),
    Build(
        name="tsan",
        directory="build-tsan",
        compiler="gcc",
        options=["-Db_sanitize=thread", "-Doptimization=1", *LINE_NUMBERS, *link_options()],
        suites="unit io live".split(),
        wrapper=[],
        slow=5,
        environment={
            **ONE_PROCESS,
            "TSAN_OPTIONS": "halt_on_error=0:exitcode=66:second_deadlock_stack=1",
        },
        targets="needed",
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
        targets="objects",
    ),
    Build(
        name="valgrind",
        directory="build-gcc",
        compiler="gcc",
        options=GCC_OPTIONS,
        suites="unit".split(),
        wrapper=VALGRIND,
        slow=10,
        environment=ONE_PROCESS,
        targets="all",
    ),
]

# A build that is named here with a suite runs these programs of it, and no others. test/README.md says
# why, and when a new program belongs here.
ONLY = {
    # Programs that depend on the compiler: names and places of symbols, public headers, exceptions that pass through C.
    ("clang", "abi"): {"consumer", "exceptions", "header", "layering", "symbols", "unload"},
    # Atomics, builtins and attributes: those of platform, and one or two of each other layer.
    ("clang", "unit"): {
        "api_config", "core_lease_permit", "core_quorum", "engine_locks", "node_inbox", "node_replies", "node_resolve",
        "platform_hash", "platform_log", "platform_memory", "platform_poller", "platform_poller_wakeups", "platform_token",
    },
    # Programs with threads that run at the same time.
    ("tsan", "unit"): {"node_resolve", "platform_poller_wakeups"},
    ("tsan", "io"): {
        "io_close_unread", "io_fence_rounds", "io_late_return", "io_many_addresses", "io_notifications", "io_reports",
        "io_secrets", "io_unread_replies", "io_unresponsive",
    },
    ("tsan", "live"): {
        "live_auto_extend", "live_callback_thread", "live_calls_ended", "live_cancel", "live_client_lifecycle", "live_client_modes", "live_driving_loop",
        "live_event_userdata", "live_events", "live_expired_before_callback", "live_fences", "live_fork", "live_fork_memory",
        "live_handover", "live_leftover_keys", "live_many_callers", "live_many_resources_queue", "live_permits", "live_shards",
        "live_shards_independent", "live_shared_handle", "live_tls", "live_tracking", "live_verify", "live_waiting",
    },
    # Code that reads, writes or judges bytes of servers and users: valgrind finds uninitialized values there.
    ("valgrind", "unit"): {
        "api_config", "api_prometheus", "api_url", "core_error", "core_fence", "core_lease_acquire", "core_lease_fence", "core_lease_hold",
        "core_lease_many_keys", "core_lease_permit", "core_quorum", "core_wire", "core_wire_fence", "core_wire_many_keys",
        "engine_clocks_and_servers", "engine_first_start", "engine_lock_memory", "engine_locks", "engine_lock_queue",
        "engine_record_missing", "node_admission", "node_connect", "node_encode", "node_fence", "node_info", "node_pipeline",
        "node_replies", "node_tracker", "node_undo", "platform_memory", "platform_token",
    },
}  # fmt: skip

# Programs that a build leaves out of a suite, and why. All others of the suite run.
LEFT_OUT = {
    ("asan", "cli"): {
        "cli_completion": "runs shells",
        "cli_conflicts": "starts the command once for each row of a table, which one loop of the command reads",
        "cli_manual": "compares texts",
    },
    ("asan", "bindings"): {"adapter_boost_asio": "has the code of adapter_asio, and takes long to compile"},
}

# Suites that mostly compute; all others wait for servers and deadlines (test/runner/lanes.py).
COMPUTING_SUITES = {"unit", "exhaustive", "fuzz", "model", "sim", "contention", "mutations", "abi"}


# Tests so long that they start first; otherwise the last of them would run alone at the end.
LONG_TESTS = {
    "bench_peers", "bench_smoke", "chaos", "cli_Waiting", "cli_completion", "cli_namespaces", "cli_tls", "contention",
    "docs_samples", "exhaustive", "header", "io_hostile", "io_tls_bytes", "live_every_lock_kind", "live_fence_records", "model",
    "mutations", "oom_lock", "oom_threaded", "oom_tls", "packaging", "runner", "sim", "subproject", "tls_reply_timing",
    "tls_stopped_servers", "torture_syscalls", "torture_syscalls_threaded",
}


def runs(build, suite, name):
    """Returns whether the build runs the program: True unless ONLY names others of that suite, or LEFT_OUT names it."""
    row = (build.name.removesuffix(OVER_TLS), suite)
    return name in ONLY.get(row, (name,)) and name not in LEFT_OUT.get(row, ())


def rank(test):
    """Returns the rank of a test. Jobs with a small rank start first; compilers have 0."""
    return 1 if test["name"] in LONG_TESTS else 2


def lane(build, suite):
    """Returns the lane of the programs of this suite in this build."""
    computes = build.wrapper or suite in COMPUTING_SUITES
    return lanes.COMPUTING if computes else lanes.WAITING
