# SPDX-License-Identifier: MIT
"""Rows of the matrix: the tests without real servers, with other compilers, C libraries, versions of hiredis and
processors. Each row has a system of its own."""

import os
import re

import chroot
import row
import tree

NATIVE = ["ninja-build", "meson", "pkg-config", "python3", "libhiredis-dev", "libsodium-dev", "libssl-dev", "libjansson-dev",
          "libncurses-dev", "check", "libc6-dev"]  # fmt: skip
LEAST = ["-Dauto_features=auto", "-Dtls=enabled", "-Dtools=enabled", "-Dtests=enabled", "-Dexamples=disabled",
         "-Dbench=disabled", "-Dwerror=true"]  # fmt: skip
FOLDER = "/redlock"
LOCALES = "/locales"
# What the row prints: the versions with which it ran.
VERSIONS = """
for name in hiredis libsodium openssl; do
    pkg-config --exists $name && printf '%s %s, ' $name "$(pkg-config --modversion $name)"
done
"""


class System:
    """One system of a Debian suite, in which the suites run."""

    security = True  # with the security updates of the suite

    def __init__(self, name, suite, compiler, suites, packages=()):
        """Names the row and what it runs."""
        self.name = name
        self.suite = suite
        self.compiler = compiler
        self.suites = suites
        self.packages = [*NATIVE, *(packages or [compiler])]

    def options(self):
        """Returns the options for meson."""
        return LEAST

    def wrapper(self):
        """Returns the words before each test program."""
        return ""

    def mmdebstrap(self):
        """Returns more options for mmdebstrap."""
        return []

    def prepare(self, system):
        """Adds to the system what no package has."""

    def versions(self, system):
        """Returns the versions of the compiler and the libraries as text."""
        done = system.run(f"{VERSIONS}\n{self.compiler} --version | head -1")
        line = done.stdout.strip().replace("\n", " ")
        return " ".join(re.sub(r"Debian (clang) version|\(Debian [^)]*\)", r"\1", line).split())

    def run(self, _folder):
        """Makes the system and runs the suites in it."""
        try:
            with chroot.Chroot(self.suite, self.packages, self.mmdebstrap(), self.security) as system:
                system.copy_tree(tree.SOURCE, tree.tracked_files(), FOLDER)
                self.prepare(system)
                words = row.inside("build-matrix", self.compiler, self.suites, self.options(), self.wrapper(), slow=4)
                quoted = " ".join(f"'{word}'" for word in words)
                done = system.run(f"ip link set lo up 2>/dev/null || true\n{quoted}", FOLDER, timeout=7200)
                return row.Result(done.stdout, self.versions(system))
        except chroot.Unavailable as reason:
            raise row.Skipped(str(reason)) from reason


class Processor(System):
    """Another processor: programs are made by a cross compiler and run by QEMU. Libraries of two processors must have the same
    version, and mirrors may lack the security updates of one."""

    security = False

    def __init__(self, name, architecture, triplet, emulator, family, endian):
        """Names the row; the last two are what meson calls the processor."""
        foreign = ["libhiredis-dev", "libsodium-dev", "libssl-dev", "libjansson-dev", "check"]
        packages = [f"gcc-{triplet}", f"libc6-dev-{architecture}-cross", "qemu-user-static", *[f"{each}:{architecture}" for each in foreign]]
        super().__init__(name, "bookworm", f"{triplet}-gcc", ["unit"], packages)
        self.packages = ["ninja-build", "meson", "pkg-config", "python3", *packages]
        self.architecture = architecture
        self.triplet = triplet
        self.emulator = emulator
        self.family = family
        self.endian = endian

    def mmdebstrap(self):
        """Adds the architecture."""
        return [f"--architectures=amd64,{self.architecture}"]

    def versions(self, system):
        """Returns the version of QEMU, too."""
        done = system.run(f"export PKG_CONFIG_LIBDIR={self.folders()}\n{VERSIONS}\nprintf 'gcc %s, QEMU %s' "
                          f"$({self.compiler} -dumpfullversion) $(dpkg-query -W -f '${{Version}}' qemu-user-static)")  # fmt: skip
        return done.stdout.strip()

    def options(self):
        """Adds the description of the processor."""
        return [*LEAST, "--cross-file=/cross.ini"]

    def wrapper(self):
        """Runs programs with QEMU."""
        return f"{self.emulator} -E LOCPATH={LOCALES}" if self.endian == "big" else self.emulator

    def folders(self):
        """Returns where pkg-config finds the libraries of the processor."""
        return f"/usr/lib/{self.triplet.replace('i686', 'i386')}/pkgconfig:/usr/share/pkgconfig"

    def prepare(self, system):
        """Writes the description of the processor for meson."""
        with open(os.path.join(system.root, "cross.ini"), "w", encoding="utf-8") as file:
            file.write(f"[binaries]\nc = '{self.triplet}-gcc'\nar = '{self.triplet}-ar'\nstrip = '{self.triplet}-strip'\n"
                       f"pkgconfig = '/usr/bin/pkg-config'\nexe_wrapper = '{self.emulator}'\n[properties]\n"
                       f"pkg_config_libdir = '{self.folders()}'\n[host_machine]\nsystem = 'linux'\n"
                       f"cpu_family = '{self.family}'\ncpu = '{self.family}'\nendian = '{self.endian}'\n")  # fmt: skip
        if self.endian == "big":  # Debian's C.UTF-8 is compiled for one order of bytes
            done = system.run(f"apt-get update -q\nmkdir /package\ncd /package\napt-get download libc-bin:{self.architecture}\n"
                              f"dpkg-deb --extract libc-bin_*.deb .\nmv usr/lib/locale {LOCALES}")  # fmt: skip
            if done.returncode != 0:
                raise row.Skipped(f"libc-bin of {self.architecture}: {done.stdout.strip()[-200:]}")


class OldOpenssl(System):
    """OpenSSL 1.1.1, the oldest that the library accepts, from Debian bullseye, whose C library is too old. The servers have the
    OpenSSL of the row's suite."""

    def __init__(self):
        """Names the row."""
        super().__init__("bookworm, OpenSSL 1.1.1", "bookworm", "gcc", ["unit", "io", "live", "tls"], ["gcc", "redis-tools"])
        self.packages.remove("libssl-dev")

    def prepare(self, system):
        """Installs the headers and libraries of OpenSSL."""
        done = system.run(f"echo 'deb {chroot.MIRROR} bullseye main' >/etc/apt/sources.list.d/bullseye.list\napt-get update -q\n"
                          "apt-get install -qy --no-install-recommends libssl-dev/bullseye")  # fmt: skip
        if done.returncode != 0:
            raise row.Skipped(f"libssl-dev of bullseye: {done.stdout.strip()[-200:]}")


class Musl(System):
    """The C library musl. The libraries are compiled from Debian's sources; there is no OpenSSL, so this row is without TLS."""

    def __init__(self):
        """Names the row."""
        super().__init__("musl", "bookworm", "musl-gcc", ["unit", "exhaustive", "io"],
                         ["gcc", "musl-tools", "make", "cmake", "autoconf", "automake", "libtool", "dpkg-dev", "linux-libc-dev", "patch",
                          "xz-utils"])  # fmt: skip
        self.packages = [name for name in self.packages if not name.startswith("lib") or name == "libtool"]
        self.packages.remove("check")

    def options(self):
        """Lets pkg-config find the libraries of the row; their programs are linked with no shared libraries of Debian."""
        without_tls = [word.replace("tls=enabled", "tls=disabled") for word in LEAST]
        return [*without_tls, "-Dpkg_config_path=/musl/lib/pkgconfig"]

    def prepare(self, system):
        """Compiles hiredis, libsodium, Jansson and Check with musl."""
        with open(os.path.join(row.HERE, "musl-libraries.sh"), encoding="utf-8") as file:
            done = system.run(file.read())
        if done.returncode != 0:
            lines = done.stdout.strip().split("\n")
            errors = [line for line in lines if line.startswith("E: ")] or lines
            raise row.Skipped(f"the libraries do not compile with musl: {errors[-1][-200:]}")

    def versions(self, system):
        """Returns the version of musl, too."""
        done = system.run(f"export PKG_CONFIG_PATH=/musl/lib/pkgconfig\n{VERSIONS}\nprintf 'musl '\n"
                          "dpkg-query -W -f '${Version}' musl-tools")  # fmt: skip
        return done.stdout.strip().replace("\n", " ")


def rows():
    """Returns the rows."""
    quick = ["unit", "exhaustive", "io"]
    return [
        System("bookworm, gcc", "bookworm", "gcc", quick),
        System("bookworm, clang", "bookworm", "clang", quick),
        System("trixie, gcc", "trixie", "gcc", quick),
        System("trixie, clang", "trixie", "clang", quick),
        System("sid, gcc", "sid", "gcc", quick),
        OldOpenssl(),
        Musl(),
        Processor("arm64", "arm64", "aarch64-linux-gnu", "qemu-aarch64-static", "aarch64", "little"),
        Processor("armhf, 32 bits", "armhf", "arm-linux-gnueabihf", "qemu-arm-static", "arm", "little"),
        Processor("i386, 32 bits", "i386", "i686-linux-gnu", "qemu-i386-static", "x86", "little"),
        Processor("s390x, big endian", "s390x", "s390x-linux-gnu", "qemu-s390x-static", "s390x", "big"),
    ]
