# SPDX-License-Identifier: MIT
"""Runs one test program in a session and a temporary directory of its own, with a deadline. A keeper (keeper.c) is the
parent of the program, and ends what it leaves running."""

import atexit
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections import namedtuple

import over_tls
import processes
import tap

Outcome = namedtuple("Outcome", "result seconds computed log")

# For processes that are ending when their program has ended. A busy machine takes seconds for that; only a process that
# is a fault costs this time.
GRACE_SECONDS = 15.0

KEEPER_SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "keeper.c")

keepers = []  # the path of the keeper, once it is compiled
keepers_lock = threading.Lock()


def keeper():
    """Returns the path of the keeper. Compiles it first if this process has not done so."""
    with keepers_lock:
        if not keepers:
            folder = tempfile.mkdtemp(prefix="rl-keeper-", dir="/tmp")
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            path = os.path.join(folder, "keeper")
            compiler = shutil.which("cc") or shutil.which("gcc") or "clang"
            subprocess.run([compiler, "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-o", path, KEEPER_SOURCE], check=True)
            keepers.append(path)
    return keepers[0]


def take_report(path):
    """Reads and removes the report of a keeper. Returns the wait status (None: the program did not end, or there is no
    report, as after KILL), the processor seconds, and the names of the processes that were left."""
    try:
        with open(path, encoding="utf-8") as file:
            status, computed, *left = file.read().split("\0")[:-1]
        os.unlink(path)
    except (OSError, ValueError):
        return None, 0.0, []
    return (int(status) if status != "-1" else None), float(computed), left


def status_of(status):
    """Returns the exit status of a wait status, or minus the number of the signal. None stays None."""
    if status is None:
        return None
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def run_words(words, log_path, environment, directory, timeout):
    """Returns (status or None if the deadline passed, names of processes left running, processor seconds)."""
    report = os.path.abspath(log_path) + ".report"  # the keeper runs in another directory
    kept = [keeper(), report, str(GRACE_SECONDS), *words]
    with open(log_path, "wb") as log, open(log_path + ".err", "wb") as errors:
        with processes.start(kept, stdout=log, stderr=errors, env=environment, cwd=directory) as process:
            try:
                process.wait(timeout)
            except subprocess.TimeoutExpired:
                process.terminate()
    status, computed, left = take_report(report)
    # What a program that was killed has left running is no news.
    return status_of(status), left if status is not None else [], computed


def read_text(path):
    """Returns the content of a file as text; invalid bytes are replaced."""
    with open(path, "rb") as file:
        return file.read().decode("utf-8", "replace")


def judge(output, errors, status, timeout, left, files):
    """Returns the result of a program from its output, its status (None: it did not end in time), the processes that
    it left running, and the files that it left."""
    killed = -signal.SIGKILL if status is None else status
    counted = tap.read(output if tap.is_tap(output) else output + errors, killed)
    reasons = list(counted.reasons)
    if status is None:
        reasons[-1] = f"no end within {timeout:.0f} s"
    found = tap.finding(errors) if counted.failed else []
    if found:
        reasons.append("\n    ".join(found))
    if left:
        reasons.append(f"left running: {', '.join(left)}")
    if files:
        reasons.append(f"left in TMPDIR: {', '.join(files)}")
    wrong = bool(left or files) and counted.failed == 0
    return counted._replace(failed=counted.failed + wrong, reasons=reasons)


def run(test, build, log_directory, wrapper):
    """Runs a test, which is an entry of `meson introspect --tests`, and returns its result."""
    timeout = (test["timeout"] or 600) * build.slow
    log_path = os.path.join(log_directory, test["name"].replace("/", "_") + ".log")
    scratch = tempfile.mkdtemp(prefix="rl-", dir="/tmp")
    environment = {
        **os.environ,
        **build.environment,
        **test["env"],
        "TMPDIR": scratch,
        "REDLOCK_TEST_SLOW": str(build.slow),
        "CK_TIMEOUT_MULTIPLIER": str(build.slow),
        "CK_DEFAULT_TIMEOUT": "60",
    }
    started = time.monotonic()
    directory = test["workdir"] or build.directory
    words = [*wrapper, *test["cmd"]]
    try:
        status, left, computed = run_words(words, log_path, environment, directory, timeout)
        seconds = time.monotonic() - started
        files = sorted(os.listdir(scratch))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    output, errors = read_text(log_path), read_text(log_path + ".err")
    os.unlink(log_path + ".err")
    with open(log_path, "a", encoding="utf-8") as log:
        log.write(errors)
    result = judge(output, errors, status, timeout, left, files)
    wrong = over_tls.without_mark(build, output) if result.passed else None
    if wrong:
        result = result._replace(failed=result.failed + 1, reasons=[*result.reasons, wrong])
    return Outcome(result, seconds, computed, log_path)
