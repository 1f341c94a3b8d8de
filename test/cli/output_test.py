# SPDX-License-Identifier: MIT
"""Output of names, paths and servers' texts: control characters are escaped, so that they cannot steer the terminal.
JSON is valid UTF-8 whatever the bytes were, and loses none of them. world.Case starts servers for the class, five
unless `count` differs, and empties them before each test. until() waits for a condition."""

import json
import os
import random
import re
import subprocess
import sys
import unicodedata

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import tapcase  # noqa: E402
from world import REDLOCK, SLOW, TIME_LIMIT, Case, until  # noqa: E402

HOSTILE = "a\x1b[2J\nredlock: b\x7f\r\x9bé\u202e\u2066日\u2028".encode() + b"\x9b\xff\xe6\x97"
SHOWN = r"a\x1b[2J\x0aredlock: b\x7f\x0d\xc2\x9bé\xe2\x80\xae\xe2\x81\xa6日\xe2\x80\xa8\x9b\xff\xe6\x97"
ADDRESS = "/x\x9bé\u202e".encode() + b"\x9b"  # control bytes of ASCII are refused in an address
ADDRESS_SHOWN = r"unix:/x\xc2\x9bé\xe2\x80\xae\x9b"


def bytes_of(text):
    """Returns the bytes that a string of a JSON object stands for."""
    raw = re.sub("\ufffd([0-9a-f]{2})", lambda found: chr(0xDC00 + int(found.group(1), 16)), text)
    return raw.encode("utf-8", "surrogateescape")


class Output(Case):
    """Names, labels and settings with control characters, in the output of each command."""

    def plain(self, output):
        """Returns the output as text, after a check that it has no control characters but newlines."""
        text = output.decode()
        steering = {char for char in text if unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp")}
        self.assertLessEqual(steering, {"\n"})
        return text

    def run_plain(self, *args, code=0, **options):
        """Runs the command and returns stdout and stderr, both checked by plain()."""
        environment = options.pop("env", None) or self.environment()
        done = subprocess.run(
            [REDLOCK, *args], capture_output=True, env=environment, timeout=60 * SLOW, check=False, **options
        )
        self.assertEqual(done.returncode, code, done)
        return self.plain(done.stdout), self.plain(done.stderr)

    def test_status_and_its_warning(self):
        """`status`, its warning and `extend` escape them."""
        token = self.run_plain("acquire", "-t", "20s", HOSTILE)[0].strip()
        self.servers.command_all("PERSIST", HOSTILE)
        out, errors = self.run_plain("status", HOSTILE)
        self.assertIn(f"\n{SHOWN}: held by ", "\n" + out)
        self.assertIn(f"redlock: warning: {SHOWN}: never expires", errors)
        out, _ = self.run_plain("extend", "-t", "30s", HOSTILE, token)
        self.assertIn(f"{SHOWN}: valid for ", out)

    def test_status_of_permits(self):
        """So does `status --permits`."""
        self.assertIn(f"{SHOWN}: 0 of 2 permits held", self.run_plain("status", "--permits", "2", HOSTILE, code=1)[0])

    def test_break(self):
        """So does `break`."""
        self.run_plain("acquire", HOSTILE)
        out = self.run_plain("break", "--yes", HOSTILE)[0]
        self.assertIn(f"{SHOWN}: held by ", out)
        self.assertIn(f"{SHOWN}: deleted on ", out)

    def test_messages_and_events(self):
        """So do messages on stderr and events."""
        self.run_plain("acquire", HOSTILE)
        _, errors = self.run_plain("run", "-n", HOSTILE, "--", "true", code=75)
        self.assertIn(f"redlock: {SHOWN}: not acquired: ", errors)
        _, errors = self.run_plain("run", "--json", "-n", HOSTILE, "--", "true", code=75)
        objects = [json.loads(line) for line in errors.splitlines()]
        self.assertEqual({bytes_of(one["name"]) for one in objects if "name" in one}, {HOSTILE})
        texts = [bytes_of(one["text"]) for one in objects if one["schema"] == "redlock.message/1"]
        self.assertTrue(any(HOSTILE in text for text in texts), texts)

    def test_watch(self):
        """So does `watch`."""
        watcher = subprocess.Popen([REDLOCK, "watch", "-i", "20ms", HOSTILE], env=self.environment(), stdout=subprocess.PIPE)
        self.addCleanup(watcher.stdout.close)
        self.addCleanup(watcher.wait)
        self.addCleanup(watcher.kill)
        self.assertEqual(bytes_of(json.loads(self.plain(watcher.stdout.readline()))["name"]), HOSTILE)

    def test_labels_of_other_clients(self):
        """So do owner labels that another client chose."""
        token = b"0" * 40 + b"@" + HOSTILE
        self.servers.command_all("SET", "labelled", token, "PX", 20000)
        self.run_plain("status", "labelled")
        self.run_plain("status", "--json", "labelled")
        self.run_plain("status", "-vv", "labelled")

    def test_nodes(self):
        """So do `nodes` and `status`, for addresses."""
        list_ = ADDRESS + b" " + self.servers.list.encode()
        out, _ = self.run_plain("nodes", "-s", list_, code=1)
        self.assertIn(f"\n{ADDRESS_SHOWN} ", out)
        self.assertRegex(out, rf"warn +{re.escape(ADDRESS_SHOWN)}: ")
        found = json.loads(self.run_plain("nodes", "--json", "-s", list_, code=1)[0])
        self.assertIn(b"unix:" + ADDRESS, [bytes_of(node["server"]) for node in found["servers"]])
        _, errors = self.run_plain("nodes", "--wait", "-w", "1ms", "-s", list_, code=1)
        self.assertIn(f"nodes: {ADDRESS_SHOWN}: ", errors)
        out, _ = self.run_plain("status", "-s", list_, "free", code=1)
        self.assertIn(f"  {ADDRESS_SHOWN} ", out)

    def test_config(self):
        """So does `config`."""
        path = self.path("conf\x1b\x9b", "[redlock]\nttl = 5s\n")
        out, _ = self.run_plain("config", "-f", path, "--prefix", HOSTILE, "-s", b"a:1\nb:1")
        self.assertRegex(out, rf"prefix +{re.escape(SHOWN)} +# option --prefix\n")
        self.assertRegex(out, r"servers +a:1\\x0ab:1 +# option -s\n")
        self.assertRegex(out, r"ttl +5s +# .*conf\\x1b\\xc2\\x9b:2\n")
        out, _ = self.run_plain("config", "--json", "--prefix", HOSTILE)
        self.assertEqual(bytes_of(json.loads(out)["settings"]["prefix"]["value"]), HOSTILE)

    def test_sandbox(self):
        """So does `sandbox`."""
        directory = self.path("tmp\x1b[2J\x9b")
        os.mkdir(directory)
        self.addCleanup(os.rmdir, directory)
        process = subprocess.Popen([REDLOCK, "sandbox", "-n", "1"], stdout=subprocess.PIPE, env=self.environment(TMPDIR=directory))
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait, TIME_LIMIT)
        self.addCleanup(process.terminate)
        lines = self.plain(self.until_ready(process))
        self.assertIn(r"removes " + self.directory + r"/tmp\x1b[2J\xc2\x9b/", lines)

    def until_ready(self, process):
        """Waits until the sandbox has printed its whole message, and returns it."""
        lines = []

        def ready():
            """Reads a line, and returns whether it is the last one of the message."""
            lines.append(process.stdout.readline())
            return lines[-1].startswith(b"Ctrl-C") or not lines[-1]

        until(ready, "the end of the sandbox's message")
        return b"".join(lines)

    def test_json_loses_no_byte(self):
        """Names of random bytes, of which many are UTF-8, or nearly."""
        source = random.Random(20260101)
        parts = [b"a", b"\\", b'"', b"\x01", b"\x7f", "é".encode(), "\u202e".encode(), "\ufffd".encode(), "\ufffdff".encode(), "😀".encode()]  # fmt: skip
        parts += ["\U000e0041".encode(), b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe6\x97", b"\xff", b"\x9b"]
        names = [b"".join(source.choice(parts) for _ in range(source.randint(1, 8))) for _ in range(60)]
        names += [bytes(source.randint(1, 255) for _ in range(source.randint(1, 12))) for _ in range(60)]
        names = ["./".encode() + name for name in dict.fromkeys(names)]
        out, _ = self.run_plain("status", "--json", *names, code=1)
        self.assertEqual([bytes_of(json.loads(line)["name"]) for line in out.splitlines()], names)


if __name__ == "__main__":
    tapcase.main()
