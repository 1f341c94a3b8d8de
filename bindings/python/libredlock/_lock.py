# SPDX-License-Identifier: MIT
"""Lock, with the interface of redis-py's Lock, and what AsyncLock shares with it."""

from __future__ import annotations

import asyncio
import logging
import threading
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Callable, Iterator, List, Optional, Sequence, Tuple, Type, Union

from ._client import Client
from ._errors import LockError, LockNotOwnedError, NoQuorumError, RedlockError, error
from ._native import FOREVER, Operation, Report, Seconds, c_string, check, milliseconds, number
from ._redlock import ffi, lib

logger = logging.getLogger("libredlock")

Name = Union[str, bytes]


class Held:
    """A lock that was acquired. The client must live as long as calls on the lock run."""

    def __init__(self, handle: Any, client: Any) -> None:
        self.handle = ffi.gc(handle, lib.redlock_lock_free)
        self.client = client

    def token(self) -> bytes:
        """Returns the value of its keys."""
        return bytes(ffi.string(lib.redlock_lock_token(self.handle)))


class Local:
    """What a Lock holds, for all threads: token and held are None if it holds nothing.

    user: the task or thread that may acquire through the object; None: any. It is set from the begin of an acquisition
    until the lock is given up, and the block left that the acquisition began (in_block). So no task gives up the lock of
    another one, not even if it is late and has lost its own."""

    token: Optional[bytes] = None
    held: Optional[Held] = None
    user: object = None
    in_block: bool = False


class ThreadLocal(threading.local, Local):
    """The same, for each thread of its own."""


class Request:
    """The options of one acquisition, or of an adoption, and what they point to."""

    def __init__(self, lock: "LockBase", wait_ms: int, token: Optional[Name], cancel: Any = ffi.NULL, fence: int = 0) -> None:
        self.opts = ffi.new("redlock_opts_t *")
        ttl_ms = milliseconds(lock.timeout or lock.client.default_timeout)
        check(lib.redlock_opts_init(self.opts, ffi.sizeof("redlock_opts_t"), ttl_ms))
        self._also = [ffi.new("char[]", name) for name in lock.names[1:]]
        self._pointers = ffi.new("char *[]", self._also)
        self._token = ffi.new("char[]", c_string(token, "the token")) if token is not None else ffi.NULL
        self._cancel = cancel
        self.opts.wait_ms = wait_ms
        self.opts.flags = (lib.REDLOCK_FLAG_AUTO_EXTEND if lock.auto_extend else 0) | (
            lib.REDLOCK_FLAG_FENCE if lock.with_fence else 0
        )
        self.opts.also = ffi.cast("const char *const *", self._pointers) if self._also else ffi.NULL
        self.opts.also_count = len(self._also)
        self.opts.kind = lib.REDLOCK_KIND_PERMIT if lock.permits else 0
        self.opts.permits = number(lock.permits, "permits")
        self.opts.token = self._token
        self.opts.cancel = cancel
        self.opts.fence = number(fence, "fence", 64)


class LockBase:
    """The state of a Lock or AsyncLock, and the calls that ask no server."""

    def __init__(
        self,
        client: Client,
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
    ) -> None:
        """Creates a lock that is not acquired yet. Times are in seconds.

        timeout: TTL of the lock; it expires then, unless it is extended. None: it is held until release(): the TTL is
            the client's default_timeout, and the library extends the lock while the process runs.
        sleep: accepted for redis-py's sake, without effect: the library has notifications and random delays.
        blocking, blocking_timeout: defaults of acquire().
        thread_local: whether only the thread that acquired the lock may release it through this object.
        raise_on_release_error: whether leaving a `with` block raises if the lock was lost or released in it.
        also: further names, acquired together with the first, all or none.
        permits: not 0: acquires one of so many permits of a semaphore with this name.
        fence: whether the lock gets a fencing token.
        auto_extend: whether the library extends the lock while it is held; None: if there is no timeout.
        """
        self.client = client
        self.name = name
        self.timeout = timeout
        self.sleep = sleep
        self.blocking = blocking
        self.blocking_timeout = blocking_timeout
        self.thread_local = bool(thread_local)
        self.raise_on_release_error = raise_on_release_error
        self.permits = permits
        self.with_fence = fence
        self.auto_extend = not timeout if auto_extend is None else auto_extend
        if isinstance(also, (str, bytes, bytearray, memoryview)):
            raise TypeError(f"also must be a list of names, not {type(also).__name__}")
        self.names = [c_string(each, "the name") for each in (name, *also)]
        self.local: Union[Local, ThreadLocal] = ThreadLocal() if self.thread_local else Local()
        self.reason = ""  # why the last acquisition failed: the line of its report

    @property
    def _label(self) -> str:
        """The name as text, for exceptions."""
        return self.names[0].decode("utf-8", "replace")

    def _wait_ms(self, blocking: Optional[bool], blocking_timeout: Optional[Seconds], token: Optional[Name]) -> int:
        """Returns the time limit of an acquisition."""
        limit = self.blocking_timeout if blocking_timeout is None else blocking_timeout
        wait_ms = FOREVER if limit is None else milliseconds(limit)
        if not (self.blocking if blocking is None else blocking):
            wait_ms = 0
        if token is not None and wait_ms != 0:
            raise LockError("A token of the caller is for one attempt: pass blocking=False", self._label)
        return wait_ms

    @contextmanager
    def _acquiring(self) -> Iterator[None]:
        """Has the caller be the one that acquires through this object, and stay so if it acquires. Raises LockError if
        another task or thread is."""
        caller = current()
        if self.local.user not in (None, caller):
            raise LockError("This object holds the lock for another task or thread, or acquires it there: release it "
                            "there, or use an object for each", self._label)  # fmt: skip
        self.local.user = caller
        try:
            yield
        finally:
            self._free()

    def _free(self) -> None:
        """Lets any task or thread acquire through this object, unless it holds a lock or is in its block."""
        if self.local.held is None and not self.local.in_block:
            self.local.user = None

    def _acquired(self, status: int, handle: Any, text: str, client: Any) -> bool:
        """Keeps the lock of an acquisition that was successful. Returns False if another client holds it."""
        self.reason = "" if status == lib.REDLOCK_OK else text
        if status == lib.REDLOCK_ECONTENDED:
            return False
        check(status, text, self._label)
        held = Held(handle, client)
        self.local.held, self.local.token = held, held.token()
        return True

    def _adoption(self, token: Name) -> bytes:
        """Returns a token to adopt. Raises LockError if this object is for a permit, whose slot has a name of its own."""
        if self.permits:
            raise LockError("A permit is adopted by the name of its slot, slot_name, without `permits`", self._label)
        return c_string(token, "the token")

    def _held(self, verb: str) -> Held:
        """Returns the lock. Raises LockError if it was not acquired."""
        held = self.local.held
        if held is None:
            raise LockError(f"Cannot {verb} a lock that's not owned or is already unlocked", self._label)
        return held

    def _give_up(self) -> Held:
        """Returns the lock, which this object does not hold from now on."""
        held = self._held("release")
        self.local.held = self.local.token = None
        self._free()
        return held

    @contextmanager
    def _giving_up(self) -> Iterator[Held]:
        """Gives the lock up for a call that releases it. If the call is refused, the object goes on holding the lock."""
        user, held = self.local.user, self._give_up()
        try:
            yield held
        except RedlockError as failure:
            if failure.code == lib.REDLOCK_EINVAL:
                self.local.user, self.local.held, self.local.token = user, held, held.token()
            raise

    def _extended_ms(self, held: Held, additional_time: Seconds, replace_ttl: bool) -> int:
        """Returns the new TTL for an extension."""
        left_ms = 0 if replace_ttl else int(lib.redlock_lock_remaining_ms(held.handle))
        return max(1, left_ms + milliseconds(additional_time))  # 0 would be the TTL of the acquisition

    def _fixed(self, verb: str) -> Held:
        """Returns the lock. Raises LockError if it was not acquired, or has no timeout."""
        held = self._held(verb)
        if self.timeout is None:
            raise LockError(f"Cannot {verb} a lock with no timeout", self._label)
        return held

    def _is_owned(self, status: int, text: str) -> bool:
        """Returns what a verification has found."""
        if status in (lib.REDLOCK_ELOST, lib.REDLOCK_EFORKED):
            return False
        check(status, text, self._label)
        return True

    def _inspected(self) -> Tuple[List[bytes], bool]:
        """Returns the names of the keys of this lock, and whether all of them, not just any, must be there."""
        if not self.permits:
            return self.names, False
        return [slot_name(self.names[0], slot) for slot in range(self.permits)], True

    def _enter(self, acquired: bool) -> None:
        """Begins a `with` block. Raises LockError if the lock was not acquired."""
        if not acquired:
            raise LockError(f"Unable to acquire lock within the time specified: {self.reason}", self._label)
        self.local.in_block = True

    def _leave(self) -> None:
        """Ends a `with` block, before its lock is released."""
        self.local.in_block = False
        self._free()

    def _not_released(self, failure: RedlockError, in_flight: Optional[BaseException]) -> None:
        """Decides what a release that failed means at the end of a `with` block. An exception that is in flight stays: it
        may be what cancels the task, or ends the process."""
        is_warning = isinstance(failure, NoQuorumError) or (isinstance(failure, LockError) and not self.raise_on_release_error)
        if in_flight is None and not is_warning:
            raise failure
        logger.warning("%s was not released at the end of its block: %s", self._label, failure)

    def check(self, margin: Seconds = 0) -> None:
        """Raises LockNotOwnedError unless the lock is held for at least `margin` seconds more. It reads the clocks and
        asks no server. To be called right before each effect that must not happen twice."""
        held = self.local.held
        status = lib.REDLOCK_ELOST
        if held is not None:
            status = lib.redlock_lock_check(held.handle, milliseconds(margin))
        if status != lib.REDLOCK_OK:
            raise LockNotOwnedError("The lock is not held for that long", self._label, status)

    @property
    def remaining(self) -> float:
        """Seconds for which the lock may still be relied on; 0 if it is not held."""
        held = self.local.held
        return 0.0 if held is None else int(lib.redlock_lock_remaining_ms(held.handle)) / 1000

    @property
    def fence(self) -> int:
        """The fencing token: larger than that of every earlier holder. For a lock that was created with fence=True."""
        return int(lib.redlock_lock_fence(self._held("read the fencing token of").handle))

    @property
    def slot(self) -> int:
        """The slot of a permit, from 0 on."""
        return check(int(lib.redlock_lock_slot(self._held("read the slot of").handle)))

    @property
    def slot_name(self) -> str:
        """The name of the slot of a permit, "name{#0}" and so on: under it the permit is adopted, inspected and broken."""
        return slot_name(self.names[0], self.slot).decode("utf-8", "surrogateescape")

    def detach(self) -> bytes:
        """Ends the use of the lock without releasing it: its keys stay until they expire. Returns its token, with which
        adopt() takes the lock over."""
        held = self._held("detach")
        token = held.token()
        check(lib.redlock_lock_detach(held.handle), lock_name=self._label)
        self._give_up()
        return token

    def fileno(self) -> int:
        """Returns a descriptor that becomes readable when the lock is lost, for select() and the like. It is closed when
        the lock is released."""
        return check(int(lib.redlock_lock_fd(self._held("watch").handle)))


class Lock(LockBase):
    """A lock on a majority of the servers, with the interface of redis-py's Lock. README.md lists the differences."""

    def acquire(
        self,
        sleep: Optional[Seconds] = None,
        blocking: Optional[bool] = None,
        blocking_timeout: Optional[Seconds] = None,
        token: Optional[Name] = None,
    ) -> bool:
        """Acquires the lock and returns True, or returns False if another client holds it, also at the time limit.
        Raises NoQuorumError if too few servers reply.

        sleep: without effect. blocking: whether to wait. blocking_timeout: time limit in seconds; None: none.
        token: the value of the keys instead of a random one; never used before, and with blocking=False.
        A signal handler that raises, such as that of Ctrl-C, ends the wait."""
        wait_ms = self._wait_ms(blocking, blocking_timeout, token)
        client = self.client.native
        with self._acquiring():
            if wait_ms == 0:
                return self._acquire_once(client, token)
            cancel = new_cancel(client)
            request = Request(self, wait_ms, token, cancel)
            return self._obtain(client, cancel, lambda fn, data: lib.redlock_acquire_start(client, self.names[0], request.opts, fn, data))

    def _obtain(self, client: Any, cancel: Any, start: Callable[[Any, Any], int]) -> bool:
        """Starts a call that delivers a lock, and waits for it. cancel: ends the call if a signal handler raises."""
        operation = Operation(acquires=True)
        operation.start(start, self._label)
        try:
            status = operation.wait()
        except BaseException:
            lib.redlock_cancel_trigger(cancel)
            raise
        return self._acquired(status, operation.take_lock(), operation.text(), client)

    def adopt(self, token: Name, fence: int = 0) -> None:
        """Takes over, by its token, a lock that another client or process acquired (detach()): extends it by the timeout,
        and holds it from then on. fence: its fencing token, if this object was created with fence=True. Raises
        LockNotOwnedError if no majority has the lock with this token."""
        client = self.client.native
        value = self._adoption(token)
        with self._acquiring():
            cancel = new_cancel(client)
            request = Request(self, self._wait_ms(None, None, None), None, cancel, fence)
            self._obtain(client, cancel, lambda fn, data: lib.redlock_adopt_start(client, self.names[0], value, request.opts, fn, data))

    def _acquire_once(self, client: Any, token: Optional[Name]) -> bool:
        """Makes one attempt."""
        request = Request(self, 0, token)
        handle, report = ffi.new("redlock_lock_t **"), Report()
        status = lib.redlock_acquire(client, self.names[0], request.opts, handle, report.address)
        return self._acquired(status, handle[0], report_text(report), client)

    def release(self) -> None:
        """Releases the lock. Raises LockError if it was not acquired, LockNotOwnedError if it was lost before, and
        NoQuorumError if too few servers confirm the release; then its keys stay until they expire."""
        held = self._give_up()
        self._call(lib.redlock_release, held)

    def release_after(self, delay: Seconds) -> None:
        """Releases the lock, but its keys stay for `delay` seconds without a holder. Raises as release() does."""
        delay_ms = milliseconds(delay)
        with self._giving_up() as held:
            self._call(lib.redlock_release_after, held, delay_ms)

    def extend(self, additional_time: Seconds, replace_ttl: bool = False) -> bool:
        """Adds seconds to the time that the lock is valid. replace_ttl: makes that time at least additional_time
        instead; unlike in redis-py, it never becomes shorter. Returns True. Raises LockError if the lock was not
        acquired or has no timeout, and LockNotOwnedError if it is not held any more."""
        held = self._fixed("extend")
        return self._extend(held, self._extended_ms(held, additional_time, replace_ttl))

    def reacquire(self) -> bool:
        """Makes the time that the lock is valid at least its timeout; unlike in redis-py, it never becomes shorter.
        Returns True. Raises as extend() does."""
        return self._extend(self._fixed("reacquire"), 0)

    def _extend(self, held: Held, ttl_ms: int) -> bool:
        """Extends the lock. An extension fails with ENOQUORUM as soon as it cannot succeed. If the reason is that the
        lock is lost, a verification proves it."""
        try:
            self._call(lib.redlock_extend, held, ttl_ms)
        except NoQuorumError:
            if not self.owned():
                raise LockNotOwnedError("The lock is not held any more", self._label, lib.REDLOCK_ELOST) from None
            raise
        return True

    def _call(self, function: Any, held: Held, *arguments: Any) -> None:
        """Calls a blocking function on the lock. Raises if it fails."""
        report = Report()
        status = function(held.handle, *arguments, report.address)
        check(status, report_text(report), self._label)

    def owned(self) -> bool:
        """Asks the servers whether this object holds the lock."""
        held = self.local.held
        if held is None:
            return False
        report = Report()
        status = lib.redlock_verify(held.handle, report.address)
        return self._is_owned(status, report_text(report))

    def locked(self) -> bool:
        """Asks the servers whether any client holds the lock; of a semaphore, whether all permits are held."""
        names, every = self._inspected()
        found = (self._state(name) != lib.REDLOCK_STATE_FREE for name in names)
        return all(found) if every else any(found)

    def _state(self, name: bytes) -> int:
        """Returns the state of one key."""
        report = Report()
        status = lib.redlock_inspect(self.client.native, name, report.address)
        try:
            check(status, report.text(), self._label)
            return report.state()
        finally:
            report.free()

    def __enter__(self) -> "Lock":
        self._enter(self.acquire())
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> None:  # fmt: skip
        self._leave()
        try:
            self.release()
        except RedlockError as failure:
            self._not_released(failure, value)


def current() -> object:
    """Returns what tells callers apart: the task that runs, or the number of the thread outside of event loops."""
    try:
        return asyncio.current_task() or threading.get_ident()
    except RuntimeError:
        return threading.get_ident()


def slot_name(name: bytes, slot: int) -> bytes:
    """Returns the name of a slot of a semaphore."""
    size = lib.REDLOCK_RESOURCE_LEN_MAX + 1
    buffer = ffi.new("char[]", size)
    check(lib.redlock_slot_name(buffer, size, name, slot), f"the name with {{#{slot}}} behind it is too long, or permits too large")
    return bytes(ffi.string(buffer))


def report_text(report: Report) -> str:
    """Returns the line of a report and frees the report."""
    text = report.text()
    report.free()
    return text


def new_cancel(client: Any) -> Any:
    """Creates a cancel for one acquisition."""
    cancel = ffi.new("redlock_cancel_t **")
    status = lib.redlock_cancel_new(cancel, client)
    if status != lib.REDLOCK_OK:
        raise error(status)
    return ffi.gc(cancel[0], lib.redlock_cancel_free)
