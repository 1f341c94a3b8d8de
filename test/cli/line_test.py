# SPDX-License-Identifier: MIT
"""Commands that wait in a line: whichever way such a command ends, it leaves the line. world.Case starts five servers for
the class and empties them before each test. redlock() runs the command and returns its result; start() only starts it;
until() waits for a condition."""

import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import tapcase  # noqa: E402
from world import TIME_LIMIT, Case, until  # noqa: E402

LINE = b"w{#q}"  # the key of the line of the resource w


class Line(Case):
    """One or more commands wait for a lock that another holder has. A record that is left would expire after ten
    seconds, and the server would count it."""

    def setUp(self):
        super().setUp()
        self.servers.command_all("SET", "w", "another holder")
        self.servers.command_all("CONFIG", "RESETSTAT")

    def waiters(self):
        """Returns the number of waiters in the lines of all servers. One that has moved to the line of another server,
        because the first one was late to reply, has a record in both, with the same id."""
        return len({record.split(b" ", 1)[0] for line in self.servers.values(LINE) for record in line.split(b"\n")[1:-1]})

    def wait_until_left(self):
        """Waits until no line has a record. Fails if one has expired."""
        until(lambda: LINE not in self.servers.keys(), "all waiters have left")
        for text in self.servers.command_all("INFO", "stats"):
            self.assertIn(b"expired_keys:0\r\n", text)

    def test_signals(self):
        """Each signal that ends a waiting `run` or `acquire`."""
        for sig in signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT:
            for words in ("run", "w", "--", "true"), ("acquire", "-w", "60s", "w"):
                with self.subTest(signal=sig, command=words[0]):
                    self.servers.command_all("CONFIG", "RESETSTAT")
                    process = self.start(*words)
                    until(lambda: self.waiters() == 1, "the command is in the line")
                    process.send_signal(sig)
                    self.assertIn(process.wait(TIME_LIMIT), (128 + sig, -sig))
                    self.wait_until_left()

    def test_wait_budget(self):
        """The wait budget ends, long and short. A short one may end before a busy machine has read the replies."""
        for budget, codes in ("1s", [75]), ("300ms", [69, 75]), ("20ms", [69, 75]):
            with self.subTest(budget=budget):
                self.assertIn(self.redlock("run", "-w", budget, "w", "--", "true").returncode, codes)
                self.wait_until_left()

    def test_one_of_several(self):
        """One of three waiters is interrupted: the others stay and get the lock."""
        processes = []
        for number in range(3):
            processes.append(self.start("run", "w", "--", "echo", "-n", str(number)))
            until(lambda: self.waiters() == len(processes), "the command is in the line")
        processes[0].send_signal(signal.SIGTERM)
        processes[0].wait(TIME_LIMIT)
        until(lambda: self.waiters() == 2, "the interrupted command has left")
        self.servers.command_all("DEL", "w")
        for process in processes[1:]:
            self.assertEqual(process.wait(TIME_LIMIT), 0)
        self.wait_until_left()

    def wait_for_all(self, fault):
        """Starts five waiters. Does `fault` with the first one, which is the head, and frees the lock: the commands of
        the others run one at a time. Returns the first one, and the path of their log."""
        log = self.path("log", "")
        script = f"echo in >> {log}; echo out >> {log}"
        processes = []
        for count in range(1, 6):
            processes.append(self.start("run", "w", "-c", script))
            until(lambda count=count: self.waiters() >= count, "the command is in a line")
        fault(processes[0])
        self.servers.command_all("DEL", "w")
        for process in processes[1:]:
            self.assertEqual(process.wait(TIME_LIMIT), 0)
        return processes[0], log

    def check_log(self, path, count):
        """Checks that `count` commands have run, one at a time, and that nothing is left."""
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), "in\nout\n" * count)
        until(lambda: self.servers.keys() == set(), "no key is left")

    def test_the_head_is_killed(self):
        """The process of the head is killed (SIGKILL) when the lock becomes free."""
        _, log = self.wait_for_all(lambda head: head.kill())
        self.check_log(log, 4)

    def test_the_head_is_stopped(self):
        """The process of the head is stopped (SIGSTOP) when the lock becomes free. It gets the lock when it continues."""
        head, log = self.wait_for_all(lambda head: head.send_signal(signal.SIGSTOP))
        head.send_signal(signal.SIGCONT)
        self.assertEqual(head.wait(TIME_LIMIT), 0)
        self.check_log(log, 5)

    def test_the_holder_is_killed(self):
        """A head that has just got the lock is killed: the next one gets the lock when the key expires."""
        log = self.path("log", "")
        process = self.start("run", "-t", "1s", "w", "--", "sleep", "600")
        until(lambda: self.waiters() == 1, "the command is in a line")
        waiters = [self.start("run", "w", "-c", f"echo in >> {log}; echo out >> {log}") for _ in range(2)]
        until(lambda: self.waiters() == 3, "the others are in a line")
        self.servers.command_all("DEL", "w")
        until(lambda: len(self.servers.values("w")) >= 3, "the lock is held")
        process.kill()
        for waiter in waiters:
            self.assertEqual(waiter.wait(TIME_LIMIT), 0)
        self.check_log(log, 2)


if __name__ == "__main__":
    tapcase.main()
