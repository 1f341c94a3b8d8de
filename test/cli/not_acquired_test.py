# SPDX-License-Identifier: MIT
"""What `run` and `acquire` print on stderr when they do not get the lock, and what they print while they wait if stderr
is no terminal. world.Case starts five servers for the class and empties them before each test; OwnServersCase starts
three for each test. redlock() runs the command and returns its result; start() and start_with_events() only start it;
hold() acquires a lock as another holder."""

import json
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import tapcase  # noqa: E402
from world import TIME_LIMIT, Case, OwnServersCase, until  # noqa: E402

HOLDER = r"[^ /]+/\d+/\d+"
NO_WAIT = "to wait for the lock: --wait 1m"
LONGER = "to wait longer: raise --wait"


class Held(Case):
    """Another client holds the lock: exit code 75."""

    def ending(self, *args, code=75):
        """Runs the command until it has seen the holder, which it looks for only half a second. Returns its stderr."""

        def run():
            """Returns stderr if the holder is in it."""
            result = self.redlock(*args)
            self.assertCode(result, code)
            return result.stderr if re.search(r"\(\d+s left\)", result.stderr) else None

        return until(run, "the holder on stderr")

    def test_holder_time_and_advice_without_wait(self):
        """-n: one line with the holder, the time left of its key, how to see it, and how to wait."""
        self.hold("h")
        for args in (["run", "-n", "h", "--", "true"], ["acquire", "-n", "h"], ["acquire", "-w", "0", "h"]):
            self.assertRegex(
                self.ending(*args),
                rf"\Aredlock: h: not acquired: held by another client: {HOLDER} \([123]?\ds left\); "
                rf"to check the holder: redlock status h; {NO_WAIT}\n\Z",
            )

    def test_holder_time_and_advice_after_a_wait(self):
        """-w: the line also says which limit has ended the wait, and that it can be raised. It is the only line."""
        self.hold("h")
        self.assertRegex(
            self.ending("run", "-w", "900ms", "h", "--", "true"),
            rf"\Aredlock: h: not acquired: held by another client: {HOLDER} \([123]?\ds left\); gave up after 900ms "
            rf"\(--wait\); to check the holder: redlock status h; {LONGER}\n\Z",
        )

    def test_other_code_and_quiet(self):
        """-E changes the code and not the line. -q suppresses it, and then no request is made for it."""
        self.hold("h")
        self.assertIn("redlock status h", self.ending("run", "-n", "-E", "0", "h", "--", "true", code=0))
        monitor = self.servers.connect(0)
        self.addCleanup(monitor.close)
        monitor.command("MONITOR")
        result = self.redlock("run", "-q", "-n", "h", "--", "true")
        self.assertCode(result, 75)
        self.assertEqual(result.stderr, "")
        self.servers.command(0, "ECHO", "end")
        seen = []
        while not seen or '"ECHO" "end"' not in seen[-1]:
            seen.append(monitor.reply().decode())
        self.assertEqual([line for line in seen if '"GET" "h"' in line and " lua]" not in line], [])

    def test_other_code_is_not_for_the_command(self):
        """-E replaces 75 if the lock of this `run` is held, not a 75 of its command, such as a `run` for another lock."""
        self.hold("h")
        inner = [os.environ.get("REDLOCK", "redlock"), "run", "-n", "h", "--", "true"]
        for command in (["sh", "-c", "exit 75"], inner):
            self.assertCode(self.redlock("run", "-E", "0", "outer", "--", *command), 75)
        self.assertCode(self.redlock("run", "-E", "9", "outer", "--", *inner[:2], "-E", "0", *inner[2:]), 0)

    def test_output_only_when_it_gives_up(self):
        """-q and `|| echo` print nothing unless the lock is not acquired or the command fails: the lines for cron."""
        redlock = os.environ.get("REDLOCK", "redlock")
        line = '"$0" run -q -w 500ms "$1" -- "$2" || echo "$1: exit $?"'
        token = self.redlock("acquire", "h").stdout.strip()
        for name, command, text in (("h", "true", "h: exit 75\n"), ("free", "true", ""), ("free", "false", "free: exit 1\n")):
            done = subprocess.run(["sh", "-c", line, redlock, name, command], capture_output=True, text=True,
                                  env=self.environment(), timeout=TIME_LIMIT, check=False)  # fmt: skip
            self.assertEqual((done.stdout, done.stderr), (text, ""))
        self.assertCode(self.redlock("release", "h", token), 0)

    def test_several_names_and_names_for_a_shell(self):
        """Of several names, the line names the one that is held, quoted as a shell needs it."""
        self.hold("it's b")
        text = self.ending("run", "-n", "a", "-a", "it's b", "--", "true")
        self.assertRegex(text, rf"^redlock: a, it's b: not acquired: held by another client \('it's b'\): {HOLDER} ")
        command = re.search("holder: (.*); to wait", text).group(1)
        self.assertEqual(command, r"redlock status 'it'\''s b'")
        shown = subprocess.run(["sh", "-c", f"printf '%s.' {command}"], capture_output=True, text=True, check=True)
        self.assertEqual(shown.stdout, "redlock.status.it's b.")

    def test_names_with_control_bytes(self):
        """A name that does not print is offered as a word that means the same name."""
        name = "a\x1b'\\\xe9\u202e"
        self.hold(name)
        text = self.ending("run", "-n", name, "--", "true")
        command = re.search("holder: (.*); to wait", text).group(1)
        self.assertEqual(command, "redlock status $'a\\x1b\\'\\\\\xe9\\xe2\\x80\\xae'")
        shown = subprocess.run(["bash", "-c", f"printf '%s.' {command}"], capture_output=True, text=True, check=True)
        self.assertEqual(shown.stdout, f"redlock.status.{name}.")
        result = self.redlock("run", "a\nb")
        self.assertIn("redlock run $'a\\x0ab' -- CMD", result.stderr)

    def test_permits(self):
        """Permits have several holders, which the status shows."""
        self.assertCode(self.redlock("acquire", "--permits", "1", "-t", "30s", "p"), 0)
        result = self.redlock("acquire", "-n", "--permits", "1", "p")
        self.assertCode(result, 75)
        self.assertEqual(
            result.stderr,
            "redlock: p: not acquired: held by another client: all 1 permits are taken; "
            f"to check the holder: redlock status --permits 1 p; {NO_WAIT}\n",
        )

    def test_key_without_label_and_stuck_key(self):
        """A key of another program has no label. If it never expires, the line says what to do about that instead."""
        self.servers.command_all("SET", "h", "foreign", "EX", "20")
        self.assertRegex(self.ending("acquire", "-n", "h"), r"held by another client \([123]?\ds left\); to check")
        self.servers.command_all("SET", "h", "foreign")
        until(
            lambda: re.search(
                r"held by another client; its key never expires on [345] servers, .*: redlock break --yes\n\Z",
                self.redlock("acquire", "-n", "h").stderr,
            ),
            "the stuck key on stderr",
        )

    def test_no_holder_of_a_majority(self):
        """If no client holds a majority of the keys, none is named, and the advice stays."""
        for index, value in enumerate((b"a@x", b"a@x", b"b@y", b"b@y", b"c@z")):
            self.servers.command(index, "SET", "h", value, "EX", "20")
        result = self.redlock("acquire", "-n", "h")
        self.assertCode(result, 75)
        self.assertRegex(result.stderr, r"held by another client: 0 of 5 servers granted .*; to check the holder: redlock status h; ")

    def test_event(self):
        """The event has the holder as fields."""
        self.hold("h")

        def holder():
            """Returns the holder in the event, or None if it was not found in time."""
            result = self.redlock("acquire", "--json", "-n", "h")
            events = [json.loads(line) for line in result.stderr.splitlines()]
            [event] = [event for event in events if event.get("event") == "not_acquired"]
            return event.get("holder")

        found = until(holder, "the holder in the event")
        self.assertEqual(found["name"], "h")
        self.assertRegex(found["owner"], f"^{HOLDER}$")
        self.assertGreater(found["ttl_ms"], 1000)
        self.assertLessEqual(found["ttl_ms"], 30000)


class NoQuorum(OwnServersCase):
    """Too few servers grant the lock: exit code 69."""

    def test_servers_and_advice(self):
        """Each ending says which servers failed, why, and how to check them. A limit that has ended it is named."""
        servers = f"{self.servers.list.split(',')[0]},127.0.0.1:1,127.0.0.1:2"
        limits = {"-w": r"; gave up after 900ms \(--wait\)", "--quorum-wait": r"; gave up after 900ms without a quorum \(--quorum-wait\)"}
        for flags in (["-n"], ["-w", "900ms"], ["--quorum-wait", "900ms"]):
            result = self.redlock("run", "-s", servers, *flags, "q", "--", "true")
            self.assertCode(result, 69)
            self.assertRegex(
                result.stderr,
                r"\Aredlock: q: not acquired: [^\n]*: [01] of 3 servers granted the lock, 2 required; [^\n]*"
                r"127\.0\.0\.1:1, 127\.0\.0\.1:2: connect: Connection refused"
                rf"{limits.get(flags[0], '')}; check the servers: redlock nodes\n",
            )

    def test_all_servers(self):
        """A text that holds for all servers is printed once."""
        result = self.redlock("run", "-n", "-s", "127.0.0.1:1,127.0.0.1:2,127.0.0.1:3", "q", "--", "true")
        self.assertCode(result, 69)
        self.assertIn("2 required; all 3 servers: connect: Connection refused; check", result.stderr)

    def test_replies_that_were_not_waited_for(self):
        """A server whose reply came after those that decided does not look as if it hung."""
        for server in 0, 1:
            self.servers.command(server, "CONFIG", "SET", "min-replicas-to-write", "1")
        self.servers.command(2, "CLIENT", "PAUSE", 1000, "WRITE")
        result = self.redlock("run", "-n", "--json", "q", "--", "true")
        self.assertCode(result, 69)
        self.assertIn("NOREPLICAS", result.stderr)
        self.assertIn('"text":"decided without its reply"', result.stderr)
        self.assertNotIn("no reply yet", result.stderr)

    def test_fence_records(self):
        """If the fence records are what fails, the check is that of the fences."""
        self.servers.command_all("SET", "redlock:fence", "no record")
        volatile = self.environment(REDLOCK_FENCE_RECORDS="volatile")
        result = self.redlock("acquire", "-n", "--fence", "q", env=volatile)
        self.assertCode(result, 69)
        self.assertRegex(result.stderr, r"check the servers: redlock nodes --fence\n")

    def test_user_is_refused(self):
        """A refused user gets the same advice: exit code 77."""
        self.servers.command_all("CONFIG", "SET", "requirepass", "pw")
        result = self.redlock("acquire", "-n", "q")
        self.assertCode(result, 77)
        self.assertRegex(result.stderr, r"q: not acquired: .*NOAUTH.*; check the servers: redlock nodes\n")


class Silence(Case):
    """stderr is no terminal, as under cron: a wait prints nothing at first."""

    def test_short_wait_that_ends_with_the_lock(self):
        """A wait of less than ten seconds that ends with the lock leaves nothing to mail."""
        token = self.hold("c")
        process, path = self.start_with_events("-w", "2m", "c", "--", "true")
        self.wait_event(path, "waiting")
        self.assertCode(self.redlock("release", "c", token), 0)
        self.assertEqual(process.wait(TIME_LIMIT), 0)
        [acquired] = [event for event in self.events(path) if event["event"] == "acquired"]
        if acquired["waited_ms"] < 10000:
            self.assertEqual(self.error_text(), "")

    def test_long_wait(self):
        """After ten seconds the reason is printed. The event, for programs, comes before that, and then again."""
        self.hold("c", "30s")
        started = time.monotonic()
        process, path = self.start_with_events("-w", "2m", "c", "--", "true")
        self.wait_event(path, "waiting")
        if time.monotonic() - started < 9:
            self.assertEqual(self.error_text(), "")
        self.wait_error(rf"\Aredlock: waiting for c: held by another client: {HOLDER} \(\d+s left\)\n\Z")
        self.assertGreater(time.monotonic() - started, 9.9)
        first, second = self.wait_events(path, "waiting", 2)
        self.assertGreater(second["waited_ms"] - first["waited_ms"], 9900)
        process.terminate()
        self.assertEqual(process.wait(TIME_LIMIT), 128 + signal.SIGTERM)

    def test_verbose(self):
        """-v prints the reason at once."""
        self.hold("c")
        self.start("run", "-v", "c", "--", "true")
        self.wait_error(rf"\Aredlock: waiting for c: held by another client: {HOLDER} \(\d+s left\)\n")

    def test_json(self):
        """The same holds for the message in JSON."""
        self.hold("c")
        result = self.redlock("run", "--json", "-w", "900ms", "c", "--", "true")
        self.assertCode(result, 75)
        messages = [json.loads(line) for line in result.stderr.splitlines()]
        texts = [message["text"] for message in messages if message["schema"] == "redlock.message/1"]
        self.assertEqual([text.partition(":")[0] for text in texts], ["c"])


if __name__ == "__main__":
    tapcase.main()
