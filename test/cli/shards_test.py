# SPDX-License-Identifier: MIT
"""Several shards: how their servers are listed, that each name is in one shard, and what `nodes` and `status` print
for each shard. world.Case starts servers for the class, five unless `count` differs, and empties them before each
test. redlock() runs the command and returns its result; hold() acquires a lock as another holder; until() waits for
a condition."""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import tapcase  # noqa: E402
from world import Case, until  # noqa: E402

LONG_TIMEOUT = {"REDLOCK_NODE_TIMEOUT": "2s"}  # so that a busy machine is not reported
EAST, WEST = "orders:43", "orders:42"  # names of resources in shard east and in shard west


class Shards(Case):
    """Two shards, east and west, of three servers each."""

    count = 6

    def parts(self):
        """Returns the addresses of shard east and of shard west, three servers each."""
        servers = self.servers.list.split(",")
        return ",".join(servers[:3]), ",".join(servers[3:])

    def environment(self, **more):
        """Returns the environment in which REDLOCK_SERVERS lists both shards, with a long node timeout."""
        east, west = self.parts()
        return super().environment(**{"REDLOCK_SERVERS": f"east={east}; west={west}", **LONG_TIMEOUT, **more})

    def has_key(self, name):
        """Returns for each server whether it has the key."""
        return [value is not None for value in self.servers.command_all("GET", name)]

    def test_each_name_is_in_one_shard(self):
        """The key of each name is on the servers of one shard only."""
        for name, there in (EAST, [True] * 3 + [False] * 3), (WEST, [False] * 3 + [True] * 3):
            token = self.hold(name)
            until(lambda name=name, there=there: self.has_key(name) == there, f"{name} in its shard")
            self.assertCode(self.redlock("release", "--strict", name, token), 0)

    def test_status_names_the_shard(self):
        """`status` names the shard of the resource."""
        self.hold(WEST)
        result = self.redlock("status", WEST, EAST)
        self.assertCode(result, 1)
        self.assertRegex(result.stdout, rf"{WEST}: held by .* on 3 of 3 servers, .* \(shard west\)\n")
        self.assertIn(f"{EAST}: free (shard east)\n", result.stdout)
        result = self.redlock("status", "--json", WEST)
        self.assertEqual(json.loads(result.stdout)["shard"], "west")

    def test_names_of_two_shards_are_refused(self):
        """A lock of two names in different shards is refused."""
        result = self.redlock("acquire", EAST, "-a", WEST)
        self.assertCode(result, 78)
        self.assertIn("is in shard east, 'orders:42' in west: resources of one lock", result.stderr)
        result = self.redlock("run", "{o}1", "-a", "{o}2", "--", "true")
        self.assertCode(result, 0)

    def test_nodes_reports_each_shard(self):
        """`nodes` has a result for each shard."""
        result = self.redlock("nodes", "--json")
        self.assertCode(result, 0)
        seen = json.loads(result.stdout)
        self.assertEqual((seen["schema"], seen["state"]), ("redlock.nodes/1", "OK"))
        self.assertEqual([part["shard"] for part in seen["shards"]], ["east", "west"])
        for part, ports in zip(seen["shards"], (self.servers.ports[:3], self.servers.ports[3:])):
            self.assertEqual((part["state"], part["configured"], part["quorum"], part["eligible"]), ("OK", 3, 2, 3))
            self.assertEqual([node["server"] for node in part["servers"]], [f"127.0.0.1:{port}" for port in ports])
            self.assertEqual([node["notifications"] for node in part["servers"]], ["on"] * 3)
            self.assertTrue(all(node["rtt_us"] > 0 for node in part["servers"]))

    def test_shard_without_a_majority(self):
        """A shard without a majority is critical, and the other shard still grants locks."""
        self.servers.stop(0, 2)
        result = self.redlock("nodes")
        self.assertCode(result, 2)
        first, east, west = result.stdout.split("\n\n")
        self.assertEqual(first, "CRIT: 1 of 2 shards not in order: east")
        self.assertTrue(east.startswith("shard east: CRIT: 1 of 3 servers are eligible, 2 required: no lock can be acquired\n"), east)
        self.assertTrue(west.startswith("shard west: OK: 3 of 3 servers are eligible, 2 required\n"), west)
        self.assertEqual(result.stdout.count("shard "), 2)
        self.assertEqual(result.stdout.count("no lock can be acquired"), 1)
        self.assertCode(self.redlock("run", "-n", WEST, "true"), 0)
        self.assertCode(self.redlock("run", "-n", EAST, "true"), 69)

    def test_server_in_two_shards_is_reported(self):
        """A server in two shards is a warning of `nodes`; one address in both lists is refused."""
        east, west = self.parts()
        port = self.servers.ports[0]
        environment = self.environment(REDLOCK_SERVERS=f"east={east};west=localhost:{port}?fresh=1,{west}")
        result = self.redlock("nodes", "--json", env=environment)
        self.assertCode(result, 1)
        for part, node, other, name in zip(
            json.loads(result.stdout)["shards"],
            (f"127.0.0.1:{port}", f"localhost:{port}"),
            (f"localhost:{port}", f"127.0.0.1:{port}"),
            ("west", "east"),
        ):
            found = [one for one in part["findings"] if one["code"] == "shared"]
            self.assertEqual([(one["severity"], one["server"]) for one in found], [("warn", node)], part)
            self.assertEqual(found[0]["text"], f"same server as {other} of shard {name}")
        # The same address twice is refused before any server is contacted.
        twice = self.environment(REDLOCK_SERVERS=f"east={east};west=127.0.0.1:{port},{west}")
        self.assertCode(self.redlock("nodes", env=twice), 78)

    def test_fence_records_are_checked_in_each_shard(self):
        """`nodes --fence` checks the records of each shard."""
        missing = "no server has a fence record yet"
        result = self.redlock("nodes", "--fence", env=self.environment(REDLOCK_FENCE_RECORDS="volatile"))
        self.assertEqual(result.stdout.count(missing), 2, result.stdout)
        environment = self.environment(REDLOCK_FENCE_RECORDS="volatile")
        self.assertCode(self.redlock("run", "--fence", WEST, "true", env=environment), 0)
        result = self.redlock("nodes", "--fence", env=environment)
        east, _, west = result.stdout.partition("\nshard west: ")
        self.assertIn(missing, east)
        self.assertNotIn(missing, west)

        def init():
            """Runs --init again if it has left out a server on a busy machine."""
            done = self.redlock("nodes", "--init", env=environment).returncode == 0
            records = self.servers.command_all("HGET", "redlock:fence", "cfg")
            return records if done and all(record and record.startswith(b"v1 ") for record in records) else None

        records = until(init, "records on all servers")
        configurations = [{record.partition(b";")[0] for record in part} for part in (records[:3], records[3:])]
        self.assertEqual([len(texts) for texts in configurations], [1, 1], records)
        self.assertNotEqual(*configurations)
        result = self.redlock("nodes", "--fence", env=environment)
        self.assertNotIn(missing, result.stdout)

    def test_verdict_about_all_shards(self):
        """The first line of `nodes` is about all shards. Each shard then begins with a verdict of its own."""
        result = self.redlock("nodes")
        self.assertCode(result, 0)
        self.assertEqual(result.stdout.splitlines()[:3], ["OK: all 2 shards are in order", "", "shard east: OK: 3 of 3 servers are eligible, 2 required"])

    def test_shards_in_flags_and_files(self):
        """Shards can be listed in flags and in [shard.NAME] sections."""
        east, west = self.parts()
        flags = "status", "-s", f"east={east}", "-s", f"west={west}", EAST
        self.assertIn("(shard east)", self.redlock(*flags, env=self.environment(REDLOCK_SERVERS="")).stdout)
        first, rest = east.split(",", 1)
        good = self.path("good", f"[shard.east]\nservers = {first}\nservers = {rest}\n[shard.west]\nservers = {west}\n")
        result = self.redlock("status", "-f", good, EAST, WEST, env=self.environment(REDLOCK_SERVERS=""))
        self.assertIn(f"{EAST}: free (shard east)", result.stdout)
        self.assertIn(f"{WEST}: free (shard west)", result.stdout)
        for text, words in (
            (f"[redlock]\nservers = east={east} ; west={west}\n", "2: several shards in one line; write a section"),
            (f"[shard.east]\nservers = {east}\n[node.x]\nurl = h\n", "4: servers with and without a shard"),
            (f"[redlock]\nservers = {east}\n[shard.west]\nservers = {west}\n", "4: servers with and without a shard"),
            (f"[shard.east]\nservers = {first}\n[shard.west]\nservers = {west}\n[shard.east]\nservers = h\n", "already"),
            ("[shard.east]\nurl = h\n", "2: unknown key url; a [shard.NAME] section has: servers"),
            ("[shard.]\nservers = h\n", "unknown section shard."),
            ("[shard." + "x" * 65 + "]\nservers = h:1\n", "2: name of a shard: it must be 1 to 64 letters"),
            ("[shard.a b]\nservers = h:2\n", "2: the name of the shard is not valid; use letters"),
        ):
            result = self.redlock("status", "-f", self.path("bad", text), "x", env=self.environment(REDLOCK_SERVERS=""))
            self.assertCode(result, 78)
            self.assertIn(words, result.stderr)

    def test_passwords_are_not_shown(self):
        """No output shows a password in the address of a shard."""
        text = "east=redis://u:secret1@h:1,h:2;west=redis://:secret2@h:3 ; north=h:4"
        result = self.redlock("config", env=self.environment(REDLOCK_SERVERS=text))
        self.assertCode(result, 0)
        self.assertNotIn("secret", result.stdout + result.stderr)
        self.assertIn("east=redis://u:***@h:1,h:2;west=redis://:***@h:3 ; north=h:4", result.stdout)

    def test_shard_of_two_servers_gives_a_warning(self):
        """A shard with an even number of servers gives a warning."""
        east, west = self.parts()
        environment = self.environment(REDLOCK_SERVERS=f"east={east};west={west.rsplit(',', 1)[0]}")
        result = self.redlock("status", EAST, env=environment)
        self.assertIn("shard west: 2 servers; use three or five", result.stderr)
        self.assertNotIn("shard east:", result.stderr)


if __name__ == "__main__":
    tapcase.main()
