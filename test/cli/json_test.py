# SPDX-License-Identifier: MIT
"""JSON output and events: every line is valid and has its schema; readers that stall do not delay the lock. world.Case
starts servers for the class, five unless `count` differs, and empties them before each test. redlock() runs the
command and returns its result; start() only starts it; start_with_events() starts `run` and records its events;
hold() acquires a lock as another holder; until() waits for a condition."""

import fcntl
import json
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import tapcase  # noqa: E402
from world import REDLOCK, SLOW, Case, until  # noqa: E402

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
RFC3339 = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")


def fields_of(value):
    """Returns the names of all fields of a JSON value, at any depth."""
    if isinstance(value, list):
        return set().union(*(fields_of(one) for one in value))
    return set(value).union(*(fields_of(one) for one in value.values())) if isinstance(value, dict) else set()


class Json(Case):
    """The --json output and the events of --status-fd, on five servers."""

    def json(self, *args, code=0):
        """Runs the command and returns the objects that it prints, of which each must have a schema."""
        result = self.redlock(*args)
        self.assertCode(result, code)
        objects = [json.loads(line) for line in result.stdout.splitlines()]
        for value in objects:
            self.assertRegex(value["schema"], r"^redlock\.\w+/1$")
        return objects

    def test_acquire_status_extend_release_break(self):
        """Each of these commands prints one JSON object with its fields."""
        acquired_report = self.json("acquire", "--json", "-t", "20s", "--prefix", "p:", "j")[0]
        self.assertEqual((acquired_report["schema"], acquired_report["name"], acquired_report["key"]), ("redlock.acquire/1", "j", "p:j"))
        self.assertEqual(set(self.servers.values("p:j")), {acquired_report["token"].encode()})
        self.assertEqual((acquired_report["configured"], acquired_report["quorum"]), (5, 3))
        self.assertGreaterEqual(acquired_report["granted"], acquired_report["quorum"])
        self.assertLessEqual(acquired_report["validity_ms"], 20000)
        held, free = self.json("status", "--json", "--prefix", "p:", "j", "k", code=1)
        self.assertEqual((held["state"], free["state"]), ("held", "free"))
        self.assertEqual(held["owner"], acquired_report["owner"])
        self.assertGreater(held["ttl_ms"]["min"], 15000)
        self.assertEqual({node["value"] for node in held["servers"]}, {"match"})
        self.assertEqual({node["value"] for node in free["servers"]}, {"none"})
        extended = self.json("extend", "--json", "--prefix", "p:", "j", acquired_report["token"])[0]
        self.assertTrue(extended["extended"])
        self.assertGreater(extended["validity_ms"], 20000)
        released = self.json("release", "--json", "--prefix", "p:", "j", acquired_report["token"])[0]
        self.assertTrue(released["released"])
        again = self.json("release", "--json", "--strict", "--prefix", "p:", "j", acquired_report["token"], code=1)[0]
        self.assertEqual((again["released"], again["error"]), (False, "REDLOCK_ELOST"))
        self.hold("j")
        broken = self.json("break", "--json", "--yes", "j")[0]
        self.assertEqual(broken["state"], "held")
        self.assertEqual((broken["deleted"], broken["configured"], broken["others"]), (5, 5, []))
        self.hold("j")
        until(lambda: len(self.servers.values("j")) == 5, "the key on all servers")
        self.servers.command(4, "DEL", "j")
        broken = self.json("break", "--json", "--yes", "j")[0]
        self.assertEqual((broken["deleted"], broken["configured"]), (4, 5))
        self.assertEqual(broken["others"], [{"server": f"127.0.0.1:{self.servers.ports[4]}", "value": "none"}])

    def watch(self, *args):
        """Starts `redlock watch`. It is killed after the test."""
        watcher = subprocess.Popen(
            [REDLOCK, "watch", *args], env=self.environment(), stdout=subprocess.PIPE, text=True
        )
        self.addCleanup(watcher.stdout.close)
        self.addCleanup(watcher.wait)
        self.addCleanup(watcher.kill)
        return watcher

    def test_watch_prints_each_change_once(self):
        """`watch` prints one line for each change."""
        watcher = self.watch("-i", "20ms", "w")
        seen = [json.loads(watcher.stdout.readline())]
        token = self.redlock("acquire", "w").stdout.strip()
        seen.append(json.loads(watcher.stdout.readline()))
        self.assertEqual(self.redlock("release", "w", token).returncode, 0)
        seen.append(json.loads(watcher.stdout.readline()))
        _, path = self.start_with_events("-t", "6s", "w", "--", "sleep", "1000")
        seen.append(json.loads(watcher.stdout.readline()))
        self.wait_event(path, "extended")
        self.assertEqual([one["state"] for one in seen], ["free", "held", "free", "held"])
        self.assertEqual({one["schema"] for one in seen}, {"redlock.watch/1"})
        self.assertRegex(seen[1]["t"], RFC3339)
        self.assertGreaterEqual(seen[1]["votes"], 3)
        self.assertGreater(seen[1]["ttl_ms"], 0)
        self.assertNotEqual(seen[1]["owner"], seen[3]["owner"])
        watcher.send_signal(signal.SIGTERM)
        self.assertEqual(watcher.wait(20 * SLOW), 128 + signal.SIGTERM)
        self.assertEqual(watcher.stdout.read(), "")  # an extension is not a change

    def test_watch_ends_with_its_reader(self):
        """`watch` ends with 74 when its reader closes the pipe."""
        watcher = self.watch("-i", "20ms", "w")
        watcher.stdout.readline()
        watcher.stdout.close()  # no change follows: the closed pipe alone must end it
        self.assertEqual(watcher.wait(20 * SLOW), 74)

    def test_watch_reports_unknown_without_servers(self):
        """Without a majority, the watched state is unknown."""
        watcher = self.watch("-i", "20ms", "-s", "127.0.0.1:1,127.0.0.1:2,127.0.0.1:3", "w")
        report = json.loads(watcher.stdout.readline())
        self.assertEqual(report["state"], "unknown")
        self.assertIn("refused", report["text"])

    def test_nodes_and_config(self):
        """`nodes --json` and `config --json` print valid JSON."""
        nodes = self.json("nodes", "--json")[0]
        self.assertEqual((nodes["state"], nodes["configured"], nodes["eligible"]), ("OK", 5, 5))
        for node in nodes["servers"]:
            self.assertEqual(node["role"], "master")
            self.assertGreater(node["rtt_us"], 0)
            self.assertRegex(node["version"], r"^(redis|valkey) \d")
        self.assertEqual(self.json("config", "--json")[0]["settings"]["servers"]["value"], self.servers.list)

    def test_pages_name_each_field(self):
        """The section JSON of a manual page has each field that the command prints."""
        self.hold("j")
        rare = {"nodes": {"shard", "shards", "initialized"},
                "top": {"shard", "quarantine_ms", "uptime_s", "text", "endless", "scan_error"}}  # fmt: skip
        for name, options in (("nodes", []), ("top", ["--once", "j", "k"])):
            with open(os.path.join(SOURCE, "tools", "manual", "pages", f"{name}.mdoc"), encoding="utf-8") as file:
                told = re.search(r"^\.Sh JSON\n(.*?)^@", file.read(), re.M | re.S)[1]
            printed = set()
            for value in self.json(name, "--json", *options):
                printed |= fields_of(value) - {"schema"}
            self.assertGreater(len(printed), 12)
            self.assertEqual({field for field in printed | rare[name] if not re.search(rf"\b{field}\b", told)}, set())

    def test_names_of_any_bytes(self):
        """Names that are not UTF-8 are printed as valid JSON."""
        name = b"\xff\xfe\x01 a"
        result = subprocess.run(
            [REDLOCK, "status", "--json", name],
            capture_output=True,
            env=self.environment(),
            timeout=60 * SLOW,
            check=False,
        )
        self.assertEqual(result.returncode, 1)
        self.assertEqual(json.loads(result.stdout)["name"], "\ufffdff\ufffdfe\x01 a")

    def test_events_of_a_lock(self):
        """The events of a lock come in their order, with their fields."""
        process, path = self.start_with_events("-t", "6s", "j", "--", "sh", "-c", "echo; exec sleep 1000")
        process.stdout.readline()
        self.wait_event(path, "extended")
        process.send_signal(signal.SIGTERM)
        process.wait(10 * SLOW)
        events = self.events(path)
        for event in events:
            self.assertEqual((event["schema"], event["name"]), ("redlock.event/1", "j"))
            self.assertRegex(event["t"], RFC3339)
        names = [event["event"] for event in events]
        self.assertEqual(names[:2], ["acquired", "child_started"])
        self.assertEqual(names[-2:], ["child_exited", "released"])
        acquired = events[0]
        self.assertEqual((acquired["configured"], acquired["quorum"]), (5, 3))
        self.assertGreaterEqual(acquired["granted"], acquired["quorum"])
        self.assertLess(acquired["validity_ms"], 6000)
        self.assertEqual(events[-2]["signal"], "TERM")
        self.assertEqual(events[-2]["exit"], 143)

    def test_causes_have_names(self):
        """The cause of a failed server is a word."""
        servers = "127.0.0.1:1,127.0.0.1:2," + self.servers.list
        found = self.json("nodes", "--json", "-s", servers, code=1)[0]
        self.assertEqual([node["cause"] for node in found["servers"]], ["connect"] * 2 + ["none"] * 5)
        token = self.redlock("acquire", "j").stdout.strip()
        done = self.json("release", "--json", "-s", servers, "j", token)[0]
        self.assertLessEqual({node["cause"] for node in done["servers"]}, {"connect", "none"})

    def test_waiting_and_not_acquired(self):
        """A wait has an event, and so has its end without a lock."""
        self.hold("j")
        path = self.path("events", "")
        with open(path, "ab") as file:
            fd = str(file.fileno())
            result = self.redlock("run", "-w", "1s", "--status-fd", fd, "j", "--", "true", pass_fds=[int(fd)])
        self.assertCode(result, 75)
        waiting, end = self.events(path)
        self.assertEqual((waiting["event"], waiting["error"]), ("waiting", "REDLOCK_ECONTENDED"))
        self.assertEqual((end["event"], end["error"], end["exit"]), ("not_acquired", "REDLOCK_ECONTENDED", 75))
        self.assertEqual(len(end["servers"]), 5)

    def test_run_json_prints_json_on_stderr(self):
        """`run --json` prints its own messages as JSON on stderr."""
        result = self.redlock("run", "--json", "j", "--", "sh", "-c", "echo out")
        self.assertCode(result, 0)
        self.assertEqual(result.stdout, "out\n")
        for line in result.stderr.splitlines():
            self.assertIn(json.loads(line)["schema"], ("redlock.event/1", "redlock.message/1"))
        result = self.redlock("run", "--json", "-t", "1h", "j", "--", "true")
        self.assertCode(result, 78)
        self.assertEqual(json.loads(result.stderr)["level"], "error")

    def test_stalled_readers_do_not_hold_up_the_lock(self):
        """Nobody reads the events or stderr, and both pipes are full: the lock is extended all the same."""
        read, write = os.pipe()
        self.addCleanup(os.close, read)
        fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4096)
        flags = fcntl.fcntl(write, fcntl.F_GETFL)
        fcntl.fcntl(write, fcntl.F_SETFL, flags | os.O_NONBLOCK)
        os.write(write, b"x" * 4096)
        fcntl.fcntl(write, fcntl.F_SETFL, flags)
        process = subprocess.Popen(
            [REDLOCK, "run", "-vv", "--status-fd", str(write), "-t", "4s", "j", "--", "sleep", "6"],
            stdout=subprocess.PIPE,
            stderr=write,
            env=self.environment(),
            pass_fds=[write],
        )
        os.close(write)
        self.addCleanup(self.end, process)
        self.assertEqual(process.wait(20 * SLOW), 0)

    def test_closed_readers_do_not_end_the_command(self):
        """Closed readers of events and messages do not end the command."""
        read, write = os.pipe()
        os.close(read)
        process = subprocess.Popen(
            [REDLOCK, "run", "-vv", "--status-fd", str(write), "j", "--", "sh", "-c", "exit 6"],
            stdout=subprocess.PIPE,
            stderr=write,
            env=self.environment(),
            pass_fds=[write],
        )
        os.close(write)
        self.addCleanup(self.end, process)
        self.assertEqual(process.wait(20 * SLOW), 6)

    def test_end_of_events_is_seen_though_the_command_left_a_process(self):
        """The reader of events sees their end although a process of the command still runs."""
        read, write = os.pipe()
        process = self.start(
            "run", "--status-fd", str(write), "j", "--", "sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!",
            pass_fds=[write],
        )  # fmt: skip
        os.close(write)
        pid = int(process.stdout.readline())
        self.addCleanup(os.kill, pid, signal.SIGKILL)
        with os.fdopen(read, encoding="utf-8") as file:
            names = [json.loads(line)["event"] for line in file]
        self.assertEqual(names[-1], "released")
        until(lambda: process.poll() is not None, "end of redlock")


if __name__ == "__main__":
    tapcase.main()
