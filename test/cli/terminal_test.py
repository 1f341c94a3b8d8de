# SPDX-License-Identifier: MIT
"""On a terminal: the command gets it, Ctrl-C and Ctrl-Z reach the command, and the shell gets it back. world.Case
starts servers for the class, five unless `count` differs, and empties them before each test. start() only starts
it; hold() acquires a lock as another holder; until() waits for a condition."""

import os
import pty
import select
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import tapcase  # noqa: E402
from world import REDLOCK, TIME_LIMIT, Case, stat_fields, state_of, until  # noqa: E402


class Terminal(Case):
    """A test case with a command as the leader of a session with a terminal of its own."""
    def setUp(self):
        """Begins a case: nothing was read from the terminal. spawn() or spawn_words() starts the session."""
        super().setUp()
        self.text = ""

    def spawn(self, *args):
        """Runs the command as the leader of a session with its own terminal."""
        self.spawn_words(REDLOCK, *args)

    def spawn_words(self, *words):
        """Starts the command with these words in a new session whose terminal is a pseudo-terminal."""
        environment = self.environment()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(words[0], words, environment)
        self.addCleanup(self.end_session)

    def end_session(self):
        """Ends the session and closes the terminal."""
        os.close(self.fd)
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)

    def read_until(self, word):
        """Reads from the terminal until that word has come."""
        give_up = time.monotonic() + TIME_LIMIT
        while word not in self.text:
            if not select.select([self.fd], [], [], max(0, give_up - time.monotonic()))[0]:
                raise AssertionError(f"{word!r} did not come: {self.text!r}")
            try:
                self.text += os.read(self.fd, 4096).decode()
            except OSError as error:
                raise AssertionError(f"{word!r} did not come: {self.text!r}") from error

    def wait(self):
        """Waits for the end of the session's leader and returns its exit code."""
        def ended():
            """Returns (wait status,) if the session's leader has ended, otherwise None."""
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            return (status,) if pid else None

        status = until(ended, "end of redlock")[0]
        self.pid = 0
        return os.waitstatus_to_exitcode(status)

    def child(self):
        """Reads the pid that the command prints."""
        self.read_until("pid=")
        self.read_until("\n")
        return int(self.text.partition("pid=")[2].split()[0])

    def test_command_is_the_foreground_group(self):
        """The command's process group is the foreground group of the terminal."""
        self.spawn("run", "t", "--", "sh", "-c", "echo pid=$$; read line; echo got $line; exit 3")
        child = self.child()
        _, _, group, session, _, foreground = stat_fields(child)
        self.assertEqual((group, session, foreground), (child, self.pid, child))
        os.write(self.fd, b"hello\n")
        self.read_until("got hello")
        self.assertEqual(self.wait(), 3)

    def test_caller_gets_the_terminal_back(self):
        """After the command, the caller's group is the foreground group again."""
        script = f"{REDLOCK} run t -- true; read line; echo back $line"
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve("/bin/bash", ["bash", "-c", script], self.environment())
        self.addCleanup(self.end_session)
        os.write(self.fd, b"hello\n")
        self.read_until("back hello")
        self.assertEqual(self.wait(), 0)

    def test_ctrl_c_reaches_the_command(self):
        """Ctrl-C reaches the command, and redlock exits with the command's code."""
        self.spawn("run", "t", "--", "sh", "-c", "trap 'echo caught; exit 5' INT; echo pid=$$; while :; do sleep 0.01; done")
        self.child()
        os.write(self.fd, b"\x03")
        self.read_until("caught")
        self.assertEqual(self.wait(), 5)

    def test_ctrl_z_suspends_the_command_and_keeps_the_lock(self):
        """Ctrl-Z suspends the command, and the lock is still held after more than a TTL."""
        self.spawn("run", "-t", "4s", "t", "--", "sh", "-c", "echo pid=$$; read line; echo got $line")
        child = self.child()
        os.write(self.fd, b"\x1a")
        self.read_until("suspended")
        self.assertEqual(state_of(child), "T")
        end = time.monotonic() + 5
        until(lambda: time.monotonic() > end, "more than a TTL")
        self.assertEqual(len(set(self.servers.values("t"))), 1)
        self.assertEqual(state_of(child), "T")
        os.kill(self.pid, signal.SIGCONT)
        until(lambda: state_of(child) != "T", "the command to go on")
        os.write(self.fd, b"hello\n")
        self.read_until("got hello")
        self.assertEqual(self.wait(), 0)

    def test_ctrl_c_ends_a_suspended_command(self):
        """A suspended command can be ended."""
        self.spawn("run", "t", "--", "sh", "-c", "echo pid=$$; read line")
        self.child()
        os.write(self.fd, b"\x1a")
        self.read_until("suspended")
        os.write(self.fd, b"\x03")
        self.assertEqual(self.wait(), 130)

    def test_ctrl_c_ends_a_suspended_command_without_job_control(self):
        """A shell without job control does not take the terminal after Ctrl-Z, so redlock continues by itself."""
        self.spawn_words("/bin/sh", "-c", "trap : INT; \"$@\"; exit $?", "sh", REDLOCK, "run", "t", "--", "sh", "-c", "echo pid=$$; read line")
        self.child()
        os.write(self.fd, b"\x1a")
        self.read_until("suspended")
        os.write(self.fd, b"\x03")
        self.assertEqual(self.wait(), 130)

    def test_ctrl_c_while_waiting(self):
        """Ctrl-C ends a wait for the lock."""
        token = self.hold("t").encode()
        self.spawn("run", "t", "--", "true")
        self.read_until("waiting for t")
        os.write(self.fd, b"\x03")
        self.assertEqual(self.wait(), 130)
        self.assertEqual(set(self.servers.values("t")), {token})

    def test_foreground_shares_the_group(self):
        """With --foreground the command stays in redlock's group."""
        self.spawn("run", "--foreground", "t", "--", "sh", "-c", "trap 'echo once' INT; echo pid=$$; read line; read line; echo end")
        child = self.child()
        _, _, group, _, _, foreground = stat_fields(child)
        self.assertEqual((group, foreground), (self.pid, self.pid))
        os.write(self.fd, b"\x03")
        self.read_until("once")
        os.write(self.fd, b"a\nb\n")
        self.wait()
        self.assertEqual(self.text.count("once"), 1)

    def test_hang_up_ends_the_command(self):
        """SIGHUP to redlock, as when the terminal is closed, ends the command."""
        self.spawn("run", "t", "--", "sh", "-c", "echo pid=$$; exec sleep 1000")
        child = self.child()
        os.kill(self.pid, signal.SIGHUP)
        self.assertEqual(self.wait(), 129)
        self.wait_gone(child)

    def test_forwarded_stop_and_continue_signals(self):
        """SIGTSTP and SIGCONT to redlock reach the command."""
        process = self.start("run", "-t", "20s", "t", "--", "sh", "-c", "echo $$; exec sleep 1000")
        child = int(process.stdout.readline())
        process.send_signal(signal.SIGTSTP)
        until(lambda: state_of(child) == "T", "the command to stop")
        self.assertNotEqual(state_of(process.pid), "T")
        process.send_signal(signal.SIGCONT)
        until(lambda: state_of(child) != "T", "the command to go on")


if __name__ == "__main__":
    tapcase.main()
