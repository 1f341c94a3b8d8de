# SPDX-License-Identifier: MIT
"""Exceptions. Their names and arguments are those of redis-py where it has the same error."""

from __future__ import annotations

from typing import Optional

from ._redlock import ffi, lib


class RedlockError(Exception):
    """An operation failed. `code` is the number of the error, `name` its name, for example "REDLOCK_EINVAL";
    `retriable` tells whether the same call can succeed later."""

    def __init__(self, message: Optional[str] = None, code: int = lib.REDLOCK_EINVAL) -> None:
        super().__init__(message if message else c_text(lib.redlock_strerror(code)))
        self.code = code
        self.name = c_text(lib.redlock_error_name(code))
        self.retriable = bool(lib.redlock_error_is_retriable(code))


class NoQuorumError(RedlockError):
    """Too few servers replied in time, or the votes of too few of them count. The text names each of these servers."""


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
    return RedlockError(text, status)


def c_text(text: object) -> str:
    """Returns a C string as str."""
    return str(ffi.string(text).decode("utf-8", "replace"))
