# SPDX-License-Identifier: MIT
"""What stands before a server, or instead of one: proxies that are late, or keep things to themselves."""

import socket
import threading
import time


def listen(case, serve, *arguments):
    """The address of something that is not a server, as long as the test case lasts."""
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=serve, args=(listener, *arguments), daemon=True)
    thread.start()
    case.addCleanup(listener.close)
    case.addCleanup(listener.shutdown, socket.SHUT_RDWR)
    return f"127.0.0.1:{listener.getsockname()[1]}"


def everything(_):
    return True


def pass_on(source, target, look):
    """Bytes from here to there. Each piece is looked at first, and goes on if that says so."""
    try:
        while chunk := source.recv(65536):
            if look(chunk):
                target.sendall(chunk)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        target.close()


def stand_before(listener, port, asked, answered):
    """Passes on what clients and the server at that port have to say, as these two looks want it."""
    while True:
        try:
            near = listener.accept()[0]
        except OSError:
            return
        far = socket.create_connection(("127.0.0.1", port))
        for way in ((near, far, asked), (far, near, answered)):
            threading.Thread(target=pass_on, args=way, daemon=True).start()


def lengthen(listener, port, delay):
    """A long line to the server at that port."""

    def later(_):
        time.sleep(delay)
        return True

    stand_before(listener, port, later, later)


def hesitate(listener, port, delay):
    """A server that stops for a moment when it is asked for a key for the first time, and goes on."""
    asked = threading.Event()

    def stop_once(chunk):
        if b"\r\nGET\r\n" in chunk and not asked.is_set():
            asked.set()
            time.sleep(delay)
        return True

    stand_before(listener, port, stop_once, everything)


def keep_pushes(listener, port):
    """A proxy that passes everything but what a server tells unasked."""
    stand_before(listener, port, everything, lambda chunk: b"$7\r\nmessage" not in chunk)
