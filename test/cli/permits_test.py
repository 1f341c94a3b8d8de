# SPDX-License-Identifier: MIT
"""`--permits L`: permits of a semaphore, for a command and by token, and the status of all of them. world.Case starts
servers for the class, five unless `count` differs, and empties them before each test. redlock() runs the command
and returns its result; start() only starts it."""

import json
import os
import socket
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import tapcase  # noqa: E402
from world import REDLOCK, SLOW, Case  # noqa: E402

LONG = "30s"  # a TTL that outlasts a test


class HoldingProxy:
    """A proxy in front of a server that holds back the replies from the first GET on, until it has received
    `gets_wanted` GETs or for 3 s. `all_arrived` shows whether they came in time."""

    def __init__(self, port, gets_wanted):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.server = port
        self.gets_wanted = gets_wanted
        self.get_count = 0
        self.all_arrived = False
        self.change = threading.Condition()
        self.sockets = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        """Accepts connections and passes their bytes on, in both directions."""
        while True:
            try:
                near = self.listener.accept()[0]
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self.server))
            self.sockets += [near, far]
            threading.Thread(target=self.pass_on, args=(near, far, self.count), daemon=True).start()
            threading.Thread(target=self.pass_on, args=(far, near, self.wait), daemon=True).start()

    def count(self, data):
        """Counts the GETs in these bytes of a client."""
        with self.change:
            self.get_count += data.count(b"$3\r\nGET\r\n")
            self.change.notify_all()

    def wait(self, _):
        """Holds back a reply, once a GET has come, until all GETs have come or 3 s have passed."""
        with self.change:
            if self.get_count and not self.all_arrived:
                self.all_arrived = self.change.wait_for(lambda: self.get_count >= self.gets_wanted, 3)

    @staticmethod
    def pass_on(source, target, first):
        """Copies bytes from source to target; calls first(bytes) before each piece is sent."""
        try:
            while data := source.recv(65536):
                first(data)
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self):
        """Closes the listening socket and all connections."""
        for each in [self.listener, *self.sockets]:
            each.close()


class Permits(Case):
    """Semaphores on the command line, on five servers."""

    def environment(self, **more):
        """Returns the environment with volatile fence records."""
        return super().environment(**{"REDLOCK_FENCE_RECORDS": "volatile", **more})

    def status(self, *more):
        """Runs `status --permits 2 pool` and returns the result."""
        return self.redlock("status", "--permits", "2", *more, "pool")

    def json_status(self):
        """Returns the JSON object of `status --permits --json`."""
        return json.loads(self.status("--json").stdout)

    def test_command_gets_slot_in_environment(self):
        """The command gets the number of its slot."""
        result = self.redlock("run", "--permits", "1", "pool", "--", "sh", "-c",
                              "echo $REDLOCK_SLOT $REDLOCK_NAME $REDLOCK_KEY")
        self.assertEqual((result.returncode, result.stdout), (0, "0 pool pool{#0}\n"))
        self.assertEqual(self.status().returncode, 1)

    def test_slot_of_an_outer_run_is_not_inherited(self):
        """A nested `run` without --permits does not pass on the slot of the outer one."""
        result = self.redlock("run", "--permits", "1", "pool", "--", REDLOCK, "run", "inner", "--",
                              "sh", "-c", "echo ${REDLOCK_SLOT-none}")
        self.assertEqual((result.returncode, result.stdout), (0, "none\n"))

    def test_permits_are_granted_up_to_their_number(self):
        """L permits are granted, and one more is refused."""
        first = self.redlock("acquire", "-t", LONG, "--permits", "2", "pool")
        second = json.loads(self.redlock("acquire", "-t", LONG, "--permits", "2", "--json", "pool").stdout)
        name, token = first.stdout.split()
        self.assertEqual({name, f"pool{{#{second['slot']}}}"}, {"pool{#0}", "pool{#1}"})
        self.assertEqual(second["key"], f"pool{{#{second['slot']}}}")
        shown = self.status()
        self.assertEqual(shown.returncode, 0)
        self.assertIn("pool: 2 of 2 permits held, 0 free", shown.stdout)
        self.assertIn(f"held by {second['owner'].rpartition('/')[0]}, expires in", shown.stdout)
        refused = self.redlock("run", "-n", "--permits", "2", "pool", "--", "true")
        self.assertEqual(refused.returncode, 75)
        self.assertIn("all 2 permits are taken", refused.stderr)
        self.assertEqual(self.redlock("extend", "-t", LONG, name, token).returncode, 0)
        self.assertEqual(self.redlock("release", "--strict", name, token).returncode, 0)
        status = self.json_status()
        self.assertEqual((status["schema"], status["permits"], status["held"], status["free"], status["unknown"]),
                         ("redlock.permits/1", 2, 1, 1, 0))
        states = {slot["slot"]: slot["state"] for slot in status["slots"]}
        self.assertEqual(states[second["slot"]], "held")
        self.assertEqual(states[1 - second["slot"]], "free")
        self.assertEqual(self.redlock("break", "--yes", second["key"]).returncode, 0)
        self.assertEqual(self.status().returncode, 1)

    def test_watch_prints_each_change_of_a_slot(self):
        """`watch --permits` prints a line for each slot, and again for each slot whose holder changes."""
        watcher = subprocess.Popen([REDLOCK, "watch", "-i", "20ms", "--permits", "2", "pool"], env=self.environment(),
                                   stdout=subprocess.PIPE, text=True)  # fmt: skip
        self.addCleanup(watcher.stdout.close)
        self.addCleanup(watcher.wait)
        self.addCleanup(watcher.kill)

        def line():
            """Returns schema, name, slot and state of the next line, and whether it has a holder."""
            one = json.loads(watcher.stdout.readline())
            return one["schema"], one["name"], one["slot"], one["state"], bool(one.get("owner"))

        states = {line() for _ in range(2)}
        self.assertEqual(states, {("redlock.watch/1", f"pool{{#{slot}}}", slot, "free", False) for slot in (0, 1)})
        held = [self.redlock("acquire", "-t", LONG, "--permits", "2", "pool").stdout.split()]
        first = line()
        self.assertEqual((first[1], first[3:]), (held[0][0], ("held", True)))
        held.append(self.redlock("acquire", "-t", LONG, "--permits", "2", "pool").stdout.split())
        second = line()
        self.assertEqual((second[1], second[3:]), (held[1][0], ("held", True)))
        self.assertEqual({first[2], second[2]}, {0, 1})
        self.assertCode(self.redlock("release", *held[0]), 0)
        self.assertEqual(line()[1:4], (held[0][0], first[2], "free"))

    def test_fencing_tokens_of_a_slot_grow(self):
        """The fencing tokens of one slot increase."""
        numbers = []
        for _ in range(2):
            words = self.redlock("acquire", "--permits", "1", "--fence", "-w", "10s", "pool").stdout.split()
            self.assertEqual(words[0], "pool{#0}")
            numbers.append(int(words[2]))
            self.assertEqual(self.redlock("release", words[0], words[1]).returncode, 0)
        self.assertLess(numbers[0], numbers[1])

    def test_waiting_run_gets_released_permit(self):
        """A `run` that waits gets the next permit that is released."""
        name, token = self.redlock("acquire", "-t", LONG, "--permits", "1", "pool").stdout.split()
        waiter = self.start("run", "-v", "--permits", "1", "pool", "--", "echo", "mine")
        self.wait_error("waiting for pool: held by another client: all 1 permits are taken")
        self.assertEqual(self.redlock("release", name, token).returncode, 0)
        self.assertEqual(waiter.stdout.readline(), "mine\n")
        self.assertEqual(waiter.wait(10 * SLOW), 0)

    def test_nested_run_conflicts_with_same_slot_only(self):
        """A nested `run` is refused for another permit of the same semaphore and for the slot that the outer one holds."""
        for outer, inner, code in ((["--permits", "1", "pool"], ["pool"], 0),
                                   (["pool"], ["--permits", "1", "pool"], 0),
                                   (["--permits", "2", "pool"], ["--permits", "2", "pool"], 64),
                                   (["--permits", "1", "pool"], ["pool{#0}"], 64),
                                   (["--permits", "1", "pool"], ["pool{#1}"], 0),
                                   (["--permits", "1", "pool"], ["--allow-nested", "--permits", "1", "pool"], 75)):
            with self.subTest(outer=outer, inner=inner):
                result = self.redlock("run", *outer, "--", REDLOCK, "run", "-n", *inner, "--", "true")
                self.assertCode(result, code)
                permit = code == 64 and "--permits" in inner
                self.assertEqual("a permit of pool" in result.stderr, permit)
                self.assertEqual("would wait for itself" in result.stderr, code == 64 and not permit)

    def test_longest_name_depends_on_number_of_slots(self):
        """A name may be as long as its longest slot name permits."""
        for slots, longest in ((1, 508), (10, 508), (11, 507), (1024, 505)):
            for length in (longest, longest + 1, 512):
                name = "x" * length
                code = 64 if length > longest else 0
                for words in (["run", "-n", "--permits", str(slots), name, "--", "true"],
                              ["acquire", "-n", "--permits", str(slots), name]):
                    with self.subTest(words=words[0], slots=slots, length=length):
                        result = self.redlock(*words)
                        self.assertCode(result, code)
                        self.assertEqual(f"use 1 to {longest} bytes" in result.stderr, code == 64)
            for command in "status", "watch":
                result = self.redlock(command, "--permits", str(slots), "x" * (longest + 1))
                self.assertCode(result, 64)
                self.assertIn(f"NAME{{#{slots - 1}}}; use 1 to {longest} bytes", result.stderr)
            self.assertCode(self.redlock("status", "--permits", str(slots), "y" * longest), 1)

    def test_status_reads_many_slots_at_once(self):
        """`status` of many slots sends its requests together."""
        held = [self.redlock("acquire", "-n", "-t", LONG, f"pool{{#{slot}}}").returncode for slot in (0, 99)]
        self.assertEqual(held, [0, 0])
        proxy = HoldingProxy(self.servers.ports[0], 32)
        self.addCleanup(proxy.close)
        result = self.redlock("status", "--json", "--permits", "100", "--node-timeout", "20s",
                              "--connect-timeout", "20s", "-s", f"127.0.0.1:{proxy.port}?fresh=1", "pool")
        self.assertCode(result, 1)
        status = json.loads(result.stdout)
        self.assertEqual([slot["slot"] for slot in status["slots"]], list(range(100)))
        self.assertEqual([slot["slot"] for slot in status["slots"] if slot["state"] == "held"], [0, 99])
        self.assertEqual([slot["name"] for slot in status["slots"]][98:], ["pool{#98}", "pool{#99}"])
        self.assertTrue(proxy.all_arrived, "not 32 GETs before the first reply")

    def test_invalid_flags_are_refused(self):
        """Counts out of range, and --permits together with -a or `extend`, are refused."""
        for words, code in ((["run", "--permits", "0", "pool", "--", "true"], 64),
                            (["run", "--permits", "1025", "pool", "--", "true"], 64),
                            (["status", "--permits", "x", "pool"], 64),
                            (["run", "--permits", "2", "pool", "-a", "other", "--", "true"], 64),
                            (["extend", "--permits", "2", "pool", "token"], 64)):
            with self.subTest(words=words):
                self.assertEqual(self.redlock(*words).returncode, code)


if __name__ == "__main__":
    tapcase.main()
