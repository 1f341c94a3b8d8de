# SPDX-License-Identifier: MIT
"""Under a shell with job control: the command gets the terminal when it needs it, whatever stdin is; Ctrl-Z gives the
prompt back and keeps the lock; fg goes on."""

import os
import pty
import select
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import tapcase  # noqa: E402
from world import PATIENCE, REDLOCK, Case, state_of, stat_fields, until  # noqa: E402

# It names itself, asks the terminal for a line and shows it.
ASK = "echo pid=$$.; read line </dev/tty; echo got=$line."


class JobControl(Case):
    def setUp(self):
        super().setUp()
        self.text = ""
        path = os.path.dirname(REDLOCK) + ":" + os.environ["PATH"]
        environment = self.environment(PATH=path, PS1="ready> ", ASK=ASK, TERM="dumb")
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "--noediting", "-i"], environment)
        self.addCleanup(self.hang_up)
        self.read_until("ready> ")
        self.type("stty -echo\n")
        self.prompt()

    def hang_up(self):
        os.close(self.fd)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def read_until(self, word):
        """Reads what the terminal shows up to that word, and takes it away."""
        give_up = time.monotonic() + PATIENCE
        while word not in self.text:
            if not select.select([self.fd], [], [], max(0, give_up - time.monotonic()))[0]:
                raise AssertionError(f"{word!r} did not come: {self.text!r}")
            self.text += os.read(self.fd, 4096).decode()
        before, _, self.text = self.text.partition(word)
        return before

    def type(self, text):
        os.write(self.fd, text.encode())

    def prompt(self):
        """The shell has the terminal: it runs what is typed."""
        self.type("echo m''ark\n")
        self.read_until("mark")
        self.read_until("ready> ")

    def child(self):
        self.read_until("pid=")
        return int(self.read_until("."))

    def outside(self, inner):
        """The pid here of the process of this session that has that one in a PID namespace of its own."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/status", encoding="utf-8") as status, open(f"/proc/{pid}/cmdline", encoding="utf-8") as line:
                    found = f"NSpid:\t{pid}\t{inner}\n" in status.read() and ASK in line.read()
                if found and stat_fields(int(pid))[3] == self.pid:
                    return int(pid)
            except OSError:  # it has ended
                continue
        raise AssertionError(f"no process is {inner} inside of a namespace")

    def stopped(self, pid):
        until(lambda: state_of(pid) == "T", "the command to stop")

    def has_terminal(self, pid):
        """Its group is the foreground group, and it goes on."""
        until(lambda: state_of(pid) != "T" and stat_fields(pid)[5] == pid, "the terminal for the command")

    @staticmethod
    def in_foreground(wrapper, child):
        """The shell has given the terminal to redlock, which may have passed it on."""
        until(lambda: stat_fields(wrapper)[5] in (stat_fields(wrapper)[2], child), "the foreground")

    def answer(self):
        self.type("hello\n")
        self.read_until("got=hello.")

    def wrapper(self, child):
        """The starter's guardian's parent is redlock."""
        starter = stat_fields(child)[1]
        return stat_fields(stat_fields(starter)[1])[1]

    def test_stdin_from_a_pipe(self):
        self.type('echo x | redlock run j -- sh -c "$ASK"\n')
        self.has_terminal(self.child())
        self.answer()
        self.prompt()

    def test_stdin_from_nowhere(self):
        self.type('redlock run j -- sh -c "$ASK" </dev/null\n')
        self.has_terminal(self.child())
        self.answer()
        self.prompt()

    def test_background_and_fg(self):
        self.type('redlock run j -- sh -c "$ASK" &\n')
        child = self.child()
        self.stopped(child)
        self.prompt()
        self.type("fg\n")
        self.has_terminal(child)
        self.answer()
        self.prompt()
        self.assertEqual(self.servers.keys(), set())

    def test_ctrl_z_and_fg_again_and_again(self):
        self.type('redlock run -t 3s j -- sh -c "$ASK"\n')
        child = self.child()
        self.has_terminal(child)
        value = set(self.servers.values("j"))
        for _ in range(3):
            self.type("\x1a")
            self.stopped(child)
            self.prompt()
            end = time.monotonic() + 3.5
            until(lambda end=end: time.monotonic() > end, "more than a TTL")
            self.assertEqual(set(self.servers.values("j")), value)
            self.assertEqual(state_of(child), "T")
            self.type("fg\n")
            self.has_terminal(child)
        self.answer()
        self.prompt()
        self.assertEqual(self.servers.keys(), set())

    def test_background_fg_ctrl_z_fg(self):
        self.type('redlock run j -- sh -c "$ASK; $ASK" &\n')
        child = self.child()
        self.stopped(child)
        self.type("fg\n")
        self.has_terminal(child)
        self.answer()
        self.type("\x1a")
        self.stopped(child)
        self.prompt()
        self.type("fg\n")
        self.has_terminal(child)
        self.answer()
        self.prompt()

    def test_ctrl_z_and_on_in_the_background(self):
        self.type("redlock run j -- sh -c 'echo pid=$$.; exec sleep 1000'\n")
        child = self.child()
        self.has_terminal(child)
        self.type("\x1a")
        self.stopped(child)
        self.prompt()

        def go_on():
            """A signal that comes while redlock itself is being continued may be lost."""
            self.type("kill -CONT %1\n")
            self.prompt()
            return state_of(child) != "T"

        until(go_on, "the command to go on")
        self.prompt()
        self.type("kill %1\n")
        self.wait_gone(child)

    def test_a_running_job_comes_to_the_foreground(self):
        """The shell tells redlock nothing, as it runs: the command gets the terminal all the same."""
        fifo = self.path("fifo")
        os.mkfifo(fifo)
        self.type(f"redlock run j -- sh -c 'echo pid=$$.; read go <{fifo}; eval \"$ASK\"' &\n")
        child = self.child()
        wrapper = self.wrapper(child)
        self.prompt()
        self.type("fg\n")
        self.in_foreground(wrapper, child)
        self.has_terminal(child)
        self.path("fifo", "go\n")
        self.has_terminal(child)
        self.answer()
        self.prompt()

    def test_ctrl_c_ends_a_running_job_from_the_background(self):
        self.type("redlock run j -- sh -c 'echo pid=$$.; exec sleep 1000' &\n")
        child = self.child()
        wrapper = self.wrapper(child)
        self.prompt()
        self.type("fg\n")
        self.in_foreground(wrapper, child)
        self.type("\x03")
        self.wait_gone(child, wrapper)
        self.prompt()

    def test_a_pager_behind_it_gets_the_terminal(self):
        """It is in the group of redlock, which has given the terminal away."""
        self.type("redlock run j -- sh -c 'echo pid=$$. >/dev/tty; exec sleep 1000' | sh -c 'read line; eval \"$ASK\"'\n")
        child = self.child()
        self.has_terminal(child)
        os.kill(child, signal.SIGKILL)
        pager = self.child()
        self.answer()
        self.wait_gone(pager)
        self.prompt()

    def test_a_pager_gets_it_while_the_command_runs(self):
        self.type("redlock run j -- sh -c 'echo pid=$$.; exec sleep 1000' 2>&1 | sh -c 'read line; echo $line; eval \"$ASK\"'\n")
        child, pager = self.child(), self.child()
        self.answer()
        self.wait_gone(pager)
        os.kill(child, signal.SIGKILL)
        self.wait_gone(child)
        self.prompt()

    def test_ctrl_z_stops_a_pager_too_and_fg_both(self):
        self.type("redlock run j -- sh -c 'echo pid=$$. >/dev/tty; exec sleep 1000' | sh -c 'echo pid=$$. >/dev/tty; exec cat'\n")
        first, second = self.child(), self.child()
        child, pager = (first, second) if stat_fields(first)[2] == first else (second, first)
        self.has_terminal(child)
        self.type("\x1a")
        self.stopped(child)
        self.stopped(pager)
        self.prompt()
        self.type("fg\n")
        self.has_terminal(child)
        until(lambda: state_of(pager) != "T", "the pager to go on")
        self.type("\x03")
        self.wait_gone(child, pager)
        self.prompt()

    def test_ctrl_z_while_waiting(self):
        """Nothing is held then: redlock stops as any other command."""
        token = self.hold("j")
        self.type('redlock run j -- sh -c "$ASK"\n')
        self.read_until("waiting for j")
        self.type("\x1a")
        self.read_until("Stopped")
        self.prompt()
        self.assertCode(self.redlock("release", "j", token), 0)
        self.type("fg\n")
        self.has_terminal(self.child())
        self.answer()
        self.prompt()

    def test_in_a_script(self):
        """The shell sees the script only: it stops and goes on with the command."""
        script = self.path("script", 'redlock run j -- sh -c "$ASK"\necho end=$?.\n')
        self.type(f"sh {script}\n")
        child = self.child()
        self.has_terminal(child)
        self.type("\x1a")
        self.stopped(child)
        self.prompt()
        self.type("fg\n")
        self.has_terminal(child)
        self.answer()
        self.read_until("end=0.")
        self.prompt()

    def test_a_script_with_it_in_the_background_keeps_the_terminal(self):
        script = self.path("script", "redlock run j -- sh -c 'echo pid=$$.; exec sleep 1000' &\nread line\necho got=$line.\nkill $!\nwait\n")
        self.type(f"sh {script}\n")
        child = self.child()
        self.assertNotEqual(stat_fields(child)[5], child)
        self.answer()
        self.wait_gone(child)
        self.prompt()

    def test_a_shared_group(self):
        """The command is in the foreground group whenever redlock is."""
        self.type('redlock run --foreground -t 3s j -- sh -c "$ASK"\n')
        child = self.child()
        until(lambda: stat_fields(child)[5] == stat_fields(child)[2], "the foreground")
        value = set(self.servers.values("j"))
        for _ in range(2):
            self.type("\x1a")
            self.stopped(child)
            self.prompt()
            end = time.monotonic() + 3.5
            until(lambda end=end: time.monotonic() > end, "more than a TTL")
            self.assertEqual(set(self.servers.values("j")), value)
            self.type("fg\n")
            until(lambda: state_of(child) != "T", "the command to go on")
        self.answer()
        self.prompt()
        self.assertEqual(self.servers.keys(), set())

    def test_a_group_outside_of_the_pid_namespace(self):
        """Inside of it that group has no number, so nothing could give it the terminal back."""
        if subprocess.run(["unshare", "-fp", "--mount-proc", "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("a PID namespace takes root")
        for flags in "", "--foreground ":
            with self.subTest(flags=flags):
                self.type(f"sh -c 'unshare -fp --mount-proc redlock run {flags}j -- sh -c \"$ASK\"; read x; echo x=$x.'\n")
                child = self.outside(self.child())
                self.type("\x1a")
                self.read_until("Stopped")
                self.stopped(child)  # what is typed before that may still be read by it
                self.prompt()
                self.type("fg\n")
                self.answer()
                self.type("script\n")
                self.read_until("x=script.")
                self.prompt()
                self.assertEqual(self.servers.keys(), set())

    def test_one_inside_another(self):
        """The inner one is continued for itself after Ctrl-Z; with fg it gets the terminal from the outer one."""
        self.type('redlock run j -- redlock run k -- sh -c "$ASK"\n')
        child = self.child()
        self.has_terminal(child)
        for _ in range(2):
            self.type("\x1a")
            self.stopped(child)
            self.prompt()
            self.type("fg\n")
            self.has_terminal(child)
        self.answer()
        self.prompt()
        self.assertEqual(self.servers.keys(), set())

    def test_one_inside_another_from_the_background(self):
        self.type('redlock run j -- redlock run k -- sh -c "$ASK" &\n')
        child = self.child()
        self.stopped(child)
        self.prompt()
        self.type("fg\n")
        self.has_terminal(child)
        self.answer()
        self.prompt()
        self.assertEqual(self.servers.keys(), set())

    def test_the_sandbox_does_the_same(self):
        self.type('redlock sandbox -n 1 -- sh -c "$ASK" </dev/null\n')
        child = self.child()
        self.has_terminal(child)
        self.type("\x1a")
        self.stopped(child)
        self.prompt()
        self.type("fg\n")
        self.has_terminal(child)
        self.answer()
        self.prompt()


if __name__ == "__main__":
    tapcase.main()
