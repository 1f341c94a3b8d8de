# SPDX-License-Identifier: MIT
"""Under a shell with job control: the command gets the terminal when it needs it, whatever stdin is; Ctrl-Z returns to
the prompt and keeps the lock; fg continues the command. world.Case starts servers for the class, five unless
`count` differs, and empties them before each test. redlock() runs the command and returns its result; hold()
acquires a lock as another holder; until() waits for a condition."""

import os
import pty
import select
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import tapcase  # noqa: E402
from world import REDLOCK, TIME_LIMIT, Case, stat_fields, state_of, until  # noqa: E402

# A command that prints its pid, reads a line from the terminal and prints it.
ASK = "echo pid=$$.; read line </dev/tty; echo got=$line."


class JobControl(Case):
    """A test case with an interactive bash on a terminal of its own."""

    def setUp(self):
        """Starts an interactive bash on a pseudo-terminal and waits for its prompt."""
        super().setUp()
        self.text = ""
        path = os.path.dirname(REDLOCK) + ":" + os.environ["PATH"]
        environment = self.environment(PATH=path, PS1="ready> ", ASK=ASK, TERM="dumb")
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "--noediting", "-i"], environment)
        self.addCleanup(self.end_shell)
        self.read_until("ready> ")
        self.type("stty -echo\n")
        self.prompt()

    def end_shell(self):
        """Kills the shell and closes the terminal."""
        os.close(self.fd)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def read_until(self, word):
        """Reads from the terminal up to that word, and returns the text before it."""
        give_up = time.monotonic() + TIME_LIMIT
        while word not in self.text:
            if not select.select([self.fd], [], [], max(0, give_up - time.monotonic()))[0]:
                raise AssertionError(f"{word!r} did not come: {self.text!r}")
            self.text += os.read(self.fd, 4096).decode()
        before, _, self.text = self.text.partition(word)
        return before

    def type(self, text):
        """Types the text on the terminal."""
        os.write(self.fd, text.encode())

    def prompt(self):
        """Waits until the shell has the terminal and runs what is typed."""
        self.type("echo m''ark\n")
        self.read_until("mark")
        self.read_until("ready> ")

    def child(self):
        """Reads the pid that the command prints."""
        self.read_until("pid=")
        return int(self.read_until("."))

    def find_outside(self, inner):
        """Returns the pid, in this namespace, of the process of this session with the pid `inner` in another one."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/status", encoding="utf-8") as status, open(f"/proc/{pid}/cmdline", encoding="utf-8") as line:
                    found = f"NSpid:\t{pid}\t{inner}\n" in status.read() and ASK in line.read()
                if found and stat_fields(int(pid))[3] == self.pid:
                    return int(pid)
            except OSError:  # it has ended
                continue
        raise AssertionError(f"no process is {inner} inside of a namespace")

    def wait_stopped(self, pid):
        """Waits until the process is stopped."""
        until(lambda: state_of(pid) == "T", "the command to stop")

    def wait_has_terminal(self, pid):
        """Waits until the command runs and its group is the foreground group."""
        until(lambda: state_of(pid) != "T" and stat_fields(pid)[5] == pid, "the terminal for the command")

    @staticmethod
    def wait_foreground(wrapper, child):
        """Waits until the shell has made redlock, or its command, the foreground group."""
        until(lambda: stat_fields(wrapper)[5] in (stat_fields(wrapper)[2], child), "the foreground")

    def type_answer(self):
        """Answers the question of the command ASK, and waits until the command has read the answer."""
        self.type("hello\n")
        self.read_until("got=hello.")

    def wrapper(self, child):
        """Returns the pid of redlock: the parent of the guardian, whose child the starter is."""
        starter = stat_fields(child)[1]
        return stat_fields(stat_fields(starter)[1])[1]

    def test_stdin_from_a_pipe(self):
        """The command gets the terminal although its stdin is a pipe."""
        self.type('echo x | redlock run j -- sh -c "$ASK"\n')
        self.wait_has_terminal(self.child())
        self.type_answer()
        self.prompt()

    def test_stdin_from_dev_null(self):
        """The command gets the terminal although its stdin is /dev/null."""
        self.type('redlock run j -- sh -c "$ASK" </dev/null\n')
        self.wait_has_terminal(self.child())
        self.type_answer()
        self.prompt()

    def test_job_from_background_to_foreground(self):
        """A background job that reads the terminal stops, and continues with fg."""
        self.type('redlock run j -- sh -c "$ASK" &\n')
        child = self.child()
        self.wait_stopped(child)
        self.prompt()
        self.type("fg\n")
        self.wait_has_terminal(child)
        self.type_answer()
        self.prompt()
        self.assertEqual(self.servers.keys(), set())

    def test_ctrl_z_and_fg_repeatedly(self):
        """Ctrl-Z stops the command three times, each longer than a TTL; the lock is held all the time."""
        self.type('redlock run -t 3s j -- sh -c "$ASK"\n')
        child = self.child()
        self.wait_has_terminal(child)
        value = set(self.servers.values("j"))
        for _ in range(3):
            self.type("\x1a")
            self.wait_stopped(child)
            self.prompt()
            end = time.monotonic() + 3.5
            until(lambda end=end: time.monotonic() > end, "more than a TTL")
            self.assertEqual(set(self.servers.values("j")), value)
            self.assertEqual(state_of(child), "T")
            self.type("fg\n")
            self.wait_has_terminal(child)
        self.type_answer()
        self.prompt()
        self.assertEqual(self.servers.keys(), set())

    def test_background_fg_ctrl_z_fg(self):
        """Background, fg, Ctrl-Z, fg: the command gets the terminal each time."""
        self.type('redlock run j -- sh -c "$ASK; $ASK" &\n')
        child = self.child()
        self.wait_stopped(child)
        self.type("fg\n")
        self.wait_has_terminal(child)
        self.type_answer()
        self.type("\x1a")
        self.wait_stopped(child)
        self.prompt()
        self.type("fg\n")
        self.wait_has_terminal(child)
        self.type_answer()
        self.prompt()

    def test_ctrl_z_and_continue_in_the_background(self):
        """A stopped job continues in the background."""
        self.type("redlock run j -- sh -c 'echo pid=$$.; exec sleep 1000'\n")
        child = self.child()
        self.wait_has_terminal(child)
        self.type("\x1a")
        self.wait_stopped(child)
        self.prompt()

        def continue_job():
            """Sends SIGCONT again, because one that arrives while redlock itself continues may be lost."""
            self.type("kill -CONT %1\n")
            self.prompt()
            return state_of(child) != "T"

        until(continue_job, "the command to go on")
        self.prompt()
        self.type("kill %1\n")
        self.wait_gone(child)

    def test_running_job_comes_to_the_foreground(self):
        """The shell sends no signal to a running job; the command gets the terminal all the same."""
        fifo = self.path("fifo")
        os.mkfifo(fifo)
        self.type(f"redlock run j -- sh -c 'echo pid=$$.; read go <{fifo}; eval \"$ASK\"' &\n")
        child = self.child()
        wrapper = self.wrapper(child)
        self.prompt()
        self.type("fg\n")
        self.wait_foreground(wrapper, child)
        self.wait_has_terminal(child)
        self.path("fifo", "go\n")
        self.wait_has_terminal(child)
        self.type_answer()
        self.prompt()

    def test_ctrl_c_ends_a_running_job_from_the_background(self):
        """Ctrl-C ends a job that was brought to the foreground while it ran."""
        self.type("redlock run j -- sh -c 'echo pid=$$.; exec sleep 1000' &\n")
        child = self.child()
        wrapper = self.wrapper(child)
        self.prompt()
        self.type("fg\n")
        self.wait_foreground(wrapper, child)
        self.type("\x03")
        self.wait_gone(child, wrapper)
        self.prompt()

    def test_pager_gets_the_terminal_after_the_command(self):
        """The pager is in the group of redlock, which has made its command the foreground group."""
        self.type("redlock run j -- sh -c 'echo pid=$$. >/dev/tty; exec sleep 1000' | sh -c 'read line; eval \"$ASK\"'\n")
        child = self.child()
        self.wait_has_terminal(child)
        os.kill(child, signal.SIGKILL)
        pager = self.child()
        self.type_answer()
        self.wait_gone(pager)
        self.prompt()

    def test_pager_gets_the_terminal_while_the_command_runs(self):
        """A pager behind `redlock run` in a pipeline may use the terminal."""
        self.type("redlock run j -- sh -c 'echo pid=$$.; exec sleep 1000' 2>&1 | sh -c 'read line; echo $line; eval \"$ASK\"'\n")
        child, pager = self.child(), self.child()
        self.type_answer()
        self.wait_gone(pager)
        os.kill(child, signal.SIGKILL)
        self.wait_gone(child)
        self.prompt()

    def test_ctrl_z_and_fg_affect_the_pager_too(self):
        """Ctrl-Z, fg and Ctrl-C reach both ends of the pipeline."""
        self.type("redlock run j -- sh -c 'echo pid=$$. >/dev/tty; exec sleep 1000' | sh -c 'echo pid=$$. >/dev/tty; exec cat'\n")
        first, second = self.child(), self.child()
        child, pager = (first, second) if stat_fields(first)[2] == first else (second, first)
        self.wait_has_terminal(child)
        self.type("\x1a")
        self.wait_stopped(child)
        self.wait_stopped(pager)
        self.prompt()
        self.type("fg\n")
        self.wait_has_terminal(child)
        until(lambda: state_of(pager) != "T", "the pager to go on")
        self.type("\x03")
        self.wait_gone(child, pager)
        self.prompt()

    def test_ctrl_z_while_waiting(self):
        """While redlock waits it holds no lock, and stops like any other command."""
        token = self.hold("j")
        self.type('redlock run j -- sh -c "$ASK"\n')
        self.read_until("waiting for j")
        self.type("\x1a")
        self.read_until("Stopped")
        self.prompt()
        self.assertCode(self.redlock("release", "j", token), 0)
        self.type("fg\n")
        self.wait_has_terminal(self.child())
        self.type_answer()
        self.prompt()

    def test_in_a_script(self):
        """The shell's job is the script, which stops and continues with the command."""
        script = self.path("script", 'redlock run j -- sh -c "$ASK"\necho end=$?.\n')
        self.type(f"sh {script}\n")
        child = self.child()
        self.wait_has_terminal(child)
        self.type("\x1a")
        self.wait_stopped(child)
        self.prompt()
        self.type("fg\n")
        self.wait_has_terminal(child)
        self.type_answer()
        self.read_until("end=0.")
        self.prompt()

    def test_fg_before_redlock_has_stopped(self):
        """The shell continues the job after the script has stopped and before redlock has, which gets a SIGCONT all the same."""
        if "PROCSTALL_SHIM" not in os.environ:
            self.skipTest("a preloaded library does not work under a sanitizer")
        stall = self.directory
        script = self.path("script", 'redlock run j -- sh -c "$ASK"\necho end=$?.\n')
        shim = f"LD_PRELOAD={os.environ['PROCSTALL_SHIM']} PROCSTALL={stall} PROCSTALL_AT=stop"
        self.type(f"env {shim} sh {script}\n")
        child = self.child()
        self.wait_has_terminal(child)
        script_pid = stat_fields(self.wrapper(child))[1]
        self.type("\x1a")
        self.wait_stopped(child)
        until(lambda: os.path.exists(os.path.join(stall, "reached")), "redlock to be about to stop")
        self.prompt()
        self.type("fg\n")
        until(lambda: state_of(script_pid) != "T", "the script to go on")
        with open(os.path.join(stall, "go"), "w", encoding="utf-8"):
            pass
        self.wait_has_terminal(child)
        self.type_answer()
        self.read_until("end=0.")
        self.prompt()

    def test_script_with_background_job_keeps_the_terminal(self):
        """A script without job control keeps the terminal when it starts `redlock run` in the background."""
        script = self.path("script", "redlock run j -- sh -c 'echo pid=$$.; exec sleep 1000' &\nread line\necho got=$line.\nkill $!\nwait\n")
        self.type(f"sh {script}\n")
        child = self.child()
        self.assertNotEqual(stat_fields(child)[5], child)
        self.type_answer()
        self.wait_gone(child)
        self.prompt()

    def test_foreground_flag_shares_the_group(self):
        """The command is in the foreground group whenever redlock is."""
        self.type('redlock run --foreground -t 3s j -- sh -c "$ASK"\n')
        child = self.child()
        until(lambda: stat_fields(child)[5] == stat_fields(child)[2], "the foreground")
        value = set(self.servers.values("j"))
        for _ in range(2):
            self.type("\x1a")
            self.wait_stopped(child)
            self.prompt()
            end = time.monotonic() + 3.5
            until(lambda end=end: time.monotonic() > end, "more than a TTL")
            self.assertEqual(set(self.servers.values("j")), value)
            self.type("fg\n")
            until(lambda: state_of(child) != "T", "the command to go on")
        self.type_answer()
        self.prompt()
        self.assertEqual(self.servers.keys(), set())

    def test_group_of_the_caller_in_another_pid_namespace(self):
        """In a new PID namespace the caller's group has no number, so redlock could not give the terminal back to it."""
        if subprocess.run(["unshare", "-fp", "--mount-proc", "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("a PID namespace takes root")
        for flags in "", "--foreground ":
            with self.subTest(flags=flags):
                self.type(f"sh -c 'unshare -fp --mount-proc redlock run {flags}j -- sh -c \"$ASK\"; read x; echo x=$x.'\n")
                child = self.find_outside(self.child())
                self.type("\x1a")
                self.read_until("Stopped")
                self.wait_stopped(child)  # before that it may still read what is typed
                self.prompt()
                self.type("fg\n")
                self.type_answer()
                self.type("script\n")
                self.read_until("x=script.")
                self.prompt()
                self.assertEqual(self.servers.keys(), set())

    def test_nested_run(self):
        """After Ctrl-Z and fg, the inner redlock gets the terminal from the outer one."""
        self.type('redlock run j -- redlock run k -- sh -c "$ASK"\n')
        child = self.child()
        self.wait_has_terminal(child)
        for _ in range(2):
            self.type("\x1a")
            self.wait_stopped(child)
            self.prompt()
            self.type("fg\n")
            self.wait_has_terminal(child)
        self.type_answer()
        self.prompt()
        self.assertEqual(self.servers.keys(), set())

    def test_nested_run_from_the_background(self):
        """A `redlock run` inside of another one gets the terminal with fg."""
        self.type('redlock run j -- redlock run k -- sh -c "$ASK" &\n')
        child = self.child()
        self.wait_stopped(child)
        self.prompt()
        self.type("fg\n")
        self.wait_has_terminal(child)
        self.type_answer()
        self.prompt()
        self.assertEqual(self.servers.keys(), set())

    def test_sandbox_with_job_control(self):
        """`redlock sandbox` with a command behaves as `run` does."""
        self.type('redlock sandbox -n 1 -- sh -c "$ASK" </dev/null\n')
        child = self.child()
        self.wait_has_terminal(child)
        self.type("\x1a")
        self.wait_stopped(child)
        self.prompt()
        self.type("fg\n")
        self.wait_has_terminal(child)
        self.type_answer()
        self.prompt()


if __name__ == "__main__":
    tapcase.main()
