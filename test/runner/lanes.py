# SPDX-License-Identifier: MIT
"""Two queues of jobs for a small machine: programs that mostly wait, and jobs that mostly compute.

Tests with servers and deadlines spend most of their time waiting; compilers, the simulator and valgrind
want a core each. Run one after the other, the machine would idle for most of the first half. So both run
at once, and jobs that compute run with `nice`, so that they take the time that tests with deadlines leave.
Jobs start in the order of their rank; jobs of one rank in the order in which they were added.
"""

import heapq
import itertools
import threading

WAITING = "waiting"  # real servers, scripted peers, deadlines
COMPUTING = "computing"  # compilers, exhaustive walks, valgrind

# A waiting program, with its servers, uses about a seventh of a core.
SLOTS = {WAITING: 6, COMPUTING: 2}
SPARE_SLOTS = 3  # more slots of WAITING while nothing computes, or is queued for it
NICENESS = {WAITING: 0, COMPUTING: 10}
COMPILER_NICENESS = 5  # before tests that compute, because tests that wait need what is compiled


class Lanes:
    """The two queues. Jobs may add jobs. run() returns when all are done, or raises what a job raised."""

    def __init__(self):
        """Makes two empty queues."""
        self.changed = threading.Condition()
        self.ready = {lane: [] for lane in SLOTS}
        self.busy = {lane: 0 for lane in SLOTS}
        self.order = itertools.count()
        self.error = None

    def add(self, lane, rank, job, *arguments):
        """Appends a job to a lane: a function with its arguments. Smaller ranks start earlier."""
        with self.changed:
            heapq.heappush(self.ready[lane], (rank, next(self.order), job, arguments))
            self.changed.notify_all()

    def may_start(self, lane):
        """Returns whether the lane has a job and a free slot, and no job has failed."""
        nothing_computes = self.busy[COMPUTING] == 0 and not self.ready[COMPUTING]
        slots = SLOTS[lane] + (SPARE_SLOTS if lane == WAITING and nothing_computes else 0)
        return bool(self.ready[lane]) and self.busy[lane] < slots and self.error is None

    def is_over(self):
        """Returns whether nothing runs, and nothing is left or a job has failed."""
        idle = all(count == 0 for count in self.busy.values())
        return idle and (self.error is not None or not any(self.ready.values()))

    def work(self, lane, job, arguments):
        """Runs one job on a thread of its own, and keeps its exception for run()."""
        error = None
        try:
            job(*arguments)
        except BaseException as caught:  # run() raises it
            error = caught
        with self.changed:
            self.busy[lane] -= 1
            self.error = self.error or error
            self.changed.notify_all()

    def run(self):
        """Starts jobs until all are done. Raises the first exception of a job once the running jobs have ended."""
        with self.changed:
            while not self.is_over():
                started = False
                for lane in SLOTS:
                    if self.may_start(lane):
                        _, _, job, arguments = heapq.heappop(self.ready[lane])
                        self.busy[lane] += 1
                        threading.Thread(target=self.work, args=(lane, job, arguments), daemon=True).start()
                        started = True
                if not started:
                    self.changed.wait()
        if self.error is not None:
            raise self.error
