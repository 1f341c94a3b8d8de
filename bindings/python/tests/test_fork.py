# SPDX-License-Identifier: MIT
"""Processes that a program starts while it uses a client: each child ends, and the parent goes on. Each program is a
process of its own, so that one that hangs can be ended."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest

from conftest import PATIENT, SERVERS

# What the parent does before it makes children, and right before each child: the state in which its threads are copied.
STATES = {
    "idle": ("pass", "pass"),
    "after_calls": ("pass", "for _ in range(3):\n    with client.lock('a', timeout=10): pass"),
    "held": ("lock = client.lock('a', timeout=10); lock.acquire()", "lock.extend(1, replace_ttl=True)"),
    "waiting": ("lock = client.lock('a'); lock.acquire()\n"
                "for _ in range(3): threading.Thread(target=wait, daemon=True).start()\n"
                "while client.stats()['waiting'] != 3: pass", "lock.owned()"),
}  # fmt: skip
# Ways to make a child, in which work() may run.
WAYS = {
    "fork": "child = os.fork()\n"
            "if child == 0:\n    work(); sys.exit(3)\n"
            "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3",
    "fork_without_a_call": "child = os.fork()\n"
                           "if child == 0:\n    sys.exit(3)\n"
                           "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3",
    "multiprocessing": "child = multiprocessing.get_context('fork').Process(target=work)\n"
                       "child.start(); child.join()\n"
                       "assert child.exitcode == 0",
    "preexec_fn": "subprocess.run(['true'], preexec_fn=lambda: None, check=True)",
}  # fmt: skip
PROGRAM = """
import libredlock, multiprocessing, os, subprocess, sys, threading
client = libredlock.Client(sys.argv[1], connect_timeout=2, node_timeout=2)

def wait():
    try:
        client.lock('a').acquire()
    except libredlock.RedlockError:
        pass  # the end of the program closes the client

def work():
    with client.lock('child', timeout=10) as lock:
        assert lock.owned()

{once}
for _ in range(5):
{each}
with client.lock('parent', timeout=10) as lock:
    assert lock.owned()
"""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("state", STATES)
def test_child_ends_and_parent_goes_on(servers, state, way):
    once, before = STATES[state]
    program = PROGRAM.format(once=once, each=textwrap.indent(f"{before}\n{WAYS[way]}", "    "))
    done = subprocess.Popen([sys.executable, "-c", program, SERVERS], stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        errors = done.communicate(timeout=PATIENT)[1]
    except subprocess.TimeoutExpired:
        os.killpg(done.pid, signal.SIGKILL)  # its children, too
        done.communicate()
        raise
    assert (done.returncode, errors) == (0, "")
