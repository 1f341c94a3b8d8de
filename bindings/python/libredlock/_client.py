# SPDX-License-Identifier: MIT
"""The client: connections to all servers."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from types import TracebackType
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Type, Union

from ._errors import error
from ._native import FOREVER, Report, Seconds, c_string, check, milliseconds, number, short_milliseconds
from ._redlock import ffi, lib
from ._statistics import Inspection, inspection, nodes, prometheus, shards
from ._statistics import stats as statistics

if TYPE_CHECKING:
    from ._asyncio import AsyncLock
    from ._lock import Lock, Name

ADMISSIONS = {
    "strict": lib.REDLOCK_ADMISSION_STRICT,
    "lenient": lib.REDLOCK_ADMISSION_LENIENT,
    "proven": lib.REDLOCK_ADMISSION_PROVEN,
}
TLS_VERIFY = {
    "full": lib.REDLOCK_TLS_VERIFY_FULL,
    "chain": lib.REDLOCK_TLS_VERIFY_CHAIN,
    "none": lib.REDLOCK_TLS_VERIFY_NONE,
}
EXIT_SECONDS = 1.0  # for the last releases when the interpreter ends
_clients: "weakref.WeakSet[Client]" = weakref.WeakSet()


class Client:
    """A client of all servers that vote on a lock. One for the whole process is enough; any thread and any event loop
    may use it. Times are in seconds.

    servers: addresses as for redlock_config_add_nodes(), in one string or several: "a:6379,b:6379,c:6379".
    default_timeout: TTL of locks without a `timeout`, which are extended automatically while they are held.
    max_ttl: the longest TTL that the client accepts. All clients of the same servers need the same.
    user, password: for servers whose address has none.
    tls_cacert, tls_cert, tls_key: files in PEM format for addresses that begin with rediss://: the issuers that are
        trusted (None: those of the system), and the certificate of this client with its key. tls_sni: the name that
        the servers' certificates must have; None: the host. tls_verify: "full", "chain" or "none" (enum
        redlock_tls_verify). Servers whose address has parameters of TLS do without these.
    key_prefix: what all keys begin with. owner: a label that operators see in the tokens of this client; "": none;
        None: "host/pid/start", after fork() those of the child.
    connect_timeout, node_timeout: time limits for connecting and for each reply; None: the library's.
    keepalive: time without traffic after which TCP connections are probed; 0: never; None: the library's.
    retry_delay: least and largest delay between attempts; None: the library's.
    queue_max: most acquisitions of one name that wait in this client; 0: no limit.
    volatile_fence_records: whether fence records are lost when a server restarts (docs/guarantees.md).
    fence_key: key of the fence records. admission: "strict", "lenient" or "proven". heartbeat: interval at which
        servers are asked for their clock. clock_slack: by how much this machine's clock may be set ahead while a lock
        is held; 0: no limit. drift: parts per million of the TTL, and microseconds, by which clocks may differ.
        All clients of a lock need the same; None: the library's.
    notifications: whether servers notify waiters. line: whether waiters stand in a line on a server, in a key of its
        own, in order of arrival (redlock_config_set_line()).
    servers with several shards: "east=a:6379,b:6379,c:6379; west=d:6379,e:6379,f:6379".

    After fork() the child gets connections of its own with its first call. The locks of the parent are not held there.
    """

    def __init__(
        self,
        servers: Union[str, Iterable[str]],
        *,
        default_timeout: Seconds = 10,
        max_ttl: Seconds = 30,
        user: Optional[str] = None,
        password: Optional[str] = None,
        tls_cacert: Optional[str] = None,
        tls_cert: Optional[str] = None,
        tls_key: Optional[str] = None,
        tls_sni: Optional[str] = None,
        tls_verify: str = "full",
        key_prefix: str = "",
        owner: Optional[str] = None,
        connect_timeout: Optional[Seconds] = None,
        node_timeout: Optional[Seconds] = None,
        keepalive: Optional[Seconds] = None,
        retry_delay: Optional[Tuple[Seconds, Seconds]] = None,
        queue_max: int = 0,
        volatile_fence_records: bool = False,
        fence_key: Optional[str] = None,
        admission: Optional[str] = None,
        notifications: bool = True,
        line: bool = True,
        heartbeat: Optional[Seconds] = None,
        clock_slack: Optional[Seconds] = None,
        drift: Optional[Tuple[int, int]] = None,
    ) -> None:
        self.default_timeout = default_timeout
        self._mutex = threading.Lock()
        self._closed = False
        self._config = _new_config()
        if isinstance(servers, (bytes, bytearray, memoryview)):
            raise TypeError(f"servers must be str or a list of str, not {type(servers).__name__}")
        for urls in [servers] if isinstance(servers, str) else servers:
            self._set(lib.redlock_config_add_nodes, c_string(urls, "servers"))
        self._set(lib.redlock_config_set_max_ttl_ms, milliseconds(max_ttl))
        self._set(lib.redlock_config_set_key_prefix, c_string(key_prefix, "key_prefix"))
        if owner is not None:
            self._set(lib.redlock_config_set_owner, c_string(owner, "owner"))
        self._set(lib.redlock_config_set_queue_max, number(queue_max, "queue_max"))
        if user is not None or password is not None:
            self._set(lib.redlock_config_set_auth, c_string("" if user is None else user, "user"),
                      ffi.NULL if password is None else c_string(password, "password"))  # fmt: skip
        self._set_tls(tls_cacert, tls_cert, tls_key, tls_sni, tls_verify)
        if connect_timeout is not None:
            self._set(lib.redlock_config_set_connect_timeout_ms, short_milliseconds(connect_timeout))
        if node_timeout is not None:
            self._set(lib.redlock_config_set_node_timeout_ms, short_milliseconds(node_timeout))
        if keepalive is not None:
            self._set(lib.redlock_config_set_keepalive_ms, short_milliseconds(keepalive))
        if retry_delay is not None:
            shortest, longest = retry_delay
            self._set(lib.redlock_config_set_retry_ms, short_milliseconds(shortest), short_milliseconds(longest))
        if volatile_fence_records:
            self._set(lib.redlock_config_set_fence_records, lib.REDLOCK_FENCE_RECORDS_VOLATILE)
        self._set_shared(fence_key, admission, heartbeat, clock_slack, drift)
        self._set(lib.redlock_config_set_notifications, notifications)
        self._set(lib.redlock_config_set_line, line)
        self._native = self._open()
        _clients.add(self)

    def _set_tls(self, cacert: Optional[str], cert: Optional[str], key: Optional[str], sni: Optional[str],
                 verify: str) -> None:  # fmt: skip
        """Passes on what TLS needs, unless all of it is left out."""
        if verify not in TLS_VERIFY:
            raise ValueError(f"tls_verify is {verify!r}, but must be one of {', '.join(TLS_VERIFY)}")
        texts = {"cacert": cacert, "cert": cert, "key": key, "sni": sni}
        if verify == "full" and not any(text is not None for text in texts.values()):
            return
        tls = ffi.new("redlock_tls_t *", {"size": ffi.sizeof("redlock_tls_t"), "verify": TLS_VERIFY[verify]})
        kept = {}  # the strings live as long as the call
        for name, text in texts.items():
            if text is not None:
                kept[name] = ffi.new("char[]", c_string(text, f"tls_{name}"))
                setattr(tls, name, kept[name])
        self._set(lib.redlock_config_set_tls, tls)

    def _set_shared(self, fence_key: Optional[str], admission: Optional[str], heartbeat: Optional[Seconds],
                    clock_slack: Optional[Seconds], drift: Optional[Tuple[int, int]]) -> None:  # fmt: skip
        """Passes on what all clients of a lock have in common, unless it is None."""
        if fence_key is not None:
            self._set(lib.redlock_config_set_fence_key, c_string(fence_key, "fence_key"))
        if admission is not None:
            if admission not in ADMISSIONS:
                raise ValueError(f"admission is {admission!r}, but must be one of {', '.join(ADMISSIONS)}")
            self._set(lib.redlock_config_set_admission, ADMISSIONS[admission])
        if heartbeat is not None:
            self._set(lib.redlock_config_set_heartbeat_ms, short_milliseconds(heartbeat))
        if clock_slack is not None:
            self._set(lib.redlock_config_set_clock_slack_ms, short_milliseconds(clock_slack))
        if drift is not None:
            ppm, constant_us = drift
            self._set(lib.redlock_config_set_drift, number(ppm, "drift[0]"), number(constant_us, "drift[1]"))

    def _set(self, setter: Any, *arguments: Any) -> None:
        """Calls a setter of the configuration. Raises its text if it refuses."""
        status = setter(self._config, *arguments)
        if status != lib.REDLOCK_OK:
            raise error(status, self._config_error())

    def _config_error(self) -> str:
        """Returns why the configuration was refused."""
        return str(ffi.string(lib.redlock_config_error(self._config)).decode("utf-8", "replace"))

    def _open(self) -> Any:
        """Creates the client of the library."""
        native = ffi.new("redlock_t **")
        check(lib.redlock_new(native, self._config), self._config_error())
        return ffi.gc(native[0], lib.redlock_free)

    def _forked(self) -> None:
        """Forgets the connections of the parent, in the child after fork()."""
        self._mutex = threading.Lock()  # a thread that the child does not have may hold the other one
        self._native = None

    @property
    def native(self) -> Any:
        """The client of the library (redlock_t *). Raises after close()."""
        with self._mutex:
            if self._closed:
                raise error(lib.REDLOCK_ECLOSED)
            if self._native is None:
                self._native = self._open()
            return self._native

    def lock(
        self,
        name: Name,
        timeout: Optional[Seconds] = None,
        sleep: Seconds = 0.1,
        blocking: bool = True,
        blocking_timeout: Optional[Seconds] = None,
        thread_local: bool = True,
        raise_on_release_error: bool = True,
        *,
        also: Sequence[Name] = (),
        permits: int = 0,
        fence: bool = False,
        auto_extend: Optional[bool] = None,
    ) -> "Lock":
        """Returns a Lock, which is not acquired yet. Arguments: those of Lock."""
        from ._lock import Lock

        return Lock(
            self,
            name,
            timeout,
            sleep,
            blocking,
            blocking_timeout,
            thread_local,
            raise_on_release_error,
            also=also,
            permits=permits,
            fence=fence,
            auto_extend=auto_extend,
        )

    def async_lock(
        self,
        name: Name,
        timeout: Optional[Seconds] = None,
        sleep: Seconds = 0.1,
        blocking: bool = True,
        blocking_timeout: Optional[Seconds] = None,
        thread_local: bool = True,
        raise_on_release_error: bool = True,
        *,
        also: Sequence[Name] = (),
        permits: int = 0,
        fence: bool = False,
        auto_extend: Optional[bool] = None,
    ) -> "AsyncLock":
        """Returns an AsyncLock, which is not acquired yet. Arguments: those of Lock."""
        from ._asyncio import AsyncLock

        return AsyncLock(
            self,
            name,
            timeout,
            sleep,
            blocking,
            blocking_timeout,
            thread_local,
            raise_on_release_error,
            also=also,
            permits=permits,
            fence=fence,
            auto_extend=auto_extend,
        )

    def wait_ready(self, timeout: Optional[Seconds] = None) -> None:
        """Waits until a majority of the servers is connected and eligible. Other calls do not need it. timeout: time
        limit; None: none."""
        check(lib.redlock_wait_ready(self.native, FOREVER if timeout is None else milliseconds(timeout)))

    def set_auth(self, user: Optional[str], password: Optional[str]) -> None:
        """Changes user and password for the servers whose address has none, from their next connection on; None, None:
        no login. Connections that exist stay as they are."""
        check(lib.redlock_set_auth(self.native, ffi.NULL if user is None else c_string(user, "user"),
                                   ffi.NULL if password is None else c_string(password, "password")))  # fmt: skip

    def break_lock(self, name: Union[str, bytes]) -> None:
        """Deletes the keys of a lock without its token: for operators."""
        report = Report()
        status = lib.redlock_break(self.native, c_string(name, "the name"), report.address)
        text = report.text()
        report.free()
        check(status, text)

    def inspect(self, name: Union[str, bytes]) -> Inspection:
        """Asks the servers who holds a lock, and who waits for it. Raises NoQuorumError if too few servers reply. The
        answer may be old when it is read. Of a permit: the name of its slot, Lock.slot_name; the first slot, "name{#0}",
        has the waiters for all permits."""
        report = Report()
        status = lib.redlock_inspect(self.native, c_string(name, "the name"), report.address)
        try:
            check(status, report.text())
            return inspection(report)
        finally:
            report.free()

    def release_token(self, name: Union[str, bytes, Sequence[Union[str, bytes]]], token: Union[str, bytes]) -> None:
        """Releases, by its token, a lock that this client has no object of. name: several for a lock with `also`. Raises
        LockNotOwnedError if no majority has the lock with this token."""
        names = [name] if isinstance(name, (str, bytes, bytearray)) else list(name)
        strings = [ffi.new("char[]", c_string(each, "the name")) for each in names]
        pointers = ffi.new("char *[]", strings)
        report = Report()
        status = lib.redlock_release_token_all(self.native, ffi.cast("const char *const *", pointers), len(names),
                                               c_string(token, "the token"), report.address)  # fmt: skip
        text = report.text()
        report.free()
        check(status, text, ", ".join(c_string(each, "the name").decode("utf-8", "replace") for each in names))

    def stats(self, shard: Optional[str] = None) -> Dict[str, int]:
        """Returns the counters and gauges of redlock_stats_t, without histograms. shard: its name; None: all together."""
        if shard is None:
            return statistics(self.native, None)
        names = self.shards()
        if shard not in names:
            raise ValueError(f"no shard {shard!r}, but {', '.join(map(repr, names))}")
        return statistics(self.native, names.index(shard))

    def nodes(self) -> List[Dict[str, Union[str, int, bool]]]:
        """Returns state and counters of each server: the fields of redlock_node_stats_t, without histograms. `cause` is a
        name, such as "timeout" or "restarted"; "none": the votes of the server count."""
        return nodes(self.native)

    def shards(self) -> List[str]:
        """Returns the names of the shards. A client without shards has one, with the name ""."""
        return shards(self.native)

    def shard_of(self, name: Union[str, bytes]) -> str:
        """Returns the name of the shard that a lock belongs to."""
        text = f"the name must have 1 to {lib.REDLOCK_RESOURCE_LEN_MAX} bytes"
        index = check(lib.redlock_shard_of(self.native, c_string(name, "the name")), text)
        return self.shards()[index]

    def prometheus(self, labels: Optional[Mapping[str, str]] = None) -> str:
        """Returns the statistics of the client, of its shards and of its servers as text for Prometheus, to be served as
        "text/plain; version=0.0.4". labels: added to each figure, at most 16."""
        return prometheus(self.native, labels or {})

    def close(self, timeout: Seconds = EXIT_SECONDS) -> None:
        """Ends waiting calls, releases held locks, and waits at most `timeout` until the servers have the releases. May
        be called again. The interpreter calls it when it ends."""
        with self._mutex:
            native, self._native, self._closed = self._native, None, True
        if native is not None:
            lib.redlock_shutdown(native, milliseconds(timeout))
        # The last reference frees the client: that of a thread that is in a call may outlive this one.

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> None:  # fmt: skip
        self.close()


def _new_config() -> Any:
    """Creates a configuration."""
    config = ffi.new("redlock_config_t **")
    check(lib.redlock_config_new(config, ffi.NULL))
    owned = ffi.gc(config[0], lib.redlock_config_free)
    check(lib.refusal_log(owned))
    return owned


def _after_fork() -> None:
    """Has all clients make new connections in the child."""
    for client in list(_clients):
        client._forked()


def _at_exit() -> None:
    """Closes all clients, so that the last releases are sent."""
    for client in list(_clients):
        client.close()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)
