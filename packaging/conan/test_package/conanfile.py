# SPDX-License-Identifier: MIT
"""Builds a program with the package and runs it."""

import os

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.layout import basic_layout
from conan.tools.meson import Meson


class RedlockTest(ConanFile):
    """The consumer program of the tests."""

    settings = "os", "arch", "compiler", "build_type"
    generators = "MesonToolchain", "PkgConfigDeps"

    def requirements(self):
        """Needs the package that was just made."""
        self.requires(self.tested_reference_str)

    def layout(self):
        """Uses the usual folders."""
        basic_layout(self)

    def build(self):
        """Compiles."""
        meson = Meson(self)
        meson.configure()
        meson.build()

    def test(self):
        """Runs the program, which checks the version of the library."""
        if can_run(self):
            self.run(os.path.join(self.cpp.build.bindir, "consumer"), env="conanrun")
