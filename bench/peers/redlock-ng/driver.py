# SPDX-License-Identifier: MIT
"""redlock-ng as a driver: see ../README.md.

Settings: AsyncRedlock, the one of its two classes that sends requests to all servers at once, as in its documentation, with its
default time limits (100 ms for each server) and retries (3, after 100 to 300 ms). One manager for all callers. Over TLS
redis-py 5 verifies names only on request."""

import asyncio
import sys

from redis.exceptions import RedisError
from redlock import AsyncRedlock, RedlockConfig

from closed_loop import Task, now, run_async


class Caller:
    def __init__(self, task, manager, number):
        self.manager, self.name, self.ttl_ms = manager, task.name(number), task.ttl_ms
        self.lock = None

    async def acquire(self, _end):
        self.lock = await self.manager.acquire(self.name, self.ttl_ms)
        return None if self.lock is None else now() + self.lock.validity * 1000000

    async def release(self):
        await self.manager.release(self.lock)


async def connect(instance):
    """Waits until a server replies: the time limit is short for a machine that is busy with the start of processes."""
    for left in reversed(range(50)):
        try:
            return await instance.ping()
        except RedisError:
            if left == 0:
                raise


async def main():
    task = Task(sys.argv[1:])
    masters = [f"{url}?ssl_check_hostname=True" if url.startswith("rediss:") else url for url in task.servers]
    manager = AsyncRedlock(RedlockConfig(masters=masters))
    for instance in manager.client.instances:
        await connect(instance)
    await run_async(task, [Caller(task, manager, number) for number in task.callers])


asyncio.run(main())
