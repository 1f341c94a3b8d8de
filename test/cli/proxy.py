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


def pass_all(_):
    """Passes every piece."""
    return True


def pass_on(source, target, is_passed):
    """Copies bytes from source to target, piece by piece. Drops a piece if is_passed(piece) is false."""
    try:
        while chunk := source.recv(65536):
            if is_passed(chunk):
                target.sendall(chunk)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        target.close()


def run_proxy(listener, port, passes_request, passes_reply):
    """Runs a proxy for the server at that port. Drops a piece of requests if passes_request(piece) is false, and a piece
    of replies if passes_reply(piece) is false."""
    while True:
        try:
            near = listener.accept()[0]
        except OSError:
            return
        far = socket.create_connection(("127.0.0.1", port))
        for way in ((near, far, passes_request), (far, near, passes_reply)):
            threading.Thread(target=pass_on, args=way, daemon=True).start()


def delay_all(listener, port, delay):
    """Runs a proxy that delays all requests and replies, like a long line to the server at that port."""

    def pass_late(_):
        """Passes every piece after the delay."""
        time.sleep(delay)
        return True

    run_proxy(listener, port, pass_late, pass_late)


def delay_first_get(listener, port, delay):
    """Runs a proxy that delays the first GET, as if the server had been paused for a moment."""
    delayed = threading.Event()

    def delay_once(chunk):
        """Passes every piece, the first one with a GET after the delay."""
        if b"\r\nGET\r\n" in chunk and not delayed.is_set():
            delayed.set()
            time.sleep(delay)
        return True

    run_proxy(listener, port, delay_once, pass_all)


def drop_notifications(listener, port):
    """Runs a proxy that drops notifications and passes all else."""
    run_proxy(listener, port, pass_all, lambda chunk: b"$7\r\nmessage" not in chunk)
