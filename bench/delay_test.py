# SPDX-License-Identifier: MIT
"""Runs redlock-delay on loopback: no byte is early, changed, lost or out of order, and held bytes are bounded."""

import contextlib
import os
import random
import socket
import subprocess
import threading
import time
import unittest

import tapcase

DELAY = os.environ["REDLOCK_TEST_DELAY"]
SLOW = int(os.environ.get("REDLOCK_TEST_SLOW", "1"))
DEADLINE_S = 30 * SLOW
HELD_MAX = 1 << 20  # DELAY_HELD_MAX of delay.h


def receive(connection, size):
    """Returns the next `size` bytes, or fewer at the end of the connection."""
    data = bytearray()
    while len(data) < size:
        part = connection.recv(65536)
        if not part:
            break
        data += part
    return bytes(data)


class Echo:
    """A server that sends back what it receives, and closes a connection when its peer does."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=200)
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        """Accepts connections, each with a thread of its own."""
        while True:
            connection = self.listener.accept()[0]
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        """Sends back what one connection receives."""
        with connection, contextlib.suppress(OSError):
            while data := connection.recv(65536):
                connection.sendall(data)


class Proxy:
    """A running redlock-delay in front of `servers`. The context manager ends it."""

    def __init__(self, servers, *words):
        self.process = subprocess.Popen(
            [DELAY, "--servers", ",".join(servers), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self.urls = self.process.stdout.readline().strip().split(",")

    def connect(self, index=0):
        """Returns a connection to a server through the proxy."""
        port = int(self.urls[index].rsplit(":", 1)[1].split("?")[0])
        connection = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def command(self, line):
        """Sends a control line to the proxy."""
        self.process.stdin.write(line + "\n")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.stdout.close()
        assert self.process.wait(DEADLINE_S) == 0


def round_trip(connection, word=b"x"):
    """Returns the time in seconds until the echo of a word has arrived."""
    start = time.monotonic()
    connection.sendall(word)
    assert receive(connection, len(word)) == word
    return time.monotonic() - start


class Delay(unittest.TestCase):
    def setUp(self):
        self.echo = Echo()

    def test_a_round_trip_takes_two_delays(self):
        with Proxy([self.echo.address] * 2, "--delay", "30ms,0") as proxy:
            with proxy.connect(0) as slow, proxy.connect(1) as quick:
                trips = [round_trip(slow) for _ in range(10)]
                self.assertGreaterEqual(min(trips), 0.060)
                self.assertLess(min(round_trip(quick) for _ in range(50)), min(trips))

    def test_times_can_be_changed(self):
        with Proxy([self.echo.address], "--delay", "0") as proxy, proxy.connect() as connection:
            proxy.command("delay 0 40ms")
            deadline = time.monotonic() + DEADLINE_S
            while round_trip(connection) < 0.080:
                self.assertLess(time.monotonic(), deadline)

    def test_jitter_is_between_its_bounds(self):
        with Proxy([self.echo.address], "--delay", "5ms", "--jitter", "20ms", "--seed", "3") as proxy:
            with proxy.connect() as connection:
                trips = [round_trip(connection) for _ in range(40)]
        self.assertGreaterEqual(min(trips), 0.010)
        self.assertGreater(max(trips), min(trips) + 0.010)

    def stream(self, proxy, seed, size):
        """Sends random bytes in random pieces, and compares the bytes that come back."""
        source = random.Random(seed)
        data = source.randbytes(size)
        with proxy.connect(seed % len(proxy.urls)) as connection:

            def send():
                at = 0
                while at < size:
                    piece = source.randint(1, 20000)
                    connection.sendall(data[at : at + piece])
                    at += piece
                connection.shutdown(socket.SHUT_WR)

            sender = threading.Thread(target=send)
            sender.start()
            back = receive(connection, size)
            self.assertEqual(connection.recv(1), b"")  # the end of the stream arrives last
            sender.join(DEADLINE_S)
        self.assertTrue(back == data, f"{len(back)} of {size} bytes, not the same")

    def test_bytes_are_those_that_were_sent(self):
        words = ["--delay", "1ms,3ms", "--jitter", "4ms,0", "--seed", "5"]
        with Proxy([self.echo.address] * 2, *words) as proxy:
            failures = []

            def run(seed):
                try:
                    self.stream(proxy, seed, 400000)
                except Exception as error:  # an assertion in a thread
                    failures.append(error)

            threads = [threading.Thread(target=run, args=(seed,)) for seed in range(12)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(DEADLINE_S)
            self.assertEqual(failures, [])

    def test_many_connections_get_their_own_bytes(self):
        with Proxy([self.echo.address], "--delay", "2ms") as proxy, contextlib.ExitStack() as stack:
            connections = [stack.enter_context(proxy.connect()) for _ in range(150)]
            for number, connection in enumerate(connections):
                connection.sendall(b"%06d" % number)
            for number, connection in enumerate(connections):
                self.assertEqual(receive(connection, 6), b"%06d" % number)

    def test_a_stall_holds_everything_back(self):
        with Proxy([self.echo.address] * 2) as proxy:
            with proxy.connect(0) as connection, proxy.connect(1) as other:
                round_trip(connection)
                proxy.command("stall 0")
                deadline = time.monotonic() + DEADLINE_S
                sent = back = 0
                while sent == back:  # until the proxy has executed the command
                    self.assertLess(time.monotonic(), deadline)
                    connection.sendall(b"%06d" % sent)
                    sent += 1
                    connection.settimeout(0.2)
                    with contextlib.suppress(TimeoutError):
                        self.assertEqual(receive(connection, 6), b"%06d" % back)
                        back += 1
                connection.sendall(b"%06d" % sent)
                round_trip(other)
                connection.settimeout(0.2)
                with self.assertRaises(TimeoutError):
                    connection.recv(1)
                proxy.command("go 0")
                connection.settimeout(DEADLINE_S)
                self.assertEqual(receive(connection, 12), b"%06d%06d" % (sent - 1, sent))

    def test_held_bytes_are_bounded(self):
        # The other end does not read: when the buffers of kernel and proxy are full, writing stops.
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            address = "127.0.0.1:%d" % server.getsockname()[1]
            with Proxy([address], "--delay", "1ms") as proxy, proxy.connect() as connection:
                data = random.Random(1).randbytes(64 * HELD_MAX)
                connection.settimeout(1)
                sent = 0
                with contextlib.suppress(TimeoutError):
                    while sent < len(data):
                        sent += connection.send(data[sent : sent + 65536])
                self.assertGreater(sent, HELD_MAX)
                self.assertLess(sent, len(data))
                with open(f"/proc/{proxy.process.pid}/status", encoding="ascii") as file:
                    kib = next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))
                self.assertLess(kib, 64 * 1024)
                # When the other end reads, all bytes arrive.
                connection.shutdown(socket.SHUT_WR)
                reader = server.accept()[0]
                with reader:
                    reader.settimeout(DEADLINE_S)
                    got = receive(reader, sent + 1)
                self.assertTrue(got == data[:sent], f"{len(got)} of {sent} bytes, not the same")

    def test_a_broken_connection_breaks_the_other(self):
        with Proxy([self.echo.address]) as proxy:
            connection = proxy.connect()
            round_trip(connection)
            with socket.create_server(("127.0.0.1", 0)) as gone:
                address = "127.0.0.1:%d" % gone.getsockname()[1]
            # The connection may break before the client knows that it was established.
            with Proxy([address]) as nowhere, contextlib.suppress(ConnectionResetError):
                with nowhere.connect() as other:
                    self.assertEqual(other.recv(1), b"")
            connection.close()

    def test_a_command_gets_the_list_of_the_proxy(self):
        done = subprocess.run(
            [DELAY, "--servers", "redis://" + self.echo.address + "?fresh=1", "--", "sh", "-c",
             'echo "$REDLOCK_SERVERS"; exit 7'],
            capture_output=True, text=True, timeout=DEADLINE_S, check=False,
        )  # fmt: skip
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertRegex(done.stdout, r"^redis://127\.0\.0\.1:\d+\?fresh=1\n$")
        self.assertNotIn(self.echo.address, done.stdout)

    def test_invalid_options_are_refused(self):
        for words in (["--delay", "5min"], ["--delay", "1ms,2ms"], ["--jitter", ""], ["--delay", "61s"],
                      ["--seed", "1x"], ["--nonsense"]):  # fmt: skip
            with self.subTest(words=words):
                done = subprocess.run(
                    [DELAY, "--servers", ",".join([self.echo.address] * 3), *words],
                    capture_output=True, text=True, timeout=DEADLINE_S, check=False,
                )  # fmt: skip
                self.assertEqual(done.returncode, 64)
                self.assertIn(words[-1], done.stderr)


if __name__ == "__main__":
    tapcase.main()
