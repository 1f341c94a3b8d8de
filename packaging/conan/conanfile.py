# SPDX-License-Identifier: MIT
"""Conan 2 recipe of the library, from the sources of this tree: `conan create packaging/conan --build=missing`.

With -o "&:system=True" hiredis, libsodium and OpenSSL are those of the machine, found by pkg-config; otherwise Conan's.
With -o "&:tls=False" the library is built without TLS and needs no OpenSSL."""

import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.files import copy, load, rmdir
from conan.tools.gnu import PkgConfigDeps
from conan.tools.layout import basic_layout
from conan.tools.meson import Meson, MesonToolchain

TOP = os.path.join("..", "..")


class RedlockRecipe(ConanFile):
    """Builds and packages the library without the command."""

    name = "redlock"
    license = "MIT"
    description = "Locks on a majority of independent Redis or Valkey servers"
    topics = ("redis", "valkey", "lock", "distributed")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "fPIC": [True, False], "assertions": [True, False], "system": [True, False],
               "tls": [True, False]}  # fmt: skip
    default_options = {"shared": True, "fPIC": True, "assertions": True, "system": False, "tls": True}
    languages = "C"
    implements = ["auto_shared_fpic"]

    def set_version(self):
        """Reads the version from meson.build."""
        text = load(self, os.path.join(self.recipe_folder, TOP, "meson.build"))
        self.version = re.search(r"version: '([\d.]+)'", text).group(1)

    def export_sources(self):
        """Copies what the build of the library needs."""
        source = os.path.normpath(os.path.join(self.recipe_folder, TOP))
        for pattern in ("meson.build", "meson_options.txt", "LICENSE", "include/*", "lib/*", "docs/reference/*"):
            copy(self, pattern, source, self.export_sources_folder)

    def validate(self):
        """Refuses other systems than Linux."""
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("redlock needs Linux")

    def requirements(self):
        """Names the libraries, unless they are those of the machine."""
        if not self.options.system:
            self.requires("hiredis/[>=0.14.1 <2]")
            self.requires("libsodium/[>=1.0.18 <2]")
            if self.options.tls:
                self.requires("openssl/[>=1.1.1 <4]")

    def layout(self):
        """Uses the usual folders."""
        basic_layout(self)

    def generate(self):
        """Writes what meson reads: the toolchain, and .pc files of Conan's libraries."""
        toolchain = MesonToolchain(self)
        for part in ("tools", "examples", "bench", "tests", "probes"):
            toolchain.project_options[part] = "disabled"
        toolchain.project_options["tls"] = "enabled" if self.options.tls else "disabled"
        toolchain.project_options["assertions"] = bool(self.options.assertions)
        toolchain.generate()
        PkgConfigDeps(self).generate()

    def build(self):
        """Compiles."""
        meson = Meson(self)
        meson.configure()
        meson.build()

    def package(self):
        """Installs. Consumers get their files for CMake and pkg-config from Conan."""
        Meson(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        for folder in ("cmake", "pkgconfig"):
            rmdir(self, os.path.join(self.package_folder, "lib", folder))
        rmdir(self, os.path.join(self.package_folder, "share"))

    def package_info(self):
        """Describes the library to its consumers."""
        self.cpp_info.libs = ["redlock"]
        self.cpp_info.set_property("pkg_config_name", "redlock")
        self.cpp_info.set_property("cmake_file_name", "redlock")
        self.cpp_info.set_property("cmake_target_name", "redlock::redlock")
        if not self.options.shared:
            of_the_machine = ["hiredis", "sodium"] + (["ssl", "crypto"] if self.options.tls else [])
            self.cpp_info.system_libs = ["pthread", "dl"] + (of_the_machine if self.options.system else [])
            self.cpp_info.sharedlinkflags = ["-Wl,-z,nodelete"]
