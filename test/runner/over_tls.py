# SPDX-License-Identifier: MIT
"""The builds gcc-tls, asan-tls and tsan-tls: suites of the table once more, with servers that speak TLS only. They share the
directories of gcc, asan and tsan.

The environment of each program has REDLOCK_TEST_TLS=1, which test/lib/cluster.c, test/io/fake_tls.c and
test/cli/world.py read. A program must print MARK where its first server speaks TLS; otherwise it counts as
failed, because it has repeated the run without TLS.
"""

import table

ENVIRONMENT = {"REDLOCK_TEST_TLS": "1"}

MARK = "# the servers speak TLS\n"

# The suites of each build of the table over TLS.
SUITES = {
    "gcc": "io oom torture live scenario cli".split(),
    "asan": "io oom torture live scenario".split(),
    "tsan": "io live".split(),
}

OWN_TLS = "has servers with TLS in any case"
NO_SERVERS = "has no servers"
ADDRESSES = "writes addresses of servers without TLS"
PROXY = "has a proxy that reads the protocol between the command and the servers"
FOREIGN_USER = "the other user cannot read the certificate of the issuer in the sandbox"

# Programs that do not run over TLS, and why.
LEFT_OUT = {
    "fake_redis": "the client of the program itself speaks no TLS",
    "io_hostile_tls": OWN_TLS,
    "io_tls_bytes": OWN_TLS,
    "live_tls": OWN_TLS,
    "live_tls_host": OWN_TLS,
    "live_unsent_requests": "its servers listen on unix sockets, which take less than TCP does",
    "cli_acl": "redis-cli connects to the servers without TLS",
    "cli_completion": NO_SERVERS,
    "cli_config": NO_SERVERS,
    "cli_conflicts": NO_SERVERS,
    "cli_examples": "the examples are commands with addresses without TLS",
    "cli_manual": NO_SERVERS,
    "cli_nodes": ADDRESSES,
    "cli_nodes_notify": PROXY,
    "cli_sandbox": "starts each kind of sandbox itself, also with TLS",
    "cli_secrets": ADDRESSES,
    "cli_tls": OWN_TLS,
    "cli_usage": NO_SERVERS,
    "cli_wrong_servers": "a Sentinel, and a server in protected mode without TLS",
    "oom_codec": "is about encoders and decoders, without servers",
    "oom_tls": OWN_TLS,
    "scenario_34": "a stopped server makes no handshake, so that the client has no new connection",
    "valgrind": "valgrind reports what OpenSSL keeps until exit, and handshakes in it exceed their time limit",
}

# The same for builds with a sanitizer.
SHIM = "a sanitizer does not go with the clock shim in the client"
SANITIZERS_LEAVE_OUT = {"scenario_10": SHIM, "scenario_11": SHIM, "scenario_15": SHIM}

# Cases of test/cli that do not run over TLS, of programs whose other cases do.
CASES_LEFT_OUT = {
    "Codes.test_server_listed_twice": ADDRESSES,
    "Descriptors.test_too_few_descriptors": "the file of the issuer, which is opened first, fails with other words",
    "Hostile.test_process_of_another_user_is_not_waited_for": FOREIGN_USER,
    "Hostile.test_process_of_another_user_keeps_the_lock_for_the_grace": FOREIGN_USER,
    "NotAcquired.test_passwords": ADDRESSES,
    "NotTrusted.test_advice": ADDRESSES,
    "Once.test_user_without_the_right": ADDRESSES,
    "Permits.test_status_reads_many_slots_at_once": PROXY,
    "Quarantine.test_quarantine": ADDRESSES,
    "Quarantine.test_quarantine_does_not_count": ADDRESSES,
    "Replies.test_repeated_release_counts_as_success": PROXY,
    "Shards.test_server_in_two_shards_is_reported": ADDRESSES,
    "Shards.test_shards_in_flags_and_files": ADDRESSES,
    "StandingClock.test_finding": ADDRESSES,
    "TooSlow.test_no_majority_in_time": PROXY,
    "TooSlow.test_second_attempt_succeeds_when_servers_are_fast": PROXY,
    "Top.test_servers": "the reason of a server that is stopped may be that of its handshake",
}


BUILDS = [
    build._replace(name=build.name + table.OVER_TLS, suites=SUITES[build.name], environment={**build.environment, **ENVIRONMENT})
    for build in table.BUILDS
    if build.name in SUITES
]


def is_over_tls(build):
    """Returns whether the build is one of BUILDS, or a copy of it."""
    return ENVIRONMENT.items() <= build.environment.items()


def reason(build, name):
    """Returns why this build does not run the program, or None."""
    if not is_over_tls(build):
        return None
    sanitized = any("b_sanitize" in option for option in build.options)
    return LEFT_OUT.get(name) or (SANITIZERS_LEAVE_OUT.get(name) if sanitized else None)


def without_mark(build, output):
    """Returns why a program with this output counts as failed although its cases have passed, or None."""
    if not is_over_tls(build) or MARK in output:
        return None
    return "no server has spoken TLS: see test/runner/over_tls.py"
