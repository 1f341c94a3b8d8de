# SPDX-License-Identifier: MIT
"""`redlock nodes`: each finding on real servers, and the ACL user that --acl prints. world.OwnServersCase starts three
servers for each test. redlock() runs the command and returns its result; until() waits for a condition.
proxy.listen() starts a proxy in front of a server."""

import glob
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import proxy  # noqa: E402
import tapcase  # noqa: E402
from world import REDLOCK, TIME_LIMIT, OwnServersCase, runs, until  # noqa: E402


def serve_http(listener):
    """Replies to every connection as a web server does, until the listener is shut down."""
    while True:
        try:
            connection = listener.accept()[0]
        except OSError:
            return
        with connection:
            connection.recv(100)
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def close_connections(listener):
    """Accepts and closes each connection, like a proxy without a server behind it."""
    while True:
        try:
            listener.accept()[0].close()
        except OSError:
            return


class Nodes(OwnServersCase):
    """Three servers of its own for each test, so that it may change them. findings() runs `redlock nodes --json`."""

    def plain(self):
        """Returns the addresses of the servers without ?fresh=1."""
        return [f"127.0.0.1:{port}" for port in self.servers.ports]

    def configure(self, index, **values):
        """Sets settings of the server with CONFIG SET; _ in a name stands for -."""
        for name, value in values.items():
            self.assertEqual(self.servers.command(index, "CONFIG", "SET", name.replace("_", "-"), value), b"OK")

    def findings(self, *flags, code, **options):
        """Runs `redlock nodes --json` and returns {(severity, code): finding}."""
        result = self.redlock("nodes", "--json", *flags, **options)
        self.assertCode(result, code)
        return {(f["severity"], f["code"]): f for f in json.loads(result.stdout)["findings"]}

    def test_no_finding_but_a_note(self):
        """Healthy servers give exit code 0 and one note, with -v only: no append-only file."""
        self.assertNotIn("append-only", self.redlock("nodes").stdout)
        result = self.redlock("nodes", "-v")
        self.assertCode(result, 0)
        self.assertRegex(result.stdout, r"\AOK: 3 of 3 servers are eligible, 2 required\nserver +eligible ")
        self.assertEqual(result.stdout.count("2 required"), 1)
        self.assertIn("note  all servers: keeps no append-only file", result.stdout)
        self.assertEqual(result.stdout.count("->"), 1)
        nodes = json.loads(self.redlock("nodes", "--json").stdout)["servers"]
        self.assertEqual([node["notifications"] for node in nodes], ["on"] * 3)

    def test_verdict_is_the_first_line(self):
        """The first line is the verdict, which monitoring systems show; it is not repeated among the findings below."""
        listed = self.servers.list.split(",")
        verdict = "1 of 3 servers are eligible, 2 required"
        for servers, code, first in (
            ([*listed[:2], "127.0.0.1:1"], 1, "WARN: 2 of 3 servers are eligible, 2 required"),
            ([listed[0], "127.0.0.1:1", "127.0.0.1:2"], 2, f"CRIT: {verdict}: no lock can be acquired"),
        ):
            result = self.redlock("nodes", "-s", ",".join(servers))
            self.assertCode(result, code)
            self.assertEqual(result.stdout.splitlines()[0], first)
            self.assertEqual(result.stdout.count(first.partition(" ")[2]), 1)
            self.assertRegex(result.stdout, r"(?s)rtt ms\n.*\nwarn  127\.0\.0\.1:1[^\n]*: connect: Connection refused\n +-> start the server")
        self.assertRegex(result.stdout, r"\ACRIT: .*\n      -> see the findings about the servers\nserver ")
        self.assertNotRegex(result.stdout, "(?m)^crit")

    def test_restarted(self):
        """Servers that were started shortly before do not vote: a warning, and no quorum."""
        servers = ",".join(self.plain())
        found = self.findings("-s", servers, "--max-ttl", "10m", code=2)
        self.assertIn("--wait", found["warn", "restarted"]["advice"])
        self.assertRegex(found["warn", "restarted"]["text"], r"votes again in \d+ s")
        self.assertIn(("crit", "no_quorum"), found)
        found = self.findings("-s", ",".join(each + "?durable=1" for each in self.plain()), code=2)
        self.assertNotIn(("warn", "restarted"), found)
        self.assertIn("appendfsync always", found["crit", "not_durable"]["advice"])

    def test_wait_until_all_vote(self):
        """`nodes --wait` ends when all servers vote, or with an error after its time."""
        servers = ",".join(self.plain())
        result = self.redlock("nodes", "--wait", "-s", servers, "--max-ttl", "2s")
        self.assertCode(result, 0)
        result = self.redlock("nodes", "--wait", "-w", "1s", "-s", servers, "--max-ttl", "10m")
        self.assertCode(result, 2)
        self.assertIn("votes again in", result.stderr)
        self.servers.stop(0)
        result = self.redlock("nodes", "--wait", "-w", "1s")
        self.assertCode(result, 1)
        self.assertIn(str(self.servers.ports[0]), result.stderr)

    def test_admission_decides_who_votes(self):
        """The same servers vote with strict and lenient admission, and not with proven admission."""
        flags = ("nodes", "-s", ",".join(self.plain()), "--max-ttl", "3s")
        for word in ("strict", "lenient"):
            env = self.environment(REDLOCK_ADMISSION=word)
            until(lambda: self.redlock(*flags, env=env).returncode == 0, "servers old enough to vote")
        result = self.redlock(*flags, env=self.environment(REDLOCK_ADMISSION="proven"))
        self.assertCode(result, 2)  # a proof takes three seconds of work, and these servers were idle
        self.assertIn("votes again in", result.stdout)

    def test_evicting(self):
        """A server that evicts keys is a warning with advice."""
        self.configure(1, maxmemory="100mb", maxmemory_policy="allkeys-lru")
        found = self.findings(code=1)
        self.assertIn("noeviction", found["warn", "evicting"]["advice"])
        self.assertEqual(found["warn", "evicting"]["server"], f"127.0.0.1:{self.servers.ports[1]}")
        self.assertIn(("warn", "no_reserve"), found)

    def test_replicas(self):
        """A replica, a master with a replica, and a promoted replica are warnings."""
        first = self.servers.ports[0]
        self.assertEqual(self.servers.command(1, "REPLICAOF", "127.0.0.1", first), b"OK")
        until(lambda: b"connected_slaves:1" in self.servers.command(0, "INFO", "replication"), "a replica is there")
        found = self.findings(code=1)
        self.assertIn(("warn", "replica"), found)
        self.assertIn("1 replica is attached", found["warn", "replicas"]["text"])
        self.servers.command(1, "REPLICAOF", "NO", "ONE")
        self.assertIn(("warn", "promoted"), self.findings(code=1))

    def with_third(self, address):
        """Returns the list of servers with that address in the place of the third."""
        return ",".join(self.servers.list.split(",")[:2] + [address])

    def test_proxy_that_closes_connections(self):
        """An address that closes each connection is a warning."""
        found = self.findings("-s", self.with_third(proxy.listen(self, close_connections)), code=1)
        self.assertIn("log", found["warn", "disconnect"]["advice"])

    def test_slow_server(self):
        """A server with a long round trip is a note."""
        address = proxy.listen(self, proxy.delay_all, self.servers.ports[2], 0.03)
        found = self.findings("-s", self.with_third(address + "?fresh=1"), "--node-timeout", "20s", code=0)
        self.assertRegex(found["note", "slow"]["text"], r"its round trip is \d+ times the median")
        self.assertEqual(found["note", "slow"]["server"], address)

    def test_short_pause_is_not_reported_as_unresponsive(self):
        """Two servers are paused for a moment, the second one until long after a majority has replied to all requests."""
        pauses = zip(self.servers.ports, (0.2, 0.8))
        late = [proxy.listen(self, proxy.delay_first_get, port, pause) + "?fresh=1" for port, pause in pauses]
        found = self.findings("-s", ",".join([*late, self.servers.list.split(",")[2]]), code=0)
        self.assertEqual([code for _, code in found if code == "unresponsive"], [])

    def test_note_names_servers_without_append_only_file(self):
        """The note names only the servers that it is about."""
        self.configure(0, appendonly="yes")
        result = self.redlock("nodes", "-v")
        self.assertCode(result, 0)
        ports = self.servers.ports
        self.assertIn(f"note  127.0.0.1:{ports[1]}, 127.0.0.1:{ports[2]}: keeps no", result.stdout)

    def test_append_only_file_on_a_full_disk(self):
        """The server's next append-only file is /dev/full, so that its writes fail."""
        self.configure(0, appendonly="yes")
        until(lambda: b"aof_last_bgrewrite_status:ok" in self.idle_persistence() and self.log_files(), "a log")
        self.assertNotIn(("warn", "aof_failing"), self.findings(code=0))
        [log] = self.log_files()
        number = int(re.search(r"\.(\d+)\.incr\.aof$", log).group(1))
        os.symlink("/dev/full", log.replace(f".{number}.incr", f".{number + 1}.incr"))
        self.servers.command(0, "BGREWRITEAOF")

        def fails():
            """Makes a write, and returns whether the server has reported that its append-only file fails."""
            self.servers.command(0, "SET", "key", "value")
            return b"aof_last_write_status:err" in self.idle_persistence()

        until(fails, "a write that fails")
        found = self.findings(code=1)
        self.assertEqual(found["warn", "aof_failing"]["server"], f"127.0.0.1:{self.servers.ports[0]}")
        self.assertIn("disk", found["warn", "aof_failing"]["advice"])

    def idle_persistence(self):
        """Returns INFO persistence of the first server, or b"" during a rewrite of its append-only file."""
        info = self.servers.command(0, "INFO", "persistence")
        quiet = b"aof_rewrite_in_progress:0" in info and b"aof_rewrite_scheduled:0" in info
        return info if quiet else b""

    def log_files(self):
        """Returns the paths of the first server's append-only files."""
        folder = self.servers.command(0, "CONFIG", "GET", "dir")[1].decode()
        return glob.glob(f"{folder}/appendonlydir/*[0-9].incr.aof")

    def restart(self, index, *flags, **more):
        """Kills the server and starts another one at its address, in the same directory."""
        pid = self.servers.pid(index)
        os.kill(pid, signal.SIGKILL)
        until(lambda: not runs(pid), "the end of a server")
        words = ["./redis-server", f"{index + 1}/conf", *flags]
        # Its log is shown if the test fails.
        process = subprocess.Popen(words, cwd=self.servers.directory, stdout=sys.stderr, **more)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

    def test_loading(self):
        """A server that loads its data for longer than the test takes, and replies to requests now and then."""
        for number in range(2000):
            self.servers.command(0, "SET", f"key:{number}", "x" * 100)
        self.assertEqual(self.servers.command(0, "SAVE"), b"OK")
        self.restart(0, "--key-load-delay", "30000", "--loading-process-events-interval-bytes", "1024")
        until(lambda: self.ping(0).startswith("LOADING"), "a server that loads its data")
        found = self.findings("--node-timeout", "10s", "--connect-timeout", "10s", code=1)
        self.assertEqual(found["warn", "loading"]["server"], f"127.0.0.1:{self.servers.ports[0]}")
        self.assertIn("wait", found["warn", "loading"]["advice"])

    def test_fresh_on_an_old_server_is_reported(self):
        """?fresh=1 is meant for servers that have just been started: here one has run for two hours."""
        self.assertNotIn(("note", "fresh"), self.findings(code=0))
        clock = self.with_clock(0)
        self.restart(0, env={**os.environ, **{name: clock[name] for name in ("LD_PRELOAD", "CLOCKSHIM_FILE")}})
        until(lambda: self.ping(0) == "b'PONG'", "the server")
        with open(clock["CLOCKSHIM_FILE"], "r+b", buffering=0) as file:
            os.pwrite(file.fileno(), struct.pack("<q", 2 * 3600 * 10**9), 8)
        until(lambda: re.search(rb"uptime_in_seconds:72\d\d", self.servers.command(0, "INFO", "server")), "two hours")
        found = self.findings(code=1)
        self.assertRegex(found["note", "fresh"]["text"], r"up for 72\d\d s")
        self.assertIn("remove ?fresh=1", found["note", "fresh"]["advice"])
        self.assertEqual(found["note", "fresh"]["server"], f"127.0.0.1:{self.servers.ports[0]}")
        self.assertIn(("warn", "clock_apart"), found)
        plain = self.servers.list.replace("?fresh=1", "", 1)
        self.assertNotIn(("note", "fresh"), self.findings("-s", plain, code=1))

    def ping(self, index):
        """Returns the reply as text, also an error; "" if the server cannot be reached."""
        try:
            return str(self.servers.command(index, "PING"))
        except OSError:
            return ""

    def test_paused_killed_and_duplicate_servers(self):
        """A stopped server, a dead one and one with two addresses each have their finding."""
        port = self.servers.ports[0]
        self.servers.stop(2)
        self.assertIn("hangs", self.findings(code=1)["warn", "unresponsive"]["advice"])
        self.servers.continue_all()
        pid = self.servers.pid(2)
        os.kill(pid, signal.SIGKILL)
        until(lambda: not runs(pid), "the end of a server")
        self.assertIn("start the server", self.findings(code=1)["warn", "connect"]["advice"])
        twice = f"127.0.0.1:{port}?fresh=1,localhost:{port}?fresh=1,127.0.0.1:{self.servers.ports[1]}?fresh=1"
        self.assertIn(("crit", "duplicate"), self.findings("-s", twice, code=2))

    def test_wrong_password_wrong_host_wrong_port(self):
        """A refused password, an unknown name and a port of another service each have their finding."""
        self.configure(0, requirepass="secret")
        self.assertIn("check user", self.findings(code=1)["warn", "auth"]["advice"])
        two = ",".join(self.servers.list.split(",")[1:])
        found = self.findings("-s", f"{two},no-such-host.invalid:1", code=1)
        self.assertIn("name service", found["warn", "resolve"]["advice"])
        with socket.create_server(("127.0.0.1", 0)) as listener:
            http_server = threading.Thread(target=serve_http, args=[listener])
            http_server.start()
            try:
                found = self.findings("-s", f"{two},127.0.0.1:{listener.getsockname()[1]}", code=1)
            finally:
                listener.shutdown(socket.SHUT_RDWR)
                http_server.join()
        self.assertIn("Redis or Valkey", found["warn", "protocol"]["advice"])

    def test_clocks_apart(self):
        """A wall clock of this machine that is two minutes off is a warning; one second is none."""
        found = self.findings(code=1, env=self.with_clock(-120 * 10**9))
        self.assertRegex(found["warn", "clock_apart"]["text"], r"^its clock is 1\d\d s ahead of the clock of this machine$")
        self.assertNotIn(("warn", "clock_apart"), self.findings(code=0, env=self.with_clock(10**9)))

    def test_servers_that_refuse_info(self):
        """Without the right to INFO, servers do not vote, unless admission is lenient."""
        for index in range(3):
            self.assertEqual(self.servers.command(index, "ACL", "SETUSER", "mute", "on", ">pw", "~*", "+@all", "-info"), b"OK")
        user = {"REDLOCK_USER": "mute", "REDLOCK_AUTH": "pw"}
        result = self.redlock("run", "-n", "x", "--", "true", env=self.environment(**user))
        self.assertCode(result, 69)
        self.assertIn("does not report its identity", result.stderr)
        lenient = self.environment(**user, REDLOCK_ADMISSION="lenient")
        self.assertCode(self.redlock("run", "-n", "x", "--", "true", env=lenient), 0)
        result = self.redlock("nodes", env=lenient)
        self.assertCode(result, 1)
        self.assertIn("restarts, evictions and replicas are not detected", result.stdout)
        result = self.redlock("config", env=self.environment(REDLOCK_ADMISSION="kind"))
        self.assertCode(result, 78)
        self.assertIn("REDLOCK_ADMISSION=kind: unknown; write strict, lenient or proven", result.stderr)

    def test_server_without_info(self):
        """A server that does not know INFO, as some proxies, is not told to give the user a right."""
        self.start_another(0, "--rename-command", "INFO", "hidden")
        found = self.findings(code=1)["warn", "no_info"]
        self.assertIn("it is a proxy, or the command was renamed", found["text"])
        self.assertIn("instead of a proxy", found["advice"])

    def test_users_without_a_needed_right(self):
        """These users can connect; `redlock nodes` acquires a lock and so finds the missing right."""
        cases = {
            "-set": ("does not grant a lock", "noperm"),
            "-eval -evalsha": ("to run the 'eval' command", "noperm"),
            "-pexpire": ("does not extend a lock", "noperm"),
            "-del": ("does not release a lock", "noperm"),
            "resetkeys ~app:*": ("does not grant a lock", "noperm"),
        }
        for less, (cause, code) in cases.items():
            with self.subTest(less=less):
                for index in range(3):
                    user = ["user", "reset", "on", ">pw", "~*", "+@all", *less.split()]
                    self.assertEqual(self.servers.command(index, "ACL", "SETUSER", *user), b"OK")
                environment = self.environment(REDLOCK_USER="user", REDLOCK_AUTH="pw")
                result = self.redlock("nodes", "--json", env=environment)
                self.assertCode(result, 2)
                found = json.loads(result.stdout)["findings"]
                noperm = [finding for finding in found if finding["code"] == code]
                self.assertEqual(len(noperm), 3, found)
                for finding in noperm:
                    self.assertIn(cause, finding["text"])
                    self.assertIn("redlock nodes --acl", finding["advice"])
                self.assertEqual(found[0]["code"], "no_quorum")
        self.assertRegex(noperm[0]["text"], r"the user may not access the key redlock-nodes/\S*: allow ~\*$")
        self.assertCode(self.redlock("nodes", "--prefix", "app:", env=environment), 0)
        result = self.redlock("run", "-n", "--prefix", "jobs:", "x", "--", "true", env=environment)
        self.assertCode(result, 77)
        self.assertIn("the user may not access the key jobs:x: allow ~jobs:*", result.stderr)
        result = self.redlock("status", "--prefix", "jobs:", "x", env=environment)
        self.assertIn("the user may not access the key jobs:x: allow ~jobs:*", result.stderr)
        self.assertCode(self.redlock("nodes"), 0)

    def test_full_memory(self):
        """A server without memory is a warning; two of three are no quorum."""
        self.configure(0, maxmemory="1")
        found = self.findings(code=1)
        self.assertIn("does not grant a lock", found["warn", "memory_full"]["text"])
        self.assertIn("raise maxmemory", found["warn", "memory_full"]["advice"])
        self.assertIn(("warn", "no_reserve"), found)
        self.configure(1, maxmemory="1")
        self.assertIn(("crit", "no_quorum"), self.findings(code=2))

    def test_nodes_leaves_no_key(self):
        """The keys that `nodes` sets for its checks are deleted."""
        self.assertCode(self.redlock("nodes"), 0)
        self.assertEqual(self.servers.keys(), set())

    def make_records(self, *flags, **more):
        """Runs --init until all servers have a fence record: --init needs only a majority."""
        environment = self.environment(REDLOCK_FENCE_RECORDS="volatile", **more)

        def have_records():
            """Runs `nodes --init`, and returns whether all servers have a fence record."""
            done = self.redlock("nodes", "--init", *flags, env=environment).returncode == 0
            return done and None not in self.servers.command_all("HGET", "redlock:fence", "cfg")

        until(have_records, "records in use on all servers")

    def fence_findings(self, *flags, code, **more):
        """Runs findings() with --fence and volatile records."""
        environment = self.environment(**{"REDLOCK_FENCE_RECORDS": "volatile", **more})
        return self.findings("--fence", *flags, code=code, env=environment)

    def test_findings_about_fence_records(self):
        """`nodes --fence` creates no record. It finds nothing when all records are in use, and reports lost records."""
        found = self.fence_findings(code=0)
        self.assertIn("not tested", found["note", "fence_new"]["text"])
        self.assertEqual(self.servers.keys(), set())
        self.make_records()
        before = self.servers.command_all("HGET", "redlock:fence", "cfg")
        self.assertEqual(set(self.fence_findings(code=0)), {("note", "no_aof")})
        self.assertEqual(set(self.fence_findings("--prefix", "", code=0)), {("note", "no_aof")})
        self.assertEqual(self.servers.command_all("HGET", "redlock:fence", "cfg"), before)
        self.servers.command(1, "FLUSHALL")
        found = self.fence_findings(code=1)["warn", "fence_missing"]
        self.assertEqual(found["server"], f"127.0.0.1:{self.servers.ports[1]}")
        self.assertIn("redlock run --fence", found["advice"])
        self.servers.command(2, "FLUSHALL")
        found = self.fence_findings(code=2)
        self.assertIn("1 of 3 servers take part in fenced locks", found["crit", "no_fences"]["text"])
        self.assertIn("--init", found["warn", "fence_missing"]["advice"])
        self.assertEqual(self.servers.command_all("KEYS", "*"), [[b"redlock:fence"], [], []])
        environment = self.environment(REDLOCK_FENCE_RECORDS="volatile")
        self.assertCode(self.redlock("run", "-n", "--fence", "marks-the-gaps", "--", "true", env=environment), 69)
        found = self.fence_findings(code=2)
        self.assertIn("--init", found["warn", "fence_missing"]["advice"])
        self.assertIn("other servers", found["warn", "fence_record"]["advice"])
        self.make_records()
        self.servers.command(1, "DEL", "redlock:fence")
        self.servers.command(1, "HSET", "redlock:fence", "mark", "0123456789abcdef")
        found = self.fence_findings(code=1)["warn", "fence_missing"]
        self.assertIn("counts again in", found["text"])
        self.assertEqual(set(self.findings(code=0)), {("note", "no_aof")})

    def test_durable_fence_records_without_attestation(self):
        """Durable records on servers without ?durable=1 make fences impossible."""
        found = self.fence_findings(code=2, REDLOCK_FENCE_RECORDS="durable")
        self.assertIn("?durable=1", found["warn", "fence_unattested"]["advice"])
        self.assertIn(("crit", "no_fences"), found)

    def test_fence_records_of_another_configuration_and_type(self):
        """A record of another configuration, and a key of another type in its place, are findings. The key stays as
        it is."""
        self.make_records()
        found = self.fence_findings("--max-ttl", "20s", code=2)
        self.assertIn("another configuration", found["warn", "fence_record"]["text"])
        self.assertIn("give all clients the same servers", found["warn", "fence_record"]["advice"])
        self.assertIn(("crit", "no_fences"), found)
        self.servers.command(2, "SET", "redlock:fence", "mine")
        found = self.fence_findings(code=1)["warn", "fence_record"]
        self.assertEqual(found["server"], f"127.0.0.1:{self.servers.ports[2]}")
        self.assertEqual(self.servers.command(2, "GET", "redlock:fence"), b"mine")

    def test_errors_that_are_in_no_report(self):
        """The quorum has always replied before a distant server: that it refuses the scripts is counted, and why is
        not known."""
        distant = self.with_third(proxy.listen(self, proxy.delay_all, self.servers.ports[2], 0.02) + "?fresh=1")
        flags = ("-s", distant, "--node-timeout", "20s")
        self.make_records(*flags)
        self.servers.command(2, "SET", "redlock:fence", "mine")
        found = self.fence_findings(*flags, code=1)
        self.assertNotIn(("warn", "noperm"), found)
        self.assertIn("with errors", found["warn", "fence_record"]["text"])
        self.assertRegex(found["warn", "fence_record"]["advice"], "TYPE.*--acl --fence")

    def test_users_without_a_right_for_fences(self):
        """A server that refuses a command or the key of the fence record to the user is named."""
        self.make_records()
        for less in "-hget", "-hset", "resetkeys ~redlock-nodes/*":
            with self.subTest(less=less):
                user = ["user", "reset", "on", ">pw", "~*", "&*", "+@all", *less.split()]
                self.assertEqual(self.servers.command(1, "ACL", "SETUSER", *user), b"OK")
                for index in 0, 2:
                    self.assertEqual(self.servers.command(index, "ACL", "SETUSER", *user[:7]), b"OK")
                login = {"REDLOCK_USER": "user", "REDLOCK_AUTH": "pw"}
                found = self.fence_findings(code=1, **login)["warn", "noperm"]
                self.assertEqual(found["server"], f"127.0.0.1:{self.servers.ports[1]}")
                self.assertIn("takes no part in fenced locks", found["text"])
                self.assertIn("--acl --fence", found["advice"])
                self.assertEqual(set(self.findings(code=0, env=self.environment(**login))), {("note", "no_aof")})

    def test_few_and_even_numbers_of_servers(self):
        """One server and an even number of servers are warnings."""
        self.assertIn(("warn", "even"), self.findings("-s", ",".join(self.servers.list.split(",")[:2]), code=1))
        self.assertIn(("warn", "one_server"), self.findings("-s", self.servers.list.split(",")[0], code=1))

    def check_notifications(self, flags, environment):
        """Checks that a waiting client listens on a second connection and gets the lock when it is released."""
        self.servers.command_all("SET", "app:waited", "another", "PX", "60000")
        process = subprocess.Popen(
            [REDLOCK, "run", *flags, "-w", "60s", "waited", "--", "echo", "mine"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, text=True, env=environment,
        )
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

        def listens():
            """Returns whether a server has a connection that listens for changes of keys and for turns in lines."""
            clients = b"".join(self.servers.command(index, "CLIENT", "LIST") for index in range(3))
            return re.search(rb"name=redlock-wake .* sub=2 ", clients)

        until(listens, "a connection that listens")
        self.servers.command_all("DEL", "app:waited")
        self.assertEqual(process.stdout.readline(), "mine\n")
        self.assertEqual(process.wait(TIME_LIMIT), 0)

    def test_printed_user_can_lock_and_nothing_else(self):
        """The user of `nodes --acl` can lock below the prefix, also with fences, and nothing else."""
        result = self.redlock("nodes", "--acl", "--fence", "--prefix", "app:")
        self.assertCode(result, 0)
        line = re.search(r"^ACL SETUSER .*$", result.stdout, re.M).group(0)
        words = [word.strip("'") for word in line.replace(">PASSWORD", ">secret").split()]
        self.assertEqual(self.servers.command_all(*words), [b"OK"] * 3)
        flags = ["--user", "redlock", "--prefix", "app:"]
        environment = self.environment(REDLOCK_AUTH="secret", REDLOCK_FENCE_RECORDS="volatile")
        found = self.redlock("nodes", "--json", *flags, env=environment)
        self.assertCode(found, 0)
        self.assertEqual([node["notifications"] for node in json.loads(found.stdout)["servers"]], ["on"] * 3)
        self.make_records(*flags, REDLOCK_AUTH="secret")
        for name, more in (("plain", []), ("fenced", ["--fence"])):
            done = self.redlock("run", *flags, *more, name, "--", "true", env=environment)
            self.assertCode(done, 0)
        self.assertCode(self.redlock("nodes", "--fence", *flags, env=environment), 0)
        done = self.redlock("status", *flags, "plain", env=environment)
        self.assertCode(done, 1)
        self.check_notifications(flags, environment)
        for index in range(3):
            log = self.servers.command(index, "ACL", "LOG")
            self.assertEqual([entry[entry.index(b"object") + 1] for entry in log], [], "not allowed")
            self.assertEqual(self.servers.command(index, "KEYS", "*"), [b"redlock:fence"])
            for words in (("FLUSHALL",), ("SET", "other", "1"), ("CONFIG", "GET", "*")):
                connection = self.servers.connect(index)
                self.assertEqual(connection.command("AUTH", "redlock", "secret"), b"OK")
                self.assertIsInstance(connection.command(*words), Exception, words)
                connection.close()


if __name__ == "__main__":
    tapcase.main()
