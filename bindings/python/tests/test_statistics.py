# SPDX-License-Identifier: MIT
"""What a client tells of itself, of its servers and shards, and of the locks of others."""

import pytest

import libredlock
from conftest import wait_until


def test_prometheus_has_the_figures_of_the_client(client):
    with client.lock("a", timeout=10):
        text = client.prometheus()
        assert "\nredlock_locks_held 1\n" in text and text.endswith("\n")
        assert 'redlock_acquisitions_total{result="acquired"} 1' in text
        labeled = client.prometheus({"service": 'billing "x" \u20ac', "zone": "b"})
        assert '\nredlock_locks_held{service="billing \\"x\\" \u20ac",zone="b"} 1\n' in labeled


def test_long_text_for_prometheus_is_complete(client):
    labels = {f"label{number}": "v" * 512 for number in range(16)}
    text = client.prometheus(labels)
    assert len(text) > 1000000 and text.endswith("\n") and "\0" not in text
    for wrong in ({**labels, "one": "more"}, {"le": "1"}, {"a b": "c"}, {"a": "v" * 513}):
        with pytest.raises(libredlock.RedlockError) as raised:
            client.prometheus(wrong)
        assert raised.value.name == "REDLOCK_EINVAL"
    with pytest.raises(ValueError, match="NUL"):
        client.prometheus({"a": "b\0c"})


def test_nodes(client, servers):
    wait_until(lambda: all(node["eligible"] for node in client.nodes()))  # wait_ready() waits for a majority
    nodes = client.nodes()
    assert [node["node"] for node in nodes] == [f"127.0.0.1:{port}" for port in servers.ports]
    for node in nodes:
        assert (node["eligible"], node["cause"], node["text"], node["role"], node["shard"]) == (True, "none", "", "master", "")
        assert node["version"].split()[0] in ("redis", "valkey") and node["rtt_us"] > 0 and len(node["run_id"]) == 40


def test_node_without_a_server(make_client):
    client = make_client(servers="127.0.0.1:1")
    with pytest.raises(libredlock.NoQuorumError):
        client.wait_ready(0.05)
    wait_until(lambda: client.nodes()[0]["cause"] != "none")  # the connection may not have been tried yet
    [node] = client.nodes()
    assert (node["eligible"], node["cause"]) == (False, "connect") and "refused" in node["text"]


def test_shards(make_client):
    client = make_client(servers="east=127.0.0.1:1; west=127.0.0.1:2")
    assert client.shards() == ["east", "west"]
    assert {client.shard_of(f"name{number}") for number in range(100)} == {"east", "west"}
    assert [node["shard"] for node in client.nodes()] == ["east", "west"]
    assert client.stats(shard="west")["held"] == 0
    with pytest.raises(ValueError, match="north"):
        client.stats(shard="north")
    with pytest.raises(libredlock.RedlockError):
        client.shard_of("")


def test_client_without_shards_has_one(client):
    with client.lock("a", timeout=10):
        assert client.shards() == [""] and client.shard_of("a") == ""
        assert client.stats(shard="")["held"] == client.stats()["held"] == 1


def test_inspect(make_client, servers):
    client = make_client(owner="worker-7")
    free = client.inspect("a")
    assert (free.state, free.owner, free.votes, free.quorum) == ("free", "", 0, 3)
    assert {server.key for server in free.servers} == {"absent"}
    with client.lock("a", timeout=10):
        held = client.inspect("a")
    assert (held.state, held.owner) == ("held", "worker-7") and held.votes >= 3
    seen = [server for server in held.servers if server.key == "expires"]
    assert len(seen) >= 3 and all(5 < server.expires_in <= 10 and server.owner == "worker-7" for server in seen)
    servers.all("SET", "b", "another")
    assert {server.key for server in client.inspect("b").servers} == {"persistent"}
    assert {server.expires_in for server in client.inspect("b").servers} == {None}


def test_inspect_reads_who_waits(client, servers):
    servers.all("SET", "c{#q}", "redlock-line\n7 0 h 0 1700000000500 web-1\n8 0 w 0 0 web-2\n")
    found = client.inspect("c")
    assert [(waiter.owner, waiter.since) for waiter in found.waiters] == [("web-1", 1700000000.5), ("web-2", None)]
    assert not found.more_wait and client.inspect("d").waiters == ()


def test_inspect_reads_who_waits_for_a_permit(client, servers):
    servers.all("SET", "s{#}{#q}", "redlock-line\n7 0 h 0 0 web-1\n")
    assert [[waiter.owner for waiter in client.inspect(f"s{{#{slot}}}").waiters] for slot in (0, 1)] == [["web-1"], []]


def test_inspect_without_lines_does_not_know_who_waits(make_client, servers):
    servers.all("SET", "c{#q}", "redlock-line\n7 0 h 0 0 web-1\n")
    assert make_client(line=False).inspect("c").waiters is None


def test_inspect_without_a_quorum(make_client):
    with pytest.raises(libredlock.NoQuorumError, match="127.0.0.1:1"):
        make_client(servers="127.0.0.1:1").inspect("a")


def test_release_by_token(client, servers):
    one, both = client.lock("a", timeout=20), client.lock("{x}:a", timeout=20, also=["{x}:b"])
    one.acquire()
    client.release_token("a", one.detach())
    assert servers.value("a") is None
    both.acquire()
    client.release_token(["{x}:a", "{x}:b"], both.detach())
    assert servers.value("{x}:b") is None
    with pytest.raises(libredlock.LockNotOwnedError) as raised:
        client.release_token("a", "another")
    assert raised.value.lock_name == "a"


def test_settings_that_all_clients_share(make_client, servers):
    """They reach the library: it refuses what is out of range."""
    with make_client(fence_key="f", admission="lenient", notifications=False, line=False, heartbeat=0.5, clock_slack=0.2,
                     keepalive=0, drift=(20000, 3000)).lock("a", timeout=10):  # fmt: skip
        assert servers.value("a") is not None
    for wrong in ({"fence_key": ""}, {"heartbeat": 61}, {"clock_slack": 61}, {"keepalive": 3601}, {"drift": (500001, 0)}):
        with pytest.raises(libredlock.RedlockError) as raised:
            make_client(**wrong)
        assert raised.value.name == "REDLOCK_EINVAL"
    with pytest.raises(ValueError, match="strict, lenient, proven"):
        make_client(admission="none")
    with pytest.raises(libredlock.RedlockError, match="fence"):
        make_client(fence_key="f").lock("f", timeout=1).acquire(blocking=False)
    with pytest.raises(libredlock.RedlockError, match="key of a line"):
        make_client().lock("f{#q}", timeout=1).acquire(blocking=False)
