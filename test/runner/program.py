# SPDX-License-Identifier: MIT
"""Runs one test program in a session and a temporary directory of its own, with a deadline, and ends what it
leaves running."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections import namedtuple

import tap

Outcome = namedtuple("Outcome", "result seconds computed log")

running = set()  # sessions of the programs that run now

GONE_SECONDS = 2.0  # for servers that are being killed by the kernel
REAP_STEP_SECONDS = 0.02
WAIT_STEP_SECONDS = 0.05


def session_members(session):
    """Returns the processes of that session that still run (a zombie does not)."""
    members = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] not in "ZX":
                with open(f"/proc/{entry}/comm", encoding="utf-8", errors="replace") as file:
                    members.append((int(entry), file.read().strip()))
        except (OSError, IndexError):
            continue
    return members


def end_session(session, seconds):
    """Kills the processes of a session that do not end by themselves in time. Returns their names."""
    give_up = time.monotonic() + seconds
    members = session_members(session)
    while members and time.monotonic() < give_up:
        time.sleep(REAP_STEP_SECONDS)
        members = session_members(session)
    for pid, _ in members:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return sorted({name for _, name in members})


def wait_for(process, timeout):
    """Returns (status or None if the deadline passed, processor seconds of it and its reaped children)."""
    give_up = time.monotonic() + timeout
    step = 0.001
    while True:
        pid, status, used = os.wait4(process.pid, os.WNOHANG)
        if pid != 0:
            process.returncode = status_of(status)  # it is reaped: Popen must not wait for it again
            return process.returncode, used.ru_utime + used.ru_stime
        if time.monotonic() > give_up:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return None, 0.0
        time.sleep(step)
        step = min(2 * step, WAIT_STEP_SECONDS)


def status_of(status):
    """Returns the exit status of a wait status, or minus the number of the signal."""
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def run_words(words, log_path, environment, directory, timeout):
    """Returns (status or None if the deadline passed, names of processes left running, processor seconds)."""
    with open(log_path, "wb") as log, open(log_path + ".err", "wb") as errors:
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=errors,
            env=environment,
            cwd=directory,
            start_new_session=True,
        )
        running.add(process.pid)
        status, computed = wait_for(process, timeout)
        left = end_session(process.pid, GONE_SECONDS)
        running.discard(process.pid)
    return status, left, computed


def stop_all():
    """Kills all running programs after an interrupt, which does not reach programs in sessions of their own."""
    for session in list(running):
        end_session(session, 0)


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
    status, left, computed = run_words(words, log_path, environment, directory, timeout)
    seconds = time.monotonic() - started
    files = sorted(os.listdir(scratch))
    shutil.rmtree(scratch, ignore_errors=True)
    output, errors = read_text(log_path), read_text(log_path + ".err")
    os.unlink(log_path + ".err")
    with open(log_path, "a", encoding="utf-8") as log:
        log.write(errors)
    result = judge(output, errors, status, timeout, left, files)
    return Outcome(result, seconds, computed, log_path)
