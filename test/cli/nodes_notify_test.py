# SPDX-License-Identifier: MIT
"""`redlock nodes` checks whether servers notify waiting clients when a lock is released. world.OwnServersCase starts
three servers for each test. redlock() runs the command and returns its result. proxy.listen() starts a proxy in
front of a server."""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import proxy  # noqa: E402
import tapcase  # noqa: E402
from world import OwnServersCase  # noqa: E402


class Notifications(OwnServersCase):
    """The finding about notifications, on three servers."""

    def test_users_without_rights_for_notifications(self):
        """Locks work without these rights, but a waiting client has to repeat its requests."""
        for less in ("-client|tracking", "-client|caching", "-client|id", "-subscribe", "resetchannels"):
            with self.subTest(less=less):
                user = ["user", "reset", "on", ">pw", "~*", "&*", "+@all", less]
                self.assertEqual(self.servers.command(0, "ACL", "SETUSER", *user), b"OK")
                servers = f"redis://user:pw@{self.servers.list}"
                result = self.redlock("nodes", "--json", "-s", servers)
                self.assertCode(result, 0)
                seen = json.loads(result.stdout)
                self.assertEqual([node["notifications"] for node in seen["servers"]], ["refused", "on", "on"])
                found = [finding for finding in seen["findings"] if finding["code"] == "no_notifications"]
                self.assertEqual([finding["severity"] for finding in found], ["note"])
                self.assertEqual(found[0]["server"], f"127.0.0.1:{self.servers.ports[0]}")
                self.assertRegex(found[0]["text"], "sends no notification .*: NOPERM")
                self.assertIn("redlock nodes --acl", found[0]["advice"])
        result = self.redlock("nodes", "-s", servers)
        self.assertCode(result, 0)
        self.assertRegex(result.stdout, r"note  127\.0\.0\.1:\d+: sends no notification to waiters .*NOPERM.*\n *-> optional: give the user")
        self.assertEqual(self.servers.keys(), set())

    def lines(self, servers, *flags):
        """Returns what `nodes` says of the lines of the servers, and its findings about them."""
        result = self.redlock("nodes", "--json", "-s", servers, *flags)
        self.assertCode(result, 0)
        seen = json.loads(result.stdout)
        self.assertEqual([node["notifications"] for node in seen["servers"]], ["on"] * 3)
        return [node["line"] for node in seen["servers"]], [f for f in seen["findings"] if f["code"] == "no_line"]

    def test_users_without_rights_for_lines(self):
        """Without one of these rights, notifications work, but a server keeps no line of waiters: a note."""
        channels = ["resetchannels", "&__redis__:invalidate"]
        for less in ["-getex"], ["-publish"], channels, [*channels, "-getex", "-publish"]:
            with self.subTest(less=less):
                user = ["user", "reset", "on", ">pw", "~*", "&*", "+@all", *less]
                self.assertEqual(self.servers.command(0, "ACL", "SETUSER", *user), b"OK")
                servers = f"redis://user:pw@{self.servers.list}"
                states, found = self.lines(servers)
                self.assertEqual(states, ["refused", "on", "on"])
                self.assertEqual([finding["severity"] for finding in found], ["note"])
                self.assertEqual(found[0]["server"], f"127.0.0.1:{self.servers.ports[0]}")
                self.assertRegex(found[0]["text"], "in order of arrival: .*(NOPERM|can't run|permission)")
                self.assertIn("redlock nodes --acl", found[0]["advice"])
                self.assertEqual(self.lines(servers, "--no-line"), (["off"] * 3, []))
        result = self.redlock("nodes", "-s", servers)
        self.assertCode(result, 0)
        self.assertRegex(result.stdout, r"note  127\.0\.0\.1:\d+: keeps no line.*\n *-> optional: give the user")
        self.assertEqual(self.servers.keys(), set())

    def findings_of_first(self, clients, code):
        """Lets the first server accept `clients` clients at once beside ours. Returns what `nodes` says of it: the word
        for notifications, and {(severity, code): finding} without the notes about its file and about a slow reply."""
        control = self.servers.connect(0)
        self.addCleanup(control.close)
        self.assertEqual(control.command("CONFIG", "SET", "maxclients", clients + 1), b"OK")
        result = self.redlock("nodes", "--json")
        self.assertCode(result, code)
        seen = json.loads(result.stdout)
        address = f"127.0.0.1:{self.servers.ports[0]}"
        others = ("no_aof", "slow")  # slow: on a busy machine
        found = {(f["severity"], f["code"]): f for f in seen["findings"] if f["server"] == address and f["code"] not in others}
        self.assertEqual([node["notifications"] for node in seen["servers"][1:]], ["on"] * 2)
        return seen["servers"][0]["notifications"], found

    def test_second_connection_is_refused(self):
        """A server that accepts a client, a holder and a waiter, but not the waiter's connection for notifications."""
        notifications, found = self.findings_of_first(3, code=0)
        self.assertEqual(notifications, "not_connected")
        self.assertEqual(list(found), [("note", "no_notifications")])
        self.assertIn("a further connection was not established", found["note", "no_notifications"]["text"])
        self.assertIn("raise maxclients", found["note", "no_notifications"]["advice"])

    def test_waiter_is_refused(self):
        """The same if the waiter cannot connect at all."""
        notifications, found = self.findings_of_first(2, code=0)
        self.assertEqual((notifications, list(found)), ("not_connected", [("note", "no_notifications")]))

    def test_further_clients_are_refused(self):
        """A server that accepts no client beside the one that checks it, or none at all, is a warning with its reason."""
        for clients in (1, 0):
            notifications, found = self.findings_of_first(clients, code=1)
            self.assertEqual((notifications, list(found)), ("unknown", [("warn", "max_clients")]))
            self.assertIn("max number of clients reached", found["warn", "max_clients"]["text"])
            self.assertIn("raise maxclients", found["warn", "max_clients"]["advice"])

    def test_proxy_that_drops_notifications(self):
        """A proxy that drops notifications is a finding."""
        address = proxy.listen(self, proxy.drop_notifications, self.servers.ports[2])
        servers = ",".join(self.servers.list.split(",")[:2] + [address + "?fresh=1"])
        result = self.redlock("nodes", "--json", "-s", servers)
        self.assertCode(result, 0)
        seen = json.loads(result.stdout)
        self.assertEqual([node["notifications"] for node in seen["servers"]], ["on", "on", "not_received"])
        found = [finding for finding in seen["findings"] if finding["code"] == "no_notifications"]
        self.assertEqual([finding["server"] for finding in found], [address])
        self.assertIn("although it accepted CLIENT TRACKING", found[0]["text"])
        self.assertIn("proxy", found[0]["advice"])


if __name__ == "__main__":
    tapcase.main()
