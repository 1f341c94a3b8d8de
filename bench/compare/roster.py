# SPDX-License-Identifier: MIT
"""The drivers that are compared: how each one is started, and what must be installed before."""

import os
import re
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
# The directory bench/peers.
PEERS = os.path.join(os.path.dirname(HERE), "peers")


class Driver:
    """How to run one library. `folder` is its directory in bench/peers, None for the library and the baseline.
    command(where) returns the beginning of the command line, environment(where) additional variables; `where` is
    place(). `pin` is (file, pattern) of its version. The first `warm` slices do not count."""

    def __init__(self, name, command, folder=None, environment=None, pin=None, warm=1):
        self.name, self.command, self.folder, self.warm = name, command, folder, warm
        self.environment = environment or (lambda where: {})
        self.pin = pin

    def is_ours(self):
        """True for the library and the baseline."""
        return self.folder is None

    def version(self):
        """Returns the pinned version, "" for the library and the baseline."""
        if self.pin is None:
            return ""
        name, pattern = self.pin
        with open(os.path.join(PEERS, self.folder, name), encoding="utf-8") as file:
            return re.search(pattern, file.read()).group(1)


def node(where):
    """Returns the environment of a driver for node."""
    return {"NODE_PATH": os.path.join(where, "node_modules")}


def python(where):
    """Returns the environment of a driver in Python."""
    return {"PYTHONPATH": os.pathsep.join([os.path.join(where, "site"), PEERS]), "PYTHONDONTWRITEBYTECODE": "1"}


def compiled(where):
    """Returns the command of a driver that was compiled to one program."""
    return [os.path.join(where, "driver")]


def peer_script(interpreter, *path):
    """Returns a function that returns the command of a script in bench/peers."""
    return lambda where: [interpreter, os.path.join(PEERS, *path)]


def java(*options):
    """Returns a function that returns the command of the driver in Java, with these options."""
    def command(where):
        parts = [os.path.join(where, "target", "classes"), os.path.join(where, "target", "lib", "*")]
        return ["java", *options, "-cp", os.pathsep.join(parts), "Driver"]

    return command


# File and pattern of the pinned version.
NPM_PIN = ("package.json", r'"redlock": "([^"]*)"')
MVN_PIN = ("pom.xml", r"<artifactId>redisson</artifactId>\s*<version>([^<]*)")

# All drivers, in the order of the tables: the library's, the baseline, the peers.
DRIVERS = [
    Driver("redlock", lambda build: [os.path.join(build, "bench", "redlock-driver"), "embedded"]),
    Driver("redlock-threads", lambda build: [os.path.join(build, "bench", "redlock-driver"), "threads"]),
    Driver("baseline", lambda build: [os.path.join(build, "bench", "baseline-driver")]),
    Driver("redsync", compiled, "redsync", pin=("go.mod", r"redsync/v4 v(\S*)")),
    Driver("rslock", compiled, "rslock", pin=("Cargo.toml", r'rslock = \{ version = "=([^"]*)"')),
    Driver("node-redlock-5", peer_script("node", "node-redlock", "driver.cjs"), "node-redlock",
           environment=node, pin=NPM_PIN),  # fmt: skip
    Driver("node-redlock-4", peer_script("node", "node-redlock", "driver.cjs"), "node-redlock-4",
           environment=node, pin=NPM_PIN),  # fmt: skip
    Driver("redlock-ng", peer_script("python3", "redlock-ng", "driver.py"), "redlock-ng", environment=python,
           pin=("requirements.txt", r"redlock-ng==(\S*)")),  # fmt: skip
    Driver("pottery", peer_script("python3", "pottery", "driver.py"), "pottery", environment=python,
           pin=("requirements.txt", r"pottery==(\S*)")),  # fmt: skip
    # Java compiles code while it runs, so several slices warm up.
    Driver("redisson", java(), "redisson", pin=MVN_PIN, warm=4),
    Driver("redisson-multi", java("-Dkind=multi"), "redisson", pin=MVN_PIN, warm=4),
]


def place(driver, build):
    """Returns the directory of the driver's programs. $REDLOCK_BENCH_PEERS replaces the build directory."""
    if driver.is_ours():
        return build
    return os.path.join(os.environ.get("REDLOCK_BENCH_PEERS") or os.path.join(build, "bench", "peers"), driver.folder)


def install(driver, build):
    """Installs the driver unless it is there. A peer that cannot be installed prints the reason on standard error."""
    if not driver.is_ours():
        subprocess.run([os.path.join(PEERS, "install"), driver.folder, place(driver, build)], check=False)


def why_not(driver, build):
    """Returns why this driver cannot run, None if it can."""
    where = place(driver, build)
    if driver.is_ours():
        return None if os.path.exists(driver.command(where)[0]) else "not built"
    if os.path.exists(os.path.join(where, "fingerprint")):
        return None
    try:
        with open(where + ".why", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return "not installed"
