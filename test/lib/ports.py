# SPDX-License-Identifier: MIT
"""Ports for servers that a test in Python starts."""

import os
import socket

LOWEST_PORT, HIGHEST_PORT = 10000, 30000  # below the source ports that the kernel chooses


def take_port():
    """Returns a socket that reserves a free port of 127.0.0.1 until it is closed. A server can listen there all the same,
    because it sets SO_REUSEADDR before bind()."""
    start = os.getpid() * 31 % (HIGHEST_PORT - LOWEST_PORT)
    for step in range(HIGHEST_PORT - LOWEST_PORT):
        keeper = socket.socket()
        try:
            keeper.bind(("127.0.0.1", LOWEST_PORT + (start + step) % (HIGHEST_PORT - LOWEST_PORT)))
        except OSError:
            keeper.close()
            continue
        keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return keeper
    raise RuntimeError("no free port")


def replies(port):
    """Returns whether a server on this port replies to PING; also if it requires a password first."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(5) in (b"+PONG", b"-NOAU")
    except OSError:
        return False
