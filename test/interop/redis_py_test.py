# SPDX-License-Identifier: MIT
"""redis-py's Lock and this library on the same key of one server. Never skipped because of redis-py: ./dev test
installs it."""

import os
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import contract
import servers
import sides
import tapcase  # found below test/lib


class OneServer(contract.Contract):
    NODES = 1
    make_theirs = sides.RedisPy


class LibraryAndRedisPy(OneServer, unittest.TestCase):
    make_ours = sides.Library


@unittest.skipUnless(sides.REDLOCK, "the command is not built")
class CommandAndRedisPy(OneServer, unittest.TestCase):
    make_ours = sides.Command


if __name__ == "__main__":
    if servers.program() is None:
        tapcase.skip_all(servers.MISSING)
    tapcase.main()
