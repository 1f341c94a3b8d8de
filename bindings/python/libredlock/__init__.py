# SPDX-License-Identifier: MIT
"""Locks on a majority of independent Redis servers.

    client = libredlock.Client("a:6379,b:6379,c:6379")
    with client.lock("invoice:42", timeout=10, blocking_timeout=5) as lock:
        lock.check(margin=0.5)
        bill(42)

The interface is that of redis-py's Lock; README.md lists the differences.
"""

from ._asyncio import AsyncLock
from ._client import Client
from ._errors import LockError, LockNotOwnedError, NoQuorumError, RedlockError
from ._lock import Lock
from ._redlock import ffi as _ffi
from ._redlock import lib as _lib
from ._statistics import Inspection, ServerKey, Waiter

__version__ = _ffi.string(_lib.redlock_version_string()).decode()  # of the library that is loaded

__all__ = [
    "AsyncLock",
    "Client",
    "Inspection",
    "Lock",
    "LockError",
    "LockNotOwnedError",
    "NoQuorumError",
    "RedlockError",
    "ServerKey",
    "Waiter",
]
