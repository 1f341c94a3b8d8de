# SPDX-License-Identifier: MIT
"""Adds up the figures of chaos runs and prints them."""

from collections import Counter
from dataclasses import dataclass, field

from history import lock_of

# Kinds of faults, of clients and of locks, in the order of the report.
KINDS = [
    "kill_keep", "kill_lose", "restart", "stop", "cut_there", "cut_back", "cut_both", "cut_connections",
    "clock_ahead", "clock_back", "clock_little_fast", "clock_fast", "script_flush", "flushall", "memory_full",
    "client_stop", "client_clock", "client_kill", "command_stop", "command_kill",
]  # fmt: skip
NEED_LINKS = {"cut_there", "cut_back", "cut_both"}
CLIENTS = ["threaded", "embedded", "hybrid", "command", "foreign"]
LOCKS = ["one", "several", "permit"]


@dataclass
class Totals:
    """The figures of all runs that were added."""

    runs: int = 0
    disturbed_s: float = 0  # time with faults
    calls: int = 0
    fenced: int = 0  # grants with a fencing token
    tls: int = 0  # grants to clients that use TLS
    faults: Counter = field(default_factory=Counter)  # by kind of fault
    grants: Counter = field(default_factory=Counter)  # by kind of client
    held_s: Counter = field(default_factory=Counter)  # by kind of client
    requested: Counter = field(default_factory=Counter)  # by kind of lock: calls
    locks: Counter = field(default_factory=Counter)  # by kind of lock: grants
    excused: Counter = field(default_factory=Counter)  # by kind of fault: two holders at once
    keys: int = 0  # that were there after all clients had ended
    violations: list = field(default_factory=list)
    skips: set = field(default_factory=set)

    def add(self, history, verdict):
        """Adds the figures of one run."""
        self.runs += 1
        self.disturbed_s += ((history.peace or history.start) - history.start) / 1e9
        self.calls += len(history.calls)
        self.requested.update(lock_of(choice) for _, choice in history.calls)
        self.fenced += verdict.fenced
        self.faults.update(fault.kind for fault in history.faults)
        for grant in history.grants:
            self.grants[grant.kind] += 1
            self.tls += grant.client in history.tls
            self.locks[lock_of(grant.choice)] += 1
            self.held_s[grant.kind] += (grant.end - grant.start) / 1e9
        self.excused.update(why.kind for _, _, why in verdict.excused)
        self.keys += len(history.keys)
        self.violations += verdict.violations
        self.skips.update(history.skips)

    def lines(self):
        """Yields the lines of the report."""
        yield f"{self.runs} runs, {self.disturbed_s / 60:.1f} minutes with faults"
        yield f"{'fault':20}{'times':>8}"
        for kind in KINDS:
            yield f"{kind:20}{self.faults[kind]:8}"
        yield f"{'all':20}{sum(self.faults.values()):8}"
        yield f"{'client':20}{'grants':>8}{'held, s':>10}"
        for kind in CLIENTS:
            yield f"{kind:20}{self.grants[kind]:8}{self.held_s[kind]:10.1f}"
        yield f"{'all':20}{sum(self.grants.values()):8}{sum(self.held_s.values()):10.1f}"
        yield f"{'lock of':20}{'calls':>8}{'grants':>10}"
        for lock in LOCKS:
            yield f"{lock:20}{self.requested[lock]:8}{self.locks[lock]:10}"
        yield f"acquisitions begun: {self.calls}; grants with a fence: {self.fenced}; over TLS: {self.tls}"
        yield f"keys that killed clients left to their TTL: {self.keys}"
        yield f"two holders at once, excused by a fault outside of the assumptions: {sum(self.excused.values())}"
        for kind, count in sorted(self.excused.items()):
            yield f"    {kind}: {count}"
        yield from (f"skipped: {reason}" for reason in sorted(self.skips))
        yield f"violations: {len(self.violations)}"
        yield from (f"    {violation}" for violation in self.violations[:20])
