# SPDX-License-Identifier: MIT
"""`redlock nodes` and `redlock run` with real servers that cannot vote: one in protected mode, and a Sentinel.
start_server() starts one; findings() runs `redlock nodes --json`."""

import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import ports  # noqa: E402
import tapcase  # noqa: E402
from world import REDLOCK, TIME_LIMIT, CommandCase, until  # noqa: E402

# Debian has one program for all. It acts by the name under which it is called.
PROGRAMS = ["redis-server", "valkey-server", "redis-check-rdb"]
FOREIGN = "10.77.7.7"  # an address that a server does not take for its own machine


def program():
    """Returns the path of the server program, or None."""
    for name in [os.environ.get("REDLOCK_TEST_SERVER"), *PROGRAMS]:
        found = name and shutil.which(name)
        if found:
            return found
    return None


class WrongServers(CommandCase):
    """Servers of each test, which are killed at its end."""

    def start_server(self, place, *words):
        """Starts a server with these arguments, behind the words of `place`. Returns its process."""
        name = self.path("redis-server")
        os.symlink(program(), name)
        with open(self.path("log"), "wb") as log:
            process = subprocess.Popen([*place, name, *words], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def findings(self, servers, place=()):
        """Runs `redlock nodes --json` behind the words of `place`. Returns {code: finding}."""
        result = subprocess.run(
            [*place, REDLOCK, "nodes", "--json", "-s", servers],
            capture_output=True, text=True, env=self.environment(), timeout=TIME_LIMIT, check=False,
        )  # fmt: skip
        return {found["code"]: found for found in json.loads(result.stdout)["findings"]}

    def test_protected_mode(self):
        """A server without a password refuses clients of other machines, before it reads anything."""
        network = f'ip link set lo up && ip address add {FOREIGN}/32 dev lo && exec "$@"'
        place = ["unshare", "-n", "sh", "-c", network, "sh"]
        if subprocess.run([*place, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("a network namespace takes root")
        server = self.start_server(
            place, "--port", "7001", "--bind", FOREIGN, "--protected-mode", "yes", "--save", "", "--dir", self.directory
        )  # fmt: skip
        inside = ["nsenter", "-n", "-t", str(server.pid)]
        until(lambda: "connect" not in self.findings(f"{FOREIGN}:7001", inside), "the server")
        found = self.findings(f"{FOREIGN}:7001", inside)["protected_mode"]
        self.assertIn("server is in protected mode", found["text"])
        self.assertIn("protected-mode no", found["advice"])
        result = subprocess.run(
            [*inside, REDLOCK, "run", "-w", "5s", "-s", f"{FOREIGN}:7001", "x", "--", "true"],
            capture_output=True, text=True, env=self.environment(), timeout=TIME_LIMIT, check=False,
        )  # fmt: skip
        self.assertIn("server is in protected mode: set requirepass", result.stderr)

    def test_sentinel(self):
        """A Sentinel speaks the protocol, but knows no command of a lock, and no database."""
        keeper = ports.take_port()
        self.addCleanup(keeper.close)
        port = keeper.getsockname()[1]
        config = self.path("sentinel.conf", f"port {port}\nbind 127.0.0.1\ndir {self.directory}\n")
        self.start_server([], config, "--sentinel")
        until(lambda: ports.replies(port), "the Sentinel")
        for address in (f"127.0.0.1:{port}", f"127.0.0.1:{port}/3?fresh=1"):
            found = self.findings(address)["sentinel"]
            self.assertEqual(found["text"], "this is a Sentinel, not a server: give the addresses of the masters")
            self.assertIn("masters", found["advice"])
        result = self.redlock("run", "-w", "5s", "-s", f"127.0.0.1:{port}", "x", "--", "true")
        self.assertIn("this is a Sentinel, not a server", result.stderr)


if __name__ == "__main__":
    if program() is None:
        tapcase.skip_all("no redis-server, valkey-server or redis-check-rdb in PATH")
    tapcase.main()
