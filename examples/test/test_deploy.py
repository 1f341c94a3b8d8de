# SPDX-License-Identifier: MIT
"""The files of examples/deploy do what they say: servers start with the configuration and grant locks to the user of the
ACL file, `redlock` reads its file, cron and systemd accept the jobs. The test replaces paths and addresses only."""

import os
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

from support import PATIENT, REDLOCK, SOURCE, held, run, tapcase, wait_until
import ports  # in test/lib, which support adds to the path

DEPLOY = os.path.join(SOURCE, "examples", "deploy")
SERVER_COUNT = 3
DURABLE = "#appendonly yes\n#appendfsync always\n#no-appendfsync-on-rewrite no\n"


def text_of(name):
    """Returns the text of a file of examples/deploy."""
    with open(os.path.join(DEPLOY, name), encoding="utf-8") as file:
        return file.read()


def write(path, text):
    """Writes a file that only its owner may read."""
    with open(os.path.join(path), "w", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(text)


class Servers(unittest.TestCase):
    """Servers with redis.conf and users.acl, and a client with redlock.conf."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        write(os.path.join(self.directory, "users.acl"), text_of("users.acl"))
        write(os.path.join(self.directory, "pass"), "CHANGE-THIS-PASSWORD\n")

    def start(self, number, configuration):
        """Starts a server on a port that nothing else can take, and returns its port."""
        keeper = ports.take_port()
        self.addCleanup(keeper.close)
        port = keeper.getsockname()[1]
        data = os.path.join(self.directory, str(number))
        os.mkdir(data)
        for old, new in {"10.0.0.1": "127.0.0.1", "6379": str(port), "/etc/redis-lock": self.directory}.items():
            self.assertIn(old, configuration)
            configuration = configuration.replace(old, new)
        write(os.path.join(data, "conf"), configuration)
        # The first word is the name of the program, whatever file it is.
        server = os.path.join(os.environ["REDLOCK_SANDBOX_DIR"], "redis-server")
        process = subprocess.Popen([server, os.path.join(data, "conf"), "--dir", data], stdout=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return port

    def client(self, configuration, attribute):
        """Starts the servers, waits until all reply, and returns the path of the client's configuration file."""
        started = [self.start(i, configuration) for i in range(SERVER_COUNT)]
        for port in started:
            wait_until(lambda: ports.replies(port), f"the server on port {port} replies")
        addresses = ",".join(f"127.0.0.1:{port}?{attribute}" for port in started)
        text = re.sub(r"(?m)^servers = .*$", f"servers = {addresses}", text_of("redlock.conf"))
        path = os.path.join(self.directory, "redlock.conf")
        write(path, text.replace("/etc/redlock.pass", os.path.join(self.directory, "pass")))
        wait_until(lambda: self.redlock("nodes", "-f", path).returncode == 0, "all servers are eligible")
        return path

    def redlock(self, *words):
        """Runs a subcommand without the servers of the sandbox."""
        return run([REDLOCK, words[0], *PATIENT, *words[1:]], REDLOCK_SERVERS=None, REDLOCK_FENCE_RECORDS=None)

    def test_servers_that_keep_nothing(self):
        """With redis.conf as it is, the check finds nothing that needs a repair."""
        path = self.client(text_of("redis.conf"), "fresh=1")
        done = self.redlock("nodes", "-f", path)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("3 of 3 servers are eligible", done.stdout)
        self.assertNotRegex(done.stdout, "no_notifications|sends no notification")
        self.assertEqual(self.redlock("run", "-n", "-f", path, "backup", "--", "true").returncode, 0)

    def test_servers_that_keep_their_keys(self):
        """With the three lines in use, the servers are fit for fencing tokens."""
        self.assertIn(DURABLE, text_of("redis.conf"))
        configuration = text_of("redis.conf").replace("\nappendonly no\n", "\n").replace(DURABLE, DURABLE.replace("#", ""))
        path = self.client(configuration, "durable=1")
        done = self.redlock("run", "-n", "--fence", "-f", path, "backup", "--", "true")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        done = self.redlock("nodes", "--fence", "--json", "-f", path)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertNotIn('"no_aof"', done.stdout)

    def test_the_user_has_the_rights_that_the_command_prints(self):
        """users.acl has the rights of `redlock nodes --acl --fence`, no more and no less."""
        done = self.redlock("nodes", "--acl", "--fence", "--prefix", "jobs:", "-s", "a")
        printed = re.search(r"^ACL SETUSER redlock (.*)$", done.stdout, re.M)[1]
        found = re.search(r"^user redlock (.*)$", text_of("users.acl"), re.M)[1]
        self.assertEqual(shlex.split(printed.replace(">PASSWORD", ">CHANGE-THIS-PASSWORD")), found.split())


class Jobs(unittest.TestCase):
    """The jobs for cron and systemd, and the unit and the container of a server."""

    def test_the_line_of_the_crontab(self):
        """The job runs; where another machine has the lock, the line succeeds without it."""
        (line,) = [line for line in text_of("backup.cron").splitlines() if re.match(r"[0-9*]", line)]
        command = line.split(None, 6)[6]
        self.assertNotIn("%", command)  # cron ends the command there
        command = command.replace("redlock", shlex.quote(REDLOCK), 1).replace("20s", "20ms")
        ran = command.replace("/usr/local/bin/backup", "echo ran")
        self.assertIn("echo ran", ran)
        self.assertEqual(run(["sh", "-c", ran]).stdout, "ran\n")
        with held("backup"):
            done = run(["sh", "-c", ran])
        self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_the_job_of_systemd_accepts_that_another_machine_runs_it(self):
        """The unit's command ends with the status that SuccessExitStatus names while the lock is held."""
        unit = text_of("backup.service")
        command = re.search(r"^ExecStart=/usr/local/bin/redlock (.*)$", unit, re.M)[1].replace("20s", "20ms")
        words = [REDLOCK, *command.replace("/usr/local/bin/backup", "/bin/true").split()]
        self.assertEqual(run(words).returncode, 0)
        with held("backup"):
            self.assertIn(f"\nSuccessExitStatus={run(words).returncode}\n", unit)

    def test_paths_are_those_of_the_readme(self):
        """No example names a file of redlock below /usr/bin or /usr/lib in what is run: README installs below /usr/local."""
        named = re.compile(r"^(?!\s*#).*/usr/(?:bin|lib\S*)/(?:lib)?redlock", re.MULTILINE)
        for folder in ("deploy", "monitoring", "tracing"):
            for name in sorted(os.listdir(os.path.join(SOURCE, "examples", folder))):
                with open(os.path.join(SOURCE, "examples", folder, name), encoding="utf-8") as file:
                    self.assertEqual(named.findall(file.read()), [], name)

    def test_units(self):
        """systemd accepts the units."""
        analyze = shutil.which("systemd-analyze")
        if analyze is None:
            self.skipTest("no systemd-analyze")
        with tempfile.TemporaryDirectory() as directory:
            paths = []
            for name in [name for name in os.listdir(DEPLOY) if name.endswith((".service", ".timer"))]:
                paths.append(os.path.join(directory, name))
                write(paths[-1], re.sub(r"^(ExecStart=)\S+", r"\1/bin/true", text_of(name), flags=re.M))
            done = run([analyze, "verify", "--man=no", *paths])
        self.assertGreaterEqual(len(paths), 3)
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))

    def test_the_container(self):
        """The compose file is YAML, and mounts the files beside it where the configuration looks for them."""
        try:
            import yaml
        except ImportError:
            self.skipTest("no Python module yaml")
        (service,) = yaml.safe_load(text_of("compose.yaml"))["services"].values()
        mounts = dict(volume.split(":")[:2] for volume in service["volumes"])
        self.assertEqual(service["command"][1], mounts["./redis.conf"])
        self.assertIn(f"\naclfile {mounts['./users.acl']}\n", text_of("redis.conf"))
        self.assertEqual(service["command"][-1], mounts["redis-lock-data"])


if __name__ == "__main__":
    tapcase.main()
