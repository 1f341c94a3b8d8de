# SPDX-License-Identifier: MIT
"""What the other modules need of the C library: times, strings, reports, and started calls."""

from __future__ import annotations

import asyncio
import select
from operator import index
from typing import Any, Callable, Optional, Union

from ._errors import c_text, error
from ._redlock import ffi, lib

FOREVER = 2**64 - 1  # as wait_ms: no time limit
Seconds = Union[int, float]


def milliseconds(seconds: Seconds) -> int:
    """Returns a duration for the library. Negative ones are refused, and so is what is no number."""
    if not 0 <= seconds < 2**53:
        raise ValueError(f"not a duration in seconds: {seconds}")
    return int(seconds * 1000)


def short_milliseconds(seconds: Seconds) -> int:
    """Returns a duration for a function of the library that takes 32 bits, which refuses more than a minute itself."""
    return min(milliseconds(seconds), 2**32 - 1)


def number(value: int, what: str, bits: int = 32) -> int:
    """Returns a number for the library, which has so many bits for it. Raises TypeError for what is no number."""
    if not 0 <= index(value) < 2**bits:
        raise ValueError(f"{what} is {value}, but must be from 0 to {2**bits - 1}")
    return index(value)


def c_string(value: Union[str, bytes], what: str) -> bytes:
    """Returns the bytes of a string for the library. Raises TypeError for anything else: bytes() would make a number into
    so many bytes, and a list of numbers into a string."""
    if not isinstance(value, (str, bytes, bytearray, memoryview)):
        raise TypeError(f"{what} must be str or bytes, not {type(value).__name__}")
    data = value.encode() if isinstance(value, str) else bytes(value)
    if b"\0" in data:
        raise ValueError(f"{what} contains NUL")
    return data


def check(status: int, text: str = "", lock_name: Optional[str] = None) -> int:
    """Raises the exception for a negative status. Returns any other one."""
    if status < 0:
        raise error(status, text, lock_name)
    return status


class Report:
    """The report of a call, which `address` receives (redlock_report_t **)."""

    def __init__(self, report: Any = ffi.NULL) -> None:
        self.address = ffi.new("redlock_report_t **", report)

    def text(self) -> str:
        """Returns its line; "" if there is no report."""
        return str(ffi.string(lib.redlock_report_text(self.address[0])).decode("utf-8", "replace"))

    def state(self) -> int:
        """Returns the state that an inspection found."""
        info = ffi.new("redlock_report_info_t *")
        check(lib.redlock_report_get_info(self.address[0], info, ffi.sizeof("redlock_report_info_t")))
        return int(info.state)

    def free(self) -> None:
        """Frees the report."""
        lib.redlock_report_free(self.address[0])
        self.address[0] = ffi.NULL


class Operation:
    """A started call. A call that is not waited for goes on; a lock that it acquires is released again."""

    def __init__(self, acquires: bool = False) -> None:
        native = lib.operation_new(acquires)
        if native == ffi.NULL:
            raise error(lib.REDLOCK_ENOMEM)
        self._native = ffi.gc(native, lib.operation_unref)

    def start(self, call: Callable[[Any, Any], int], lock_name: Optional[str] = None) -> None:
        """Starts the call. call: takes function and userdata of a _start function, and returns its status."""
        lib.operation_ref(self._native)
        lib.refusal_forget()
        status = call(ffi.addressof(lib, "operation_done"), self._native)
        if status != lib.REDLOCK_OK:
            lib.operation_unref(self._native)
        text = c_text(lib.refusal_text()).removeprefix("refused: ") if status == lib.REDLOCK_EINVAL else ""
        check(status, text, lock_name)

    def wait(self) -> int:
        """Blocks until the call has ended, and returns its status. Handlers of signals run meanwhile."""
        poll = select.poll()
        poll.register(self._native.fd, select.POLLIN)
        poll.poll()
        return self.status()

    async def wait_async(self) -> int:
        """Waits in the running event loop until the call has ended, and returns its status."""
        await readable(self._native.fd)
        return self.status()

    def status(self) -> int:
        """Returns the status of a call that has ended."""
        return int(self._native.status)

    def text(self) -> str:
        """Returns the line of the report of a call that has ended."""
        return Report(self._native.report).text()

    def state(self) -> int:
        """Returns the state that an inspection found."""
        return Report(self._native.report).state()

    def take_lock(self) -> Any:
        """Returns the lock that the call has acquired."""
        return lib.operation_take_lock(self._native)


async def readable(fd: int) -> None:
    """Waits in the running event loop until a descriptor is readable."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()

    def wake() -> None:
        """Ends the wait."""
        if not future.done():
            future.set_result(None)

    loop.add_reader(fd, wake)
    try:
        await future
    finally:
        loop.remove_reader(fd)
