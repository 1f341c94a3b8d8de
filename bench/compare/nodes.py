# SPDX-License-Identifier: MIT
"""The servers of the comparison: counts keys, stops and continues processes, runs the delay proxy."""

import os
import signal
import socket
import subprocess
import time


class Node:
    """One server: its URL, and the same without parameters (bare), which every peer understands."""

    def __init__(self, url):
        rest = url.split("://", 1)[-1]
        self.url = url
        address = rest.split("?")[0].rstrip("/")
        self.bare = f"{'rediss' if url.startswith('rediss:') else 'redis'}://{address}"
        self.host, _, port = address.rpartition(":")
        if "@" in address:
            raise ValueError("a server with a password cannot be measured: use a sandbox")
        if not self.host or not port.isascii() or not port.isdigit() or int(port) > 65535:
            raise ValueError(f"{url}: expected host:port")
        self.host, self.port = self.host.strip("[]"), int(port)
        self.pid = None  # known after Nodes.read_pids()
        self.stopped = False

    def request(self, *words, timeout_s=5):
        """Sends one command on a connection of its own and returns the reply as bytes, int, None or nested lists."""
        with socket.create_connection((self.host, self.port), timeout=timeout_s) as connection:
            text = b"*%d\r\n" % len(words)
            for word in words:
                data = str(word).encode()
                text += b"$%d\r\n%s\r\n" % (len(data), data)
            connection.sendall(text)
            with connection.makefile("rb") as file:
                return read_reply(file)

    def version(self):
        """Returns the server's name and version, like "redis 7.0.15"."""
        info = self.request("INFO", "server").decode()
        fields = dict(line.split(":", 1) for line in info.splitlines() if ":" in line)
        return f"{fields.get('server_name', 'redis')} {fields.get('redis_version', '?')}"

    def count_keys(self, part):
        """Counts the keys with `part` anywhere in their names: some peers add a prefix. Leaves out the keys of lines, which
        expire by themselves: a client that ends while a server is away cannot leave its line there."""
        count, cursor = 0, b"0"
        while True:
            cursor, keys = self.request("SCAN", cursor.decode(), "MATCH", f"*{part}*", "COUNT", 1000)
            count += sum(not key.endswith(b"{#q}") for key in keys)
            if cursor == b"0":
                return count


def read_reply(file):
    """Reads one RESP2 reply. Raises OSError for an error reply or the end of the connection."""
    line = file.readline()
    kind, rest = line[:1], line[1:-2]
    if kind == b"*":
        return [read_reply(file) for _ in range(int(rest))]
    if kind == b"$":
        return None if rest == b"-1" else file.read(int(rest) + 2)[:-2]
    if kind == b"-":
        raise OSError(rest.decode())
    if kind == b":":
        return int(rest)
    if kind == b"+":
        return rest
    raise OSError("the server closed the connection")


def normal(text):
    """Returns a list of servers with commas as the only separators."""
    return ",".join(text.replace(",", " ").split())


class Nodes:
    """The servers of a list."""

    def __init__(self, text):
        self.text = normal(text)
        self.list = [Node(url) for url in self.text.split(",")]

    def is_tls(self):
        """True if the list has the addresses for TLS."""
        return self.list[0].bare.startswith("rediss:")

    def bare(self):
        """Returns the list without the parameters of the URLs."""
        return ",".join(node.bare for node in self.list)

    def left(self, part, patience_s):
        """Counts the keys that are left after up to patience_s seconds. Stopped servers are not counted."""
        end = time.monotonic() + patience_s
        while True:
            count = sum(node.count_keys(part) for node in self.list if not node.stopped)
            if count == 0 or time.monotonic() >= end:
                return count
            time.sleep(0.02)

    def read_pids(self):
        """Reads the process ids of a sandbox. Returns False if the servers are not those of the sandbox around this
        process: others must not be stopped."""
        if self.text != normal(os.environ.get("REDLOCK_SERVERS", "")):
            return False
        directory = os.environ.get("REDLOCK_SANDBOX_DIR", "")
        for first in (1, 0):
            try:
                for number, node in enumerate(self.list, first):
                    with open(os.path.join(directory, str(number), "pid"), encoding="ascii") as file:
                        node.pid = int(file.read())
                return True
            except (OSError, ValueError):
                continue
        return False

    def stop(self, count):
        """Stops the processes of the last `count` servers, whose process ids are known."""
        for node in self.list[-count:]:
            os.kill(node.pid, signal.SIGSTOP)
            node.stopped = True

    def continue_all(self):
        """Continues the stopped servers."""
        for node in self.list:
            if node.stopped:
                node.stopped = False
                try:
                    os.kill(node.pid, signal.SIGCONT)
                except ProcessLookupError:
                    pass  # the server has been killed


class Proxy:
    """redlock-delay in front of all servers, with a delay for each. `nodes` are the servers through the proxy. It forwards
    bytes, and knows no addresses for TLS: those are plain ones for it."""

    def __init__(self, program, nodes, delays):
        text = nodes.text.replace("rediss:", "redis:")
        self.process = subprocess.Popen([program, "--servers", text, "--delay", ",".join(delays)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # fmt: skip
        text = self.process.stdout.readline().strip()
        self.nodes = Nodes(text.replace("redis:", "rediss:") if nodes.is_tls() else text)

    def close(self):
        """Ends the proxy and waits for its end."""
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()
