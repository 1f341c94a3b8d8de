# SPDX-License-Identifier: MIT
"""Helpers of the tests that look at a terminal: a test case that runs the command on a terminal of its own, and reads
what a person sees there. The package pyte keeps the screen; without it the tests are skipped."""

import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
import time
import unittest

from world import REDLOCK, TIME_LIMIT, Case, until

try:
    import pyte
except ImportError:
    pyte = None


# Capabilities of xterm that pyte lacks: to repeat a character, to go back to a tab stop, and to scroll by several lines.
LACKING = r"^\t(rep|cbt|indn|rin)=.*\n"


class ScreenCase(Case):
    """A test case with a session on a terminal of its own. Only the methods that wait read what it prints."""

    @classmethod
    def setUpClass(cls):
        if pyte is None:
            raise unittest.SkipTest("no terminal emulator for tests (python3-pyte)")
        if not shutil.which("infocmp") or not shutil.which("tic"):
            raise unittest.SkipTest("no infocmp and tic (ncurses-bin)")
        super().setUpClass()
        cls.terminfo = tempfile.mkdtemp(prefix="cli-terminfo-")
        cls.addClassCleanup(shutil.rmtree, cls.terminfo)
        entry = subprocess.run(["infocmp", "-1", "-x", "xterm-256color"], stdout=subprocess.PIPE, check=True, text=True).stdout
        entry = re.sub(LACKING, "", entry.replace("xterm-256color|", "pyte-256color|", 1), flags=re.MULTILINE)
        subprocess.run(["tic", "-x", "-o", cls.terminfo, "-"], input=entry, check=True, text=True)

    def setUp(self):
        """Begins a case without a session."""
        super().setUp()
        self.ended = set()  # leaders of sessions that have ended

    def spawn(self, *words, columns=80, lines=24, **environment):
        """Starts the words, the first one a path, in a new session whose terminal has this size."""
        environment = self.environment(TERM="pyte-256color", TERMINFO=self.terminfo, LC_ALL="C.UTF-8", **environment)
        self.screen = pyte.Screen(columns, lines)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = b""  # all that was printed
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
            os.execve(words[0], words, environment)
        self.addCleanup(self.end_session, self.pid, self.fd)

    def spawn_shell(self, **options):
        """Starts an interactive bash that finds the command, and waits for its prompt."""
        path = os.path.dirname(REDLOCK) + ":" + os.environ["PATH"]
        self.spawn("/bin/bash", "--norc", "--noprofile", "--noediting", "-i", PATH=path, PS1="ready> ", **options)
        self.wait_line("ready>")

    def end_session(self, pid, fd):
        """Closes the terminal, and ends the leader of the session if wait_end() has not seen its end."""
        os.close(fd)
        if pid not in self.ended:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    def read(self, seconds):
        """Reads what the session prints within this time. Returns whether the terminal is still open."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:  # the last process has closed it
            return False
        self.raw += data
        self.stream.feed(data)
        return bool(data)

    def lines(self):
        """Returns the lines of the screen, without blanks at their ends and without empty lines at the end."""
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip("\n").split("\n")

    def wait_screen(self, condition, what):
        """Reads until the condition, a function of the lines of the screen, is true; returns its value."""
        give_up = time.monotonic() + TIME_LIMIT
        while True:
            value = condition(self.lines())
            if value:
                return value
            if time.monotonic() > give_up or not self.read(0.1):
                screen = "\n".join(self.lines())
                raise AssertionError(f"{what} did not come:\n{screen}")

    def wait_line(self, pattern):
        """Reads until a line of the screen matches the pattern; returns the match."""
        return self.wait_screen(
            lambda lines: next((found for line in lines if (found := re.search(pattern, line))), None), repr(pattern)
        )

    def wait_no_line(self, pattern):
        """Reads until no line of the screen matches the pattern."""
        self.wait_screen(lambda lines: not any(re.search(pattern, line) for line in lines), f"end of {pattern!r}")

    def type(self, text):
        """Types the text on the terminal."""
        os.write(self.fd, text.encode())

    def resize(self, columns, lines=24):
        """Changes the size of the terminal. The kernel sends SIGWINCH to the foreground group."""
        self.screen.resize(lines, columns)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def wait_end(self):
        """Reads until the session has ended, and returns its exit code."""

        def ended():
            """Returns (wait status,) if the session's leader has ended, otherwise None."""
            self.read(0.01)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            return (status,) if pid else None

        status = until(ended, "end of the session")[0]
        self.ended.add(self.pid)
        while select.select([self.fd], [], [], 0)[0] and self.read(0):
            pass
        return os.waitstatus_to_exitcode(status)
