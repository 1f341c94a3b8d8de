# SPDX-License-Identifier: MIT
"""Reads the logs of the processes of a chaos run (history.h).

A line is `TIME WORD … ;`, in ns of CLOCK_BOOTTIME. A line feed precedes it, so that a line that a killed process has
left incomplete ends where the next one begins. A client has a file of its own, NAME.log:

    call CHOICE ID TTL_MS             an acquisition begins; TTL 0: not known
    hold KEYS ID DEADLINE FENCE       it was granted; the client believes to hold it until DEADLINE; FENCE 0: none
    still KEYS ID DEADLINE 0          it was extended
    alive KEYS ID                     the program under `redlock run` is running
    end KEYS ID                       the client does not rely on the lock any more and releases it
    lost KEYS ID LAST                 the client found it lost; LAST: when it last found it held
    fail CHOICE ID ERROR              it was not acquired
    ran CHOICE ID STATUS              `redlock run` ended with this wait() status

A CHOICE is `r0`, `r2+r0` (both), or `s1*3` (one of three permits); the KEYS of the lock `r0`, `r2+r0`, `s1{#2}`.

The run has the file faults.log:

    fault KIND TARGET                 a fault begins
    heal KIND TARGET                  it ends
    born NAME KIND TRANSPORT          a client process starts; TRANSPORT: tls or tcp
    died NAME                         the run has killed it
    exit NAME STATUS                  it ended by itself or at the end of the run, with this wait() status
    stuck NAME                        it did not end after SIGTERM
    peace                             the time without faults begins
    finish                            the clients are ended
    key NODE NAME VALUE PTTL          a key that is there after all clients have ended
    left NODE NAME VALUE PTTL         a key that is still there when it should have expired
    over                              the end of the run
    skip REASON                       a part of the run is not possible on this machine
"""

import os
import re
from dataclasses import dataclass, field

NEVER = 1 << 63  # a time after all others: the event did not happen
# The key of a slot: name of the semaphore, number.
SLOT = re.compile(r"(.+)\{#([0-9]+)\}")


@dataclass
class Grant:
    """A lock as its client believes it: it held `resource` from `start` to `end`."""

    client: str  # name of the process
    kind: str  # of the client
    choice: str
    number: str  # the ID
    called: int  # when the call began
    ttl: int = 0  # ms; 0: not known
    resource: str = ""  # the KEYS of the lock
    start: int = 0  # when it was granted, as all times in ns; 0: it was not
    end: int = 0  # after which the client did not rely on it any more
    deadline: int = 0  # the last one that was logged
    earliest: int = 0  # no key of the lock was set before
    fence: int = 0  # fencing token; 0: none

    @property
    def keys(self):
        """Returns the keys of the lock."""
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
    """A fault of `target`, a server's number or a client's name, from `start` to `end`."""

    kind: str
    target: str
    start: int
    end: int = NEVER


@dataclass
class History:
    """The logs of one run. The dictionaries of processes have their names as keys."""

    grants: list = field(default_factory=list)  # by start
    faults: list = field(default_factory=list)  # by start
    kinds: dict = field(default_factory=dict)  # name: kind of client
    died: dict = field(default_factory=dict)  # name: when the run killed it
    exits: dict = field(default_factory=dict)  # name: (when, wait() status)
    born: dict = field(default_factory=dict)  # name: when it started
    tls: set = field(default_factory=set)  # names of the processes that use TLS
    stuck: list = field(default_factory=list)  # names
    keys: list = field(default_factory=list)  # (node, name, value, pttl) after all clients have ended
    left: list = field(default_factory=list)  # the same when they should have expired
    skips: list = field(default_factory=list)  # reasons
    calls: list = field(default_factory=list)  # (when, choice)
    semaphores: dict = field(default_factory=dict)  # name: permits
    start: int = 0  # when the first line was written
    peace: int = 0  # when the time without faults began
    finish: int = 0  # when the run began to end the clients
    over: int = 0  # the end of the run


def lines(path):
    """Returns the complete lines: a process may have been killed in the middle of one."""
    with open(path, encoding="ascii", errors="replace") as file:
        for line in file.read().split("\n"):
            if line.endswith(" ;"):
                when, word, *rest = line[:-2].split()
                yield int(when), word, rest


def end_fault(faults, kind, target, when):
    """Sets the end of the latest such fault that has none."""
    for fault in reversed(faults):
        if fault.kind == kind and fault.target == target and fault.end == NEVER:
            fault.end = when
            return


def read_run(history, path):
    """Adds the lines of faults.log to the history."""
    for when, word, rest in lines(path):
        history.start = history.start or when
        if word == "fault":
            history.faults.append(Fault(rest[0], rest[1], when))
        elif word == "heal":
            end_fault(history.faults, rest[0], rest[1], when)
        elif word == "born":
            history.born[rest[0]] = when
            history.kinds[rest[0]] = rest[1]
            if rest[2:] == ["tls"]:
                history.tls.add(rest[0])
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
    """What a client logged about one acquisition."""

    def __init__(self, grant):
        self.grant = grant
        self.alive = 0  # when its program last ran
        self.ended = self.lost_at = NEVER  # the times of these lines
        self.last = NEVER  # when a lost lock was last found held

    def hold(self, when, keys, deadline, fence):
        """Adds a line `hold`. No key was set before the call, nor earlier than a TTL before the deadline."""
        self.grant.start = when
        self.grant.resource = keys
        self.grant.deadline = deadline
        self.grant.fence = fence
        ttl_ns = self.grant.ttl * 1000000
        self.grant.earliest = max(self.grant.called, deadline - ttl_ns if ttl_ns else 0)

    def finish(self, died):
        """Sets the end of the lock as the client believed it, and returns the grant. The program under `redlock run`
        knows no deadline: for it, the lock lasts as long as the program runs."""
        grant = self.grant
        until = max(grant.deadline, self.alive)
        if self.alive and self.ended != NEVER:
            until = self.ended
        if self.lost_at != NEVER:
            until = self.last if self.lost_at < until else until
        grant.end = max(grant.start, min(until, self.ended, died))
        return grant


def read_grant_line(belief, when, word, rest):
    """Adds a line about an acquisition to its belief; `rest`: the words after `word`."""
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
    """Adds the log of the client process `name` to the history: its calls, its grants, and faults that it logged."""
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
            read_grant_line(beliefs[rest[1]], when, word, rest)
    died = history.died.get(name, NEVER)
    if kind == "command":
        died = NEVER  # the program under it is another process
    history.grants += [belief.finish(died) for belief in beliefs.values() if belief.grant.start]


def read(directory):
    """Returns the History of the run with its logs in `directory`."""
    history = History()
    read_run(history, os.path.join(directory, "faults.log"))
    for entry in sorted(os.listdir(directory)):
        if entry.endswith(".log") and entry != "faults.log":
            read_client(history, os.path.join(directory, entry), entry.removesuffix(".log"))
    history.grants.sort(key=lambda grant: grant.start)
    history.faults.sort(key=lambda fault: fault.start)
    return history
