# SPDX-License-Identifier: MIT
"""The signatures: the arguments of Client.lock() and async_lock() are those of Lock, and a type checker sees them."""

import importlib.util
import inspect
import subprocess
import sys
import tempfile

import pytest

import libredlock

PROGRAM = """
import libredlock

client = libredlock.Client("127.0.0.1:1")
client.lock("a", 5, blocking=False, also=["b"], auto_extend=True)
client.async_lock("a", timeout=5, permits=3, raise_on_release_error=False)
"""


def arguments(function):
    """Returns the arguments of a method after self and client: name, kind, default and type of each."""
    found = list(inspect.signature(function).parameters.values())[1:]
    return [each for each in found if each.name != "client"]


def test_a_client_takes_the_arguments_of_the_lock():
    wanted = arguments(libredlock.Lock.__init__)
    assert len(wanted) > 5
    assert arguments(libredlock.Client.lock) == wanted
    assert arguments(libredlock.Client.async_lock) == wanted == arguments(libredlock.AsyncLock.__init__)


@pytest.mark.parametrize("call", ["lock", "async_lock"])
def test_arguments_arrive(call):
    """Each argument reaches the lock, none in the place of another."""
    client = libredlock.Client("127.0.0.1:1,127.0.0.1:2,127.0.0.1:3")
    lock = getattr(client, call)(
        "a", 5, 0.2, False, 1, False, False, also=["b"], permits=3, fence=True, auto_extend=True
    )
    assert (lock.client, lock.name, lock.timeout, lock.sleep) == (client, "a", 5, 0.2)
    assert (lock.blocking, lock.blocking_timeout, lock.thread_local) == (False, 1, False)
    assert (lock.raise_on_release_error, lock.names) == (False, [b"a", b"b"])
    assert (lock.permits, lock.with_fence, lock.auto_extend) == (3, True, True)
    client.close()


def checked(program):
    """Runs mypy on a program. Returns its exit status and output."""
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("no mypy")
    with tempfile.TemporaryDirectory(prefix="types-") as folder:
        words = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", folder, "-c", program]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def test_mypy_accepts_the_arguments():
    status, text = checked(PROGRAM)
    assert status == 0, text


@pytest.mark.parametrize("call", ["lock", "async_lock"])
def test_mypy_finds_a_misspelled_argument(call):
    status, text = checked(PROGRAM + f'client.{call}("a", timeot=5)\n')
    assert status == 1 and '"timeot"' in text, text


def test_mypy_finds_a_wrong_type():
    status, text = checked(PROGRAM + 'client.lock("a", permits="3")\n')
    assert status == 1 and '"permits"' in text, text
