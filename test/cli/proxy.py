# SPDX-License-Identifier: MIT
"""Proxies in front of a server, which delay or withhold data, and peers that are not servers."""

import socket
import threading
import time


def listen(case, serve, *arguments):
    """Runs `serve` on a listening socket until the test case ends. Returns its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=serve, args=(listener, *arguments), daemon=True)
    thread.start()
    case.addCleanup(listener.close)
    case.addCleanup(listener.shutdown, socket.SHUT_RDWR)
    return f"127.0.0.1:{listener.getsockname()[1]}"


def everything(_):
    return True


def pass_on(source, target, look):
    """Copies bytes from source to target. Each piece is passed on if look(piece) is true."""
    try:
        while chunk := source.recv(65536):
            if look(chunk):
                target.sendall(chunk)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        target.close()


def stand_before(listener, port, asked, answered):
    """Runs a proxy for the server at that port. asked(piece) of requests and answered(piece) of replies decide
    whether the piece is passed on."""
    while True:
        try:
            near = listener.accept()[0]
        except OSError:
            return
        far = socket.create_connection(("127.0.0.1", port))
        for way in ((near, far, asked), (far, near, answered)):
            threading.Thread(target=pass_on, args=way, daemon=True).start()


def lengthen(listener, port, delay):
    """Runs a proxy that delays everything, like a long line to the server at that port."""

    def later(_):
        time.sleep(delay)
        return True

    stand_before(listener, port, later, later)


def hesitate(listener, port, delay):
    """Runs a proxy that delays the first request about a key, as if the server had stopped for a moment."""
    asked = threading.Event()

    def stop_once(chunk):
        if b"\r\nGET\r\n" in chunk and not asked.is_set():
            asked.set()
            time.sleep(delay)
        return True

    stand_before(listener, port, stop_once, everything)


def keep_pushes(listener, port):
    """Runs a proxy that passes everything but notifications."""
    stand_before(listener, port, everything, lambda chunk: b"$7\r\nmessage" not in chunk)
