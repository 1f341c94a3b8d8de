# SPDX-License-Identifier: MIT
"""Directories with another Debian, in which commands run as root of that system. Nothing is mounted outside of the
command's own mount namespace, and all is removed at the end.

    with chroot.Chroot("trixie", ["gcc", "meson"]) as system:
        done = system.run("gcc --version")
"""

import os
import shutil
import subprocess
import tempfile


def mirror(label, variable):
    """Returns the address of Debian's packages: that of the environment variable, or the one with this label that apt of
    this machine uses. Empty: there is none."""
    if variable in os.environ:
        return os.environ[variable]
    words = ["apt-get", "indextargets", "--format", "$(ORIGIN)/$(LABEL) $(REPO_URI)"]
    done = subprocess.run(words, capture_output=True, text=True, check=False) if shutil.which(words[0]) else None
    found = [line.split()[1] for line in done.stdout.splitlines() if line.startswith(f"Debian/{label} ")] if done else []
    return found[0].rstrip("/") if found else ""


MIRROR = mirror("Debian", "REDLOCK_DEBIAN_MIRROR")
SECURITY = mirror("Debian-Security", "REDLOCK_DEBIAN_SECURITY_MIRROR")
WITHOUT_SECURITY = ("sid", "experimental")
# A mirror may be older than its files say.
OPTIONS = ('--aptopt=Acquire::Retries "3"', '--aptopt=Acquire::Check-Valid-Until "false"')

# What the command sees: processes, devices, memory, and nothing that remains after it.
MOUNTS = """
mount -t proc proc "$1/proc"
mount -t sysfs sysfs "$1/sys"
mount --bind /dev "$1/dev"
mount -t devpts devpts "$1/dev/pts"
mount -t tmpfs tmpfs "$1/dev/shm"
"""


class Unavailable(Exception):
    """The system cannot be made here. The argument is the reason."""


def why_not():
    """Returns why there can be no such systems here, or None."""
    if os.geteuid() != 0:
        return "a chroot needs root"
    if not MIRROR:
        return "apt of this machine has no Debian packages, and REDLOCK_DEBIAN_MIRROR names none"
    for program in ("mmdebstrap", "unshare"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    try:
        done = subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"], stderr=subprocess.DEVNULL, check=False)
    except OSError as error:
        return str(error)
    return "namespaces are not allowed" if done.returncode != 0 else None


def base_of(suite):
    """Returns the suite that this one extends, or itself."""
    return "sid" if suite == "experimental" else suite.partition("-backports")[0]


def sources(suite, security=True):
    """Returns the lines of sources.list for the suite. Backports and experimental come with the suite that they extend."""
    base = base_of(suite)
    lines = [f"deb {MIRROR} {base} main"]
    if suite != base:
        lines.append(f"deb {MIRROR} {suite} main")
    if security and SECURITY and base not in WITHOUT_SECURITY:
        lines.append(f"deb {SECURITY} {base}-security main")
    return lines


class Chroot:
    """One such system. It is removed when the `with` block ends."""

    def __init__(self, suite, packages=(), options=(), security=True):
        """Makes a system of that suite with these packages and with more options for mmdebstrap, and with or without the
        security updates of the suite."""
        reason = why_not()
        if reason:
            raise Unavailable(reason)
        self.parent = tempfile.mkdtemp(prefix="redlock-chroot-")
        self.root = os.path.join(self.parent, "root")
        include = [f"--include={','.join(packages)}"] if packages else []
        words = ["mmdebstrap", "--variant=apt", "--quiet", *OPTIONS, *options, *include,
                 base_of(suite), self.root, *sources(suite, security)]  # fmt: skip
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              check=False, universal_newlines=True)  # fmt: skip
        if done.returncode != 0:
            self.remove()
            errors = [line for line in done.stdout.split("\n") if line.startswith("E: ")]
            raise Unavailable(f"mmdebstrap of {suite}: {'; '.join(errors[:2]) or done.stdout[-300:]}")
        for name in ("resolv.conf", "hosts"):
            if os.path.exists(f"/etc/{name}"):
                shutil.copyfile(f"/etc/{name}", os.path.join(self.root, "etc", name))

    def __enter__(self):
        """Returns the system."""
        return self

    def __exit__(self, *_error):
        """Removes the system."""
        self.remove()

    def remove(self):
        """Removes all files of the system."""
        shutil.rmtree(self.parent, ignore_errors=True)

    def run(self, script, directory="/", timeout=3600, **variables):
        """Runs a shell script with `set -e` in the system, with these environment variables and nice. Returns it with its
        output, stderr included."""
        environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root",
                       "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}  # fmt: skip
        for name in ("http_proxy", "https_proxy", "no_proxy"):
            if name in os.environ:
                environment[name] = os.environ[name]
        words = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-e", "-c",
                 f'{MOUNTS}\nexec chroot "$1" nice -n 10 sh -e -c "$2"', "sh", self.root,
                 f"cd {directory}\n{script}"]  # fmt: skip
        return subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              check=False, timeout=timeout, errors="replace",
                              env={**environment, **variables})  # fmt: skip

    def install(self, *packages):
        """Installs more packages: names, or paths of files in the system. Returns the finished command."""
        return self.run(f"apt-get update -q && apt-get install -qy --no-install-recommends {' '.join(packages)}")

    def copy_tree(self, source, names, directory):
        """Copies the files with these names, relative to `source`, into a directory of the system."""
        for name in names:
            target = os.path.join(self.root, directory.lstrip("/"), name)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy2(os.path.join(source, name), target, follow_symlinks=False)
