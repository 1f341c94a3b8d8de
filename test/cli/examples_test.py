# SPDX-License-Identifier: MIT
"""The examples of the help texts and manual pages, from tools/manual/table.py, run on real servers. Programs of the
reader's own are scripts that do nothing."""

import os
import re
import shlex
import stat
import subprocess
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(FOLDER, "..", "lib"))
sys.path.insert(0, os.path.join(FOLDER, "..", "..", "tools", "manual"))

import table  # noqa: E402 (in tools/manual)
import tapcase  # noqa: E402
from world import REDLOCK, SLOW, Case  # noqa: E402

# The commands before an example, by subcommand.
BEFORE = {
    "extend": "token=$(redlock acquire deploy)",
    "release": "token=$(redlock acquire deploy)",
    "status": "redlock acquire backup >first; redlock acquire deploy >second",
    "break": "redlock acquire backup >first",
    "watch": "redlock acquire billing-leader >first",
}
PROGRAMS = {"backup.sh": "", "deploy.sh": "", "report": "", "job": "", "psql": "", "upgrade": "", "jq": "head -n 1"}


class Examples(Case):
    """Runs each example of the table."""

    def environment(self, **more):
        """Returns an environment whose PATH has the command and the scripts."""
        path = f"{self.directory}:{os.path.dirname(os.path.abspath(REDLOCK))}:{os.environ['PATH']}"
        return super().environment(PATH=path, REDLOCK_FENCE_RECORDS="volatile", **more)

    def run_example(self, command, words):
        """Runs an example in a shell, with the servers of this test. Returns the result."""
        words = words.replace("/usr/local/bin/", "./")
        addresses = self.servers.list.split(",")
        words = re.sub(r"-s \S+", lambda match: "-s " + ",".join(addresses[: match[0].count(",") + 1]), words)
        keys = ""
        if command == "top" and "--once" not in words:  # it needs a terminal, and ends with a key
            words, keys = f"script -qec {shlex.quote(words)} /dev/null", "q"
        return subprocess.run(["bash", "-c", f"{BEFORE.get(command, 'true') } || exit 99\n{words}"], capture_output=True, text=True,
                              cwd=self.directory, env=self.environment(TERM="xterm"), input=keys, timeout=60 * SLOW,
                              check=False)  # fmt: skip

    def test_examples(self):
        """Each example ends with success, without a complaint about its options."""
        for name, line in PROGRAMS.items():
            os.chmod(self.path(name, f"#!/bin/sh\n{line}\n"), stat.S_IRWXU)
        self.path("redlock.conf", "[redlock]\nttl = 10s\n")
        count = 0
        for command in table.COMMANDS:
            self.assertTrue(command.examples, command.name)
            for text, words in command.examples:
                count += 1
                self.servers.command_all("FLUSHALL")
                with self.subTest(command=command.name, example=words):
                    self.assertRegex(text, ":$")
                    result = self.run_example(command.name, words)
                    if "built without ncurses" in result.stdout:
                        continue
                    self.assertCode(result, 0)
                    self.assertNotIn("see: redlock", result.stderr)
        self.assertGreater(count, 12)


if __name__ == "__main__":
    tapcase.main()
