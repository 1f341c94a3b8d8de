# SPDX-License-Identifier: MIT
"""Judges a history of a chaos run: exclusion, order of fences, nothing left behind, everybody gets a turn, nobody
crashes.

Some faults are outside of what exclusion is promised for: a server that forgets keys while it runs, or whose
clock steps forward or runs faster than the drift that is allowed for. Two holders at once are then excused, and
counted apart; but only if such a fault happened after the first of the two could have asked and before the second
had the lock. Fences are excused for nothing.
"""

from dataclasses import dataclass, field

LOSES_KEYS = {"clock_ahead", "flushall", "clock_fast"}
# Ours do not count a server that came back without its keys until all locks of before are over; others do.
FORGETS = {"kill_lose"}
GOES_ON_AFTER = {"clock_fast"}  # keys that were set meanwhile expire early, too


@dataclass
class Verdict:
    violations: list = field(default_factory=list)
    excused: list = field(default_factory=list)  # (first, second, why)
    overlaps: list = field(default_factory=list)  # those that are violations: (first, second)
    fenced: int = 0


def ms(ns):
    return f"{ns / 1e6:.3f}"


def excuse(history, first, second, longest_ttl_ns):
    """The fault that may have let both in, or None."""
    since, until = min(first.asked, second.asked), max(first.start, second.start)
    for fault in history.faults:
        if fault.start > until:
            break
        begin, end = fault.start, fault.end
        if fault.kind == "clock_back":
            begin = fault.end  # going back harms nobody, coming forward again does
        elif fault.kind in FORGETS and "foreign" != second.kind:
            continue
        elif fault.kind not in LOSES_KEYS | FORGETS:
            continue
        if fault.kind in GOES_ON_AFTER:
            end += longest_ttl_ns
        if begin <= until and end >= since:
            return fault
    return None


def check_exclusion(history, verdict, longest_ttl_ns):
    holding = {}
    for grant in history.grants:  # by start
        others = [other for other in holding.get(grant.resource, []) if other.end > grant.start]
        for other in others:
            if grant.end <= grant.start:
                continue
            why = excuse(history, other, grant, longest_ttl_ns)
            if why:
                verdict.excused.append((other, grant, why))
                continue
            verdict.overlaps.append((other, grant))
            verdict.violations.append(
                f"exclusion: {grant.resource} was held by {other.client} (#{other.number}) until "
                f"{ms(other.end - history.start)} ms and by {grant.client} (#{grant.number}) from "
                f"{ms(grant.start - history.start)} ms"
            )
        holding[grant.resource] = others + [grant]


def check_fences(history, verdict):
    """A grant that returned before another was asked for has the smaller fence; no two have the same."""
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
                    f"{largest.client} (#{largest.number}) had {largest.fence} before it asked"
                )


def check_processes(history, verdict):
    for name, (when, status) in history.exits.items():
        if status != 0 or when < history.finish:
            verdict.violations.append(f"process: {name} ended by itself, wait status {status}")
    for name in history.stuck:
        verdict.violations.append(f"process: {name} did not end when it was told to")
    if not history.over:
        verdict.violations.append("process: the run did not come to its end")


def check_leftovers(history, verdict):
    """Who was killed leaves its keys to the TTL. Who ended in order has taken all of its back."""
    for node, key, value, pttl in history.keys:
        owner = value.partition("@")[2]
        if owner in history.exits and history.exits[owner][1] == 0:
            verdict.violations.append(
                f"leftover: node {node} has {key} of {owner}, which ended in order"
            )
        if pttl == "-1":
            verdict.violations.append(f"leftover: node {node} has {key} = {value} for ever")
    for node, key, value, pttl in history.left:
        verdict.violations.append(
            f"leftover: node {node} still has {key} = {value}, for {pttl} ms more"
        )


def check_turns(history, verdict):
    """Without faults everybody gets a turn."""
    served = {grant.client for grant in history.grants if grant.start >= history.peace}
    for name, born in history.born.items():
        lived = name not in history.died or history.died[name] > history.finish
        if lived and born <= history.peace and name not in served:
            verdict.violations.append(f"turns: {name} got no lock in the time without faults")


def check(history):
    verdict = Verdict()
    longest = max((grant.ttl for grant in history.grants), default=0)
    check_exclusion(history, verdict, longest * 1000000)
    check_fences(history, verdict)
    check_processes(history, verdict)
    check_leftovers(history, verdict)
    check_turns(history, verdict)
    return verdict
