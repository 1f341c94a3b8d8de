# SPDX-License-Identifier: MIT
"""Finds violations in the history of a chaos run: two holders of one key at once, more holders than permits, locks on
other resources than the requested ones, fencing tokens out of order, leftover keys, clients that got no lock, crashes.

Some faults break the assumptions of exclusion: a server that loses keys while it runs, or whose clock steps
forward or runs faster than the tolerated drift. Two holders at once are then excused, and counted apart, but only
if such a fault happened after the first of the two could have requested the lock and before the second had it. The
order of fencing tokens is never excused.
"""

from collections import Counter
from dataclasses import dataclass, field

from history import lock_of

# Kinds of faults after which a server may lack keys that it had.
LOSES_KEYS = {"clock_ahead", "flushall", "clock_fast"}
# This library quarantines a server that was restarted without its keys; other libraries count its votes.
FORGETS = {"kill_lose"}
MANY_CALLS = 20  # so many calls for one kind of lock, of which none succeeds, are a violation
OUTLASTS = {"clock_fast"}  # has an effect after its end: keys that were set meanwhile expire early


@dataclass
class Verdict:
    """What was found in one run."""

    violations: list = field(default_factory=list)  # texts
    excused: list = field(default_factory=list)  # (first grant, second grant, Fault that excuses them)
    overlaps: list = field(default_factory=list)  # pairs that are violations: (first grant, second grant)
    fenced: int = 0  # number of grants with a fencing token


def ms(ns):
    """Returns nanoseconds as a text in ms."""
    return f"{ns / 1e6:.3f}"


def excuse(history, first, second, longest_ttl_ns):
    """Returns the fault that may have let both grants hold the lock, or None. `longest_ttl_ns`: of all locks of the
    run; for so long a fault of OUTLASTS has an effect."""
    since, until = min(first.earliest, second.earliest), max(first.start, second.start)
    for fault in history.faults:
        if fault.start > until:
            break
        begin, end = fault.start, fault.end
        if fault.kind == "clock_back":
            begin = fault.end  # stepping back is harmless, stepping forward again is not
        elif fault.kind in FORGETS and "foreign" != second.kind:
            continue
        elif fault.kind not in LOSES_KEYS | FORGETS:
            continue
        if fault.kind in OUTLASTS:
            end += longest_ttl_ns
        if begin <= until and end >= since:
            return fault
    return None


def check_pair(history, verdict, key, other, grant, longest_ttl_ns):
    """Adds two grants that held `key` at once to the verdict: excused by a fault, or as a violation. `other` is the one
    that began first."""
    why = excuse(history, other, grant, longest_ttl_ns)
    if why:
        verdict.excused.append((other, grant, why))
        return
    verdict.overlaps.append((other, grant))
    verdict.violations.append(
        f"exclusion: {key} was held by {other.client} (#{other.number}, {other.resource}) until "
        f"{ms(other.end - history.start)} ms and by {grant.client} (#{grant.number}, {grant.resource}) from "
        f"{ms(grant.start - history.start)} ms"
    )


def check_exclusion(history, verdict, longest_ttl_ns):
    """Checks that each key has one holder: each slot, and each of the keys of one lock."""
    holding = {}
    for grant in history.grants:  # by start
        for key in grant.keys:
            others = [other for other in holding.get(key, []) if other.end > grant.start]
            for other in others:
                if grant.end > grant.start:
                    check_pair(history, verdict, key, other, grant, longest_ttl_ns)
            holding[key] = others + [grant]


def check_permits(history, verdict):
    """Checks that there are no more holders than permits, whatever slots they report. An excused second holder of a
    slot is not counted."""
    excused = {id(second) for _, second, _ in verdict.excused}
    holding = {}
    for grant in history.grants:
        name, slot = grant.slot
        permits = history.semaphores.get(name)
        if permits is None:
            continue
        if slot >= permits:
            verdict.violations.append(
                f"permits: {grant.client} (#{grant.number}) has {grant.resource}, of {permits}"
            )
        others = [other for other in holding.get(name, []) if other.end > grant.start]
        if grant.end > grant.start and id(grant) not in excused:
            others.append(grant)
        holding[name] = others
        if len(others) > permits:
            verdict.violations.append(
                f"permits: {name} has {len(others)} holders, not {permits}, at {ms(grant.start - history.start)} ms: "
                + ", ".join(f"{other.client} (#{other.number}, {other.resource})" for other in others)
            )


def check_names(history, verdict):
    """Checks that each lock is on the requested resources, all of them and nothing else."""
    for grant in history.grants:
        if lock_of(grant.choice) == "permit":
            as_requested = grant.slot[0] == grant.choice.partition("*")[0]
        else:
            as_requested = sorted(grant.keys) == sorted(grant.choice.split("+"))
        if not as_requested:
            verdict.violations.append(
                f"names: {grant.client} (#{grant.number}) requested {grant.choice} and has {grant.resource}"
            )


def check_fences(history, verdict):
    """Checks that a grant that returned before another was requested has the smaller fencing token, and that no two
    have the same."""
    by_resource = {}
    for grant in history.grants:
        if grant.fence:
            by_resource.setdefault(grant.resource, []).append(grant)
    for resource, grants in by_resource.items():
        verdict.fenced += len(grants)
        seen = {}
        for grant in grants:
            other = seen.setdefault(grant.fence, grant)
            if other is not grant:
                verdict.violations.append(
                    f"fences: {resource} had {grant.fence} twice, {other.client} and {grant.client}"
                )
        returned = iter(grants)  # by start, which is when it returned
        largest, following = None, next(returned, None)
        for grant in sorted(grants, key=lambda grant: grant.called):
            while following and following.start < grant.called:
                if not largest or following.fence > largest.fence:
                    largest = following
                following = next(returned, None)
            if largest and largest.fence >= grant.fence:
                verdict.violations.append(
                    f"fences: {resource} {grant.client} (#{grant.number}) got {grant.fence}, though "
                    f"{largest.client} (#{largest.number}) had {largest.fence} before the call"
                )


def check_processes(history, verdict):
    """Checks that each process ended only when the run ended it, and with status 0."""
    for name, (when, status) in history.exits.items():
        if status != 0 or when < history.finish:
            verdict.violations.append(f"process: {name} ended by itself, wait status {status}")
    for name in history.stuck:
        verdict.violations.append(f"process: {name} did not end after SIGTERM")
    if not history.over:
        verdict.violations.append("process: the run did not come to its end")


def check_leftovers(history, verdict):
    """Checks leftover keys: only those of killed clients may stay, until their TTL."""
    for node, key, value, pttl in history.keys:
        owner = value.partition("@")[2]
        if owner in history.exits and history.exits[owner][1] == 0:
            verdict.violations.append(
                f"leftover: node {node} has {key} of {owner}, which ended with status 0"
            )
        if pttl == "-1":
            verdict.violations.append(f"leftover: node {node} has {key} = {value} without an expiry")
    for node, key, value, pttl in history.left:
        verdict.violations.append(
            f"leftover: node {node} still has {key} = {value}, for {pttl} ms more"
        )


def check_turns(history, verdict):
    """Checks that each client acquires a lock after the faults, and that each kind of lock is acquired then."""
    served = {grant.client for grant in history.grants if grant.start >= history.peace}
    for name, born in history.born.items():
        lived = name not in history.died or history.died[name] > history.finish
        if lived and born <= history.peace and name not in served:
            verdict.violations.append(f"turns: {name} got no lock in the time without faults")

    granted = {lock_of(grant.choice) for grant in history.grants if grant.start >= history.peace}
    called = Counter(lock_of(choice) for when, choice in history.calls if when >= history.peace)
    for lock, count in called.items():
        if count >= MANY_CALLS and lock not in granted:
            verdict.violations.append(f"turns: nobody got {lock} of {count} calls without faults")


def check(history):
    """Returns the Verdict on a run."""
    verdict = Verdict()
    longest = max((grant.ttl for grant in history.grants), default=0)
    check_exclusion(history, verdict, longest * 1000000)
    check_permits(history, verdict)
    check_names(history, verdict)
    check_fences(history, verdict)
    check_processes(history, verdict)
    check_leftovers(history, verdict)
    check_turns(history, verdict)
    return verdict
