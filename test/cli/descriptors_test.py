# SPDX-License-Identifier: MIT
"""Unusual file descriptors: closed, too few, or on a full device; and no /proc. world.Case starts servers for the
class, five unless `count` differs, and empties them before each test."""

import json
import os
import resource
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import tapcase  # noqa: E402
from world import REDLOCK, SLOW, TLS, Case  # noqa: E402


class Descriptors(Case):
    """The command with stdin, stdout or stderr in unusual states."""

    def sh(self, script):
        """Runs the script in a shell with `redlock` in PATH."""
        return subprocess.run(
            ["bash", "-c", script],
            env=self.environment(PATH=os.path.dirname(REDLOCK) + ":" + os.environ["PATH"]),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60 * SLOW,
            check=False,
        )

    def test_no_messages_to_another_file_when_stderr_is_closed(self):
        """With stderr closed, another file could get its number and with it the messages: the guardian once read them
        as orders from its pipe."""
        command = "redlock run -vv d -- sh -c 'sleep 0.2; exit 5'"
        for closed, times in ("<&- 2>&-", 8), ("2>&-", 1), ("<&- >&-", 1), (">&- 2>&-", 1), ("<&- >&- 2>&-", 1):
            with self.subTest(closed=closed):
                for _ in range(times):
                    self.assertCode(self.sh(f"{command} {closed}"), 5)
                self.assertEqual(self.servers.keys(), set())

    def test_closed_descriptors_are_closed_for_the_command(self):
        """A descriptor 0, 1 or 2 that is closed for redlock is closed for its command, too."""
        look = "redlock run d -- bash -c '[ -e /dev/fd/0 ] && echo 0 >&3; [ -e /dev/fd/1 ] && echo 1 >&3; true' 3>&1"
        for closed, found in ("", "0\n1\n"), (">&-", "0\n"), ("<&- >&-", ""):
            with self.subTest(closed=closed):
                result = self.sh(f"{look} {closed}")
                self.assertCode(result, 0)
                self.assertEqual(result.stdout, found)

    def test_lock_is_released_when_its_token_cannot_be_printed(self):
        """`acquire` with a full stdout releases its lock, because no process has the token."""
        for closed in ">&-", ">&- <&-", ">/dev/full":
            with self.subTest(closed=closed):
                self.assertCode(self.sh(f"redlock acquire d {closed}"), 74)
                self.assertEqual(self.servers.keys(), set())

    def test_lost_output_gives_an_exit_code(self):
        """Output that cannot be written gives exit code 74; `status` keeps its own."""
        for command in "nodes", "config", "--help", "run --help", "nodes --json":
            with self.subTest(command=command):
                result = self.sh(f"redlock {command} >/dev/full")
                self.assertCode(result, 74)
                self.assertIn("stdout: the output could not be written; ", result.stderr)
        self.assertCode(self.sh("redlock status d >/dev/full"), 1)  # the exit status has the result

    def test_file_size_limit(self):
        """Output beyond `ulimit -f` and into a closed pipe is output that is lost, and no signal ends the command."""
        commands = [
            "nodes", "config", "--help", "run --help", "--version", "extend d $token", "break --yes d", "top --once",
            "run --metrics-file {file} run -- true",
        ]
        for command in commands:
            with self.subTest(command=command):
                name = f"d{len(command)}"
                path = self.path("out.prom", "")
                words = command.replace(" d", f" {name}").format(file=path)
                prepare = f"token=$(redlock acquire -t 20s {name})" if name in words else "true"
                result = self.sh(f"{prepare}; ulimit -f 0; redlock {words} > {path}")
                self.assertCode(result, 74)
                self.assertRegex(result.stderr, "File too large|the output could not be written")
        for command in commands[:5]:
            with self.subTest(closed_pipe=command):
                read, write = os.pipe()
                os.close(read)
                result = subprocess.run([REDLOCK, *command.split()], stdout=write, env=self.environment(), check=False,
                                        stderr=subprocess.PIPE, text=True)
                os.close(write)
                self.assertCode(result, 74)

    def test_too_few_descriptors(self):
        """With too few descriptors there is a message and an exit code, and no key stays."""
        for limit in range(4, 20):
            with self.subTest(limit=limit):
                result = self.sh(f"ulimit -n {limit}; redlock run -w 1 d -- sh -c 'exit 9'")
                self.assertIn(result.returncode, (9, 69, 71), result.stderr)
                if result.returncode != 9:
                    self.assertRegex(result.stderr, "^redlock: ")
                self.assertEqual(self.servers.keys(), set())
        result = self.sh("ulimit -n 10; redlock nodes")
        self.assertIn("Too many open files\n      -> raise ulimit -n", result.stdout)
        result = self.sh("ulimit -n 10; redlock run -n d -- true")
        self.assertIn("descriptors (see ulimit -n)", result.stderr)

    def test_too_few_processes(self):
        """With too few processes for the guardian, the starter, a thread or the command, the message says that and the
        exit code is 71, not that a process was killed. No key stays."""
        if os.getuid() != 0 or TLS:  # the user of this test cannot read the certificates
            self.skipTest("to have a user without processes takes root")
        if not os.environ.get("CLOCKSHIM"):
            self.skipTest("a sanitizer starts a process at the end of each program")
        user = 40000 + os.getpid() % 20000
        environment = self.environment(TMPDIR="/tmp")  # which every user may write to
        for words, most in (("run d -- true", 4), ("sandbox -n 1 -- true", 3)):
            for limit in range(1, most + 1):
                with self.subTest(words=words, limit=limit):
                    result = self.redlock(*words.split(), user=user, group=user, extra_groups=[], cwd="/", env=environment,
                                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit)))
                    self.assertCode(result, 71)
                    self.assertRegex(result.stderr, r"ulimit -u\)$")
                    self.assertEqual(self.servers.keys(), set())
        codes = set()
        for limit in range(2, 8):
            result = self.redlock("nodes", user=user, group=user, extra_groups=[], cwd="/",
                                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit)))
            codes.add(result.returncode)
            if result.returncode == 3:
                self.assertIn("ulimit -u", result.stdout + result.stderr)
        self.assertEqual(codes, {0, 3})

    def test_nodes_with_too_few_descriptors(self):
        """`nodes` says once that the check is incomplete, and what to do, and exits with 3. The servers are healthy, so
        no other finding than that may be worse than a note."""
        codes = set()
        patient = "--connect-timeout 2s --node-timeout 2s"
        for limit in (*range(8, 32, 2), 48):
            result = self.sh(f"ulimit -n {limit}; redlock nodes {patient}")
            with self.subTest(limit=limit, output=result.stdout + result.stderr):
                self.assertIn(result.returncode, (0, 3))
                codes.add(result.returncode)
                said = (result.stdout + result.stderr).count("ulimit -n")
                self.assertEqual(said, 1 if result.returncode == 3 else 0)
                self.assertLessEqual(len(result.stderr.splitlines()), 1)
                self.assertNotRegex(result.stdout, "(?m)^crit ")
                if result.returncode == 3 and result.stdout:
                    self.assertRegex(result.stdout, "(?m)^UNKNOWN: the check is incomplete")
        self.assertEqual(codes, {0, 3})

    def test_figures_of_nodes_with_too_few_descriptors(self):
        """The figures say that the check is incomplete wherever the output says it, so that an alarm rule sees it. A check
        that ends with 3 before its verdict leaves the file as it is: the alarm on its age finds that."""
        path = self.path("nodes.prom")
        codes = set()
        for limit in (*range(8, 24), 48):
            with self.subTest(limit=limit):
                if os.path.exists(path):
                    os.unlink(path)
                result = self.sh(f"ulimit -n {limit}; redlock nodes --connect-timeout 2s --node-timeout 2s --metrics-file {path}")
                self.assertIn(result.returncode, (0, 3), result.stdout + result.stderr)
                if not result.stdout:  # the client could not be started
                    self.assertCode(result, 3)
                    self.assertFalse(os.path.exists(path))
                else:
                    codes.add(result.returncode)
                    with open(path, encoding="utf-8") as file:
                        self.assertIn(f'\nredlock_nodes_health{{file="nodes.prom"}} {result.returncode}\n', file.read())
        self.assertEqual(codes, {0, 3})

    def test_nodes_in_json_and_with_fences_and_too_few_descriptors(self):
        """JSON has the same state, with a finding about each server that could not be checked."""
        for more in ("", "--fence"):
            result = self.sh(f"export REDLOCK_FENCE_RECORDS=volatile; ulimit -n 14; redlock nodes --json {more}")
            self.assertCode(result, 3)
            state = json.loads(result.stdout)
            self.assertEqual(state["state"], "UNKNOWN")
            codes = {(finding["severity"], finding["code"]) for finding in state["findings"]}
            self.assertEqual(codes - {("note", "no_aof")}, {("warn", "descriptors")})

    def test_no_proc(self):
        """Without /proc there is a warning; namespaces_test.py checks how processes end then."""
        if not os.environ.get("CLOCKSHIM"):
            self.skipTest("a sanitizer looks into /proc itself")
        if self.sh("unshare -m mount -t tmpfs none /proc").returncode != 0:
            self.skipTest("to hide /proc takes root and a mount namespace")
        library = os.path.join(os.path.dirname(os.path.dirname(REDLOCK)), "lib")
        run = f"LD_LIBRARY_PATH={library} redlock run d -- sh -c 'exit 3'"
        result = self.sh(f'unshare -m sh -c "mount -t tmpfs none /proc && {run}"')
        self.assertCode(result, 3)
        self.assertIn("warning: d: /proc cannot be read", result.stderr)
        self.assertEqual(self.sh("redlock run d -- true").stderr, "")


if __name__ == "__main__":
    tapcase.main()
