# SPDX-License-Identifier: MIT
"""Exceptions. Their names and arguments are those of redis-py where it has the same error."""

from __future__ import annotations

import re
from typing import Optional

from ._redlock import ffi, lib

# What the texts of the library call an option, a setting or a function, and what it is called in Python.
NAMES = {
    "opts.ttl_ms": "timeout",
    "ttl_ms": "the timeout after the extension",
    "delay_ms": "delay",
    "max_ttl_ms": "max_ttl",
    "opts.validity_ms_min =": "a validity of",
    "opts.permits": "permits",
    "opts.also": "also",
    "opts.token": "token",
    "opts.fence": "fence",
    "REDLOCK_FLAG_FENCE": "fence=True",
    "redlock_lock_token()": "detach()",
    "NULL": "None",
    "resource is": "name is",
    "the name of a resource": "the name of a lock",
    "further resource number": "also: name number",
    "name each resource once": "give each name once",
    "belongs to one resource": "belongs to one name",
    "resources of one lock": "the names of one lock",
    "no resource is given: name": "no name is given: give",
    "no server was added: call redlock_config_add_nodes() or redlock_config_add_shard() first": "servers is empty: name one",
    "server addresses:": "servers:",
    "key prefix:": "key_prefix:",
    "owner label:": "owner:",
    "fence key:": "fence_key:",
    "another fence key": "another fence_key",
    "volatile records": "volatile_fence_records=True",
    "longest queue:": "queue_max:",
    "connect timeout:": "connect_timeout:",
    "node timeout:": "node_timeout:",
    "lower retry delay:": "retry_delay[0]:",
    "upper retry delay:": "retry_delay[1]:",
    "heartbeat interval:": "heartbeat:",
    "clock slack:": "clock_slack:",
    "drift:": "drift[0]:",
    "drift constant:": "drift[1]:",
    "TLS: cacert has no effect with verify=none": 'tls_cacert has no effect with tls_verify="none"',
    "TLS: cacert": "tls_cacert",
    "TLS: cert": "tls_cert",
    "TLS: key is given without cert; give both, or cert": "tls_key is given without tls_cert; give both, or tls_cert",
    "TLS: key": "tls_key",
    "TLS: sni": "tls_sni",
    "TLS: verify=chain needs cacert": 'tls_verify="chain" needs tls_cacert',
}
# The longest of several names that begin equally; what is in quotes is a name of the user.
_ANY_NAME = re.compile(r"'[^']*'|(?<![\w.])(?:" + "|".join(map(re.escape, sorted(NAMES, key=len, reverse=True))) + r")(?!\w)")


class RedlockError(Exception):
    """An operation failed. `code` is the number of the error, `name` its name, for example "REDLOCK_EINVAL";
    `retriable` tells whether the same call can succeed later."""

    def __init__(self, message: Optional[str] = None, code: int = lib.REDLOCK_EINVAL) -> None:
        super().__init__(message if message else c_text(lib.redlock_strerror(code)))
        self.code = code
        self.name = c_text(lib.redlock_error_name(code))
        self.retriable = bool(lib.redlock_error_is_retriable(code))


class NoQuorumError(RedlockError):
    """Too few servers replied in time, or the votes of too few of them count. The text says which, and why."""


class LockError(RedlockError, ValueError):
    """The lock was not acquired, or it is used in a state in which it cannot be. `lock_name` is its name."""

    def __init__(self, message: Optional[str] = None, lock_name: Optional[str] = None,
                 code: int = lib.REDLOCK_EINVAL) -> None:  # fmt: skip
        super().__init__(message, code)
        self.message = message
        self.lock_name = lock_name


class LockNotOwnedError(LockError):
    """The lock is not held any more: it expired, or its keys were deleted or replaced."""


_NO_QUORUM = {lib.REDLOCK_ENOQUORUM, lib.REDLOCK_ETOOSLOW, lib.REDLOCK_EEXCLUDED, lib.REDLOCK_EAUTH}


def error(status: int, text: str = "", lock_name: Optional[str] = None) -> RedlockError:
    """Returns the exception for a negative status. text: of a report or a configuration; "": that of the error."""
    if status in (lib.REDLOCK_ELOST, lib.REDLOCK_EFORKED) and lock_name is not None:
        return LockNotOwnedError(text or c_text(lib.redlock_strerror(status)), lock_name, status)
    if status == lib.REDLOCK_ECONTENDED:
        return LockError(text, lock_name, status)
    if status in _NO_QUORUM:
        return NoQuorumError(text, status)
    return RedlockError(_in_python(text) if status == lib.REDLOCK_EINVAL else text, status)


def _in_python(text: str) -> str:
    """Returns the text of a refusal with the names that Python has for what is refused."""
    return _ANY_NAME.sub(lambda found: NAMES.get(found[0], found[0]), text)


def c_text(text: object) -> str:
    """Returns a C string as str."""
    return str(ffi.string(text).decode("utf-8", "replace"))
