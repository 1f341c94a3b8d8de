# SPDX-License-Identifier: MIT
"""The texts of refusals have the names of Python, not those of C."""

import asyncio
import glob
import os
import re

import pytest

import libredlock
from libredlock._errors import NAMES
from conftest import SERVERS

OF_C = re.compile(r"opts\.|_ms\b|\b(?:redlock|REDLOCK)_|\bNULL\b|\bresource|^refused")
LONG = "x" * 513
LIB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "lib", "api")
# Options that a caller in Python cannot set, or that the binding checks itself.
NOT_SET = {"flags", "kind", "wait_ms", "hold_ms_max", "extend_at_ms", "margin_ms"}


def refused_locks():
    """Returns arguments of Client.lock(), or of acquire() behind a bar, that are refused, and the begin of the reason."""
    return [
        ({"name": ""}, "name is empty: give the name of a lock"),
        ({"name": LONG}, "name is longer than 512 bytes"),
        ({"also": ["b", LONG]}, "also: name number 2 is longer"),
        ({"also": ["", "b"]}, "also: name number 1 is empty: give the name of a lock"),
        ({"also": ["a"]}, "'a' is named twice: give each name once"),
        ({"timeout": 31}, "timeout is 31000 ms, more than max_ttl, which is 30000"),
        ({"timeout": 0.001}, "timeout is 1 ms: it must be at least"),
        ({"permits": 2000}, "permits is 2000: a semaphore has at most 1024"),
        ({"permits": -1}, "permits is -1, but must be from 0"),
        ({"name": LONG[2:], "permits": 20}, "name is longer than 512 bytes with {#19}"),
        ({"permits": 2, "also": ["b"]}, "also is for exclusive locks"),
        ({"also": ["b"], "fence": True}, "a fencing token belongs to one name, and also has 1 more: acquire each with a lock of "
                                         "its own, or all without fence=True"),
        ({"fence": True}, "5 of 5 servers are not attested as durable and may lose their fence records in a restart: write "
                          "?durable=1 behind at least 3 addresses, or use volatile_fence_records=True"),
        ({"name": "redlock:fence"}, "'redlock:fence' is the key of the fence record on the servers: choose another name, or "
                                    "another fence_key"),
        ({"name": "resource is NULL{#q}"}, "'resource is NULL{#q}' is the key of a line"),
    ]  # fmt: skip


def refused_calls(client, lock):
    """Returns calls that are refused, and the begin of the reason. lock: acquired."""
    return [
        (lambda: lock.extend(31), "the timeout after the extension is "),
        (lambda: client.lock("b", permits=2).acquire(blocking=False, token="x"), "token is for one attempt, and a permit may take "
                                                                                 "several: leave it None"),
        (lambda: client.lock("b").acquire(blocking=False, token=""), "token is empty: leave it None"),
        (lambda: client.lock("b").acquire(blocking=False, token="mine"), "token is in use by a lock of this client"),
        (lambda: client.lock("b").adopt(""), "token is empty: give what detach() returned"),
        (lambda: client.lock("b", fence=True).adopt("x"), "fence is missing"),
        (lambda: client.lock("b", fence=True).adopt("x", fence=2**60), "fence is 1152921504606846976"),
        (lambda: client.lock("b", fence=True).adopt("x", fence=2**64), "fence is 18446744073709551616, but"),
        (lambda: client.lock("b", permits=2000).locked(), "the name with {#1024} behind it"),
        (lambda: client.release_token("b", ""), "token is empty: give what detach() returned"),
        (lambda: client.release_token([], "x"), "no name is given: give at least one"),
        (lambda: client.inspect(""), "name is empty"),
        (lambda: client.break_lock(LONG), "name is longer"),
        (lambda: client.shard_of(LONG), "the name must have 1 to 512 bytes"),
        (lambda: client.prometheus({"le": "x"}), "labels: "),
        (lambda: lock.release_after(31), "delay is 31000 ms, more than max_ttl"),
    ]  # fmt: skip


REFUSED_SETTINGS = [
    ({"servers": []}, "servers is empty"),
    ({"servers": "a,a"}, "server address 2 (a): same server"),
    ({"servers": ["e=c", "a"]}, "servers: there are shards already"),
    ({"max_ttl": 0.001}, "max_ttl: 1 ms is out of range"),
    ({"max_ttl": 0.01, "drift": (500000, 1000000)}, "clock drift uses up a TTL of max_ttl: raise max_ttl"),
    ({"key_prefix": LONG}, "key_prefix: it is longer"),
    ({"owner": "a b"}, "owner: it contains a blank"),
    ({"queue_max": 10**8}, "queue_max: 100000000"),
    ({"queue_max": 10**18}, "queue_max is 1000000000000000000, but"),
    ({"user": "x"}, "user: given without a password; give both, or None"),
    ({"password": ""}, "password: it is empty; give one, or None"),
    ({"connect_timeout": 10**9}, "connect_timeout: 4294967295 ms is out of range"),
    ({"node_timeout": 61}, "node_timeout: 61000 ms"),
    ({"retry_delay": (0, 1)}, "retry_delay[0]: 0 ms"),
    ({"retry_delay": (2, 1)}, "retry_delay[1]: 1000 ms"),
    ({"fence_key": ""}, "fence_key: it must have"),
    ({"fence_key": "a{#q}"}, "fence_key: with {#q} at its end"),
    ({"heartbeat": 61}, "heartbeat: 61000 ms"),
    ({"clock_slack": 61}, "clock_slack: 61000 ms"),
    ({"drift": (10**6, 0)}, "drift[0]: 1000000 ppm"),
    ({"drift": (-1, 0)}, "drift[0] is -1, but"),
    ({"drift": (0, 10**7)}, "drift[1]: 10000000 us"),
    ({"tls_cacert": ""}, "tls_cacert must have 1 to 1023 bytes, or be None"),
    ({"tls_cert": "a\nb"}, "tls_cert contains a control byte"),
    ({"tls_key": ""}, "tls_key must have"),
    ({"tls_key": "key"}, "tls_key is given without tls_cert; give both, or tls_cert alone if its file has the key, too"),
    ({"tls_sni": "a b"}, "tls_sni must be a host name"),
    ({"tls_cacert": "a", "tls_verify": "none"}, 'tls_cacert has no effect with tls_verify="none"'),
    ({"tls_sni": "a", "tls_verify": "chain"}, 'tls_verify="chain" needs tls_cacert'),
]


def reason(call):
    """Returns the text with which a call is refused."""
    with pytest.raises((libredlock.RedlockError, ValueError)) as raised:
        call()
    text = str(raised.value)
    assert not OF_C.search(re.sub("'[^']*'", "", text)), text
    return text


async def in_task(client, arguments):
    """Acquires a lock in an event loop."""
    await client.async_lock(**arguments).acquire()


def test_messages_have_the_names_of_python(client):
    found = []
    for arguments, begin in refused_locks():
        arguments = {"name": "a", "timeout": 10, **arguments}
        for call in (lambda: client.lock(**arguments).acquire(blocking=False), lambda: client.lock(**arguments).acquire(),
                     lambda: asyncio.run(in_task(client, arguments))):  # fmt: skip
            found.append(reason(call))
            assert found[-1].startswith(begin)
    lock, other = client.lock("a", timeout=10), client.lock("c", timeout=10)
    assert lock.acquire() and other.acquire(blocking=False, token="mine")
    for call, begin in refused_calls(client, lock):
        found.append(reason(call))
        assert found[-1].startswith(begin)
    for settings, begin in REFUSED_SETTINGS:
        if "built without TLS" not in (text := reason(lambda: libredlock.Client(**{"servers": SERVERS, **settings}))):
            assert text.startswith(begin)
        found.append(text)
    found.append(reason(lambda: libredlock.Client(SERVERS, drift=(500000, 1000000)).lock("b", timeout=0.5).acquire()))
    found.append(reason(lambda: libredlock.Client("e=a; w=b").lock("a", also=map(str, range(9))).acquire()))
    if not any("built without TLS" in text for text in found):
        unused = [word for word in NAMES.values() if not any(word in text for text in found)]
        assert unused == []


def test_options_of_c_have_a_name():
    """What the library calls opts.something in a text is in the table, or cannot be set in Python."""
    options = set()
    for path in glob.glob(os.path.join(LIB, "*.c")):
        with open(path, encoding="utf-8") as file:
            for text in re.findall(r'"[^"\n]*"', file.read()):
                options.update(re.findall(r"\bopts\.(\w\w+)", text))  # not opts.h
    assert len(options) > 5
    named = {match[1] for key in NAMES if (match := re.match(r"opts\.(\w+)", key))}
    assert options - named == NOT_SET
