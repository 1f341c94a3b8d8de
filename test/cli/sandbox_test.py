# SPDX-License-Identifier: MIT
"""`redlock sandbox` starts servers, runs a command, and removes its servers and files however it ends.
world.CommandCase gives a directory, and no servers. redlock() runs the command and returns its result; until()
waits for a condition."""

import os
import re
import signal
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import tapcase  # noqa: E402
from world import REDLOCK, SLOW, CommandCase, Resp, children_of, clean_environment, runs, until  # noqa: E402

PRINT_SANDBOX = "echo $REDLOCK_SANDBOX_DIR; cat $REDLOCK_SANDBOX_DIR/*/pid; echo end"


class Sandbox(CommandCase):
    """Runs `redlock sandbox` and looks for servers and files that are left."""

    def begin(self, *args, **options):
        """Starts `redlock sandbox`. It is killed after the test."""
        process = subprocess.Popen(
            [REDLOCK, "sandbox", *args],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=clean_environment(),
            **options,
        )
        self.addCleanup(self.finish, process)
        return process

    @staticmethod
    def finish(process):
        """Kills the sandbox if it still runs, and closes its pipes."""
        if process.poll() is None:
            process.kill()
        process.stdout.close()
        process.stderr.close()
        process.wait()

    @staticmethod
    def read_sandbox(process):
        """Reads the output of PRINT_SANDBOX. Returns (directory of the sandbox, pids of its servers)."""
        lines = []
        for line in process.stdout:
            if line == "end\n":
                break
            lines.append(line.strip())
        return lines[0], [int(line) for line in lines[1:]]

    def assert_nothing_left(self, directory, pids):
        """Waits until the processes have ended and the directory is removed."""
        for pid in pids:
            until(lambda pid=pid: not runs(pid), f"end of server {pid}")
        until(lambda: not os.path.exists(directory), f"{directory} to be removed")

    def test_command_gets_arguments_and_gives_exit_status(self):
        """The command of the sandbox gets its arguments, and its exit status is that of the sandbox."""
        result = self.redlock("sandbox", "-n", "1", "--", "sh", "-c", 'printf "[%s]" "$@"; exit 7', "sh", "a b", "-n")
        self.assertCode(result, 7)
        self.assertEqual(result.stdout, "[a b][-n]")
        self.assertCode(self.redlock("sandbox", "-n", "1", "sh", "-c", "kill -TERM $$"), 143)

    def test_servers_run_and_have_files(self):
        """The servers reply and have a directory each."""
        script = f"{REDLOCK} nodes && cat $REDLOCK_SANDBOX_DIR/2/port $REDLOCK_SANDBOX_DIR/2/pid && test -s $REDLOCK_SANDBOX_DIR/2/log && echo \"$REDLOCK_SERVERS\""
        result = self.redlock("sandbox", "-n", "3", "--", "sh", "-c", script)
        self.assertCode(result, 0)
        self.assertIn("OK: 3 of 3", result.stdout)
        port, pid, servers = result.stdout.splitlines()[-3:]
        self.assertEqual(servers.split(",")[1], f"127.0.0.1:{port}?fresh=1")
        self.assertFalse(runs(int(pid)))

    def test_servers_and_files_are_removed_with_the_command(self):
        """Nothing is left when the command has ended."""
        process = self.begin("--", "sh", "-c", PRINT_SANDBOX)
        directory, pids = self.read_sandbox(process)
        self.assertEqual(len(pids), 5)
        self.assertEqual(process.wait(20 * SLOW), 0)
        # Already when the command returns, the servers and the directory are gone.
        self.assertEqual([pid for pid in pids if runs(pid)], [])
        self.assertFalse(os.path.exists(directory))

    def test_signals_end_the_servers(self):
        """A signal to the sandbox ends the servers and removes their files."""
        for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(signal=sig.name):
                process = self.begin("-n", "3", "--", "sh", "-c", PRINT_SANDBOX + "; exec sleep 1000")
                directory, pids = self.read_sandbox(process)
                process.send_signal(sig)
                self.assertEqual(process.wait(20 * SLOW), 128 + sig)
                self.assert_nothing_left(directory, pids)

    def test_waits_without_a_command_and_ends_on_ctrl_c(self):
        """Without a command the sandbox runs until Ctrl-C."""
        process = self.begin("-n", "3")
        text = ""
        while "Ctrl-C ends them" not in text:
            text += process.stdout.readline()
        directory = re.search(r"removes (\S+)", text).group(1)
        self.assertRegex(text, r"export REDLOCK_SERVERS='127\.0\.0\.1:\d+\?fresh=1,")
        pids = [int(open(f"{directory}/{i}/pid", encoding="ascii").read()) for i in (1, 2, 3)]
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(20 * SLOW), 130)
        self.assert_nothing_left(directory, pids)

    def test_killed_sandbox_leaves_nothing(self):
        """Nothing is left after kill -9 of the sandbox."""
        script = "setsid sleep 1000 >/dev/null & echo $! > $REDLOCK_SANDBOX_DIR/x; " + PRINT_SANDBOX + "; exec sleep 1000"
        process = self.begin("-n", "3", "--", "sh", "-c", script)
        directory, pids = self.read_sandbox(process)
        with open(f"{directory}/x", encoding="ascii") as file:
            pids.append(int(file.read()))
        process.kill()
        self.assert_nothing_left(directory, pids)

    def test_killed_guardian_leaves_nothing(self):
        """Nothing is left after kill -9 of its guardian; the sandbox exits with 70."""
        process = self.begin("-n", "3", "--", "sh", "-c", PRINT_SANDBOX + "; exec sleep 1000")
        directory, pids = self.read_sandbox(process)
        with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as file:
            os.kill(int(file.read().split()[0]), signal.SIGKILL)
        self.assertEqual(process.wait(20 * SLOW), 70)
        self.assert_nothing_left(directory, pids)

    def test_killed_node_can_be_started_again(self):
        """A server that was killed can be started again with its configuration file."""
        script = (
            "cd $REDLOCK_SANDBOX_DIR; kill -9 $(cat 1/pid); "
            f"until ! {REDLOCK} nodes >/dev/null; do :; done; "
            "./redis-server 1/conf & "
            f"until {REDLOCK} nodes >/dev/null; do :; done; cat 1/pid"
        )
        for script in (script, script.replace("conf & ", "conf --daemonize yes >/dev/null; ")):
            result = self.redlock("sandbox", "-n", "3", "--", "sh", "-c", script)
            self.assertCode(result, 0)
            self.assertFalse(runs(int(result.stdout.split()[-1])))

    def restart(self, directory, number):
        """Starts a killed server again as another terminal does: as a daemon that does not descend from the sandbox.
        Returns its pid."""
        home = f"{directory}/{number}"
        with open(f"{home}/pid", encoding="ascii") as file:
            old = file.read()
        subprocess.run([f"{directory}/redis-server", f"{home}/conf", "--daemonize", "yes"], check=True, stdout=subprocess.DEVNULL)

        def new_pid():
            """Returns the pid in the file once it is that of a server that runs; else 0."""
            with open(f"{home}/pid", encoding="ascii") as file:
                text = file.read()
            return int(text) if text.endswith("\n") and text != old and runs(int(text)) else 0

        pid = until(new_pid, "the pid of the server")
        self.addCleanup(self.kill, pid)
        return pid

    @staticmethod
    def kill(pid):
        """Kills a process if it still runs."""
        if runs(pid):
            os.kill(pid, signal.SIGKILL)

    def test_server_of_another_terminal_is_ended(self):
        """A server that was started again outside of the sandbox ends with it, also after kill -9 of a process of it."""
        for killed in (None, "the sandbox", "the guardian"):
            with self.subTest(killed=killed):
                process = self.begin("-n", "3", "--", "sh", "-c", PRINT_SANDBOX + "; exec sleep 1000")
                directory, pids = self.read_sandbox(process)
                guardian = next(pid for pid in children_of(process.pid))
                for pid in pids[:2]:
                    os.kill(pid, signal.SIGKILL)
                    until(lambda pid=pid: not runs(pid), "the end of the server")
                pids += [self.restart(directory, number) for number in (1, 2)]
                os.kill(guardian if killed == "the guardian" else process.pid, signal.SIGKILL if killed else signal.SIGTERM)
                process.wait(20 * SLOW)
                self.assert_nothing_left(directory, pids)

    def test_other_processes_are_spared(self):
        """A process that has nothing but its pid, or nothing but its current directory, in common with a server goes on."""
        process = self.begin("-n", "2", "--", "sh", "-c", PRINT_SANDBOX + "; exec sleep 1000")
        directory, pids = self.read_sandbox(process)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            until(lambda pid=pid: not runs(pid), "the end of the server")
        others = [subprocess.Popen(["sleep", "1000"], cwd=cwd) for cwd in ("/", f"{directory}/2")]
        for other in others:
            self.addCleanup(other.wait)
            self.addCleanup(other.kill)
        with open(f"{directory}/1/pid", "w", encoding="ascii") as file:
            file.write(f"{others[0].pid}\n")
        process.terminate()
        process.wait(20 * SLOW)
        self.assert_nothing_left(directory, pids)
        self.assertEqual([other.poll() for other in others], [None, None])

    def test_port_of_a_killed_server_stays_reserved(self):
        """The kernel assigns the port to no other socket until the sandbox ends."""
        process = self.begin("-n", "1", "--", "sh", "-c", PRINT_SANDBOX + "; exec cat", stdin=subprocess.PIPE)
        directory, pids = self.read_sandbox(process)
        with open(f"{directory}/1/port", encoding="ascii") as file:
            address = ("127.0.0.1", int(file.read()))
        os.kill(pids[0], signal.SIGKILL)
        until(lambda: not runs(pids[0]), "the end of the server")
        with socket.socket() as other:
            self.assertRaises(ConnectionRefusedError, other.connect, address)
        with socket.socket() as other:
            self.assertRaisesRegex(OSError, "in use", other.bind, address)
        process.stdin.close()
        self.assertEqual(process.wait(20 * SLOW), 0)
        with socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            other.bind(address)

    def test_two_sandboxes_are_separate(self):
        """Two sandboxes at once have different ports and directories."""
        first = self.begin("--", "sh", "-c", PRINT_SANDBOX + "; exec sleep 1000")
        second = self.begin("--", "sh", "-c", PRINT_SANDBOX + "; exec sleep 1000")
        (one, one_pids), (two, two_pids) = self.read_sandbox(first), self.read_sandbox(second)
        self.assertNotEqual(one, two)
        self.assertEqual(set(one_pids) & set(two_pids), set())
        first.terminate()
        first.wait(20 * SLOW)
        self.assertTrue(all(runs(pid) for pid in two_pids))
        with open(f"{two}/1/port", encoding="ascii") as file:
            connection = Resp(int(file.read()))
        self.assertEqual(connection.command("PING"), b"PONG")
        connection.close()

    def test_no_server_program(self):
        """Without a server program the message says what to install."""
        result = self.redlock("sandbox", env=clean_environment(PATH="/nonexistent"))
        self.assertCode(result, 69)
        self.assertIn("apt-get install redis-tools", result.stderr)

    def test_unwritable_directory(self):
        """A directory that cannot be written is reported."""
        result = self.redlock("sandbox", env=clean_environment(TMPDIR="/proc"))
        self.assertCode(result, 71)
        self.assertIn("set TMPDIR", result.stderr)

    def test_server_that_does_not_start_shows_its_log(self):
        """If a server does not start, the message has the end of its log."""
        server = self.path("redis-server", "#!/bin/sh\necho no way; exit 1\n")
        os.chmod(server, 0o755)
        result = self.redlock("sandbox", "-n", "1", env=clean_environment(PATH=f"{self.directory}:/usr/bin:/bin"))
        self.assertCode(result, 69)
        self.assertIn("no way", result.stderr)


if __name__ == "__main__":
    tapcase.main()
