# SPDX-License-Identifier: MIT
"""`redlock run` ends by signals of every kind, and when its command cannot be started although the lock was acquired.
world.Case starts servers for the class, five unless `count` differs, and empties them before each test. redlock()
runs the command and returns its result; start() only starts it; start_with_events() starts `run` and records its
events; hold() acquires a lock as another holder; until() waits for a condition. proxy.listen() starts a proxy in
front of a server."""

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import proxy  # noqa: E402
import tapcase  # noqa: E402
from world import REDLOCK, SLOW, Case, children_of, runs, until  # noqa: E402

PRINT_PID_AND_SLEEP = "ulimit -c 0; echo $$; exec sleep 1000"
SIGSTKFLT = 16
# Signals that end a wait; the second one kills the command after the grace.
ENDING_SIGNALS = (
    *(signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF),
    *(signal.SIGXCPU, signal.SIGABRT, signal.SIGSYS, signal.SIGIO, signal.SIGPWR, SIGSTKFLT),
)
# Signals that only the command handles.
USER_SIGNALS = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGRTMIN, signal.SIGRTMIN + 5, signal.SIGRTMAX)


class Signals(Case):
    """Signals to `redlock run`, before and while its command runs."""

    def test_every_signal_reaches_the_command(self):
        """Each signal that ends a process by default is passed on; the exit code is 128 + its number, and no key is
        left."""
        for sig in ENDING_SIGNALS + USER_SIGNALS:
            with self.subTest(signal=sig):
                process = self.start("run", "-t", "10s", "e", "--", "sh", "-c", PRINT_PID_AND_SLEEP)
                pid = int(process.stdout.readline())
                process.send_signal(sig)
                self.assertEqual(process.wait(10 * SLOW), 128 + sig)
                self.assertFalse(runs(pid))
                self.assertEqual(self.servers.keys(), set())

    def test_signals_reach_command_in_shared_group(self):
        """The same with --foreground, where the command is in redlock's process group."""
        for sig in signal.SIGPROF, signal.SIGXCPU:
            with self.subTest(signal=sig):
                process = self.start("run", "--foreground", "e", "--", "sh", "-c", PRINT_PID_AND_SLEEP)
                pid = int(process.stdout.readline())
                process.send_signal(sig)
                self.assertEqual(process.wait(10 * SLOW), 128 + sig)
                self.assertFalse(runs(pid))
                self.assertEqual(self.servers.keys(), set())

    def test_alarm_of_the_caller_ends_the_command(self):
        """Some callers limit the time of a command with alarm() before exec()."""
        process = self.start("run", "--foreground", "e", "--", "sh", "-c", PRINT_PID_AND_SLEEP, preexec_fn=lambda: signal.alarm(3))
        pid = int(process.stdout.readline())
        until(lambda: process.poll() is not None, "end by SIGALRM")
        self.assertEqual(process.returncode, 128 + signal.SIGALRM)
        self.assertFalse(runs(pid))
        self.assertEqual(self.servers.keys(), set())

    def test_second_signal_kills_after_the_grace(self):
        """A command that ignores the signal is killed after the grace of 1 s; later signals do not begin the grace
        anew."""
        stubborn = "trap '' PROF XCPU; echo $$; while :; do sleep 1; done"
        process = self.start("run", "-t", "20s", "-k", "1s", "e", "--", "sh", "-c", stubborn)
        pid = int(process.stdout.readline())
        process.send_signal(signal.SIGPROF)

        def ended():
            """Further signals do not begin the grace again."""
            process.send_signal(signal.SIGXCPU)
            return process.poll() is not None

        until(ended, "end after the grace")
        self.assertEqual(process.returncode, 128 + signal.SIGKILL)
        self.assertFalse(runs(pid))
        self.assertEqual(self.servers.keys(), set())

    def test_ending_signals_end_a_wait(self):
        """Each of these signals ends `run` and `acquire` that wait, and the holder keeps its key."""
        token = self.hold("e").encode()
        for words in ("run", "-v", "e", "--", "true"), ("acquire", "-v", "e"):
            for sig in ENDING_SIGNALS:
                with self.subTest(signal=sig, words=words):
                    process = self.start(*words)
                    self.wait_error("waiting for e")
                    process.send_signal(sig)
                    self.assertEqual(process.wait(10 * SLOW), 128 + sig)
                    self.assertEqual(set(self.servers.values("e")), {token})

    def test_signal_right_after_the_grant(self):
        """A signal that arrives between the grant and the start of the command: the command is not started."""
        shim = os.environ.get("PROCSTALL_SHIM", "")
        if not shim:
            self.skipTest("a preloaded object and the sanitizers do not go together")
        marker = self.path("started")
        for words in ("run", "-n", "e", "--", "touch", marker), ("acquire", "-n", "e"):
            with self.subTest(words=words):
                result = self.redlock(*words, env=self.environment(LD_PRELOAD=shim, PROCSTALL_AT="note"))
                self.assertCode(result, 128 + signal.SIGTERM)
                self.assertEqual(result.stdout, "")
                self.assertFalse(os.path.exists(marker))
                self.assertEqual(self.servers.keys(), set())

    def test_other_signals_do_not_end_a_wait(self):
        """Signals for users and ignored ones do not end a wait."""
        token = self.hold("e")
        process = self.start("run", "-v", "e", "--", "sh", "-c", "exit 7")
        self.wait_error("waiting for e")
        for sig in (*USER_SIGNALS, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGURG):
            process.send_signal(sig)
        self.assertCode(self.redlock("release", "e", token), 0)
        self.assertEqual(process.wait(10 * SLOW), 7)

    def test_full_log_does_not_end_the_command(self):
        """A write beyond `ulimit -f` raises SIGXFSZ, and a write into a closed pipe SIGPIPE."""
        log = self.path("log")
        script = f'ulimit -f 0; exec {REDLOCK} run -vv e -- sh -c "exit 5" 2>{log}'
        for words in (script, script.replace(f"2>{log}", "2>&1 | :; exit ${PIPESTATUS[0]}").replace("exec ", "")):
            with self.subTest(words=words):
                result = subprocess.run(["bash", "-c", words], env=self.environment(), timeout=60 * SLOW, check=False)
                self.assertEqual(result.returncode, 5)
                self.assertEqual(self.servers.keys(), set())

    def test_command_has_default_signal_actions(self):
        """The command starts with no signal blocked or ignored."""
        result = self.redlock("run", "e", "--", "grep", "-E", "Sig(Blk|Ign):", "/proc/self/status")
        self.assertEqual(result.stdout, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n")

    def test_command_ignores_some_signals_of_the_caller(self):
        """HUP, INT and QUIT stay ignored, for nohup and for `cmd &` in scripts; the actions of all others are reset."""
        def ignore():
            """Ignores some signals, in the process that becomes redlock."""
            for sig in signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGTERM:
                signal.signal(sig, signal.SIG_IGN)

        result = self.redlock("run", "e", "--", "grep", "SigIgn:", "/proc/self/status", preexec_fn=ignore)
        self.assertEqual(result.stdout, "SigIgn:\t0000000000000007\n")

    def test_signal_ends_min_hold_after_the_command(self):
        """The command has ended, and the lock is left to its TTL."""
        process, events = self.start_with_events("-t", "3s", "--min-hold", "30s", "e", "--", "true")
        self.wait_event(events, "child_exited")
        value = set(self.servers.values("e"))
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(10 * SLOW), 0)
        self.assertLessEqual(set(self.servers.values("e")), value)
        until(lambda: self.servers.keys() == set(), "the end of the TTL")

    def test_dropped_events_are_counted(self):
        """The pipe is full until the command has handled two signals, so that two events were dropped."""
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        os.set_blocking(writer, False)
        filled = 0
        try:
            while True:
                filled += os.write(writer, b"\n" * 4096)
        except BlockingIOError:
            pass
        script = "trap 'echo one' USR1; trap 'echo two; exit 0' USR2; echo ready; while :; do sleep 0.01; done"
        process = self.start("run", "--status-fd", str(writer), "e", "--", "sh", "-c", script, pass_fds=[writer])
        os.close(writer)
        self.assertEqual(process.stdout.readline(), "ready\n")
        for _ in range(2):
            process.send_signal(signal.SIGUSR1)
            self.assertEqual(process.stdout.readline(), "one\n")
        while filled > 0:
            filled -= len(os.read(reader, filled))
        process.send_signal(signal.SIGUSR2)
        self.assertEqual(process.stdout.readline(), "two\n")
        self.assertEqual(process.wait(10 * SLOW), 0)
        with os.fdopen(os.dup(reader), encoding="utf-8") as file:
            events = [json.loads(line) for line in file]
        self.assertEqual([(event["event"], event.get("events_dropped")) for event in events], [("child_exited", 2), ("released", 2)])

    def test_suspended_command_receives_stop_signal(self):
        """At the end of its time (--max-hold) a suspended command is continued, so that it receives SIGTERM."""
        script = "trap 'echo term; exit 0' TERM; echo $$; while :; do sleep 0.01; done"
        process = self.start("run", "-k", "4s", "--max-hold", "5s", "e", "--", "sh", "-c", script)
        os.killpg(int(process.stdout.readline()), signal.SIGSTOP)
        self.assertEqual(process.stdout.readline(), "term\n")
        self.assertEqual(process.wait(10 * SLOW), 124)


class NotStarted(Case):
    """The lock was acquired, but the command cannot be started."""

    def test_fork_fails(self):
        """An error of the operating system has the exit code 71, not 126 as an error of the command."""
        token = self.hold("e")
        marker = self.path("started")
        process, events = self.start_with_events("-v", "e", "--", "touch", marker)
        self.wait_error("waiting for e")
        starter = until(lambda: [p for g in children_of(process.pid) for p in children_of(g)], "the starter")[0]
        resource.prlimit(starter, resource.RLIMIT_NOFILE, (3, 3))
        self.redlock("release", "e", token)
        self.assertEqual(process.wait(10 * SLOW), 71)
        self.assertIn("e: no process could be started for the command: Too many open files", self.error_text())
        self.wait_event(events, "acquired")
        self.assertEqual(self.wait_event(events, "released")["error"], "")
        self.assertFalse(os.path.exists(marker))
        self.assertEqual(self.servers.keys(), set())

    def test_program_disappears_during_the_wait(self):
        """The program is removed, or made not executable, while `redlock run` waits for the lock."""
        for code, change in (127, os.unlink), (126, lambda path: os.chmod(path, 0o600)):
            with self.subTest(code=code):
                token = self.hold("e")
                path = self.path("program", "#!/bin/sh\nexit 0\n")
                os.chmod(path, 0o700)
                process = self.start("run", "-v", "e", "--", path)
                self.wait_error("waiting for e")
                change(path)
                self.redlock("release", "e", token)
                self.assertEqual(process.wait(10 * SLOW), code)
                self.assertIn(f"e: {path}: ", self.error_text())
                self.assertEqual(self.servers.keys(), set())


def drop_first_release_reply(listener, port):
    """Runs a proxy that once closes the connection instead of passing the reply that a key was deleted."""
    dropped = threading.Event()

    def serve(near):
        """Serves one connection: passes all bytes on, except as drop_reply() says."""
        far = socket.create_connection(("127.0.0.1", port))
        release_sent = threading.Event()

        def watch_request(chunk):
            """Passes every piece, and notes that the release was sent."""
            if b"EVALSHA" in chunk:
                release_sent.set()
            return True

        def drop_reply(chunk):
            """Drops the first reply to a release, and closes the connection in its place."""
            if not release_sent.is_set() or not chunk.endswith(b":1\r\n") or dropped.is_set():
                return True
            dropped.set()
            near.shutdown(socket.SHUT_RDWR)
            return False

        threading.Thread(target=proxy.pass_on, args=(near, far, watch_request), daemon=True).start()
        threading.Thread(target=proxy.pass_on, args=(far, near, drop_reply), daemon=True).start()

    while True:
        try:
            serve(listener.accept()[0])
        except OSError:
            return


def delay_sets(listener, port, delay, times):
    """Runs a proxy that delays the first `times` SETs by `delay` seconds."""
    left = [times]

    def delay_set(chunk):
        """Passes every piece, the first `times` ones with a SET after the delay."""
        if b"\r\nSET\r\n" in chunk and left[0] > 0:
            left[0] -= 1
            time.sleep(delay)
        return True

    proxy.run_proxy(listener, port, delay_set, proxy.pass_all)


class TooSlow(Case):
    """Servers whose replies to SET come later than the TTL."""

    def acquire(self, times):
        """Runs `redlock acquire` with a TTL that ends before a delayed majority replies."""
        servers = ",".join(proxy.listen(self, delay_sets, port, 0.15, times) + "?fresh=1" for port in self.servers.ports)
        return self.redlock("acquire", "-n", "-t", "100ms", "-s", servers, "e")

    def test_no_majority_in_time(self):
        """If every attempt is too slow, `acquire` ends with 69."""
        result = self.acquire(times=1000)
        self.assertCode(result, 69)
        self.assertIn("e: not acquired: ", result.stderr)

    def test_second_attempt_succeeds_when_servers_are_fast(self):
        """With -n the attempt is repeated for half a second; a busy machine may need several runs."""
        until(lambda: self.acquire(times=1).returncode == 0, "a lock at the second attempt")


class Replies(Case):
    """Exit codes where replies are lost, and for several names."""

    def test_repeated_release_counts_as_success(self):
        """The replies to the first release requests are lost and the requests repeated: the keys are gone, deleted by
        the first ones."""
        for strict in [], ["--strict"]:
            with self.subTest(strict=strict):
                token = self.hold("e")
                addresses = [proxy.listen(self, drop_first_release_reply, port) + "?fresh=1" for port in self.servers.ports[:3]]
                addresses += [f"127.0.0.1:{port}?fresh=1" for port in self.servers.ports[3:]]
                result = self.redlock("release", *strict, "-s", ",".join(addresses), "e", token)
                self.assertCode(result, 0)
                self.assertEqual(result.stderr, "")
                self.assertEqual(self.servers.keys(), set())
        self.assertCode(self.redlock("release", "--strict", "e", token), 1)

    def test_status_of_several_names_is_the_worst(self):
        """`status` ends with 1 if one of its names is free."""
        self.hold("held")
        for names, code in (("held", "held2"), 1), (("held2", "held"), 1), (("held",), 0):
            with self.subTest(names=names):
                self.assertCode(self.redlock("status", *names), code)


if __name__ == "__main__":
    tapcase.main()
