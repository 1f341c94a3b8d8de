# SPDX-License-Identifier: MIT
"""What the library tells of a client, of its servers and shards, and of the locks of others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

from ._errors import c_text
from ._native import Report, c_string, check
from ._redlock import ffi, lib

UNKNOWN_MS = 2**64 - 1  # as pttl_ms: another operation, no key, or a key that never expires
STATES = {lib.REDLOCK_STATE_UNKNOWN: "unknown", lib.REDLOCK_STATE_FREE: "free", lib.REDLOCK_STATE_HELD: "held"}
KEYS = {
    lib.REDLOCK_KEY_UNKNOWN: "unknown",
    lib.REDLOCK_KEY_ABSENT: "absent",
    lib.REDLOCK_KEY_EXPIRES: "expires",
    lib.REDLOCK_KEY_PERSISTENT: "persistent",
    lib.REDLOCK_KEY_FOREIGN: "foreign",
}


@dataclass(frozen=True)
class ServerKey:
    """What one server has under a key. key: "absent"; "expires": a lock; "persistent": a key without a TTL, which no
    client of Redlock sets; "foreign": not a plain lock; "unknown": no reply. expires_in: seconds; None: not known.
    owner: the holder's label. text: for people."""

    server: str
    key: str
    owner: str
    expires_in: Optional[float]
    text: str


@dataclass(frozen=True)
class Waiter:
    """A client that waits for a lock, as it has described itself. owner: its label. since: when its wait began, in
    seconds of Unix time by its own clock; None: not known."""

    owner: str
    since: Optional[float]


@dataclass(frozen=True)
class Inspection:
    """Who holds a lock. state: "held": one token is on a majority of the servers; "free": no token can be on a majority;
    "unknown". owner: the label that most servers name, or "". votes: servers with a key. quorum: the majority. waiters:
    the clients in the line, in order, or None: not known, because the client uses no lines, or its user may not read them;
    more_wait: there are more, which were not read."""

    state: str
    owner: str
    votes: int
    quorum: int
    servers: Tuple[ServerKey, ...]
    waiters: Optional[Tuple[Waiter, ...]] = None
    more_wait: bool = False


def _server_key(report: Report, index: int) -> ServerKey:
    """Returns what one server of the report has."""
    node = ffi.new("redlock_node_report_t *")
    check(lib.redlock_report_get_node(report.address[0], index, node, ffi.sizeof("redlock_node_report_t")))
    expires_in = None if node.pttl_ms == UNKNOWN_MS else int(node.pttl_ms) / 1000
    return ServerKey(c_text(node.node), KEYS.get(int(node.key), "unknown"), c_text(node.owner), expires_in, c_text(node.text))


def _waiter(report: Report, index: int) -> Waiter:
    """Returns what the report of an inspection says of one waiter."""
    waiter = ffi.new("redlock_waiter_t *")
    check(lib.redlock_report_get_waiter(report.address[0], index, waiter, ffi.sizeof("redlock_waiter_t")))
    return Waiter(c_text(waiter.owner), int(waiter.since_ms) / 1000 if waiter.since_ms else None)


def inspection(report: Report) -> Inspection:
    """Returns what the report of an inspection says."""
    info = ffi.new("redlock_report_info_t *")
    check(lib.redlock_report_get_info(report.address[0], info, ffi.sizeof("redlock_report_info_t")))
    servers = tuple(_server_key(report, index) for index in range(info.nodes))
    owners = [server.owner for server in servers if server.owner]
    owner = max(owners, key=owners.count) if owners else ""
    line = tuple(_waiter(report, index) for index in range(info.line_length))
    waiters = line if info.line_servers else None
    state = STATES.get(int(info.state), "unknown")
    return Inspection(state, owner, int(info.granted), int(info.quorum), servers, waiters, bool(info.line_more))


def _fields(struct: Any) -> Dict[str, Any]:
    """Returns the fields of a struct that the binding knows: numbers, and texts as str."""
    found: Dict[str, Any] = {}
    for name, field in ffi.typeof(struct).item.fields:
        value = getattr(struct, name)
        found[name] = c_text(value) if field.type.kind in ("array", "pointer") else int(value)
    return found


def stats(native: Any, shard: Optional[int]) -> Dict[str, int]:
    """Returns the fields of redlock_stats_t, of all shards or of one."""
    size = ffi.sizeof("redlock_stats_t")
    read = ffi.new("redlock_stats_t *")
    if shard is None:
        check(lib.redlock_get_stats(native, read, size))
    else:
        check(lib.redlock_get_shard_stats(native, shard, read, size))
    return _fields(read)


def nodes(native: Any) -> List[Dict[str, Union[str, int, bool]]]:
    """Returns the fields of redlock_node_stats_t of each server."""
    found = []
    for index in range(lib.redlock_node_count(native)):
        read = ffi.new("redlock_node_stats_t *")
        check(lib.redlock_get_node_stats(native, index, read, ffi.sizeof("redlock_node_stats_t")))
        cause = c_text(lib.redlock_cause_name(read.cause)).removeprefix("REDLOCK_CAUSE_").lower()
        found.append({**_fields(read), "eligible": bool(read.eligible), "cause": cause})
    return found


def shards(native: Any) -> List[str]:
    """Returns the names of the shards."""
    return [c_text(lib.redlock_shard_name(native, index)) for index in range(lib.redlock_shard_count(native))]


def prometheus(native: Any, labels: Mapping[str, str]) -> str:
    """Returns the text for Prometheus with these labels on each figure."""
    strings = [(ffi.new("char[]", c_string(name, "a label")), ffi.new("char[]", c_string(value, "a label")))
               for name, value in labels.items()]  # fmt: skip
    array = ffi.new("redlock_label_t[]", len(strings))
    for label, (name, value) in zip(array, strings):
        label.name, label.value = name, value
    size = 32768  # what seven servers need
    while True:
        text = ffi.new("char[]", size)
        status = lib.redlock_stats_prometheus(native, array if strings else ffi.NULL, len(strings), text, size)
        needed = check(status, "labels: at most 16, with names as Prometheus allows them, not le, and values of at most 512 bytes")
        if needed < size:
            return str(ffi.unpack(text, needed).decode("utf-8"))
        size = needed + needed // 8 + 1  # the numbers grow meanwhile
