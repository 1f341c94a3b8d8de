# SPDX-License-Identifier: MIT
"""node-redlock, versions 4 and 5, and this library on the same key of five servers. Skipped without node, npm, or a
registry with the packages."""

import os
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import contract
import node_packages
import servers
import sides
import tapcase  # found below test/lib

packages = None  # directory of node's packages; set below


class FiveServers(contract.Contract):
    NODES = 5
    VERSION = None

    @classmethod
    def make_theirs(cls, urls):
        return sides.NodeRedlock(urls, cls.VERSION, packages)


class LibraryAndVersion4(FiveServers, unittest.TestCase):
    VERSION = "redlock4"
    make_ours = sides.Library


class LibraryAndVersion5(FiveServers, unittest.TestCase):
    VERSION = "redlock5"
    make_ours = sides.Library


@unittest.skipUnless(sides.REDLOCK, "the command is not built")
class CommandAndVersion5(FiveServers, unittest.TestCase):
    VERSION = "redlock5"
    make_ours = sides.Command


if __name__ == "__main__":
    if servers.program() is None:
        tapcase.skip_all(servers.MISSING)
    try:
        packages = node_packages.directory(os.environ["NODE_PACKAGES"])
    except node_packages.Missing as missing:
        tapcase.skip_all(f"node-redlock: {missing}")
    tapcase.main()
