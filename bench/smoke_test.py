# SPDX-License-Identifier: MIT
"""Runs every scenario of the benchmark briefly against five servers of a sandbox. Does not check speed."""

import csv
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

import tapcase

REDLOCK = os.environ["REDLOCK_TEST_COMMAND"]
BENCH = os.environ["REDLOCK_TEST_BENCH"]
BASELINE = os.environ["REDLOCK_TEST_BASELINE"]
HERE = os.path.dirname(os.path.abspath(__file__))
PLOTS = os.path.join(HERE, "plots.py")
WITH_TLS = ["python3", os.path.join(HERE, "with_tls.py")]
BUILT_WITH_TLS = os.environ["REDLOCK_TEST_TLS"] == "1"
SLOW = int(os.environ.get("REDLOCK_TEST_SLOW", "1"))
DEADLINE_S = 150 * SLOW
# Scenarios without an open loop.
LOOPS = [
    "limits", "embedded-1", "embedded-8", "embedded-64", "embedded-256",
    "threaded-1", "threaded-8", "threaded-64", "threaded-256", "contended",
    "fenced-1", "fenced-64", "fenced-contended", "many-names", "permits", "permits-contended", "multi-key", "stopped",
]  # fmt: skip
# Scenarios that compare TLS with plain connections. The list has them before the last of LOOPS.
BESIDE_PLAIN = ["tls-1", "tls-64"]
# Scenarios with an open loop.
PACED = [
    "open", "stalled", "stopped-1", "stopped-2", "killed-1", "killed-2",
    "restarted-1", "restarted-2", "slow-1", "slow-2",
]  # fmt: skip
# Stops the benchmark for 1.5 of 4 seconds, after its first line of progress.
STOPPER = """
import select, signal, subprocess, sys
command = [sys.argv[1], "--scenario", "open", "--seconds", "4", "--rate", "100", "--json"]
bench = subprocess.Popen(command, stderr=subprocess.PIPE)
bench.stderr.readline()
bench.send_signal(signal.SIGSTOP)
select.select([], [], [], 1.5)
bench.send_signal(signal.SIGCONT)
bench.stderr.read()
sys.exit(bench.wait())
"""
# Interrupts the counting while the counted program runs, and prints which files are new.
INTERRUPTER = """
import glob, os, signal, subprocess, sys, time
before = set(glob.glob("/tmp/redlock-bench*"))
bench = subprocess.Popen([sys.argv[1], "--syscalls", "--scenario", "embedded-1"], start_new_session=True)
while not open(f"/proc/{bench.pid}/task/{bench.pid}/children").read():
    time.sleep(0.01)
os.killpg(bench.pid, signal.SIGINT)
bench.wait()
print(sorted(set(glob.glob("/tmp/redlock-bench*")) - before))
"""
# Kills a server during the slices of library and baseline.
KILLER = """
import os, signal, subprocess, sys
command = [sys.argv[1], "--scenario", "embedded-1", "--seconds", "60", "--json"]
bench = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
while "embedded-1: " not in (line := bench.stderr.readline()):
    assert line, "it ended by itself"
with open(os.environ["REDLOCK_SANDBOX_DIR"] + "/1/pid") as file:
    os.kill(int(file.read()), signal.SIGKILL)
sys.stderr.write(bench.stderr.read())
sys.exit(bench.wait())
"""
# Names of the percentiles in JSON.
POINTS = ("p50", "p90", "p95", "p99", "p99_9", "max")


def run(*words, sandbox=True):
    """Runs a command, in a sandbox of five servers or without one. Returns the finished process."""
    command = ([REDLOCK, "sandbox", "--"] if sandbox else []) + list(words)
    return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)


class Bench(unittest.TestCase):
    def check(self, done):
        """Returns the output of a run that must have succeeded."""
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def output(self, done):
        """Returns the output of a run in which operations may have failed."""
        # 1 also means that more than one operation in a hundred failed, which means nothing for so few on a busy machine.
        self.assertIn(done.returncode, (0, 1), done.stdout + done.stderr)
        self.assertNotIn("WRONG", done.stdout)
        return done.stdout

    def document(self, done):
        """Returns the JSON document of a run, after checks that apply to all scenarios."""
        document = json.loads(self.output(done))
        self.assertEqual(done.returncode == 0, all(result["passed"] for result in document["results"]))
        for result in document["results"]:
            with self.subTest(scenario=result["scenario"]):
                self.assertEqual(result["leftover_keys"], 0)
                for side in result["sides"]:
                    self.assertEqual(side["violations"], 0)
                    self.assertEqual(list(side["pair_us"]), list(POINTS))
                    values = list(side["pair_us"].values())
                    self.assertEqual(values, sorted(values))
        return document

    def test_help_names_all_scenarios(self):
        out = self.check(run(BENCH, "--help", sandbox=False))
        listed = out[out.index("scenarios:") : out.index("exit:")]
        expected = [*LOOPS[:-1], *BESIDE_PLAIN, LOOPS[-1], *PACED, "renewals", "ping"]
        self.assertEqual(re.findall(r"^  (\S+)  ", listed, re.M), expected)

    def test_every_loop_in_json(self):
        document = self.document(run(BENCH, "--ops", "60", "--seed", "7", "--scenario", ",".join(LOOPS), "--json"))
        self.assertEqual(document["schema"], "redlock.bench/1")
        self.assertEqual(document["seed"], 7)
        self.assertEqual(document["environment"]["servers"], 5)
        self.assertEqual([result["scenario"] for result in document["results"]], LOOPS)
        for result in document["results"]:
            with self.subTest(scenario=result["scenario"]):
                self.assertEqual(len(result["sides"]), 1 if result["scenario"] in ("limits", "contended") else 2)
                for side in result["sides"]:
                    self.assertEqual(side["pairs"], 60)
                    self.assertLess(side["failed"], 60)
                    self.assertGreater(side["pair_us"]["p50"], 0)
                    self.assertGreaterEqual(side["attempts_per_grant"], 1.0)
                    self.assertGreaterEqual(side["pair_us"]["p50"], side["acquire_us"]["p50"] / 2)
        figures = document["results"][0].get("figures", {})
        self.assertEqual(bool(shutil.which("redis-benchmark")), bool(figures))
        if figures:
            both = 1 / figures["set_per_s"] + 1 / figures["release_per_s"]
            self.assertAlmostEqual(figures["servers_pairs_per_s"] * both, 1, 3)
            ratio = document["median_ratios"]["embedded-1"]
            self.assertGreater(ratio["acquire_p50_pings"], 0)
            self.assertGreater(ratio["of_servers_limit"], 0)

    def test_every_open_loop_in_json(self):
        document = self.document(run(BENCH, "--ops", "60", "--scenario", ",".join(PACED), "--json"))
        self.assertEqual([result["scenario"] for result in document["results"]], PACED)
        marks = {"stopped": ["stopped", "continued"], "killed": ["killed"], "restarted": ["killed", "restarted"],
                 "slow": ["slow, 20 ms each way", "fast again"]}  # fmt: skip
        for result in document["results"]:
            with self.subTest(scenario=result["scenario"]):
                self.assertEqual(result["sides"][0]["pairs"], 60)
                bins = result["timeline"]["bins"]
                self.assertEqual(sum(bin[1] for bin in bins), 60)
                self.assertEqual([bin[0] for bin in bins], sorted(bin[0] for bin in bins))
                if result["scenario"][-2:] in ("-1", "-2"):
                    word, number = result["scenario"].split("-")
                    texts = [text for _, text in result["timeline"]["marks"]]
                    self.assertEqual(texts, [f"{number} {text}" for text in marks[word]])

    def run_with_tls(self, *words):
        """Runs a command in a sandbox whose servers have a port for TLS. Skips the test if that is not possible."""
        if not BUILT_WITH_TLS:
            self.skipTest("this build has no TLS")
        done = run(*WITH_TLS, *words)
        if "no port for TLS" in done.stderr or "apt-get install openssl" in done.stderr:
            self.skipTest(done.stderr.strip())
        return done

    def test_every_scenario_over_tls(self):
        names = [*LOOPS, *BESIDE_PLAIN, *PACED]
        done = self.run_with_tls(BENCH, "--tls", "--ops", "60", "--scenario", ",".join(names), "--json")
        document = self.document(done)
        self.assertIn(", TLS", document["environment"]["server"])
        self.assertEqual([result["scenario"] for result in document["results"]], names)
        for result in document["results"]:
            with self.subTest(scenario=result["scenario"]):
                for side in result["sides"]:
                    self.assertEqual(side["pairs"] if side["side"] != "closed" else 60, 60)
                if result["scenario"] in BESIDE_PLAIN:
                    self.assertEqual([side["side"] for side in result["sides"]], ["tls", "plain"])
                    self.assertGreater(result["figures"]["client_cpu_ratio"], 0)

    def test_tls_connections_go_to_the_port_for_tls_and_verify(self):
        # Each side reaches the servers with the certificate that they have, and refuses one that it does not trust.
        stranger = (
            "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout /dev/null -subj /CN=x"
            ' -out "$1" 2>/dev/null; '
            "export REDLOCK_TLS_SERVERS=$(echo $REDLOCK_TLS_SERVERS | sed \"s#cacert=[^,]*#cacert=$1#g\"); "
        )
        for side in ("library", "baseline"):
            words = f"'{BENCH}' --tls --scenario embedded-1 --ops 40 --json --side {side}"
            with self.subTest(side=side):
                self.document(self.run_with_tls("sh", "-c", words))
                with tempfile.NamedTemporaryFile(suffix=".pem") as file:
                    done = self.run_with_tls("sh", "-c", stranger + words, "sh", file.name)
                self.assertEqual(done.returncode, 69, done.stderr)

    def test_tls_without_addresses_is_refused(self):
        done = run(BENCH, "--tls", "--scenario", "embedded-1")
        self.assertEqual(done.returncode, 64)
        self.assertIn("with_tls.py", done.stderr)
        done = run(BENCH, "--scenario", "tls-1")
        self.assertEqual(done.returncode, 69)
        self.assertIn("with_tls.py", done.stderr)

    def test_a_stall_is_seen_by_the_open_loop_only(self):
        # Three servers are stopped for 1.5 of 4 seconds. Operations of the open loop that were due then have waited; the
        # closed loop has only one that has.
        document = self.document(run(BENCH, "--seconds", "4", "--scenario", "stalled", "--json"))
        (result,) = document["results"]
        opened, closed = (side["pair_us"] for side in result["sides"])
        (begin, stopped), (end, continued) = result["timeline"]["marks"]
        self.assertEqual([stopped, continued], ["3 stopped", "3 continued"])
        # At least one operation in ten was due while most of the stall was still to come.
        self.assertGreater(opened["p90"], (end - begin) * 1000 * 0.6)
        self.assertGreater(closed["max"], 500000)
        self.assertLess(closed["p90"], opened["p90"] / 2)

    def test_time_counts_from_the_intended_start(self):
        # The benchmark itself is stopped: by the time of the calls nothing is late, by the intended starts everything is.
        done = run("python3", "-c", STOPPER, BENCH)
        (result,) = self.document(done)["results"]
        intended, sent = (side["pair_us"] for side in result["sides"])
        self.assertGreater(intended["p90"], 900000)
        self.assertLess(sent["p90"], intended["p90"] / 2)

    def test_held_locks_are_extended(self):
        document = self.document(run(BENCH, "--scenario", "renewals", "--ops", "50", "--ttl", "1500", "--json"))
        (result,) = document["results"]
        figures, (side,) = result["figures"], result["sides"]
        self.assertEqual(figures["locks"], 50)
        self.assertGreaterEqual(side["pairs"], 50 - figures["lost"])
        self.assertGreaterEqual(figures["commands_per_renewal"], 4)
        self.assertLess(figures["least_left_ms"], 1500)
        self.assertGreater(side["client_user_us_per_pair"] + side["client_sys_us_per_pair"], 0)

    def test_without_a_sandbox_faults_are_left_out(self):
        script = (
            "import os, subprocess, sys\n"
            "del os.environ['REDLOCK_SANDBOX_DIR']\n"
            "sys.exit(subprocess.call(sys.argv[1:]))\n"
        )
        done = run("python3", "-c", script, BENCH, "--ops", "30", "--ttl", "1000", "--json")
        names = [result["scenario"] for result in self.document(done)["results"]]
        self.assertIn("slow-1", names)
        self.assertNotIn("stopped", names)
        self.assertNotIn("killed-1", names)
        self.assertIn("killed-1 is left out", done.stderr)
        self.assertIn("tls-1 is left out", done.stderr)
        done = run("python3", "-c", script, BENCH, "--scenario", "killed-1")
        self.assertEqual(done.returncode, 69, done.stderr)
        self.assertIn("sandbox", done.stderr)

    def test_runs_in_csv(self):
        out = self.output(run(BENCH, "--ops", "40", "--runs", "2", "--scenario", "embedded-1", "--csv"))
        lines = out.splitlines(keepends=True)
        head = "".join(line for line in lines if line.startswith("#"))
        for word in ("machine", "load", "servers  5 x", "library  redlock", "compiler", "-O", "seed", "runs 2"):
            self.assertIn(word, head)
        rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
        self.assertEqual(
            [(row["run"], row["side"]) for row in rows],
            [("1", "library"), ("1", "baseline"), ("2", "library"), ("2", "baseline")],
        )
        for row in rows:
            self.assertEqual(row["pairs"], "40")  # without those of the warm-up
            self.assertEqual((row["violations"], row["leftover_keys"]), ("0", "0"))
            self.assertGreaterEqual(float(row["attempts_per_grant"]), 1.0)
            self.assertGreater(float(row["client_user_us_per_pair"]) + float(row["client_sys_us_per_pair"]), 0)
            values = [float(row[f"pair_{point}_us"]) for point in POINTS]
            self.assertEqual(values, sorted(values))

    def test_save_writes_json_besides_the_table(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "result.json")
            out = self.output(run(BENCH, "--ops", "40", "--scenario", "embedded-1", "--save", path))
            with open(path) as file:
                document = json.load(file)
        self.assertRegex(out, r"p50 us +p90 us +p95 us +p99 us +p99.9 us +max us +att/gr +cpu us")
        for key in ("cpu", "kernel", "compiler", "flags", "server", "load"):
            self.assertTrue(document["environment"][key], key)
        for side in document["results"][0]["sides"]:
            curve = side["pair_curve"]
            self.assertEqual(curve, sorted(curve))
            self.assertEqual(curve[-1], [100.0, side["pair_us"]["max"]])
            self.assertIn([50.0, side["pair_us"]["p50"]], curve)

    def test_without_redis_benchmark_the_limit_is_left_out(self):
        script = "import os, sys; os.environ['PATH'] = '/nowhere'; os.execv(sys.argv[1], sys.argv[1:])"
        done = run("python3", "-c", script, BENCH, "--scenario", "limits,embedded-1", "--ops", "40")
        self.assertIn("no redis-benchmark in PATH", done.stderr)
        self.assertRegex(self.output(done), r"embedded-1 +1 +[0-9.]+x +[0-9.]+x +[0-9.]+x +[0-9.]+x *\n")

    def test_a_limit_that_was_too_quick_is_measured_with_more(self):
        # Below a millisecond redis-benchmark prints infinity, which is not a rate.
        too_quick = (
            "#!/usr/bin/python3\n"
            "import sys\n"
            "requests = int(sys.argv[sys.argv.index('-n') + 1])\n"
            "print('\"test\",\"rps\"\\n\"SET\",\"%s\"' % ('inf' if requests < 1000 else '80000.00'))\n"
        )
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "redis-benchmark")
            with open(path, "w", encoding="ascii") as file:
                file.write(too_quick)
            os.chmod(path, 0o755)
            script = f"PATH='{directory}':$PATH exec '{BENCH}' --ops 60 --scenario limits --json"
            (result,) = self.document(run("sh", "-c", script))["results"]
        self.assertEqual(result["figures"]["set_per_s"], 80000)
        self.assertEqual(result["figures"]["servers_pairs_per_s"], 40000)

    def test_without_gnuplot_is_one_line(self):
        done = subprocess.run([sys.executable, PLOTS, "none.json", "."], capture_output=True, text=True,
                              env={"PATH": "/nowhere"}, timeout=DEADLINE_S, check=False)  # fmt: skip
        self.assertEqual(done.returncode, 1)
        self.assertIn("apt-get install gnuplot-nox", done.stderr)

    @unittest.skipUnless(shutil.which("gnuplot"), "no gnuplot")
    def test_no_document_no_plots(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "result.json")
            for text in ("", "{", "[]", "{}", '{"schema": "redlock.peers/1"}'):
                with self.subTest(text=text):
                    with open(path, "w", encoding="ascii") as file:
                        file.write(text)
                    done = subprocess.run([sys.executable, PLOTS, path, directory], capture_output=True, text=True,
                                          timeout=DEADLINE_S, check=False)  # fmt: skip
                    self.assertEqual(done.returncode, 1)
                    self.assertTrue(done.stderr.startswith("plots: no pictures: " + path), done.stderr)

    def test_a_run_that_failed_has_no_picture(self):
        sys.path.insert(0, os.path.dirname(PLOTS))
        import plots

        timeline = {"bins": [[float(i), 3, 3, 0, 0, 0] for i in range(100)], "marks": [[25, "3 killed"]]}
        result = {"scenario": "killed-1", "run": 1, "timeline": timeline, "figures": {"rate_per_s": 500}, "sides": []}
        environment = {"servers": 5, "server": "redis", "cpu": "x", "cpus": 2}
        self.assertIsNone(plots.over_time({"results": [result], "environment": environment}, "killed-1"))

    @unittest.skipUnless(shutil.which("gnuplot"), "no gnuplot")
    def test_plots_are_drawn_from_a_document(self):
        names = ["percentiles", "throughput", "stalled", "time-stalled", "time-killed-1"]
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "result.json")
            scenarios = "limits,embedded-1,embedded-8,threaded-1,threaded-8,stalled,killed-1"
            done = run(BENCH, "--ops", "400", "--scenario", scenarios, "--save", path)
            self.assertIn(done.returncode, (0, 1), done.stderr)
            done = subprocess.run([sys.executable, PLOTS, path, directory], capture_output=True, text=True,
                                  timeout=DEADLINE_S, check=False)  # fmt: skip
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            for name in names:
                with open(os.path.join(directory, name + ".png"), "rb") as file:
                    head = file.read(24)
                self.assertEqual(head[:8], b"\x89PNG\r\n\x1a\n")
                self.assertEqual(struct.unpack(">II", head[16:24]), (1200, 720))
                texts = "".join(xml.etree.ElementTree.parse(os.path.join(directory, name + ".svg")).getroot().itertext())
                for word in ("5 x redis", "per second" if name == "throughput" else "(ms)"):
                    self.assertIn(word, texts, name)
                if name == "time-killed-1":
                    self.assertIn("1 killed", texts)

    @unittest.skipUnless(shutil.which("strace") and SLOW == 1, "no strace, or an instrumented build")
    def test_system_calls_of_a_pair_are_bounded(self):
        out = self.check(run(BENCH, "--syscalls", "--scenario", "embedded-1", "--json"))
        counted = json.loads(out)
        # Five servers, two commands, a write and a read for each; and waiting in between.
        for side in ("library", "baseline"):
            self.assertGreater(counted[side], 15)
            self.assertLess(counted[side], 60)

    def test_a_server_that_dies_ends_it_with_a_line(self):
        # The baseline waits for all servers.
        done = run("python3", "-c", KILLER, BENCH)
        self.assertEqual(done.returncode, 69, done.stdout + done.stderr)
        self.assertIn("redlock-bench: embedded-1: the run could not finish: a server does not reply", done.stderr)
        self.assertEqual([result["scenario"] for result in json.loads(done.stdout)["results"]], [])

    @unittest.skipUnless(shutil.which("strace"), "no strace")
    def test_interrupted_counting_leaves_no_file(self):
        self.assertEqual(self.check(run("python3", "-c", INTERRUPTER, BENCH)), "[]\n")

    def test_servers_outside_the_sandbox_are_not_stopped(self):
        # The sandbox around the benchmark is not that of the servers.
        words = f'exec "{REDLOCK}" sandbox -- sh -c \'exec "{BENCH}" --servers "$OUTER" --scenario stopped\''
        done = run("sh", "-c", f'OUTER=$REDLOCK_SERVERS; export OUTER; {words}')
        self.assertEqual(done.returncode, 69, done.stdout + done.stderr)
        self.assertIn("these are not those of a sandbox", done.stderr)

    def test_faults_follow_the_order_of_the_list(self):
        # The last server of the list is the first of the sandbox: the benchmark kills and restarts that one.
        script = (
            "import os, subprocess, sys\n"
            "directory = os.environ['REDLOCK_SANDBOX_DIR']\n"
            "pids = lambda: [open(f'{directory}/{n}/pid').read() for n in range(1, 6)]\n"
            "before, servers = pids(), os.environ['REDLOCK_SERVERS'].split(',')\n"
            "done = subprocess.run([sys.argv[1], '--servers', ','.join(reversed(servers)), '--scenario', 'killed-1',\n"
            "                       '--ops', '60'], stdout=subprocess.DEVNULL)\n"
            "print(done.returncode, [a == b for a, b in zip(before, pids())])\n"
        )
        out = self.check(run("python3", "-c", script, BENCH))
        self.assertRegex(out, r"^[01] \[False, True, True, True, True\]\n$")

    def test_side_runs_one_side(self):
        out = self.output(run(BENCH, "--ops", "40", "--scenario", "threaded-1", "--side", "library"))
        self.assertIn("threaded-1    library", out)
        self.assertNotIn("baseline", out)

    def test_the_baseline_is_a_program_of_its_own(self):
        out = self.check(run(BASELINE, "--depth", "64", "--ops", "200", "--json"))
        self.assertEqual(json.loads(out)["pairs"], 200)
        self.assertEqual(json.loads(out)["failed"], 0)

    def beside_key(self, name):
        """Runs the baseline while a foreign client keeps the key with this name behind the benchmark's prefix. Returns the
        finished process."""
        script = (
            "import os, re, socket, sys\n"
            "port = int(re.search(r':(\\d+)', os.environ['REDLOCK_SERVERS']).group(1))\n"
            "s = socket.create_connection(('127.0.0.1', port))\n"
            "s.sendall(b'SET redlock-bench:%d:%s y\\r\\n' % (os.getpid(), sys.argv[1].encode()))\n"
            "s.recv(100)\n"
            "os.execv(os.environ['REDLOCK_TEST_BASELINE'], ['baseline', '--ops', '5'])\n"
        )
        return run("python3", "-c", script, name)

    def test_leftover_keys_are_an_error(self):
        for name in ("x", "{#q}x"):
            done = self.beside_key(name)
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            self.assertIn("1 keys left behind", done.stderr)

    def test_the_key_of_a_line_is_no_leftover_key(self):
        # A client that ends while a server is away cannot leave its line there. The key expires by itself.
        done = self.beside_key("x{#q}")
        self.output(done)
        self.assertNotIn("left behind", done.stderr)

    def test_invalid_options_are_refused(self):
        for words, text in [
            (["--scenario", "nonsense"], "nonsense"),
            (["--scenario", ""], "unknown scenario in: ''"),
            (["--nonsense"], "see redlock-bench --help"),
            (["--ops", "0"], "--ops"),
            (["--ops", "12x"], "12x"),
            (["--side", "left"], "left"),
            (["--servers", "unix:///tmp/x"], "host:port"),
            (["--servers", "redis://:secret@127.0.0.1:1"], "sandbox"),
            (["extra"], "extra"),
        ]:
            with self.subTest(words=words):
                done = run(BENCH, *words, sandbox=False)
                self.assertEqual(done.returncode, 64, done.stderr)
                self.assertIn(text, done.stderr)
                self.assertNotIn("secret", done.stderr)

    def test_unreachable_servers_are_an_error(self):
        done = run(BENCH, "--servers", "127.0.0.1:1", "--scenario", "embedded-1", sandbox=False)
        self.assertEqual(done.returncode, 69, done.stderr)
        self.assertIn("127.0.0.1:1", done.stderr)


if __name__ == "__main__":
    tapcase.main()
