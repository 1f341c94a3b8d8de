# SPDX-License-Identifier: MIT
"""The clients that share one key, each with the same methods acquire, extend, release and close; this library's have
state, too. A result is "ok", "contended" (held by another), "lost" (not held any more), or the error message of the
client."""

import os
import subprocess

REDLOCK = os.environ.get("REDLOCK", "")  # path of the command; "": not built
PEER = os.environ["PEER"]  # path of the program peer.c
SECONDS_MAX = 30  # time limit of a process


class Process:
    """A running program that replies to each line with a line."""

    def __init__(self, words, **more):
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **more
        )

    def request(self, *words):
        """Sends one line and returns the reply. Fails the test if the program has ended."""
        self.process.stdin.write(" ".join(str(word) for word in words) + "\n")
        self.process.stdin.flush()
        reply = self.process.stdout.readline().strip()
        if not reply:
            raise AssertionError(f"{self.process.args[0]} has ended after: {words}")
        return reply

    def close(self):
        """Ends the program by closing its stdin, or kills it after SECONDS_MAX."""
        self.process.stdin.close()
        try:
            self.process.wait(SECONDS_MAX)
        finally:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()


class Library:
    """This library, through its C interface (peer.c)."""

    WORDS = {"ok": "ok", "REDLOCK_ECONTENDED": "contended", "REDLOCK_ELOST": "lost"}

    def __init__(self, urls):
        self.process = Process([PEER, *urls])

    def _request(self, *words):
        """Sends one line. Returns "ok", "contended", "lost", or the reply itself."""
        reply = self.process.request(*words)
        return self.WORDS.get(reply.split()[0], reply)

    def acquire(self, name, ttl_ms, wait_ms=0):
        return self._request("acquire", name, ttl_ms, wait_ms)

    def extend(self, name, ttl_ms):
        return self._request("extend", name, ttl_ms)

    def release(self, name):
        return self._request("release", name)

    def state(self, name):
        return self.process.request("state", name).removeprefix("ok ")

    def close(self):
        self.process.close()


class Command:
    """This library, through the command redlock: one process for each call."""

    STATES = {0: "held", 1: "free", 3: "unknown"}  # by exit status of `redlock status`

    def __init__(self, urls):
        self.servers = ",".join(urls)
        self.tokens = {}

    def _run(self, verb, *words):
        """Runs the subcommand `verb` without the user's configuration. Returns the ended process."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith("REDLOCK_")}
        command = [REDLOCK, verb, "-q", "-s", self.servers, "--node-timeout", "2s", *words]
        return subprocess.run(
            command,
            env={**environment, "HOME": "/nonexistent", "XDG_CONFIG_HOME": "/nonexistent"},
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )

    @staticmethod
    def _result(done, meanings):
        """Returns "ok" for exit status 0, the word for another one in `meanings`, otherwise the error message."""
        what = f"exit status {done.returncode}: {done.stderr}"
        return "ok" if done.returncode == 0 else meanings.get(done.returncode, what)

    def acquire(self, name, ttl_ms, wait_ms=0):
        done = self._run("acquire", "-t", f"{ttl_ms}ms", "-w", f"{wait_ms}ms", name)
        if done.returncode == 0:
            self.tokens[name] = done.stdout.strip()
        return self._result(done, {75: "contended"})

    def extend(self, name, ttl_ms):
        done = self._run("extend", "-t", f"{ttl_ms}ms", name, self.tokens[name])
        return self._result(done, {1: "lost"})

    def release(self, name):
        done = self._run("release", "--strict", name, self.tokens[name])
        return self._result(done, {1: "lost"})

    def state(self, name):
        return self.STATES[self._run("status", name).returncode]

    def close(self):
        pass


class RedisPy:
    """redis-py's Lock, which uses one server."""

    def __init__(self, urls):
        import redis

        (url,) = urls
        self.redis = redis
        self.client = redis.Redis.from_url(url)
        self.locks = {}

    def acquire(self, name, ttl_ms, wait_ms=0):
        lock = self.client.lock(name, timeout=ttl_ms / 1000, sleep=0.01, thread_local=False)
        if wait_ms:
            acquired = lock.acquire(blocking=True, blocking_timeout=wait_ms / 1000)
        else:
            acquired = lock.acquire(blocking=False)
        if acquired:
            self.locks[name] = lock
        return "ok" if acquired else "contended"

    def _try(self, call):
        """Calls `call`. Returns "ok", or "lost" if the lock is not owned any more."""
        try:
            call()
        except self.redis.exceptions.LockNotOwnedError:
            return "lost"
        return "ok"

    def extend(self, name, ttl_ms):
        return self._try(lambda: self.locks[name].extend(ttl_ms / 1000, replace_ttl=True))

    def release(self, name):
        return self._try(self.locks[name].release)

    def close(self):
        self.client.close()


class NodeRedlock:
    """node-redlock (node/peer.cjs), with the packages of `directory`."""

    def __init__(self, urls, version, directory):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "node", "peer.cjs")
        environment = {**os.environ, "NODE_PATH": directory, "NODE_DISABLE_COMPILE_CACHE": "1"}
        self.process = Process(["node", script, version, *urls], env=environment)

    def acquire(self, name, ttl_ms, wait_ms=0):
        return self.process.request("acquire", name, ttl_ms, wait_ms)

    def extend(self, name, ttl_ms):
        return self.process.request("extend", name, ttl_ms)

    def release(self, name):
        return self.process.request("release", name)

    def close(self):
        self.process.close()
