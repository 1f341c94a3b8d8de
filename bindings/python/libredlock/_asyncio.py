# SPDX-License-Identifier: MIT
"""AsyncLock, with the interface of redis.asyncio's Lock."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Callable, Optional, Type

from ._errors import LockNotOwnedError, NoQuorumError, RedlockError
from ._lock import Held, LockBase, Name, Request, new_cancel
from ._native import Operation, Seconds, check, milliseconds, readable
from ._redlock import ffi, lib


class AsyncLock(LockBase):
    """A lock on a majority of the servers for asyncio, with the interface of redis.asyncio's Lock. No call blocks the
    event loop: a thread of the library does the work, and wakes up the loop through a descriptor."""

    async def acquire(
        self,
        blocking: Optional[bool] = None,
        blocking_timeout: Optional[Seconds] = None,
        token: Optional[Name] = None,
    ) -> bool:
        """Acquires the lock as Lock.acquire() does. If the task is cancelled, the lock is not acquired."""
        wait_ms = self._wait_ms(blocking, blocking_timeout, token)
        client = self.client.native
        with self._acquiring():
            cancel = new_cancel(client)
            request = Request(self, wait_ms, token, cancel)
            return await self._obtain(
                client, cancel, lambda fn, data: lib.redlock_acquire_start(client, self.names[0], request.opts, fn, data)
            )

    async def _obtain(self, client: Any, cancel: Any, start: Callable[[Any, Any], int]) -> bool:
        """Starts a call that delivers a lock, and waits for it. cancel: ends the call if the task is cancelled."""
        operation = Operation(acquires=True)
        operation.start(start, self._label)
        try:
            status = await operation.wait_async()
        except BaseException:
            lib.redlock_cancel_trigger(cancel)
            raise
        return self._acquired(status, operation.take_lock(), operation.text(), client)

    async def adopt(self, token: Name, fence: int = 0) -> None:
        """Takes over a lock by its token as Lock.adopt() does."""
        client = self.client.native
        value = self._adoption(token)
        with self._acquiring():
            cancel = new_cancel(client)
            request = Request(self, self._wait_ms(None, None, None), None, cancel, fence)
            await self._obtain(
                client, cancel, lambda fn, data: lib.redlock_adopt_start(client, self.names[0], value, request.opts, fn, data)
            )

    async def _call(self, start: Callable[[Any, Any], int], held: Optional[Held] = None) -> Operation:
        """Starts a call and waits for it. held: kept alive meanwhile. Returns the operation that has ended."""
        operation = Operation()
        operation.start(start, self._label)
        await operation.wait_async()
        del held
        return operation

    async def release(self) -> None:
        """Releases the lock as Lock.release() does."""
        held = self._give_up()
        done = await self._call(lambda fn, data: lib.redlock_release_start(held.handle, fn, data), held)
        check(done.status(), done.text(), self._label)

    async def release_after(self, delay: Seconds) -> None:
        """Releases the lock as Lock.release_after() does."""
        delay_ms = milliseconds(delay)
        with self._giving_up() as held:
            done = await self._call(lambda fn, data: lib.redlock_release_after_start(held.handle, delay_ms, fn, data), held)
        check(done.status(), done.text(), self._label)

    async def extend(self, additional_time: Seconds, replace_ttl: bool = False) -> bool:
        """Extends the lock as Lock.extend() does."""
        held = self._fixed("extend")
        return await self._extend(held, self._extended_ms(held, additional_time, replace_ttl))

    async def reacquire(self) -> bool:
        """Makes the time that the lock is valid at least its timeout, as Lock.reacquire() does."""
        return await self._extend(self._fixed("reacquire"), 0)

    async def _extend(self, held: Held, ttl_ms: int) -> bool:
        """Extends the lock, and verifies it as Lock._extend() does."""
        done = await self._call(lambda fn, data: lib.redlock_extend_start(held.handle, ttl_ms, fn, data), held)
        try:
            check(done.status(), done.text(), self._label)
        except NoQuorumError:
            if not await self.owned():
                raise LockNotOwnedError("The lock is not held any more", self._label, lib.REDLOCK_ELOST) from None
            raise
        return True

    async def owned(self) -> bool:
        """Asks the servers whether this object holds the lock."""
        held = self.local.held
        if held is None:
            return False
        handle = held.handle
        try:
            done = await self._call(lambda fn, data: lib.redlock_verify_start(handle, ffi.NULL, fn, data), held)
        except LockNotOwnedError:
            return False
        return self._is_owned(done.status(), done.text())

    async def locked(self) -> bool:
        """Asks the servers whether any client holds the lock; of a semaphore, whether all permits are held."""
        names, every = self._inspected()
        found = [await self._state(name) != lib.REDLOCK_STATE_FREE for name in names]
        return all(found) if every else any(found)

    async def _state(self, name: bytes) -> int:
        """Returns the state of one key."""
        client = self.client.native
        done = await self._call(lambda fn, data: lib.redlock_inspect_start(client, name, ffi.NULL, fn, data))
        check(done.status(), done.text(), self._label)
        return done.state()

    async def wait_lost(self) -> None:
        """Waits until the lock is lost. A release does not end the wait: cancel it before."""
        held = self._held("watch")
        await readable(check(int(lib.redlock_lock_fd(held.handle))))

    async def __aenter__(self) -> "AsyncLock":
        self._enter(await self.acquire())
        return self

    async def __aexit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                        traceback: Optional[TracebackType]) -> None:  # fmt: skip
        self._leave()
        try:
            await self.release()
        except RedlockError as failure:
            self._not_released(failure, value)
