# SPDX-License-Identifier: MIT
"""Helpers of the command's tests: servers from `redlock sandbox`, calls of the command, waiting for
conditions, and a small RESP client."""

import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

REDLOCK = os.environ.get("REDLOCK", "redlock")
SLOW = float(os.environ.get("REDLOCK_TEST_SLOW", "1"))
# The servers speak TLS only. The runner wants to see the line (test/runner/over_tls.py).
TLS = os.environ.get("REDLOCK_TEST_TLS") == "1"
if TLS:  # otherwise the import would take as long as a case
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))
    import over_tls
TIME_LIMIT = 60 * SLOW  # seconds: deadline of everything that a test waits for; what takes that long hangs


def clean_environment(**more):
    """Returns an environment in which no setting of the caller's affects the command, with `more` added."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("REDLOCK_") and k != "REDIS_URL"}
    return {**kept, "HOME": "/nonexistent", "XDG_CONFIG_HOME": "/nonexistent", **more}


def until(condition, what, seconds=TIME_LIMIT):
    """Polls until the condition is true and returns its value. Fails after the deadline."""
    give_up = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > give_up:
            raise AssertionError(f"not within {seconds:.1f} s: {what}")
        time.sleep(0.005)


def state_of(pid):
    """Returns the letter in /proc/PID/stat, or '' if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""


def stat_fields(pid):
    """Returns [state, ppid, pgrp, session, tty, tpgid]."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        fields = file.read().rpartition(")")[2].split()
    return [fields[0]] + [int(field) for field in fields[1:6]]


def runs(pid):
    """Returns whether the process runs. A zombie with other threads does: its sockets are still open."""
    if state_of(pid) not in ("", "Z", "X"):
        return True
    try:
        return len(os.listdir(f"/proc/{pid}/task")) > 1
    except OSError:
        return False


STEP = 0.005  # seconds between two checks
PAUSE = 0.02  # a check that comes so many seconds late shows that the machine was paused


def seconds_until_gone(pids, since):
    """Returns the seconds from `since` until none of the processes runs, without the pauses of the machine, because no
    process can end in them. Fails after the deadline."""
    paused, last = 0, time.monotonic()
    while any(runs(pid) for pid in pids):
        if last - since > TIME_LIMIT:
            raise AssertionError(f"not within {TIME_LIMIT:.1f} s: end of {pids}")
        time.sleep(STEP)
        now = time.monotonic()
        paused += now - last if now - last > STEP + PAUSE else 0
        last = now
    return time.monotonic() - since - paused


def children_of(pid):
    """Returns the pids of its children."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                if stat_fields(entry)[1] == pid:
                    found.append(int(entry))
            except (OSError, IndexError):
                continue
    return found


class Resp:
    """One connection to a server, with TLS if there is a file of issuers. A reply is bytes, an int, a list, None or an
    Exception."""

    def __init__(self, port, issuers=None):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=TIME_LIMIT)
        if issuers:
            import ssl  # takes as long as all other modules together

            context = ssl.create_default_context(cafile=issuers)
            self.socket = context.wrap_socket(self.socket, server_hostname="127.0.0.1")
        self.file = self.socket.makefile("rb")

    def reply(self):
        """Reads one reply and returns it."""
        line = self.file.readline()[:-2]
        kind, rest = line[:1], line[1:]
        if kind == b"$":
            return None if rest == b"-1" else self.file.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return [self.reply() for _ in range(int(rest))]
        if kind == b":":
            return int(rest)
        return Exception(rest.decode()) if kind == b"-" else rest

    def command(self, *words):
        """Sends a command and returns its reply. Words are bytes, str or numbers."""
        blob = b"*%d\r\n" % len(words)
        for word in words:
            word = word if isinstance(word, bytes) else str(word).encode()
            blob += b"$%d\r\n%s\r\n" % (len(word), word)
        self.socket.sendall(blob)
        return self.reply()

    def close(self):
        """Closes the connection."""
        self.file.close()
        self.socket.close()


class Servers:
    """The servers of a running `redlock sandbox -n count`. `list` is their REDLOCK_SERVERS."""

    def __init__(self, count):
        self.process = subprocess.Popen(
            [REDLOCK, "sandbox", *(["--tls"] if TLS else []), "-n", str(count)],
            stdout=subprocess.PIPE,
            text=True,
            env=clean_environment(),
        )
        lines = []
        for line in self.process.stdout:
            lines.append(line)
            if line.startswith("Ctrl-C"):
                break
        text = "".join(lines)
        self.list = re.search(r"REDLOCK_SERVERS='(\S+)'", text).group(1)
        self.directory = re.search(r"removes (\S+)", text).group(1)
        self.ports = [int(part.rpartition(":")[2].partition("?")[0]) for part in self.list.split(",")]
        self.issuers = self.list.partition("cacert=")[2].partition(",")[0].partition("&")[0] or None
        self.stopped = set()
        if TLS:
            print(over_tls.MARK, end="", flush=True)

    def pid(self, index):
        """Returns the process of a server."""
        with open(f"{self.directory}/{index + 1}/pid", encoding="ascii") as file:
            return int(file.read())

    def stop(self, *indexes):
        """Stops these servers with SIGSTOP, until continue_all()."""
        for index in indexes:
            os.kill(self.pid(index), signal.SIGSTOP)
            self.stopped.add(index)

    def continue_all(self):
        """Lets all stopped servers continue."""
        for index in self.stopped:
            os.kill(self.pid(index), signal.SIGCONT)
        self.stopped.clear()

    def connect(self, index):
        """Returns a new connection to one server."""
        return Resp(self.ports[index], self.issuers)

    def command(self, index, *words):
        """Sends a command to one server and returns its reply."""
        connection = self.connect(index)
        try:
            return connection.command(*words)
        finally:
            connection.close()

    def command_with_password(self, index, password, *words):
        """The same for a server that requires a password."""
        connection = self.connect(index)
        try:
            connection.command("AUTH", password)
            return connection.command(*words)
        finally:
            connection.close()

    def command_all_with_password(self, password, *words):
        """Sends a command to all servers, which require a password. Returns the list of replies."""
        return [self.command_with_password(index, password, *words) for index in range(len(self.ports))]

    def command_all(self, *words):
        """Sends a command to all servers and returns the list of replies."""
        return [self.command(index, *words) for index in range(len(self.ports))]

    def keys(self):
        """Returns all keys of all servers, as a set."""
        return {key for keys in self.command_all("KEYS", "*") for key in keys}

    def values(self, name):
        """Returns the values of that key, without the servers that do not have it."""
        return [value for value in self.command_all("GET", name) if value is not None]

    def end(self):
        """Ends the sandbox, and with it the servers."""
        self.continue_all()
        self.process.terminate()
        self.process.stdout.close()
        self.process.wait(TIME_LIMIT)


# Timeouts that are longer than a pause of the whole machine, so that no server looks unresponsive in it. `run`
# subtracts the node timeout from the TTL to stop its command in time, so a short TTL keeps the default.
TIMEOUT_FLAGS = ("--connect-timeout", "--node-timeout")
LONG_TIMEOUT_COMMANDS = ("run", "acquire", "extend", "release", "status", "break")


def with_long_timeouts(args):
    """Returns the arguments with long timeouts for the servers, unless they contain timeouts."""
    if args[0] not in LONG_TIMEOUT_COMMANDS and "--init" not in args:  # these wait for a multiple of the timeouts
        return args
    short = args[0] == "run" and any(flag in args for flag in ("-t", "--ttl"))
    flags = [flag for flag in (TIMEOUT_FLAGS[:1] if short else TIMEOUT_FLAGS) if flag not in args]
    return [args[0], *(word for flag in flags for word in (flag, "1s")), *args[1:]]


class CommandCase(unittest.TestCase):
    """A test case with a directory for files, and the command. No servers."""

    has_servers = False

    def setUp(self):
        why = over_tls.CASES_LEFT_OUT.get(self.id().replace("__main__.", "")) if TLS else None
        if why:
            self.skipTest(why)
        self.directory = tempfile.mkdtemp(prefix="cli-")
        self.addCleanup(self.remove_directory)

    def remove_directory(self):
        """Removes the directory and its files; a directory in it is an error."""
        for name in os.listdir(self.directory):
            os.unlink(os.path.join(self.directory, name))
        os.rmdir(self.directory)

    def path(self, name, text=None):
        """Returns the path of that name in the directory. With a text, writes it into the file."""
        path = os.path.join(self.directory, name)
        if text is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return path

    def environment(self, **more):
        """Returns the environment of the command: no settings, with `more` added. Classes with servers add these."""
        return clean_environment(**more)

    def with_clock(self, ahead_ns):
        """Returns an environment in which the wall clock is that far ahead."""
        shim = os.environ.get("CLOCKSHIM", "")
        if not shim:
            self.skipTest("a sanitizer does not go with the clock shim")
        path = self.path("clock")
        clock = struct.pack("<I4xqqq24x", 0, ahead_ns, 0, 0) + bytes(3 * 56)
        with open(path, "wb") as file:
            file.write(clock)
        return self.environment(LD_PRELOAD=shim, CLOCKSHIM_FILE=path)

    def redlock(self, *args, **options):
        """Runs the command and waits for its end. Returns subprocess.CompletedProcess."""
        environment = options.pop("env", None) or self.environment()
        return subprocess.run(
            [REDLOCK, *(with_long_timeouts(args) if self.has_servers else args)],
            capture_output=True,
            text=True,
            env=environment,
            stdin=subprocess.DEVNULL,
            timeout=60 * SLOW,
            check=False,
            **options,
        )

    def assertCode(self, result, code):
        """Fails, with the output, unless the command exited with this code."""
        self.assertEqual(result.returncode, code, f"stdout: {result.stdout}\nstderr: {result.stderr}")


class OwnServersCase(CommandCase):
    """A test case with three servers of its own, so that it may change or damage them."""

    has_servers = True

    def setUp(self):
        super().setUp()
        self.servers = Servers(3)
        self.addCleanup(self.servers.end)

    def environment(self, **more):
        return clean_environment(**{"REDLOCK_SERVERS": self.servers.list, **more})


    def start_another(self, index, *flags, env=None):
        """Ends a server and starts one with these flags in its place, without TLS. Waits until it replies."""
        self.servers.command(index, "SHUTDOWN", "NOSAVE")
        words = [self.servers.directory + "/redis-server", "--port", str(self.servers.ports[index]), "--save", ""]
        server = subprocess.Popen([*words, "--dir", self.directory, *flags], env=env, stdout=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)

        def replies():
            """Returns whether the server replies."""
            try:
                return self.servers.command(index, "PING") == b"PONG"
            except OSError:
                return False

        until(replies, "the server replies")


class Case(CommandCase):
    """A test case with five servers for the class, which are emptied before each test."""

    count = 5
    has_servers = True

    @classmethod
    def setUpClass(cls):
        cls.servers = Servers(cls.count)
        cls.addClassCleanup(cls.servers.end)

    def setUp(self):
        super().setUp()
        self.servers.continue_all()
        self.servers.command_all("FLUSHALL")

    def environment(self, **more):
        return clean_environment(**{"REDLOCK_SERVERS": self.servers.list, **more})

    def start(self, *args, **options):
        """Starts the command with a pipe as stdout and a file as stderr. It is killed after the test."""
        environment = options.pop("env", None) or self.environment()
        self.errors = self.path("stderr")
        with open(self.errors, "wb") as errors:
            process = subprocess.Popen(
                [REDLOCK, *args],
                stdout=subprocess.PIPE,
                stderr=errors,
                stdin=subprocess.DEVNULL,
                text=True,
                env=environment,
                **options,
            )
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        """Kills a process of start(), if it still runs."""
        if process.poll() is None:
            process.kill()
        process.stdout.close()
        process.wait()

    def error_text(self):
        """Returns what the command that start() started last has written to stderr until now."""
        with open(self.errors, encoding="utf-8") as file:
            return file.read()

    def wait_error(self, pattern):
        """Waits until stderr of the command that start() started matches the pattern."""
        try:
            return until(lambda: re.search(pattern, self.error_text()), f"{pattern!r} on stderr")
        except AssertionError as error:
            raise AssertionError(f"{error}, which is:\n{self.error_text()}") from None

    def wait_gone(self, *pids):
        """Waits until none of the processes runs."""
        for pid in pids:
            until(lambda pid=pid: not runs(pid), f"end of process {pid}")

    def events(self, path):
        """Returns the events written until now (whole lines only)."""
        with open(path, encoding="utf-8") as file:
            text = file.read()
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def wait_events(self, path, name, count):
        """Waits for `count` events of that name and returns them."""

        def find():
            """Returns the events, or None if there are too few."""
            found = [event for event in self.events(path) if event["event"] == name]
            return found[:count] if len(found) >= count else None

        return until(find, f"{count} events {name}")

    def wait_event(self, path, name):
        """Waits for an event of that name and returns the first one."""
        return self.wait_events(path, name, 1)[0]

    def start_with_events(self, *args, **options):
        """Starts `redlock run` with --status-fd into a file. Returns (process, path)."""
        path = self.path("events", "")
        with open(path, "ab") as file:
            process = self.start(
                "run", "--status-fd", str(file.fileno()), *args, pass_fds=[file.fileno()], **options
            )
        return process, path

    def hold(self, name, ttl="30s"):
        """Acquires the lock as another holder. Returns its token."""
        result = self.redlock("acquire", "-n", "-t", ttl, name)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.strip()

    def hold_on_all(self, name):
        """The same on all servers: on a busy machine a majority replies first, which is enough for the command."""
        while True:
            token = self.hold(name)
            if len(self.servers.values(name)) == len(self.servers.ports):
                return token
            self.redlock("release", name, token)
