# SPDX-License-Identifier: MIT
"""Reads the logs of the processes of a chaos run (history.h).

A line is `TIME WORD …`, in ns of CLOCK_BOOTTIME. A client has a file of its own, NAME.log:

    call CHOICE ID TTL_MS             an acquisition begins; TTL 0: not known
    hold KEYS ID DEADLINE FENCE       it was granted; held until DEADLINE, as the client believes; FENCE 0: none
    still KEYS ID DEADLINE 0          extended
    alive KEYS ID                     the command of `redlock run` is running
    end KEYS ID                       about to be released; from here on the client does not rely on it
    lost KEYS ID LAST                 found lost; LAST: when it was last found held
    fail CHOICE ID ERROR, ran CHOICE ID STATUS

A CHOICE is `r0`, `r2+r0` (both), or `s1*3` (one of three permits); the KEYS of the lock `r0`, `r2+r0`, `s1{#2}`.

and faults.log is that of the run: fault KIND TARGET, heal KIND TARGET, born NAME KIND, died NAME (killed by the run),
exit NAME STATUS (by itself, or at the end of the run), stuck NAME, peace, finish, key NODE NAME VALUE PTTL (right
after the end), left NODE NAME VALUE PTTL (when it should have expired), over, skip REASON.
"""

import os
import re
from dataclasses import dataclass, field

NEVER = 1 << 63
SLOT = re.compile(r"(.+)\{#([0-9]+)\}")


@dataclass
class Grant:
    """A lock as its client believes it: it held `resource` from `start` to `end`."""

    client: str
    kind: str
    choice: str
    number: str
    called: int
    ttl: int = 0
    resource: str = ""  # the KEYS of the lock
    start: int = 0
    end: int = 0
    deadline: int = 0
    asked: int = 0  # start of the call: no key of it was set before
    fence: int = 0


    @property
    def keys(self):
        return self.resource.split("+")

    @property
    def slot(self):
        """Returns (name of the semaphore, slot number) of a permit, or of a plain lock on the key of a slot; otherwise
        (None, None)."""
        found = SLOT.fullmatch(self.resource)
        return (found[1], int(found[2])) if found else (None, None)


def lock_of(choice):
    """Returns the kind of lock: "one", "several" or "permit"."""
    return "permit" if "*" in choice else "several" if "+" in choice else "one"


@dataclass
class Fault:
    kind: str
    target: str
    start: int
    end: int = NEVER


@dataclass
class History:
    grants: list = field(default_factory=list)
    faults: list = field(default_factory=list)
    kinds: dict = field(default_factory=dict)  # of clients
    died: dict = field(default_factory=dict)
    exits: dict = field(default_factory=dict)
    born: dict = field(default_factory=dict)
    stuck: list = field(default_factory=list)
    keys: list = field(default_factory=list)  # (node, name, value, pttl)
    left: list = field(default_factory=list)
    skips: list = field(default_factory=list)
    calls: list = field(default_factory=list)  # (when, choice)
    semaphores: dict = field(default_factory=dict)  # name: permits
    start: int = 0
    peace: int = 0
    finish: int = 0
    over: int = 0


def lines(path):
    """Returns the complete lines: a process may have been killed in the middle of one."""
    with open(path, encoding="ascii", errors="replace") as file:
        for line in file:
            if line.endswith("\n"):
                when, word, *rest = line.split()
                yield int(when), word, rest


def end_fault(faults, kind, target, when):
    for fault in reversed(faults):
        if fault.kind == kind and fault.target == target and fault.end == NEVER:
            fault.end = when
            return


def read_run(history, path):
    for when, word, rest in lines(path):
        history.start = history.start or when
        if word == "fault":
            history.faults.append(Fault(rest[0], rest[1], when))
        elif word == "heal":
            end_fault(history.faults, rest[0], rest[1], when)
        elif word == "born":
            history.born[rest[0]] = when
            history.kinds[rest[0]] = rest[1]
        elif word == "died":
            history.died[rest[0]] = when
        elif word == "exit":
            history.exits[rest[0]] = (when, int(rest[1]))
        elif word == "stuck":
            history.stuck.append(rest[0])
        elif word in ("peace", "finish", "over"):
            setattr(history, word, when)
        elif word == "key":
            history.keys.append(tuple(rest))
        elif word == "left":
            history.left.append(tuple(rest))
        elif word == "skip":
            history.skips.append(" ".join(rest))


class Belief:
    """What the lines about one acquisition say."""

    def __init__(self, grant):
        self.grant = grant
        self.alive = 0
        self.ended = self.lost_at = self.last = NEVER

    def hold(self, when, keys, deadline, fence):
        self.grant.start = when
        self.grant.resource = keys
        self.grant.deadline = deadline
        self.grant.fence = fence
        ttl_ns = self.grant.ttl * 1000000
        self.grant.asked = max(self.grant.called, deadline - ttl_ns if ttl_ns else 0)

    def finish(self, died):
        """Sets the end of the lock as the client believed it. The command of `redlock run` knows no deadline: for it,
        the lock lasts as long as the process."""
        grant = self.grant
        until = max(grant.deadline, self.alive)
        if self.alive and self.ended != NEVER:
            until = self.ended
        if self.lost_at != NEVER:
            until = self.last if self.lost_at < until else until
        grant.end = max(grant.start, min(until, self.ended, died))
        return grant


def note(belief, when, word, rest):
    if word == "hold":
        belief.hold(when, rest[0], int(rest[2]), int(rest[3]))
    elif word == "still":
        belief.grant.deadline = max(belief.grant.deadline, int(rest[2]))
    elif word == "alive":
        belief.alive = when
    elif word == "end":
        belief.ended = min(belief.ended, when)
    elif word == "lost":
        belief.lost_at, belief.last = when, int(rest[2])


def read_client(history, path, name):
    beliefs = {}
    kind = history.kinds.get(name, "?")
    for when, word, rest in lines(path):
        if word == "fault":
            history.faults.append(Fault(rest[0], rest[1], when, when))
        elif word == "heal":
            continue
        elif word == "call":
            history.calls.append((when, rest[0]))
            semaphore, _, permits = rest[0].partition("*")
            if permits:
                history.semaphores[semaphore] = int(permits)
            grant = Grant(name, kind, rest[0], rest[1], when, int(rest[2]))
            beliefs[rest[1]] = Belief(grant)
        else:
            note(beliefs[rest[1]], when, word, rest)
    died = history.died.get(name, NEVER)
    if kind == "command":
        died = NEVER  # its command is another process
    history.grants += [belief.finish(died) for belief in beliefs.values() if belief.grant.start]


def read(directory):
    history = History()
    read_run(history, os.path.join(directory, "faults.log"))
    for entry in sorted(os.listdir(directory)):
        if entry.endswith(".log") and entry != "faults.log":
            read_client(history, os.path.join(directory, entry), entry.removesuffix(".log"))
    history.grants.sort(key=lambda grant: grant.start)
    history.faults.sort(key=lambda fault: fault.start)
    return history
