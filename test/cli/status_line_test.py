# SPDX-License-Identifier: MIT
"""The status line of a wait on a terminal: what it says, its width, that it vanishes, and where there is none.
ScreenCase runs the command on a terminal and reads its screen; hold() acquires a lock as another holder."""

import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import tapcase  # noqa: E402
from screen import ScreenCase  # noqa: E402
from world import REDLOCK, TIME_LIMIT  # noqa: E402

ESCAPE = b"\x1b["
HELD = r"^redlock: waiting for t: \d+s, held \(\d+s left\) by [^ /]+/\d+/\d+$"


class StatusLine(ScreenCase):
    """Waits on a terminal, with five servers."""

    def waiting_lines(self):
        """Returns the lines of the screen that are about the wait."""
        return [line for line in self.lines() if "waiting for" in line]

    def test_held_lock(self):
        """The line shows the holder and the times, is updated in place, and vanishes before the command runs."""
        token = self.hold("t")
        self.spawn(REDLOCK, "run", "t", "--", "echo", "mine")
        first = self.wait_line(HELD)[0]
        self.wait_screen(lambda lines: re.search(HELD, lines[0]) and lines[0] != first, "another text")
        self.assertEqual(len(self.lines()), 1)
        self.redlock("release", "t", token)
        self.assertEqual(self.wait_end(), 0)
        self.assertEqual(self.lines(), ["mine"])
        self.assertNotIn(b"held by another client: 0 of", self.raw)

    def test_limit_of_the_wait(self):
        """With -w the line says how long the wait may last. The message about the end takes its place."""
        self.hold("t")
        self.spawn(REDLOCK, "acquire", "-w", "8s", "t", columns=200)
        self.wait_line(r"^redlock: waiting for t: \ds of 8s, held ")
        self.assertEqual(self.wait_end(), 75)
        self.assertEqual(len(self.lines()), 1)
        self.assertRegex(self.lines()[0], "^redlock: t: not acquired: held by another client")

    def test_no_quorum(self):
        """Without a quorum the line says when the wait ends, and why."""
        self.servers.stop(0, 1, 2)
        self.spawn(REDLOCK, "run", "--quorum-wait", "8s", "t", "--", "true", columns=200, lines=50)
        self.wait_line(r"^redlock: waiting for t: \d+s, gives up in [1-8]s, no quorum: \d of 5 servers granted the lock, 3 required; 127")
        self.assertEqual(self.wait_end(), 69)
        self.assertEqual(self.waiting_lines(), [])
        self.assertIn("redlock: t: not acquired: no quorum", "".join(self.lines()))

    def test_permits_and_several_names(self):
        """The line says that all permits are taken, and which of several names is held."""
        self.assertCode(self.redlock("acquire", "--permits", "1", "-t", "30s", "p"), 0)
        self.spawn(REDLOCK, "acquire", "-w", "1m", "--permits", "1", "p")
        self.wait_line(r"^redlock: waiting for p: \d+s of 1m, all 1 permits are taken$")
        self.type("\x03")
        self.assertEqual(self.wait_end(), 130)
        self.hold("t")
        self.spawn(REDLOCK, "acquire", "-w", "1m", "free", "t")
        self.wait_line(r"^redlock: waiting for free, t: \d+s of 1m, t held \(\d+s left\) by ")
        self.type("\x03")
        self.assertEqual(self.wait_end(), 130)

    def test_stuck_key(self):
        """A key that never expires is named as such, with what to do, and a name that does not print is escaped."""
        self.servers.command_all("SET", "a\x1bb", "foreign")
        self.spawn(REDLOCK, "acquire", "-w", "1m", "a\x1bb", columns=240)
        self.wait_line(r"^redlock: waiting for a\\x1bb: \d+s of 1m, held by a client without a label; its key never expires on [345] servers")
        self.type("\x03")
        self.assertEqual(self.wait_end(), 130)

    def test_width(self):
        """The line is shorter than the terminal is wide, also after the terminal got another size."""
        owner = self.hold("t").partition("@")[2]
        self.spawn(REDLOCK, "run", "t", "--", "true", columns=50)
        self.wait_line(r"^redlock: waiting for t: \d+s, held .*\.\.\.$")
        self.assertEqual([len(line) for line in self.lines()], [47])
        self.resize(120)
        self.wait_line(f"^redlock: waiting for t: .* by {re.escape(owner)}$")  # the whole line has come
        self.resize(30)
        self.wait_line(r"^redlock: waiting for t: .*\.\.\.$")
        self.assertEqual(max(len(line) for line in self.lines()), 27)
        self.type("\x03")
        self.assertEqual(self.wait_end(), 130)
        self.assertEqual(self.waiting_lines(), [])

    def test_wide_characters(self):
        """Characters that take two columns count as two."""
        name = "日本語" * 20
        self.hold(name)
        self.spawn(REDLOCK, "run", name, "--", "true", columns=60)
        self.wait_line(r"^redlock: waiting for 日.*\.\.\.$")
        self.assertEqual(len(self.lines()), 1)
        self.assertIn(self.screen.cursor.x, (56, 57))

    def test_job_control(self):
        """Ctrl-Z removes the line, fg prints it again, and in the background there are ordinary lines."""
        self.hold("t")
        self.spawn_shell(columns=100)
        self.type("redlock run t -- true\n")
        self.wait_line(HELD)
        self.type("\x1a")
        self.wait_line("Stopped")
        self.assertEqual(self.waiting_lines(), [])
        self.type("fg\n")
        self.wait_line(HELD)
        self.type("\x1a")
        self.wait_screen(lambda lines: "\n".join(lines).count("Stopped") == 2, "the second stop")
        seen = len(self.raw)
        self.type("bg\n")
        self.wait_line("^redlock: waiting for t: held by another client|ready> redlock: waiting for t: held")
        self.assertNotIn(ESCAPE + b"K", self.raw[seen:])
        self.type("fg\n")
        self.wait_line(HELD)
        self.type("\x03")
        self.wait_screen(lambda lines: lines[-1] == "ready>", "the prompt")
        self.assertFalse([line for line in self.lines() if re.search(HELD, line)])

    def test_ordinary_lines_elsewhere(self):
        """There is no status line with -q, --json, for a terminal that can only print, and in a file."""
        self.hold("t")
        for flags, more in (["-q"], {}), (["--json"], {}), ([], {"TERM": "dumb"}), ([], {"TERM": ""}):
            with self.subTest(flags=flags, more=more):
                quiet = "-q" in flags
                self.spawn("/usr/bin/env", *(f"{key}={value}" for key, value in more.items()), REDLOCK,
                           "acquire", *flags, "-w", "1500ms" if quiet else "1m", "t", columns=200)  # fmt: skip
                if not quiet:
                    self.wait_line("waiting for t: held by another client")
                    self.type("\x03")
                self.assertEqual(self.wait_end(), 75 if quiet else 130)
                self.assertNotIn(ESCAPE, self.raw)
                self.assertEqual(b"waiting for t" in self.raw, not quiet)
        path = self.path("errors")
        with open(path, "wb") as file:
            subprocess.run([REDLOCK, "acquire", "-w", "1500ms", "t"], stderr=file, env=self.environment(TERM="xterm"),
                           timeout=TIME_LIMIT, check=False)  # fmt: skip
        with open(path, "rb") as file:
            self.assertNotIn(ESCAPE, file.read())

    def test_key_is_inspected_once_a_second(self):
        """The line needs one inspection a second. The first one is made at once, and may be late on a busy machine."""
        self.hold("t")
        monitor = self.servers.connect(0)
        self.addCleanup(monitor.close)
        monitor.command("MONITOR")
        self.spawn(REDLOCK, "acquire", "t")
        times = []
        while len(times) < 5:
            line = monitor.reply()
            if b'"GET" "t"' in line and b" lua]" not in line:  # "lua" is the script of an attempt
                times.append(float(line.split()[0]))
        self.assertGreater(times[-1] - times[0], 3.0)


class Messages(ScreenCase):
    """Messages while there is a status line. The servers are those of this class, which ends one of them."""

    def test_messages_are_printed_above(self):
        """A message of the library is a line of its own, and the status line stays below it."""
        self.hold("t")
        self.spawn(REDLOCK, "run", "-vv", "t", "--", "true", columns=200, lines=100)
        self.wait_line(HELD)
        os.kill(self.servers.pid(4), signal.SIGKILL)
        self.wait_screen(
            lambda lines: any(re.search("connection (closed|reset)", line) for line in lines[:-1]) and re.search(HELD, lines[-1]),
            "a message about the server and the status line below",
        )
        self.assertEqual(len([line for line in self.lines() if "waiting for" in line]), 1)


if __name__ == "__main__":
    tapcase.main()
