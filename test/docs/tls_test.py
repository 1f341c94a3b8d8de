# SPDX-License-Identifier: MIT
"""What docs/operations.md says of TLS works with real servers: the commands that make certificates, the lines for redis.conf,
the parameters of addresses, client certificates, new certificates, the change from plain TCP, and the texts that
docs/troubleshooting.md explains."""

import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
SOURCE = os.environ["REDLOCK_SOURCE"]
BUILD = os.environ["REDLOCK_BUILD"]
REDLOCK = os.path.join(BUILD, "tools", "redlock")
sys.path[:0] = [os.path.join(SOURCE, "test", name) for name in ("lib", "interop")]
import ports
import samples
import servers
import tapcase

NAMES = "abcde"
TIME_LIMIT = 60 * float(os.environ.get("REDLOCK_TEST_SLOW", "1"))
VOLATILE = {"REDLOCK_FENCE_RECORDS": "volatile"}  # the servers keep nothing
ROUNDS = 4  # of connections without a client certificate: each may end in another order of events


def section():
    """Returns the samples of the section about TLS."""
    with open(os.path.join(SOURCE, "docs", "operations.md"), encoding="utf-8") as file:
        text = file.read()
    return samples.samples_of("operations.md", text.split("\n### TLS\n")[1].split("\n### ")[0])


def run(words, **more):
    """Runs a command and returns it with its output, stderr included."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("REDLOCK_") and key != "REDIS_URL"}
    return subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          timeout=TIME_LIMIT, env={**environment, "HOME": "/nonexistent", **VOLATILE}, **more)  # fmt: skip


class Tls(unittest.TestCase):
    """Five servers with the configuration of the document. Only addresses, ports and paths differ."""

    @classmethod
    def setUpClass(cls):
        """Makes the certificates and starts the servers."""
        if not shutil.which("openssl") or servers.program() is None:
            raise unittest.SkipTest("no openssl" if servers.program() else servers.MISSING)
        if "openssl" not in run([REDLOCK, "--version"]).stdout:
            raise unittest.SkipTest("the library is built without TLS")
        cls.folder = tempfile.mkdtemp(prefix="docs-tls-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        [cls.commands] = [each.body for each in section() if each.language == "sh" and "openssl" in each.body]
        [cls.lines] = [each.body for each in section() if each.language == "conf"]
        cls.authorities = []
        for _ in ("new", "to renew"):
            cls.shell(re.sub(r"10\.0\.0\.\d", "127.0.0.1", cls.commands))
            with open(os.path.join(cls.folder, "ca.crt"), encoding="ascii") as file:
                cls.authorities.append(file.read())
        cls.ports, cls.plain_ports = {}, {}
        for name in NAMES:
            cls.start(name, cls.lines)
        cls.addresses = ",".join(cls.address(name, "fresh=1") for name in NAMES)

    @classmethod
    def shell(cls, commands):
        """Runs commands of the document in the folder. They must succeed."""
        with open(os.path.join(cls.folder, "commands"), "w", encoding="utf-8") as file:
            file.write(commands)
        done = run(["bash", "-e", "commands"], cwd=cls.folder)
        if done.returncode != 0:
            raise AssertionError(done.stdout)

    @classmethod
    def start(cls, name, lines):
        """Starts a server with these lines of redis.conf, and waits until it replies."""
        keepers = [ports.take_port(), ports.take_port()]
        for keeper in keepers:
            cls.addClassCleanup(keeper.close)
        cls.ports[name], cls.plain_ports[name] = (keeper.getsockname()[1] for keeper in keepers)
        directory = os.path.join(cls.folder, f"server-{name}")
        os.mkdir(directory)
        for kind in ("crt", "key"):
            shutil.copy(os.path.join(cls.folder, f"{name}.{kind}"), os.path.join(directory, f"server.{kind}"))
        shutil.copy(os.path.join(cls.folder, "ca.crt"), directory)
        lines = lines.replace("/etc/redis-lock", directory).replace("tls-port 6379", f"tls-port {cls.ports[name]}")
        with open(os.path.join(directory, "redis.conf"), "w", encoding="utf-8") as file:
            file.write(f'{lines}bind 127.0.0.1\nsave ""\ndir {directory}\n')
        with open(os.path.join(directory, "log"), "wb") as log:
            process = subprocess.Popen(["redis-server", file.name], executable=servers.program(), stdout=log, stderr=log)
        cls.addClassCleanup(process.wait)
        cls.addClassCleanup(process.kill)
        give_up = time.monotonic() + TIME_LIMIT
        while True:
            try:
                cls.command(name, "PING")
                return
            except OSError as reason:
                with open(log.name, encoding="utf-8") as text:
                    said = text.read()
                if "tls-port" in said and process.poll() is not None:
                    raise unittest.SkipTest(f"the server has no TLS: {said.splitlines()[0]}") from None
                if time.monotonic() > give_up or process.poll() is not None:
                    raise AssertionError(f"server {name}: {reason}: {said}") from None
                time.sleep(0.01)

    @classmethod
    def connect(cls, name, certificate=None):
        """Opens a connection to a server, verified with the CA, with the certificate of that name."""
        context = ssl.create_default_context(cafile=os.path.join(cls.folder, "ca.crt"))
        if certificate:
            context.load_cert_chain(*(os.path.join(cls.folder, f"{certificate}.{kind}") for kind in ("crt", "key")))
        plain = socket.create_connection(("127.0.0.1", cls.ports[name]), timeout=TIME_LIMIT)
        return context.wrap_socket(plain, server_hostname=name)

    @classmethod
    def command(cls, name, *words, certificate=None):
        """Sends a command with a reply of one line, and returns that."""
        with cls.connect(name, certificate) as connection:
            connection.sendall((" ".join(words) + "\r\n").encode())
            reply = connection.makefile().readline().strip()
        if reply[:1] not in ("+", "$"):
            raise AssertionError(f"{words}: {reply}")
        return reply

    @classmethod
    def address(cls, name, *more):
        """Returns the address of a server with TLS, with the CA and more parameters."""
        return f"rediss://127.0.0.1:{cls.ports[name]}?" + "&".join([f"cacert={cls.folder}/ca.crt", *more])

    def nodes(self, address):
        """Returns what `redlock nodes` prints."""
        return run([REDLOCK, "nodes", "-s", address]).stdout

    def assert_refused(self, text, *parameters):
        """Checks that a connection to server a with these parameters fails, and that the text says why."""
        self.assertIn(text, self.nodes(f"rediss://127.0.0.1:{self.ports['a']}?" + "&".join(parameters)))

    def test_0_a_renewal_keeps_the_ca(self):
        """The commands that make the certificates can run again: the clients still trust the CA."""
        self.assertEqual(*self.authorities)

    def test_1_certificates_are_accepted(self):
        """All servers are eligible by their IP addresses, and by their names. A lock can be acquired."""
        self.assertIn("5 of 5 servers are eligible", self.nodes(self.addresses))
        names = ",".join(self.address(name, "fresh=1", f"sni={name}") for name in NAMES)
        self.assertIn("5 of 5 servers are eligible", self.nodes(names))
        done = run([REDLOCK, "run", "-n", "-s", self.addresses, "x", "--", "echo", "held"])
        self.assertEqual((done.returncode, done.stdout), (0, "held\n"))

    def test_2_certificates_are_refused_in_words(self):
        """Each text is in docs/troubleshooting.md."""
        ca = f"cacert={self.folder}/ca.crt"
        self.assert_refused('wrong certificate: it is for "a", "127.0.0.1", not for "b"', ca, "sni=b")
        self.assert_refused("the certificate is not from an issuer that is trusted", f"cacert={self.folder}/b.crt")
        self.shell("openssl x509 -req -in a.csr -extfile a.ext -CA ca.crt -CAkey ca.key -days -1 -out expired.crt")
        self.renew("a", "expired")
        self.assert_refused("the certificate expired at ", ca)
        self.renew("a", "a")

    def test_3_files_are_refused_in_words(self):
        """The command exits with 78, and says which file is wrong and why."""
        self.shell("openssl ec -in a.key -aes128 -passout pass:x -out encrypted.key\n"
                   "openssl pkcs8 -topk8 -in a.key -passout pass:x -out encrypted8.key\necho x >no.crt\n"
                   "mkdir folder\nmkfifo pipe\n(cat ca.crt; sed s/M/X/2 ca.crt) >damaged.crt")  # fmt: skip
        certificate = f"cert={self.folder}/a.crt"
        for parameters, text in (
            (f"cacert={self.folder}/none", "certificates of issuers .*/none: No such file or directory"),
            (f"cacert={self.folder}/no.crt", "certificates of issuers .*/no.crt: it has no certificate in PEM format"),
            (f"cert={self.folder}/no.crt", "certificate .*/no.crt: it has no certificate in PEM format"),
            (f"cacert={self.folder}/damaged.crt", "certificates of issuers .*/damaged.crt: .*or a damaged one"),
            (f"cacert={self.folder}/folder", "certificates of issuers .*/folder: .* run openssl rehash on it"),
            (f"cacert={self.folder}/pipe", "certificates of issuers .*/pipe: it is neither a file nor a directory"),
            (f"cert={self.folder}/folder", "certificate .*/folder: it is a directory"),
            (certificate, "private key .*/a.crt: it has no private key in PEM format: name the file of the key, too"),
            (f"{certificate}&key={self.folder}/b.key", "private key .*/b.key: it does not belong to the certificate"),
            (f"{certificate}&key={self.folder}/encrypted.key", "private key .*/encrypted.key: it is encrypted"),
            (f"{certificate}&key={self.folder}/encrypted8.key", "private key .*/encrypted8.key: it is encrypted"),
        ):
            done = run([REDLOCK, "run", "-n", "-s", f"rediss://127.0.0.1:1?{parameters}", "x", "true"])
            self.assertEqual(done.returncode, 78, done.stdout)
            self.assertRegex(done.stdout, text)

    def test_4_client_certificates(self):
        """With tls-auth-clients yes, the certificate that the document makes is accepted. A client without one gets a report that
        says so each time, whether or not the end of the connection overtakes the server's alert."""
        function = re.search(r"^certificate\(\) \{.*?^\}$", self.commands, re.M | re.S)[0]
        self.shell(f"{function}\ncertificate client DNS:client\n")
        for name in NAMES:
            self.command(name, "CONFIG SET tls-auth-clients yes")
        try:
            own = [f"cert={self.folder}/client.crt", f"key={self.folder}/client.key"]
            accepted = ",".join(self.address(name, "fresh=1", *own) for name in NAMES)
            self.assertIn("5 of 5 servers are eligible", self.nodes(accepted))
            for _ in range(ROUNDS):
                output = self.nodes(self.addresses)
                self.assertRegex(output, "the server requires? a certificate of the client")
                self.assertNotIn("connection lost", output)
        finally:
            for name in NAMES:
                self.command(name, "CONFIG SET tls-auth-clients no", certificate="client")

    def renew(self, name, other):
        """Gives a server another certificate as the document does, and has it read the file."""
        folder = os.path.join(self.folder, f"server-{name}")
        shutil.copy(os.path.join(self.folder, f"{other}.crt"), os.path.join(folder, "new"))
        os.rename(os.path.join(folder, "new"), os.path.join(folder, "server.crt"))
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with socket.create_connection(("127.0.0.1", self.ports[name]), timeout=TIME_LIMIT) as plain:
            with context.wrap_socket(plain) as connection:
                connection.sendall(f"CONFIG SET tls-cert-file {folder}/server.crt\r\n".encode())
                self.assertEqual(connection.makefile().readline(), "+OK\n")

    def test_5_a_server_reads_a_new_certificate(self):
        """CONFIG SET with the same path is enough."""
        self.shell("openssl x509 -req -in a.csr -extfile a.ext -CA ca.crt -CAkey ca.key -days 30 -out a2.crt")
        numbers = []
        for certificate in ("a", "a2", "a"):
            self.renew("a", certificate)
            with self.connect("a") as connection:
                numbers.append(connection.getpeercert()["serialNumber"])
        self.assertEqual(numbers[0], numbers[2])
        self.assertNotEqual(numbers[0], numbers[1])

    def test_6_from_plain_tcp_to_tls(self):
        """Clients of the plain and of the TLS port are one group: they exclude each other, and use the same fence records. With
        another id they do not."""
        for name in NAMES:
            self.command(name, f"CONFIG SET port {self.plain_ports[name]}")
        names = {name: f"127.0.0.1:{self.plain_ports[name]}" for name in NAMES}
        old = ",".join(f"{names[name]}?fresh=1" for name in NAMES)
        new = ",".join(self.address(name, "fresh=1", f"id={names[name]}") for name in NAMES)
        fenced = ["run", "-n", "--fence"]
        for servers_of_run in (old, new, old):
            done = run([REDLOCK, *fenced, "-s", servers_of_run, "x", "true"])
            self.assertEqual((done.returncode, done.stdout), (0, ""))
        done = run([REDLOCK, "run", "-s", old, "x", "--", REDLOCK, "run", "-n", "--allow-nested", "-s", new, "x", "true"])
        self.assertEqual(done.returncode, 75, done.stdout)
        done = run([REDLOCK, *fenced, "-s", self.addresses, "x", "true"])
        self.assertEqual(done.returncode, 69, done.stdout)
        self.assertIn("fence record", done.stdout)

    def test_7_the_other_protocol(self):
        """TLS to a plain port, and plain TCP to a port of TLS, are recognised."""
        self.command("b", f"CONFIG SET port {self.plain_ports['b']}")
        self.assertIn("does this port expect TLS (rediss://)?", self.nodes(f"127.0.0.1:{self.ports['b']}"))
        self.assertIn("does this port speak TLS?", self.nodes(f"rediss://127.0.0.1:{self.plain_ports['b']}"))

    def test_8_tls_without_a_restart(self):
        """A server with a plain port only gets one of TLS, and then no plain one any more, by CONFIG SET."""
        address, plain_address = self.address("d", "fresh=1"), f"127.0.0.1:{self.plain_ports['d']}?fresh=1"
        settings = dict(line.split() for line in self.lines.splitlines() if line.startswith("tls-"))
        folder = os.path.join(self.folder, "server-d")
        self.command("d", f"CONFIG SET port {self.plain_ports['d']}")
        with socket.create_connection(("127.0.0.1", self.plain_ports["d"]), timeout=TIME_LIMIT) as connection:
            replies = connection.makefile()

            def configure(key, value):
                connection.sendall(f"CONFIG SET {key} {value.replace('/etc/redis-lock', folder)}\r\n".encode())
                self.assertEqual(replies.readline(), "+OK\n", key)

            configure("tls-port", "0")
            self.assertNotIn("1 of 1 servers are eligible", self.nodes(address))
            del settings["tls-port"]
            for key, value in settings.items():
                configure(key, value)
            configure("tls-port", str(self.ports["d"]))
            self.assertIn("1 of 1 servers are eligible", self.nodes(address))
            configure("port", "0")
        self.assertNotIn("1 of 1 servers are eligible", self.nodes(plain_address))
        self.assertIn("1 of 1 servers are eligible", self.nodes(address))


if __name__ == "__main__":
    tapcase.main()
