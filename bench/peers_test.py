# SPDX-License-Identifier: MIT
"""Runs the comparison with the peers briefly against five servers of a sandbox. Does not check speed and downloads nothing:
a peer that `./dev bench --peers` has not installed is skipped."""

import csv
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import unittest

import tapcase

HERE = os.path.dirname(os.path.abspath(__file__))
COMPARE = os.path.join(HERE, "compare")
WITH_TLS = [sys.executable, os.path.join(HERE, "with_tls.py")]
BUILT_WITH_TLS = os.environ["REDLOCK_TEST_TLS"] == "1"
INSTALL = os.path.join(HERE, "peers", "install")
REDLOCK = os.environ["REDLOCK_TEST_COMMAND"]
BUILD = os.environ["REDLOCK_TEST_BUILD"]
SCRATCH = os.environ["REDLOCK_TEST_SCRATCH"]
# Where `./dev bench --peers` installs drivers.
INSTALLED = os.path.join(os.path.dirname(HERE), "build", "bench", "peers")
DEADLINE_S = 120 * int(os.environ.get("REDLOCK_TEST_SLOW", "1"))

sys.path.insert(0, COMPARE)
import figures  # noqa: E402
import roster  # noqa: E402

# A driver in which two callers hold the lock at the same time, and which leaves its key and that of its line.
OVERLAPPING = """#!/usr/bin/env python3
import socket, sys
host, port = sys.argv[1].split(",")[0].split("//")[1].split(":")
with socket.create_connection((host, int(port))) as server:
    for suffix in (b"", b"{#q}"):
        server.sendall(b"SET its:%s:left%s x PX 60000\\r\\n" % (sys.argv[2].encode(), suffix))
        server.recv(100)
print("ready", flush=True)
for line in sys.stdin:
    end = int(line)
    print("hold 0", end - 9000000, end - 8000000, end - 6000000, end - 5000000)
    print("hold 1", end - 9000000, end - 7000000, end - 4000000, end - 3000000)
    print("failed 2", end - 9000000, end - 1000000, "error invented")
    print("over", flush=True)
"""
# A driver that kills the first server of the sandbox in its first slice.
KILLER = """#!/usr/bin/env python3
import os, signal, sys
print("ready", flush=True)
for line in sys.stdin:
    with open(os.path.join(os.environ["REDLOCK_SANDBOX_DIR"], "1", "pid")) as file:
        os.kill(int(file.read()), signal.SIGKILL)
    print("over", flush=True)
"""
# A driver that becomes ready, writes its process id into the file NOTE in its first slice, and never ends.
SLEEPER = """#!/usr/bin/env python3
import os, select, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
sys.stdin.readline()
with open("NOTE", "w") as file:
    print(os.getpid(), file=file)
select.select([], [], [])
"""
# Runs the comparison, ends it by a signal while the driver works, and prints its status and whether the driver still runs.
ENDED = """
import os, re, socket, subprocess, sys, time
number, note, command = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
compare = subprocess.Popen(command, stdout=subprocess.DEVNULL)
while not open(note).read().endswith("\\n"):
    time.sleep(0.02)
compare.send_signal(number)
status = compare.wait()
gone = not os.path.exists("/proc/" + open(note).read().strip())
for port in re.findall(r":(\\d+)", os.environ["REDLOCK_SERVERS"]):
    with socket.create_connection(("127.0.0.1", int(port)), timeout=20) as server:
        server.sendall(b"PING\\r\\n")
        assert server.recv(7) == b"+PONG\\r\\n"
print(f"status {status}, driver {'gone' if gone else 'there'}, servers answer")
"""
# Runs a command for which a certificate that no server has, written to the file $0, is the only authority.
STRANGER = """
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout /dev/null -subj /CN=x -out "$0" 2>/dev/null
export SSL_CERT_FILE="$0" NODE_EXTRA_CA_CERTS="$0"
export REDLOCK_TLS_SERVERS="$(echo "$REDLOCK_TLS_SERVERS" | sed "s#cacert=[^,]*#cacert=$0#g")"
exec "$@"
"""
# A driver that fails in its first slice.
GONE = "#!/bin/sh\necho ready; read line; echo 'nothing to be had' >&2; exit 3\n"


def run(*words, sandbox=True, peers=INSTALLED, around=()):
    """Runs the comparison, as the end of the command `around`; `peers` is the directory of the installed drivers. Returns the
    finished process."""
    command = ([REDLOCK, "sandbox", "--"] if sandbox else []) + [*around, sys.executable, COMPARE, "--build", BUILD, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False,
                          env={**os.environ, "REDLOCK_BENCH_PEERS": peers, "PYTHONDONTWRITEBYTECODE": "1"})  # fmt: skip


def tiny(*words, **more):
    """Runs a short comparison and returns its JSON document."""
    done = run("--slice", "0.3", "--warm", "0.1", "--rounds", "1", "--seed", "5", *words, "--json", **more)
    # 1: more than one call in a hundred failed, which means nothing for so few calls on a busy machine.
    if "no port for TLS" in done.stderr or "apt-get install openssl" in done.stderr:
        raise unittest.SkipTest(done.stderr.strip())
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


def fake_peer(name, text):
    """Returns a directory in which this script is the driver of redsync."""
    peers = os.path.join(SCRATCH, name)
    shutil.rmtree(peers, ignore_errors=True)
    os.makedirs(os.path.join(peers, "redsync"))
    for file, content in (("driver", text), ("fingerprint", "")):
        with open(os.path.join(peers, "redsync", file), "w", encoding="ascii") as out:
            out.write(content)
    os.chmod(os.path.join(peers, "redsync", "driver"), 0o755)
    return peers


class Compare(unittest.TestCase):
    def test_library_and_baseline_run_every_scenario(self):
        document = tiny("--driver", "redlock,redlock-threads,baseline")
        self.assertEqual(document["schema"], "redlock.peers/1")
        self.assertEqual(document["seed"], 5)
        names = {(line["scenario"], line["driver"]) for line in document["results"]}
        self.assertEqual({scenario for scenario, _ in names}, {"one", "many", "stopped", "slow", "contended"})
        self.assertNotIn(("stopped", "baseline"), names)
        for line in document["results"]:
            with self.subTest(scenario=line["scenario"], driver=line["driver"]):
                self.assertEqual(line["broken"], "")
                self.assertEqual(line["violations"], 0)
                # A key may stay for longer than the comparison waits if a server is slow.
                self.assertEqual(line["leftover_keys_at_the_end"], 0)

    def test_lines_have_figures_and_ratios(self):
        # On a busy machine a short slice may contain no finished pair.
        for seconds in ("0.5", "2", "8", "30"):
            lines = tiny("--scenario", "many", "--driver", "redlock,baseline", "--slice", seconds)["results"]
            if all(line["pairs"] > 0 for line in lines):
                break
        for line in lines:
            with self.subTest(driver=line["driver"]):
                self.assertGreater(line["pairs"], 0)
                self.assertGreater(line["pair_ms"]["p50"], 0)
                self.assertGreaterEqual(line["pair_ms"]["max"], line["pair_ms"]["p99"])
                self.assertEqual(set(line["ratio"]), {"rate_redlock", "p50_redlock", "rate_baseline", "p50_baseline"})

    def test_every_installed_peer_acquires_locks(self):
        for driver in roster.DRIVERS:
            if driver.is_ours():
                continue
            with self.subTest(driver=driver.name):
                os.environ["REDLOCK_BENCH_PEERS"] = INSTALLED
                if why := roster.why_not(driver, BUILD):
                    self.skipTest(f"{driver.name}: {why}; ./dev bench --peers installs it")
                words = ["--scenario", "one", "--driver", driver.name, *(["--tls"] if BUILT_WITH_TLS else [])]
                for seconds in ("2", "10", "30"):
                    lines = tiny(*words, "--slice", seconds, around=WITH_TLS if BUILT_WITH_TLS else ())["results"]
                    if all(line["pairs"] + line["failures"] > 0 for line in lines):
                        break
                for line in lines:
                    self.assertEqual((line["broken"], line["violations"]), ("", 0), line["tls"])
                    self.assertGreater(line["pairs"] + line["failures"], 0, line["tls"])

    @unittest.skipUnless(BUILT_WITH_TLS, "built without TLS")
    def test_library_and_baseline_run_every_scenario_over_tls(self):
        lines = tiny("--tls", "--driver", "redlock,baseline", around=WITH_TLS)["results"]
        plain, tls = ([(one["scenario"], one["driver"]) for one in lines if one["tls"] == over] for over in (False, True))
        self.assertEqual((plain, len(tls)), (tls, 8))
        for line in lines:
            with self.subTest(scenario=line["scenario"], driver=line["driver"], tls=line["tls"]):
                self.assertEqual((line["broken"], line["violations"], line["leftover_keys_at_the_end"]), ("", 0, 0))

    @unittest.skipUnless(BUILT_WITH_TLS, "built without TLS")
    def test_library_and_baseline_verify_servers(self):
        os.makedirs(SCRATCH, exist_ok=True)
        around = [*WITH_TLS, "sh", "-c", STRANGER, os.path.join(SCRATCH, "stranger.pem")]
        for line in tiny("--tls", "--scenario", "one", "--driver", "redlock,baseline", around=around)["results"]:
            self.assertEqual(line["broken"] != "", line["tls"], line)

    def test_two_holders_and_a_leftover_key_are_counted(self):
        document = tiny("--scenario", "contended", "--driver", "redsync", peers=fake_peer("liar", OVERLAPPING))
        line = document["results"][0]
        # Four processes print the same lines in two slices; each hold of the second caller begins too early.
        self.assertGreaterEqual(line["violations"], 2)
        self.assertEqual(line["leftover_keys"], 1)  # the key of the line does not count
        self.assertGreaterEqual(line["failures"], 2)
        self.assertEqual(line["failure"], "error invented")

    def test_a_driver_that_dies_is_a_line_of_the_table(self):
        document = tiny("--scenario", "one", "--driver", "redsync,redlock", peers=fake_peer("gone", GONE))
        lines = {line["driver"]: line for line in document["results"]}
        self.assertIn("nothing to be had", lines["redsync"]["broken"])
        self.assertEqual(lines["redlock"]["broken"], "")

    def test_table_and_csv_name_peers_that_are_left_out(self):
        words = ["--slice", "0.2", "--rounds", "1", "--scenario", "one", "--driver", "redlock,baseline,redsync"]
        nothing = os.path.join(SCRATCH, "nothing")
        done = run(*words, peers=nothing)
        self.assertIn("left out redsync: not installed", done.stdout)
        self.assertIn("x baseline", done.stdout)
        lines = run(*words, "--csv", peers=nothing).stdout.splitlines(True)
        self.assertIn("# left out redsync: not installed\n", lines)
        self.assertRegex(lines[1], r"^# machine  .* CPUs")
        rows = list(csv.DictReader(io.StringIO("".join(line for line in lines if line[0] != "#"))))
        self.assertEqual([row["driver"] for row in rows], ["redlock", "baseline"])
        times = [float(rows[0]["pair_ms_" + name]) for name in ("p50", "p90", "p95", "p99", "p99_9", "max")]
        self.assertEqual(times, sorted(times))
        self.assertGreaterEqual(float(rows[0]["attempts_per_grant"]), 1)

    def test_a_server_that_dies_ends_it_with_a_line(self):
        # A driver kills the first server when its first slice begins.
        done = run("--slice", "0.2", "--rounds", "1", "--scenario", "one,many", "--driver", "redsync", "--json",
                   peers=fake_peer("killer", KILLER))  # fmt: skip
        self.assertEqual(done.returncode, 69, done.stderr)
        self.assertIn("compare: one: a server does not reply: ", done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        self.assertEqual(json.loads(done.stdout)["results"], [])

    def test_a_signal_ends_driver_and_comparison_and_continues_servers(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            note = os.path.join(SCRATCH, f"pid-{number}")
            os.makedirs(SCRATCH, exist_ok=True)
            with open(note, "w", encoding="ascii"):
                pass
            peers = fake_peer("sleeper", SLEEPER.replace("NOTE", note))
            command = [REDLOCK, "sandbox", "--", sys.executable, "-c", ENDED, str(int(number)), note,
                       sys.executable, COMPARE, "--build", BUILD, "--slice", "30", "--scenario", "stopped",
                       "--driver", "redsync"]  # fmt: skip
            done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False,
                                  env={**os.environ, "REDLOCK_BENCH_PEERS": peers})  # fmt: skip
            with self.subTest(signal=number):
                self.assertIn("compare: stopped: ended by a signal", done.stderr)
                self.assertNotIn("Traceback", done.stderr)
                self.assertEqual(done.stdout.splitlines()[-1], f"status {128 + number}, driver gone, servers answer")

    def test_invalid_options_are_refused(self):
        for words, text in [
            (["--driver", "other"], "there is no driver 'other'"),
            (["--scenario", "x"], "there is no scenario 'x'"),
            (["--slice", "0"], "--slice: '0' is not a number from"),
            (["--slice", "nan"], "--slice: 'nan' is not a number from"),
            (["--rounds", "0"], "--rounds: '0' is not"),
            (["--ttl", "99"], "--ttl: '99' is not"),
            (["--nonsense"], "--nonsense"),
            (["--servers", "localhost"], "localhost: expected host:port"),
            (["--servers", "h:1,h:x"], "h:x: expected host:port"),
            (["--servers", "redis://:secret@h:1"], "use a sandbox"),
            (["--servers", "h:1", "--tls"], "bench/with_tls.py"),
        ]:
            with self.subTest(words=words):
                done = run(*words, sandbox=False)
                self.assertEqual((done.returncode, done.stdout), (64, ""), done.stderr)
                self.assertIn(text, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                self.assertNotIn("secret", done.stderr)
        done = run("--servers", "127.0.0.1:1", "--scenario", "one", "--driver", "baseline", sandbox=False)
        self.assertEqual(done.returncode, 69, done.stderr)


class Figures(unittest.TestCase):
    def test_holds_that_only_touch_are_no_violation(self):
        holds = [(0, 0, 10, 20, 25), (1, 0, 20, 30, 35), (0, 26, 40, 50, 55)]
        self.assertEqual(figures.violations(holds), 0)
        self.assertEqual(figures.violations([*holds, (2, 0, 29, 29, 29)]), 1)

    def test_percentiles_count_the_weights(self):
        pairs = [(1, 98), (5, 1), (9, 1)]
        self.assertEqual([figures.percentile(pairs, point) for point in (500, 980, 990, 1000)], [1, 1, 5, 9])
        self.assertEqual(figures.percentile([], 500), 0)


class Install(unittest.TestCase):
    def install(self, peer, target, **more):
        return subprocess.run([INSTALL, peer, target], capture_output=True, text=True, timeout=DEADLINE_S, check=False,
                              env={**os.environ, "REDLOCK_BENCH_OFFLINE": "1", **more})  # fmt: skip

    def test_a_foreign_file_at_the_target_is_kept(self):
        target = os.path.join(SCRATCH, "precious")
        os.makedirs(SCRATCH, exist_ok=True)
        with open(target, "w", encoding="ascii") as file:
            file.write("mine")
        done = self.install("pottery", target)
        self.assertEqual(done.returncode, 1)
        with open(target, encoding="ascii") as file:
            self.assertEqual(file.read(), "mine")

    def test_a_missing_toolchain_is_one_line(self):
        # A PATH with the tools of a shell and without any language.
        place = os.path.join(SCRATCH, "bin")
        shutil.rmtree(place, ignore_errors=True)
        os.makedirs(place)
        for name in ("dirname", "readlink", "ls", "rm", "mkdir"):
            os.symlink(shutil.which(name), os.path.join(place, name))
        target = os.path.join(SCRATCH, "rslock")
        done = self.install("rslock", target, PATH=place)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(done.stderr, "rslock is left out: cargo is not installed\n")
        with open(target + ".why", encoding="ascii") as file:
            self.assertEqual(file.read(), "cargo is not installed\n")
        self.assertFalse(os.path.exists(target))


if __name__ == "__main__":
    tapcase.main()
