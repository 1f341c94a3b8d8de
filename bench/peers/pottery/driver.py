# SPDX-License-Identifier: MIT
"""pottery's Redlock as a driver: see ../README.md.

Settings: masters with socket_timeout=1, as in all examples of its documentation; auto_release_time is the time to
live; acquire() with a timeout and the default retries (after up to 200 ms). All callers share one Redis client for
each server; each caller has a Redlock. The threaded class, which continues when a majority has replied; the asyncio
class waits for all servers."""

import logging
import sys

from pottery import Redlock
from redis import Redis

from closed_loop import Task, now, run_threads


class Caller:
    def __init__(self, task, masters, number):
        self.ttl_ns = task.ttl_ms * 1000000
        self.lock = Redlock(key=task.name(number), masters=masters, auto_release_time=task.ttl_ms / 1000)

    def acquire(self, end):
        start = now()
        if not self.lock.acquire(timeout=max(0.001, (end - start) / 1e9)):
            return None
        # The library does not report a deadline. This is a lower bound.
        return max(start + self.ttl_ns, now())

    def release(self):
        self.lock.release()


def main():
    logging.disable(logging.CRITICAL)
    task = Task(sys.argv[1:])
    masters = frozenset(Redis.from_url(url, socket_timeout=1) for url in task.servers)
    for master in masters:
        master.ping()
    run_threads(task, [Caller(task, masters, number) for number in task.callers])


main()
