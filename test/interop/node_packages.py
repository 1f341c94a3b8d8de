# SPDX-License-Identifier: MIT
"""Installs the packages of node/package-lock.json below the build directory, once."""

import hashlib
import os
import shutil
import subprocess

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "node")
FILES = ["package.json", "package-lock.json"]
SECONDS_MAX = 90  # time limit of npm
# Sends no statistics, runs no scripts of the packages, and writes below our directory only.
NPM = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--no-update-notifier",
       "--logs-max=0", "--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-timeout=15000",
       "--loglevel=error"]  # fmt: skip


class Missing(Exception):
    """The packages cannot be installed; the argument says why."""


def _fingerprint():
    """Returns a hash of FILES, which names the directory: other versions get another one."""
    digest = hashlib.sha256()
    for name in FILES:
        with open(os.path.join(HERE, name), "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()[:16]


def _install(directory):
    """Installs the packages in a new directory. Raises Missing if npm fails or takes too long."""
    temporary = os.path.join(directory, "tmp")
    os.makedirs(temporary)
    for name in FILES:
        shutil.copy(os.path.join(HERE, name), directory)
    environment = {**os.environ, "TMPDIR": temporary, "NODE_DISABLE_COMPILE_CACHE": "1"}
    try:
        done = subprocess.run(
            [*NPM, "--cache", os.path.join(directory, "cache")],
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Missing(f"npm has not installed the packages within {SECONDS_MAX} s") from None
    if done.returncode != 0:
        lines = [line.removeprefix("npm error ") for line in done.stdout.splitlines()]
        raise Missing(f"npm cannot install the packages: {', '.join(lines)[:160]}")
    for name in ("tmp", "cache"):
        shutil.rmtree(os.path.join(directory, name), ignore_errors=True)


def directory(build):
    """Returns the directory of the packages below `build`, and installs them at the first call. Raises Missing."""
    for tool in ("node", "npm"):
        if shutil.which(tool) is None:
            raise Missing(f"{tool} is not installed")
    ready = os.path.join(build, "node-" + _fingerprint())
    if not os.path.isdir(ready):
        unfinished = ready + ".new"
        shutil.rmtree(unfinished, ignore_errors=True)
        try:
            _install(unfinished)
            os.rename(unfinished, ready)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    return os.path.join(ready, "node_modules")
