# SPDX-License-Identifier: MIT
"""--metrics-file of `run` and `nodes`: what the figures say about each end of a run, that a reader never sees a part of
a file, and that a file that cannot be written neither delays nor changes a run that has begun. world.Case starts servers
for the class, five unless `count` differs, and empties them before each test. until() waits for a condition.
prometheus.parse() rejects text that breaks a rule of the format."""

import fcntl
import os
import stat
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import prometheus  # noqa: E402
import tapcase  # noqa: E402
from world import SLOW, Case, OwnServersCase, until  # noqa: E402

UPDATE_SECONDS = 10  # FIGURES_INTERVAL_MS of tools/run_figures.h


class Figures:
    """Methods to read a file of figures. `file` is its path."""

    def read(self, file):
        """Returns the families of the file, after a check of its format."""
        with open(file, encoding="utf-8") as text:
            return prometheus.parse(text.read())

    def run_figures(self, file):
        """Returns the figures of a run as a dict without "redlock_run_". State and result are words."""
        found = {}
        for name, family in self.read(file).items():
            for _, labels, value in family.samples:
                if name in ("redlock_run_state", "redlock_run_result"):
                    found[name[12:]] = labels[name[12:]]
                elif name.startswith("redlock_run_"):
                    found[name[12:] + (labels["result"] if "result" in labels else "")] = value
        return found

    def check_with_promtool(self, file):
        """Fails if promtool finds anything. Skips the test if there is none. Does nothing in slow builds, where the file is
        the same, because promtool takes a second."""
        if SLOW > 1:
            return
        with open(file, encoding="utf-8") as text:
            found = prometheus.promtool("check", "metrics", text=text.read())
        if found is None:
            self.skipTest("no promtool (Debian: prometheus)")
        self.assertEqual(found, "")


class Run(Case, Figures):
    """Runs that acquire their lock."""

    def setUp(self):
        super().setUp()
        self.file = self.path("backup.prom")

    def end_of(self, *args, code=0, name="backup"):
        """Runs `redlock run` with the file and returns its figures."""
        done = self.redlock("run", "--metrics-file", self.file, *args[:-1], name, "--", "sh", "-c", args[-1])
        self.assertCode(done, code)
        return self.run_figures(self.file)

    def test_success(self):
        """The figures of a success: times, exit code, servers, and no counter of the client."""
        begin = time.time()
        figures = self.end_of("sleep 0.3")
        self.assertEqual((figures["state"], figures["result"], figures["exit_code"]), ("ended", "success", 0))
        self.assertLessEqual(begin - 1, figures["start_timestamp_seconds"])
        self.assertLessEqual(figures["start_timestamp_seconds"] + 0.3, figures["last_success_timestamp_seconds"])
        self.assertLessEqual(figures["last_success_timestamp_seconds"], figures["update_timestamp_seconds"])
        self.assertLessEqual(figures["update_timestamp_seconds"], time.time() + 1)
        self.assertGreaterEqual(figures["hold_seconds"], 0.3)
        self.assertEqual((figures["lost"], figures["kept"], figures["validity_seconds"]), (0, 0, 0))
        self.assertEqual(figures["attempts"], 1)
        servers = [figures[f"servers_{what}"] for what in ("configured", "eligible", "quorum")]
        self.assertEqual(servers, [5, 5, 3])
        families = self.read(self.file)
        self.assertEqual({name for name in families if not name.startswith("redlock_run_")}, set())
        self.assertEqual({family.type for family in families.values()}, {"gauge"})
        self.assertTrue(all(labels["name"] == "backup" for family in families.values() for _, labels, _ in family.samples))

    def test_file(self):
        """Everyone can read the file, whatever the umask is, and nothing else is left in its directory."""
        old = os.umask(0o077)
        try:
            self.end_of("true")
        finally:
            os.umask(old)
        self.assertEqual(stat.S_IMODE(os.stat(self.file).st_mode), 0o644)
        self.assertEqual(os.listdir(self.directory), ["backup.prom"])

    def test_while_the_command_runs(self):
        """Meanwhile the file has the validity and the servers, and no result."""
        copy = self.path("during.prom")
        wait = f"until grep -q 'state=\"running\"' {self.file}; do :; done; cp {self.file} {copy}"
        self.end_of(wait)
        figures = self.run_figures(copy)
        self.assertEqual(figures["state"], "running")
        self.assertNotIn("result", figures)
        self.assertNotIn("exit_code", figures)
        self.assertGreater(figures["validity_seconds"], 1)
        families = self.read(copy)
        self.assertEqual(len(families["redlock_server_eligible"].samples), 5)
        self.assertTrue(all(labels["name"] == "backup" for _, labels, _ in families["redlock_server_eligible"].samples))
        self.assertEqual([name for name, family in families.items() if family.type != "gauge"], [])
        self.check_with_promtool(copy)

    def test_prometheus_accepts_the_file(self):
        """promtool has neither an error nor advice."""
        self.end_of("true")
        self.check_with_promtool(self.file)

    def test_failure_keeps_the_last_success(self):
        """A command that fails is not a success, and the time of the last one stays; that of another lock does not."""
        first = self.end_of("true")["last_success_timestamp_seconds"]
        figures = self.end_of("exit 3", code=3)
        self.assertEqual((figures["result"], figures["exit_code"]), ("failed", 3))
        self.assertEqual(figures["last_success_timestamp_seconds"], first)
        self.assertGreater(self.end_of("true")["last_success_timestamp_seconds"], first)
        self.assertEqual(self.end_of("exit 3", code=3, name="other")["last_success_timestamp_seconds"], 0)

    def test_results_of_other_ends(self):
        """--keep, --max-hold, a signal, and a command that cannot be executed."""
        figures = self.end_of("--keep", "true")
        self.assertEqual((figures["result"], figures["kept"]), ("success", 1))
        self.servers.command_all("FLUSHALL")
        self.assertEqual(self.end_of("--max-hold", "2s", "-k", "1s", "sleep 60", code=124)["result"], "max_hold")
        process = self.start("run", "--metrics-file", self.file, "backup", "--", "sleep", "1000")
        until(lambda: self.run_figures(self.file)["state"] == "running", "it runs")
        process.terminate()
        self.assertEqual(process.wait(60 * SLOW), 143)
        self.assertEqual(self.run_figures(self.file)["result"], "signal")
        script = self.path("script", "#!/nonexistent/interpreter\n")
        os.chmod(script, 0o755)
        self.assertCode(self.redlock("run", "--metrics-file", self.file, "backup", "--", script), 127)
        self.assertEqual(self.run_figures(self.file)["result"], "error")

    def test_loss(self):
        """A lost lock is in the figures at once, and at the end."""
        command = f"until grep -q 'run_lost.* 1$' {self.file}; do sleep 0.1; done; exit 5"
        process = self.start("run", "-t", "3s", "--on-loss", "warn", "--metrics-file", self.file, "backup", "--",
                             "sh", "-c", command)  # fmt: skip
        until(lambda: len(self.servers.values("backup")) == 5, "the lock is held")
        self.servers.command_all("SET", "backup", "another", "PX", 60000)
        self.assertEqual(process.wait(60 * SLOW), 5)
        figures = self.run_figures(self.file)
        self.assertEqual((figures["result"], figures["lost"], figures["exit_code"]), ("lost", 1, 5))
        self.assertEqual(figures["last_success_timestamp_seconds"], 0)

    def test_hostile_names(self):
        """Names with any bytes become labels that can be read; extensions of the label list are not possible."""
        for name, label in [('a"} 1\nredlock_run_lost{name="b', None), ("a\\", None), ("é", None),
                            (b"a\xff".decode("utf-8", "surrogateescape"), "a\ufffdff")]:  # fmt: skip
            self.end_of("true", name=name)
            families = self.read(self.file)
            names = {labels["name"] for family in families.values() for _, labels, _ in family.samples}
            self.assertEqual(names, {label or name})
            self.assertGreater(self.end_of("exit 1", code=1, name=name)["last_success_timestamp_seconds"], 0)

    def test_updates_without_an_event(self):
        """The file is written again although nothing has happened."""
        process = self.start("run", "--metrics-file", self.file, "backup", "--", "sleep", "1000")
        until(lambda: os.path.exists(self.file) and self.run_figures(self.file)["state"] == "running", "it runs")
        first = self.run_figures(self.file)["update_timestamp_seconds"]
        until(lambda: self.run_figures(self.file)["update_timestamp_seconds"] >= first + UPDATE_SECONDS - 1, "an update")
        self.assertGreater(self.run_figures(self.file)["hold_seconds"], UPDATE_SECONDS - 2)
        process.terminate()
        process.wait(60 * SLOW)

    def test_readers_see_whole_files(self):
        """Each reader finds a whole file while runs follow each other."""
        self.end_of("true")
        process = self.start("run", "outer", "--", "sh", "-c", f'for i in 1 2 3 4 5 6; do "$0" run --metrics-file {self.file} backup -- true; done',
                             os.environ.get("REDLOCK", "redlock"))  # fmt: skip
        reads = 0
        while process.poll() is None:
            self.read(self.file)
            reads += 1
        self.assertGreater(reads, 10)
        self.assertEqual(process.returncode, 0)


class NotAcquired(OwnServersCase, Figures):
    """Runs that do not get their lock."""

    def setUp(self):
        super().setUp()
        self.file = self.path("backup.prom")

    def test_held(self):
        """Another client has the lock: that is the result with any -E, and not a success."""
        self.assertCode(self.redlock("run", "--metrics-file", self.file, "backup", "--", "true"), 0)
        success = self.run_figures(self.file)["last_success_timestamp_seconds"]
        self.assertCode(self.redlock("acquire", "backup"), 0)
        for flags, code in [([], 75), (["-E", "0"], 0)]:
            done = self.redlock("run", "-n", *flags, "--metrics-file", self.file, "backup", "--", "true")
            self.assertCode(done, code)
            figures = self.run_figures(self.file)
            self.assertEqual((figures["result"], figures["exit_code"], figures["hold_seconds"]), ("held", code, 0))
            self.assertEqual(figures["last_success_timestamp_seconds"], success)

    def test_waiting(self):
        """Meanwhile the state is "waiting". A run that ends in between leaves its success to the one that waits."""
        self.assertCode(self.redlock("acquire", "-t", "30s", "backup"), 0)
        command = ["run", "-w", "3s", "--metrics-file", self.file, "backup", "--", "true"]
        other = f"until grep -q waiting {self.file}; do :; done; cp {self.file} {self.path('during')}"
        done = self.redlock("run", "outer", "--", "sh", "-c",
                            f'"$0" "$@" & {other}; "$0" run --metrics-file {self.file} --prefix x backup -- true; wait $!',
                            os.environ.get("REDLOCK", "redlock"), *command)  # fmt: skip
        self.assertCode(done, 75)
        figures = self.run_figures(self.file)
        self.assertEqual(figures["result"], "held")
        self.assertGreater(figures["wait_seconds"], 2.9)
        self.assertGreater(figures["last_success_timestamp_seconds"], figures["start_timestamp_seconds"])
        during = self.run_figures(self.path("during"))
        self.assertEqual((during["state"], during["hold_seconds"]), ("waiting", 0))
        self.assertEqual(during["last_success_timestamp_seconds"], 0)

    def test_no_quorum(self):
        """Two of three servers are down."""
        self.servers.stop(0, 1)
        done = self.redlock("run", "-n", "--metrics-file", self.file, "backup", "--", "true")
        self.assertCode(done, 69)
        figures = self.run_figures(self.file)
        self.assertEqual((figures["result"], figures["exit_code"]), ("no_quorum", 69))
        self.assertLess(figures["servers_eligible"], figures["servers_quorum"])

    def test_passwords(self):
        """No password of an address is in the file, also while the command runs."""
        copy = self.path("during")
        secret = ",".join(f"redis://:secretword@{address.removeprefix('redis://')}" for address in self.servers.list.split(","))
        done = self.redlock("run", "--metrics-file", self.file, "backup", "--", "sh", "-c",
                            f"until grep -q running {self.file}; do :; done; cp {self.file} {copy}",
                            env=self.environment(REDLOCK_SERVERS=secret))  # fmt: skip
        for file in (self.file, copy):
            if os.path.exists(file):
                with open(file, encoding="utf-8") as text:
                    self.assertNotIn("secretword", text.read())
        self.assertIn(done.returncode, (0, 77))


class Unwritable(Case, Figures):
    """Files that cannot be written."""

    def refused(self, file, why):
        """Checks that the run is refused before the lock is requested."""
        marker = self.path("marker")
        done = self.redlock("run", "--metrics-file", file, "backup", "--", "touch", marker)
        self.assertCode(done, 74)
        self.assertIn("the lock was not requested", done.stderr)
        self.assertIn(why, done.stderr)
        self.assertFalse(os.path.exists(marker))
        self.assertEqual(self.servers.command(0, "EXISTS", "backup"), 0)

    def test_before_the_lock(self):
        """A missing directory, a directory, and a device that is not replaced."""
        self.refused(self.path("missing/x.prom"), "No such file or directory; name a file in a directory that exists")
        self.refused(self.directory, "Is a directory")
        self.refused("/dev/null", "not a regular file")
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_directory_without_rights(self):
        """A directory that this user may not write."""
        os.chmod(self.directory, 0o555)
        self.addCleanup(os.chmod, self.directory, 0o755)
        self.refused(self.path("x.prom"), "Permission denied")

    def test_at_the_end(self):
        """The directory has disappeared: a warning, and the exit code of the command."""
        folder = self.path("figures")
        os.mkdir(folder)
        file = os.path.join(folder, "x.prom")
        done = self.redlock("run", "--metrics-file", file, "backup", "--", "sh", "-c", f"rm -r {folder}; exit 3")
        self.assertCode(done, 3)
        self.assertIn(f"warning: backup: --metrics-file {file} lacks the last figures: No such file", done.stderr)

    def test_a_disk_that_hangs(self):
        """A writer that is blocked delays neither the extension of the lock nor, for long, the end of redlock."""
        file = self.path("x.prom")
        begin = self.path("begin")
        process = self.start("run", "-t", "5s", "--metrics-file", file, "backup", "--", "sh", "-c",
                             f"until [ -e {begin} ]; do sleep 0.1; done; sleep 7; exit 3")  # fmt: skip
        until(lambda: os.path.exists(file) and self.run_figures(file)["state"] == "running", "it runs")
        directory = os.open(self.directory, os.O_RDONLY)
        self.addCleanup(os.close, directory)
        fcntl.flock(directory, fcntl.LOCK_EX)
        self.path("begin", "")
        self.assertEqual(process.wait(60 * SLOW), 3)
        with open(self.errors, encoding="utf-8") as errors:
            self.assertIn("lacks the last figures: the disk is too slow", errors.read())
        self.assertEqual(self.run_figures(file)["state"], "running")

    def test_names_that_nobody_reads(self):
        """A name without .prom is a warning."""
        done = self.redlock("run", "--metrics-file", self.path("x.txt"), "backup", "--", "true")
        self.assertCode(done, 0)
        self.assertIn("node_exporter reads only files whose names end in .prom", done.stderr)


class Nodes(OwnServersCase, Figures):
    """The figures of an examination."""

    def test_healthy(self):
        """All servers are in order."""
        file = self.path("nodes.prom")
        done = self.redlock("nodes", "--metrics-file", file)
        self.assertCode(done, 0)
        figures = self.read(file)
        self.assertEqual(prometheus.value(figures, "redlock_nodes_health"), 0)
        self.assertEqual(prometheus.value(figures, "redlock_nodes_useful"), 3)
        self.assertEqual(prometheus.value(figures, "redlock_nodes_reserve"), 1)
        self.assertLess(abs(prometheus.value(figures, "redlock_nodes_check_timestamp_seconds") - time.time()), 60 * SLOW)
        self.assertEqual(prometheus.value(figures, "redlock_servers_eligible"), 3)
        self.assertEqual(len(figures["redlock_server_eligible"].samples), 3)
        self.assertEqual([family.type for family in figures.values() if family.type != "gauge"], [])
        self.check_with_promtool(file)

    def test_critical(self):
        """Two of three servers are down: the reserve is below 0, and each finding has server and code."""
        self.servers.stop(0, 1)
        file = self.path("nodes.prom")
        self.assertCode(self.redlock("nodes", "--metrics-file", file), 2)
        figures = self.read(file)
        self.assertEqual(prometheus.value(figures, "redlock_nodes_health"), 2)
        self.assertEqual(prometheus.value(figures, "redlock_nodes_reserve"), -1)
        down = [labels for _, labels, _ in figures["redlock_nodes_finding"].samples if labels["severity"] != "note"]
        self.assertEqual({labels["server"] for labels in down if "server" in labels},
                         {f"127.0.0.1:{port}" for port in self.servers.ports[:2]})  # fmt: skip

    def test_unwritable(self):
        """The report is printed all the same."""
        done = self.redlock("nodes", "--metrics-file", "/nonexistent/x.prom")
        self.assertCode(done, 74)
        self.assertIn("OK: 3 of 3 servers are eligible", done.stdout)
        self.assertIn("--metrics-file /nonexistent/x.prom cannot be written: No such file", done.stderr)


class OneDirectory(Case, Figures):
    """Several files in the directory of one node_exporter, which passes on only one of two equal figures."""

    def check_no_collision(self, files):
        """Fails if two of the files have the same figure with the same labels, or if one lacks its label `file`."""
        texts = []
        for file in files:
            with open(file, encoding="utf-8") as text:
                texts.append(text.read())
            for family in prometheus.parse(texts[-1]).values():
                for _, labels, _ in family.samples:
                    self.assertEqual(labels.get("file"), os.path.basename(file))
        self.assertEqual(prometheus.collisions(texts), set())

    def test_jobs_of_one_name(self):
        """Two jobs that share a lock, two checks of servers, and a relative path."""
        files = [self.path(f"{name}.prom") for name in ("backup", "vacuum", "nodes", "other-nodes")]
        for file, code in zip(files[:2], (0, 3)):
            self.assertCode(self.redlock("run", "--metrics-file", file, "db", "--", "sh", "-c", f"exit {code}"), code)
        self.assertCode(self.redlock("nodes", "--metrics-file", files[2]), 0)
        self.assertCode(self.redlock("nodes", "--metrics-file", "other-nodes.prom", cwd=self.directory), 0)
        self.check_no_collision(files)

    def test_permits_of_one_name(self):
        """Two permits of one semaphore at the same time, with the figures of servers, and a check of the servers."""
        files = [self.path(f"{name}.prom") for name in ("a", "b", "nodes")]
        end = self.path("end")
        processes = [self.start("run", "--permits", "2", "--metrics-file", file, "sem", "--", "sh", "-c",
                                f"until [ -e {end} ]; do sleep 0.1; done") for file in files[:2]]  # fmt: skip
        for file in files[:2]:
            until(lambda file=file: os.path.exists(file) and "redlock_server_eligible" in self.read(file)
                  and self.run_figures(file)["state"] == "running", "it runs")  # fmt: skip
        self.assertCode(self.redlock("nodes", "--metrics-file", files[2]), 0)
        self.check_no_collision(files)
        self.path("end", "")
        self.assertEqual([process.wait(60 * SLOW) for process in processes], [0, 0])

    def test_hostile_file_names(self):
        """A file name with any bytes becomes a label that can be read, and the last success is found again."""
        for name in ('a"} 1\nx{b="c.prom', "a\\.prom", "é.prom"):
            file = os.path.join(self.directory, name)
            self.assertCode(self.redlock("run", "--metrics-file", file, "db", "--", "true"), 0)
            self.assertCode(self.redlock("run", "--metrics-file", file, "db", "--", "false"), 1)
            self.assertGreater(self.run_figures(file)["last_success_timestamp_seconds"], 0)
            self.check_no_collision([file])


if __name__ == "__main__":
    tapcase.main()
