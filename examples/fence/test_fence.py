# SPDX-License-Identifier: MIT
"""Runs the fence example, and again with a process that omits its token, which the example must detect."""

import os
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["SOURCE_DIR"], "test", "lib"))
import tapcase

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ["BUILD_DIR"]


def tell(build):
    """Runs the example with the programs of a build directory. Returns the finished process."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    for name in ("REDLOCK_SERVERS", "REDLOCK_SANDBOX_DIR"):
        environment.pop(name, None)
    return subprocess.run(
        [os.path.join(HERE, "run"), build],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120 * int(os.environ.get("REDLOCK_TEST_SLOW", "1")),
        check=False,
    )


class Fence(unittest.TestCase):
    """The whole example, in a sandbox of its own."""
    def test_a_late_write_does_damage_and_a_fence_refuses_it(self):
        done = tell(BUILD)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        plain, fenced = done.stdout.split("With fencing tokens:")
        self.assertIn("Anna: wrote 50", plain)
        self.assertIn("=> 50 left, 20 would be right", plain)
        self.assertNotIn("fence 1", plain)
        self.assertIn("Bert: wrote 70", fenced)
        self.assertIn("Anna: rejected: a later holder has written", fenced)
        self.assertIn("=> 70 left", fenced)
        anna = int(re.search(r"Anna: read 100, fence (\d+)", fenced).group(1))
        bert = int(re.search(r"Bert: read 100, fence (\d+)", fenced).group(1))
        self.assertLess(anna, bert)

    def test_a_write_without_its_fence_is_noticed(self):
        with tempfile.TemporaryDirectory() as other:
            os.mkdir(os.path.join(other, "examples"))
            os.symlink(os.path.join(BUILD, "tools"), os.path.join(other, "tools"))
            program = os.path.join(other, "examples", "fence-withdraw")
            real = shlex.quote(os.path.join(BUILD, "examples", "fence-withdraw"))
            with open(program, "w", encoding="utf-8") as file:
                file.write(
                    '#!/bin/bash\nfor word; do [ "$word" = --fence ] || words+=("$word"); done\n'
                    f'exec {real} "${{words[@]}}"\n'
                )
            os.chmod(program, 0o755)
            done = tell(other)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("NOT AS PROMISED", done.stdout)


if __name__ == "__main__":
    tapcase.main()
