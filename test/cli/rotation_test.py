# SPDX-License-Identifier: MIT
"""`redlock run` while the password of its user is changed as operations.md says. Case of world.py has five servers;
start() starts the command, wait_error() waits for words on its stderr, until() for a condition."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import tapcase  # noqa: E402
from world import TIME_LIMIT, Case, until  # noqa: E402

RIGHTS = ("~*", "&*", "+@all")


class Rotation(Case):
    """A job holds a lock as the user `rotated`, until it finds the file `end`."""

    def setUp(self):
        super().setUp()
        self.change("reset", "on", ">old", *RIGHTS)
        self.addCleanup(self.servers.command_all, "ACL", "DELUSER", "rotated")
        self.password = self.path("password", "old\n")
        os.chmod(self.password, 0o600)
        self.end_file = self.path("end")
        job = f"until [ -e '{self.end_file}' ]; do sleep 0.1; done"
        self.process = self.start(
            "run", "-v", "--pass-file", self.password, "rotation", "--", "sh", "-c", job,
            env=self.environment(REDLOCK_USER="rotated"),
        )  # fmt: skip
        self.wait_error("rotation: acquired")
        until(lambda: all(self.clients(index) for index in range(self.count)), "all connections")

    def change(self, *rules):
        """Changes the user on all servers."""
        self.assertEqual(self.servers.command_all("ACL", "SETUSER", "rotated", *rules), [b"OK"] * self.count)

    def clients(self, index):
        """Returns the ids of the connections of the user to one server."""
        lines = self.servers.command(index, "CLIENT", "LIST").decode().splitlines()
        return {line.split()[0] for line in lines if " user=rotated " in line}

    def close_connections(self, index):
        """Has one server close the connections of the user."""
        self.servers.command(index, "CLIENT", "KILL", "USER", "rotated")

    def finish(self):
        """Lets the job end, which must have kept its lock."""
        self.path("end", "")
        self.assertEqual(self.process.wait(TIME_LIMIT), 0, self.error_text())

    def test_password_file_is_read_again(self):
        """New connections use the new password. No connection is refused, so no warning is printed."""
        self.change(">new")
        self.path("password.new", "new\n")
        os.replace(self.path("password.new"), self.password)
        self.wait_error("has a new password")
        self.change("<old")
        for index in range(self.count):
            before = self.clients(index)
            self.close_connections(index)
            until(lambda index=index, before=before: self.clients(index) - before, "a new connection")
        self.assertNotIn("warning", self.error_text())
        self.finish()

    def test_first_refusal_is_a_warning(self):
        """A password file that was left out is warned of at the first connection that is refused, and only then."""
        self.change(">new", "<old")
        self.close_connections(0)
        self.wait_error("refuses the login while the lock is held: WRONGPASS.*change the password file")
        self.close_connections(1)
        until(lambda: not self.clients(1), "the second server to be left")
        self.path("password", "new\n")  # repaired in time
        until(lambda: self.clients(0) and self.clients(1), "new connections")
        self.assertEqual(self.error_text().count("refuses the login"), 1)
        self.finish()


if __name__ == "__main__":
    tapcase.main()
