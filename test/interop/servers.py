# SPDX-License-Identifier: MIT
"""Starts redis-server processes for one test in Python, and removes their files at its end."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
import ports  # noqa: E402

PROGRAMS = ["redis-server", "valkey-server", "redis-check-rdb"]  # Debian has one program for all
MISSING = "no redis-server, valkey-server or redis-check-rdb in PATH"
SECONDS_MAX = 20  # time limit of the start of a server


def program():
    """Returns the path of the server program, or None."""
    for name in [os.environ.get("REDLOCK_TEST_SERVER"), *PROGRAMS]:
        found = name and shutil.which(name)
        if found:
            return found
    return None


class Servers:
    """Servers for a `with` block, which ends them."""

    def __init__(self, count):
        self.count = count
        self.processes = []
        self.keepers = []  # sockets that reserve the ports
        self.ports = []

    def __enter__(self):
        self.directory = tempfile.mkdtemp(prefix="interop-")
        try:
            for number in range(self.count):
                self._start(number)
            for port in self.ports:
                self._wait(port)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self, number):
        """Starts server `number` on a free port, with its log in a directory of its own."""
        directory = os.path.join(self.directory, str(number))
        os.mkdir(directory)
        self.keepers.append(ports.take_port())
        port = self.keepers[-1].getsockname()[1]
        words = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "",
                 "--appendonly", "no", "--dir", directory, "--loglevel", "warning"]  # fmt: skip
        with open(os.path.join(directory, "log"), "wb") as log:
            process = subprocess.Popen(words, executable=program(), stdout=log, stderr=log)
        self.processes.append(process)
        self.ports.append(port)

    def _wait(self, port):
        """Waits until the server on this port replies. Raises RuntimeError after SECONDS_MAX."""
        give_up = time.monotonic() + SECONDS_MAX
        while not ports.replies(port):
            if time.monotonic() > give_up:
                raise RuntimeError(f"the server on port {port} does not reply")
            time.sleep(0.01)

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()
        for keeper in self.keepers:
            keeper.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def command(self, number, *words):
        """Sends one command. Returns a number, a text, or None; other replies raise an error."""
        request = b"*%d\r\n" % len(words)
        for word in words:
            request += b"$%d\r\n%s\r\n" % (len(word.encode()), word.encode())
        with socket.create_connection(("127.0.0.1", self.ports[number]), timeout=5) as connection:
            connection.sendall(request)
            with connection.makefile("rb") as stream:
                line = stream.readline().strip()
                kind, rest = line[:1], line[1:]
                if kind == b":":
                    return int(rest)
                if kind == b"$":
                    return None if rest == b"-1" else stream.read(int(rest)).decode()
                if kind == b"+":
                    return rest.decode()
        raise RuntimeError(f"{words}: {line!r}")

    def urls(self):
        """Returns the addresses of the servers."""
        return [f"redis://127.0.0.1:{port}" for port in self.ports]
