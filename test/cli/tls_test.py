# SPDX-License-Identifier: MIT
"""TLS: `redlock run` and the other commands on servers that speak TLS only, certificates of every wrong kind, the
settings, the findings of `redlock nodes`, and `redlock sandbox --tls`. make_certificates.c makes the certificates.
A server of the sandbox is started again with another configuration where a case needs one."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import tapcase  # noqa: E402
from world import REDLOCK, TIME_LIMIT, CommandCase, Resp, clean_environment, runs, until  # noqa: E402

COUNT = 5
QUORUM = 3

# Servers whose certificate is refused: the names of the certificate and of the trusted issuer, and what is said.
REFUSED = [
    ("server", "other-ca", r"the certificate is not from an issuer that is trusted \(unknown CA\); cacert has another CA"),
    ("self-signed", "ca", r"the certificate is not from an issuer that is trusted \(self-signed\); cacert has another certificate"),
    ("wrong-name", "ca", r'wrong certificate: it is for "elsewhere\.example", "127\.0\.0\.2", not for "127\.0\.0\.1"'),
    ("by-name", "ca", r'wrong certificate: it is for "localhost", not for "127\.0\.0\.1"'),
    ("expired", "ca", r"the certificate expired at \d{4}-\d\d-\d\d .*; the clock of this machine says \d{4}-"),
    ("future", "ca", r"the certificate is not valid before \d{4}-\d\d-\d\d .*; the clock of this machine says \d{4}-"),
]

# Certificates that the server requires of the client and refuses: the name of the certificate, and what is said.
CLIENTS_REFUSED = [
    (None, r"requires? a certificate of the client[;:] give one and its key \(cert, key\)"),
    ("client-other", r"the server does not trust the issuer of the client's certificate; use one that the CA in its tls-ca-cert-file has signed"),
    ("client-expired", r"the client's certificate has expired, says the server"),
]


def has_tls():
    """Returns whether the command is built with TLS."""
    result = subprocess.run([REDLOCK, "config", "-s", "rediss://a"], capture_output=True, text=True, check=False,
                            env=clean_environment())  # fmt: skip
    return "built without TLS" not in result.stderr


class TlsResp(Resp):
    """A connection with TLS to a server, whose certificate is not verified. `certificate`: (file, key file) of the
    client."""

    def __init__(self, port, certificate=None):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if certificate:
            context.load_cert_chain(*certificate)
        self.socket = context.wrap_socket(socket.create_connection(("127.0.0.1", port), timeout=TIME_LIMIT))
        self.file = self.socket.makefile("rb")


class TlsCase(CommandCase):
    """A test case with five servers that speak TLS only, and a directory of certificates, for the class. Servers that a
    case has configured are started again as they were after it."""

    has_servers = True

    @classmethod
    def setUpClass(cls):
        if not has_tls():
            raise unittest.SkipTest("built without TLS")
        cls.restarted = []  # servers that were started again
        cls.certificates = tempfile.mkdtemp(prefix="cli-certificates-")
        cls.addClassCleanup(shutil.rmtree, cls.certificates)
        subprocess.run([os.environ["CERTIFICATES"], cls.certificates], check=True)
        words = 'echo "$REDLOCK_SANDBOX_DIR"; exec cat'
        cls.sandbox = subprocess.Popen([REDLOCK, "sandbox", "--tls", "-n", str(COUNT), "--", "sh", "-c", words],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=clean_environment())  # fmt: skip
        cls.addClassCleanup(cls.end_sandbox)
        cls.folder = cls.sandbox.stdout.readline().strip()
        cls.ports = [int(cls.read(index, "port")) for index in range(COUNT)]
        for index in range(COUNT):
            cls.restart(index, cls.file("server"), cls.file("server", "key"))

    @classmethod
    def end_sandbox(cls):
        """Ends the sandbox, and with it the servers."""
        cls.sandbox.stdin.close()
        cls.sandbox.stdout.close()
        cls.sandbox.wait(TIME_LIMIT)
        for server in cls.restarted:
            server.wait(TIME_LIMIT)

    @classmethod
    def read(cls, index, name):
        """Returns the text of a file in the directory of a server."""
        with open(f"{cls.folder}/{index + 1}/{name}", encoding="utf-8") as file:
            return file.read()

    def setUp(self):
        super().setUp()
        self.changed = set()
        self.addCleanup(self.restore)

    def restore(self):
        """Starts the servers that were configured again, with the certificate `server` and the settings of the sandbox."""
        for index in sorted(self.changed):
            self.restart(index, self.file("server"), self.file("server", "key"))

    @classmethod
    def file(cls, name, kind="pem"):
        """Returns the path of a certificate, or with `key` of its private key."""
        return f"{cls.certificates}/{name}.{kind}"

    @classmethod
    def restart(cls, index, certificate, key, lines=""):
        """Kills a server, and starts it again with this certificate and these further lines of configuration."""
        pid = int(cls.read(index, "pid"))
        os.kill(pid, signal.SIGKILL)
        until(lambda: not runs(pid), "the end of the server")
        kept = [line for line in cls.read(index, "conf").splitlines() if line.split()[0] in ("bind", "dir", "pidfile", "logfile",
                                                                                             "daemonize", "save", "appendonly")]  # fmt: skip
        kept += [f'tls-cert-file "{certificate}"', f'tls-key-file "{key}"', f'tls-ca-cert-file "{cls.file("ca")}"']
        kept += lines.splitlines() or [f"port 0\ntls-port {cls.ports[index]}\ntls-auth-clients no"]
        with open(f"{cls.folder}/{index + 1}/conf", "w", encoding="utf-8") as file:
            file.write("\n".join(kept) + "\n")
        with open(f"{cls.folder}/{index + 1}/log", "ab") as log:
            server = subprocess.Popen([f"{cls.folder}/redis-server", f"{cls.folder}/{index + 1}/conf"],
                                      cwd=f"{cls.folder}/{index + 1}", stdout=log, stderr=log)  # fmt: skip
        cls.restarted.append(server)
        until(lambda: server.poll() is None and cls.listens(index, server.pid), f"server {index + 1} replies")

    @classmethod
    def listens(cls, index, pid):
        """Returns whether the process has written its pid, and its port accepts connections."""
        try:
            socket.create_connection(("127.0.0.1", cls.ports[index]), timeout=TIME_LIMIT).close()
            return int(cls.read(index, "pid") or 0) == pid
        except (OSError, ValueError):
            return False

    def configure(self, certificate="server", lines="", indexes=range(COUNT)):
        """Gives servers another certificate of the table, and other lines of configuration, in which {port} is the port."""
        for index in indexes:
            self.changed.add(index)
            self.restart(index, self.file(certificate), self.file(certificate, "key"), lines.format(port=self.ports[index]))

    def text_of(self, *name):
        """Returns the text of a certificate, or with "key" of its private key."""
        with open(self.file(*name), encoding="ascii") as file:
            return file.read()

    def addresses(self, host="127.0.0.1", scheme="rediss://", query="fresh=1"):
        """Returns the list of the servers' addresses."""
        return ",".join(f"{scheme}{host}:{port}?{query}" for port in self.ports)

    def tls(self, *args, servers=None, ca="ca", **environment):
        """Runs the command on the servers, with that issuer as the trusted one. Returns its result."""
        environment.setdefault("REDLOCK_SERVERS", servers or self.addresses())
        environment.setdefault("REDLOCK_TLS_CACERT", self.file(ca) if ca else "")
        return self.redlock(*args, env=clean_environment(**environment))

    def reasons(self, result):
        """Returns {port: why the server granted no lock} from the messages of a command."""
        server = r"(?:127\.0\.0\.1|localhost):\d+"
        found = re.findall(rf"(all 5 servers|{server}(?:, {server})*): (.*?)(?=; {server}|; all 5|; check the servers|\n)", result.stderr)
        ports = [(self.ports if names.startswith("all") else map(int, re.findall(r":(\d+)", names)), text) for names, text in found]
        return {port: text for group, text in ports for port in group}

    def assert_refused(self, result, pattern):
        """Fails unless the command gave up without a quorum, and gave this reason for a majority. The others may have no reason
        yet: a majority decides the attempt, so the command does not wait for them. `redlock nodes`, which the message
        names, waits for all."""
        self.assertCode(result, 69)
        self.assertIn(": 0 of 5 servers granted the lock, 3 required", result.stderr)
        texts = self.reasons(result)
        self.assertLessEqual(set(texts), set(self.ports), result.stderr)
        self.assertGreaterEqual(sum(bool(re.search(pattern, text)) for text in texts.values()), QUORUM, texts)


class Servers(TlsCase):
    """Servers with good and bad certificates."""

    def votes(self, servers):
        """Returns how many servers hold a lock for a job, as the job sees it."""
        result = self.tls("run", "x", "--", REDLOCK, "status", "--json", "x", servers=servers)
        self.assertCode(result, 0)
        return json.loads(result.stdout)["votes"]

    def test_own_issuer(self):
        """A lock is held on five servers, addressed by IP address and by name. A majority starts the job, so a job may be
        too early for the others."""
        for certificate, hosts in ("server", ("127.0.0.1", "localhost")), ("by-ip", ["127.0.0.1"]), ("by-name", ["localhost"]):
            self.configure(certificate)
            for host in hosts:
                with self.subTest(certificate=certificate, host=host):
                    until(lambda at=self.addresses(host): self.votes(at) == COUNT, "a lock on all servers")

    def test_bad_certificates_are_refused_in_words(self):
        """Each certificate of the table is refused, with the reason at each server."""
        for certificate, ca, words in REFUSED:
            with self.subTest(certificate=certificate, ca=ca):
                self.configure(certificate)
                self.assert_refused(self.tls("run", "-n", "x", "true", ca=ca), words)

    def test_client_certificate(self):
        """Servers that require a certificate of the client accept the right one, and refuse others in words."""
        self.configure(lines="port 0\ntls-port {port}\ntls-auth-clients yes")
        pair = [f"--tls-{what}={self.file('client', kind)}" for what, kind in (("cert", "pem"), ("key", "key"))]
        self.assertCode(self.tls("run", *pair, "x", "true"), 0)
        both = self.path("both.pem")
        with open(both, "w", encoding="ascii") as file:
            for kind in "pem", "key":
                with open(self.file("client", kind), encoding="ascii") as part:
                    file.write(part.read())
        self.assertCode(self.tls("run", f"--tls-cert={both}", "x", "true"), 0)
        for protocol in "TLSv1.3", "TLSv1.2":
            self.configure(lines="port 0\ntls-port {port}\ntls-auth-clients yes\n" + f'tls-protocols "{protocol}"')
            for name, words in CLIENTS_REFUSED:
                with self.subTest(name=name, protocol=protocol):
                    more = {"REDLOCK_TLS_CERT": self.file(name), "REDLOCK_TLS_KEY": self.file(name, "key")} if name else {}
                    self.assert_refused(self.tls("run", "-n", "x", "true", **more), words)
        result = self.tls("run", "--tls-cert", self.file("client"), "--tls-key", self.file("client-other", "key"), "x", "true")
        self.assertCode(result, 78)
        self.assertRegex(result.stderr, r"private key \S+client-other\.key: it does not belong to the certificate")

    def test_one_side_speaks_plain_text(self):
        """A port with TLS that is addressed with redis://, and a plain one that is addressed with rediss://."""
        result = self.tls("run", "-n", "x", "true", servers=self.addresses(scheme="redis://"), ca=None)
        self.assert_refused(result, r"before the first reply; does this port expect TLS \(rediss://\)\?$")
        self.configure(lines="port {port}\ntls-port 0")
        result = self.tls("run", "-n", "x", "true")
        self.assert_refused(result, r"no end of the TLS handshake in time; does this port speak TLS\?$")

    def test_settings(self):
        """The issuer is taken from an option, a variable, the file or the address; without it, no server is trusted."""
        ca = self.file("ca")
        with_ca = self.path("conf-ca", f"[redlock]\ntls-cacert = {ca}\n")
        address = self.addresses(query=f"fresh=1&cacert={ca}")
        for name, flags, more in (
            ("option", ["--tls-cacert", ca], {}),
            ("variable", [], {"REDLOCK_TLS_CACERT": ca}),
            ("file", ["-f", with_ca], {}),
            ("address", ["-s", address], {}),
            ("address and others", ["-s", address, "--tls-cacert", self.file("other-ca")], {}),
        ):
            with self.subTest(name=name):
                self.assertCode(self.tls("run", *flags, "x", "true", **{"REDLOCK_TLS_CACERT": "", **more}), 0)
        self.assert_refused(self.tls("run", "-n", "x", "true", ca=None), r"not from an issuer that is trusted .*give its CA \(cacert\)$")

    def test_verify_and_sni(self):
        """The name in the certificate is that of --tls-sni; chain accepts any name, and none any certificate."""
        self.configure("by-name")
        self.assertCode(self.tls("run", "--tls-sni", "localhost", "x", "true"), 0)
        self.assertCode(self.tls("run", "--tls-verify", "chain", "x", "true"), 0)
        self.assertCode(self.tls("run", "x", "true", servers=self.addresses(query="fresh=1&verify=chain")), 0)
        # An address with a parameter of its own takes the others from the options.
        self.assertCode(self.tls("run", "x", "true", servers=self.addresses(query="fresh=1&sni=localhost")), 0)
        self.assertCode(self.tls("top", "--once", servers=self.addresses(query="fresh=1&sni=localhost")), 0)
        wrong = self.tls("run", "-n", "--tls-sni", "elsewhere.example", "x", "true")
        self.assert_refused(wrong, 'wrong certificate: it is for "localhost", not for "elsewhere.example"; use one of its names as address, or as sni$')
        wrong = self.tls("run", "-n", "--tls-verify", "chain", "x", "true", ca="other-ca")
        self.assert_refused(wrong, "not from an issuer that is trusted")
        result = self.tls("run", "--tls-verify", "none", "x", "true", ca="other-ca")
        self.assertCode(result, 0)
        # The library warns once for each client, whatever else the addresses say.
        first, second, *rest = self.addresses(query="fresh=1&verify=none").split(",")
        pair = f"&cert={self.file('client')}&key={self.file('client', 'key')}"
        for servers, warnings in ([first, second + pair, *rest], 1), (self.addresses("localhost").split(","), 0):
            result = self.tls("run", "-v", "x", "true", servers=",".join(servers))
            self.assertCode(result, 0)
            self.assertEqual(result.stderr.count("not verified (verify=none): any process"), warnings, result.stderr)

    def test_warnings_and_errors_are_printed_once(self):
        """What the library says about certificates and keys is printed without -v, once for all clients of the command."""
        key = self.path("readable.key")
        shutil.copy(self.file("client", "key"), key)
        os.chmod(key, 0o604)
        for command, code in (["acquire", "-n", "-t", "1s", "x"], 0), (["nodes", "--tls-verify", "none"], 2):
            result = self.tls(*command, "--tls-cert", self.file("client"), "--tls-key", key)
            self.assertCode(result, code)
            self.assertEqual(result.stderr.count(f"TLS: every user of this machine can read the private key in {key}"), 1, result.stderr)
            self.assertEqual(result.stderr.count("not verified (verify=none): any process"), code // 2, result.stderr)
        ca, log = self.path("ca.crt"), self.path("log")
        shutil.copy(self.file("ca"), ca)
        with open(log, "w", encoding="utf-8") as file:
            job = subprocess.Popen([REDLOCK, "run", "-v", "x", "--", "sh", "-c", "echo held; exec cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=file, env=clean_environment(REDLOCK_SERVERS=self.addresses(), REDLOCK_TLS_CACERT=ca))  # fmt: skip
        self.addCleanup(job.wait, TIME_LIMIT)
        self.addCleanup(job.stdout.close)
        self.addCleanup(job.stdin.close)
        self.assertEqual(job.stdout.readline(), b"held\n")

        def said(words):
            with open(log, encoding="utf-8") as file:
                return file.read().count("redlock: TLS: certificate files have changed and " + words)

        for text, words in ("x\n", "cannot be used"), (self.text_of("ca"), "were read"):  # the second one with -v only
            with open(ca, "w", encoding="ascii") as file:
                file.write(text)
            connection = TlsResp(self.ports[0])
            connection.command("CLIENT", "KILL", "TYPE", "normal")
            connection.close()
            until(lambda: said(words), f"the message that the files {words}")  # noqa: B023
            self.assertEqual(said(words), 1)

    def test_top(self):
        """`redlock top` finds locks, and verifies the servers in its connections, too."""
        self.assertCode(self.tls("acquire", "-t", "30s", "found"), 0)
        result = self.tls("top", "--once", "--json")
        self.assertCode(result, 0)
        self.assertIn("found", [lock["name"] for lock in json.loads(result.stdout)["locks"]])
        result = self.tls("top", "--once", "--json", ca="other-ca")
        self.assertCode(result, 69)

    def test_signal_ends_top(self):
        """A signal ends `redlock top --once` while it waits for a server that does not end the TLS handshake."""
        for number in signal.SIGTERM, signal.SIGINT, signal.SIGHUP:
            with self.subTest(signal=number), socket.create_server(("127.0.0.1", 0)) as listener:
                listener.settimeout(TIME_LIMIT)
                address = f"rediss://127.0.0.1:{listener.getsockname()[1]}"
                process = subprocess.Popen([REDLOCK, "top", "--once", "-s", address, "--tls-cacert", self.file("ca")], stdout=subprocess.DEVNULL,
                                           env=clean_environment(), preexec_fn=lambda n=number: signal.signal(n, signal.SIG_DFL))  # fmt: skip
                with listener.accept()[0]:
                    process.send_signal(number)
                    self.assertEqual(process.wait(TIME_LIMIT), -number)

    def test_top_verifies_the_same_name(self):
        """Neither the dot at the end of a name nor the zone of an IPv6 address is part of the name that the certificate must have."""
        self.assertCode(self.tls("acquire", "-t", "30s", "found"), 0)
        found = self.tls("top", "--once", "--json", servers=self.addresses(query="fresh=1&sni=localhost."))
        self.assertIn("found", [lock["name"] for lock in json.loads(found.stdout)["locks"]])
        if not os.path.exists("/proc/net/if_inet6"):
            self.skipTest("no IPv6")
        self.configure(lines="bind 127.0.0.1 ::1\nport 0\ntls-port {port}\ntls-auth-clients no")
        servers = self.addresses("[::1%251]")
        self.assertCode(self.tls("acquire", "-t", "30s", "zoned", servers=servers), 0)
        found = self.tls("top", "--once", "--json", servers=servers)
        self.assertIn("zoned", [lock["name"] for lock in json.loads(found.stdout)["locks"]], found.stderr)

    def test_settings_without_a_server_with_tls_draw_a_warning(self):
        """Settings of TLS are no sign of encryption if the addresses begin with redis://."""
        words = "has no effect: no server is connected with TLS; write rediss://host"
        plain = "127.0.0.1:1,127.0.0.1:2,127.0.0.1:3"
        result = self.tls("acquire", "-n", "--tls-cacert", self.file("ca"), "x", servers=plain)
        self.assertIn(f"option --tls-cacert: tls-cacert {words}", result.stderr)
        self.assertIn(f"REDLOCK_TLS_CACERT: tls-cacert {words}", self.tls("acquire", "-n", "x", servers=plain).stderr)
        # The variable is about other servers than those of the option.
        self.assertNotIn(words, self.tls("acquire", "-n", "-s", plain, "x").stderr)
        self.assertNotIn(words, self.tls("acquire", "-n", "x").stderr)

    def test_settings_that_all_addresses_replace_draw_a_warning(self):
        """A setting without effect is named, with what the addresses have in its place. One that some server uses is not."""
        own = self.addresses(query=f"fresh=1&cacert={self.file('ca')}")
        result = self.tls("acquire", "-t", "1s", "--tls-verify", "none", "x", servers=own, ca=None)
        self.assertCode(result, 0)
        self.assertRegex(result.stderr, "option --tls-verify: tls-verify has no effect: every address has its own cacert or verify")
        for query, flags, setting, names in (
            (f"cacert={self.file('ca')}", ["--tls-cacert", self.file("other-ca")], "tls-cacert", "cacert or verify=none"),
            ("verify=none", ["--tls-cacert", self.file("other-ca")], "tls-cacert", "cacert or verify=none"),
            (f"cacert={self.file('ca')}&sni=localhost", ["--tls-sni", "elsewhere"], "tls-sni", "sni"),
        ):
            with self.subTest(query=query, setting=setting):
                result = self.tls("acquire", "-t", "1s", *flags, f"x-{setting}-{query[:3]}", servers=self.addresses(query=f"fresh=1&{query}"), ca=None)
                self.assertCode(result, 0)
                self.assertIn(f"option --{setting}: {setting} has no effect: every address has its own {names}", result.stderr)
        first, *rest = self.addresses().split(",")
        shards = f"east={first};west={self.addresses(query='fresh=1&cacert=' + self.file('ca')).split(',')[1]}"
        for servers in ",".join([first, *self.addresses(query=f"fresh=1&cacert={self.file('ca')}").split(",")[1:]]), shards:
            self.assertNotIn("has no effect", self.tls("acquire", "-n", "-t", "1s", "y", servers=servers).stderr)


class Nodes(TlsCase):
    """The findings of `redlock nodes` about TLS."""

    def findings(self, *flags, code, **more):
        """Runs `redlock nodes --json`. Returns the servers, and {code of a finding: [finding of each server]}."""
        result = self.tls("nodes", "--json", *flags, **more)
        self.assertCode(result, code)
        seen, found = json.loads(result.stdout), {}
        for finding in seen["findings"]:
            found.setdefault(finding["code"], []).append(finding)
        return seen["servers"], found

    def test_good_certificates(self):
        """Each server has TLS and the date at which its certificate expires; there is no finding about it."""
        servers, found = self.findings(code=0)
        self.assertEqual([server["tls"] for server in servers], ["on"] * COUNT)
        for server in servers:
            self.assertRegex(server["certificate_expires"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.000Z$")
        self.assertLessEqual(set(found), {"no_aof", "slow", "fresh"})

    def test_tables(self):
        """The tables of nodes and top show until when each certificate is valid, which servers are not verified or use no TLS;
        without a server that does, there is no column about it."""
        first, second, third = self.addresses().split(",")[:3]
        self.configure(lines="port {port}\ntls-port 0", indexes=[2])
        servers = f"{first},{second}&verify=none,{third.replace('rediss', 'redis')}"
        for words, title in (["nodes"], "tls"), (["top", "--once"], "TLS"):
            result = self.tls(*words, servers=servers)
            self.assertRegex(result.stdout, rf"(?m)^server .*\b{title}\b" if title == "tls" else rf"(?m)^SERVER .*\b{title}\b")
            self.assertRegex(result.stdout, rf"(?m)^127\.0\.0\.1:{self.ports[0]} .* until 20\d\d-\d\d-\d\d\b")
            self.assertRegex(result.stdout, rf"(?m)^127\.0\.0\.1:{self.ports[1]} .* unverified\b")
            self.assertRegex(result.stdout, rf"(?m)^127\.0\.0\.1:{self.ports[2]} (?!.*(until 2|unverified))")
            plain = self.tls(*words, servers=third.replace("rediss", "redis"), ca=None)
            self.assertNotRegex(plain.stdout, rf"(?m)^(server|SERVER) .*\b{title}\b")

    def test_json_of_top(self):
        """`redlock top --json` says of each server what `redlock nodes --json` says: whether it is connected with TLS, and when
        its certificate expires."""
        first, second, third = self.addresses().split(",")[:3]
        self.configure("ends-soon", indexes=[0])
        self.configure(lines="port {port}\ntls-port 0", indexes=[2])
        servers = f"{first},{second}&verify=none,{third.replace('rediss', 'redis')}"
        fields = "server", "tls", "certificate_expires"
        checked = json.loads(self.tls("nodes", "--json", servers=servers).stdout)["servers"]
        shown = json.loads(self.tls("top", "--once", "--json", servers=servers).stdout)["servers"]
        self.assertEqual([server["tls"] for server in checked], ["on", "unverified", "off"])
        self.assertRegex(checked[0]["certificate_expires"], r"^20\d\d-\d\d-\d\dT")
        self.assertIsNone(checked[2]["certificate_expires"])
        self.assertEqual([{name: server.get(name, "missing") for name in fields} for server in shown],
                         [{name: server[name] for name in fields} for server in checked])  # fmt: skip

    def test_figures(self):
        """The figures of the library have the date at which the certificate of each server expires; without TLS there is none."""
        path = self.path("figures.prom")
        self.configure("ends-soon", indexes=[1])
        self.assertCode(self.tls("nodes", "--metrics-file", path), 1)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        dates = dict(re.findall(r'^redlock_server_certificate_expiry_timestamp_seconds\{.*server="127\.0\.0\.1:(\d+)"\} (\d+)$', text, re.M))
        self.assertEqual(set(dates), set(map(str, self.ports)))
        self.assertEqual((int(dates[str(self.ports[1])]) - int(time.time())) // 86400, 10)
        self.configure(lines="port {port}\ntls-port 0")
        self.assertCode(self.tls("nodes", "--metrics-file", path, servers=self.addresses(scheme="redis://"), ca=None), 0)
        with open(path, encoding="utf-8") as file:
            self.assertNotRegex(file.read(), r"(?m)^redlock_server_certificate_expiry")

    def test_unverified_is_critical(self):
        """A server whose certificate is not verified is critical, whatever its certificate."""
        self.configure("expired", indexes=[0])
        servers, found = self.findings("--tls-verify", "none", code=2)
        self.assertEqual([server["tls"] for server in servers], ["unverified"] * COUNT)
        self.assertEqual([finding["severity"] for finding in found["tls_unverified"]], ["crit"] * COUNT)
        self.assertRegex(found["tls_unverified"][0]["text"], "is not verified: any process that can answer in its place can grant locks")
        self.assertRegex(found["tls_unverified"][0]["advice"], "cacert")
        self.assertRegex(found["certificate_expires"][0]["text"], r"^its certificate or that of its CA has expired \(\d{4}-\d\d-\d\d\)")
        self.assertEqual(len(found["certificate_expires"]), 1)

    def test_certificate_that_expires_soon(self):
        """A certificate that expires within 14 days is a warning, with the days and the date."""
        self.configure("ends-soon", indexes=[1])
        servers, found = self.findings(code=1)
        date = servers[1]["certificate_expires"][:10]
        self.assertEqual([finding["server"] for finding in found["certificate_expires"]], [f"127.0.0.1:{self.ports[1]}"])
        self.assertEqual(found["certificate_expires"][0]["severity"], "warn")
        self.assertIn(f"expires in 10 days ({date}): then no client can connect", found["certificate_expires"][0]["text"])

    def test_files_of_the_client(self):
        """A private key that every user can read, and a certificate of the client and an issuer that expire soon, are warnings."""
        key = self.path("readable.key", self.text_of("client-ends-soon", "key"))
        os.chmod(key, 0o604)
        self.configure("short-server")
        pair = ["--tls-cert", self.file("client-ends-soon"), "--tls-key", key]
        servers, found = self.findings(*pair, code=1, ca="short-ca")
        self.assertEqual([server["eligible"] for server in servers], [True] * COUNT)
        for code, text in (
            ("key_readable", f"every user of this machine can read the private key of this client, {key}$"),
            ("client_certificate_expires", f"the certificate of this client, {self.file('client-ends-soon')}, expires in 1 day .*refuse"),
            ("issuer_expires", f"the trusted issuer in {self.file('short-ca')} expires in 10 days .*: then this client accepts no server"),
        ):
            self.assertEqual([finding["severity"] for finding in found[code]], ["warn"] * COUNT)
            self.assertRegex(found[code][0]["text"], text)
        self.assertIn("chmod 600", found["key_readable"][0]["advice"])
        # The files of an address count, not those of the settings. Of several issuers, the last one counts.
        both = self.path("both.crt", self.text_of("short-ca") + self.text_of("ca"))
        own = f"cert={self.file('client')}&key={self.file('client', 'key')}"
        _, found = self.findings(*pair, "-s", self.addresses(query=f"fresh=1&cacert={both}&{own}"), code=1, ca="short-ca")
        self.assertLessEqual(set(found), {"no_aof", "slow", "fresh", "certificate_expires"})
        self.assertRegex(found["certificate_expires"][0]["text"], "^its certificate or that of its CA expires in 10 days ")

    def test_refused_certificates(self):
        """A server whose certificate is refused is a finding with its reason, and with what to do."""
        advice = {"self-signed": "--tls-cacert; the server must send", "wrong-name": "subjectAltName, or write .sni=NAME", "expired": "^renew the certificate",
                  "future": "^correct the clock"}  # fmt: skip
        for index, name in enumerate(advice):
            self.configure(name, indexes=[index])
        self.configure(lines="port 0\ntls-port {port}\ntls-auth-clients yes", indexes=[4])
        servers, found = self.findings(code=2)
        self.assertEqual([(server["tls"], server["certificate_expires"]) for server in servers], [("unknown", None)] * COUNT)
        self.assertEqual(len(re.findall(r"(?m)^127\.0\.0\.1:\d+ .* -$", self.tls("nodes").stdout)), COUNT)
        findings = {finding["server"]: finding for finding in found["tls"]}
        self.assertEqual({finding["severity"] for finding in findings.values()}, {"warn"})
        for index, name in enumerate(advice):
            finding = findings[f"127.0.0.1:{self.ports[index]}"]
            self.assertRegex(finding["text"], next(words for certificate, _, words in REFUSED if certificate == name))
            self.assertRegex(finding["advice"], advice[name])
        self.assertRegex(findings[f"127.0.0.1:{self.ports[4]}"]["advice"], "--tls-cert, --tls-key$")


    def test_refused_client_certificates(self):
        """A certificate of this client that servers refuse is a finding with its advice, with both versions of TLS: the alert
        of TLS 1.3 comes after the handshake. What this machine sees of the reason is a finding of its own."""
        for index in range(COUNT):
            version = "TLSv1.3" if index < QUORUM else "TLSv1.2"
            self.configure(lines=f'port 0\ntls-port {{port}}\ntls-auth-clients yes\ntls-protocols "{version}"', indexes=[index])
        for name, refused, code, text in (
            ("client-expired", "the client's certificate has expired", "client_certificate_expires", r"has expired \(20\d\d-\d\d-\d\d\)"),
            ("client-future", "the server refuses the client's certificate", "client_certificate_future",
             r"is not valid before 20\d\d-\d\d-\d\d: until then servers refuse this client$"),
            ("client-for-servers", "the server refuses the client's certificate", "client_certificate_purpose",
             "is not for clients: servers refuse this client$"),
            ("client-other", "does not trust the issuer of the client's certificate", None, None),
        ):  # fmt: skip
            with self.subTest(name=name):
                pair = ["--tls-cert", self.file(name), "--tls-key", self.file(name, "key")]
                servers, found = self.findings(*pair, code=2)
                self.assertEqual([server["eligible"] for server in servers], [False] * COUNT)
                self.assertEqual(sorted(finding["server"] for finding in found["client_certificate_refused"]),
                                 sorted(server["server"] for server in servers))  # fmt: skip
                for finding in found["client_certificate_refused"]:
                    self.assertIn(refused, finding["text"])
                    self.assertIn("--tls-cert", finding["advice"])
                self.assertNotIn("tls", found)
                own = {found_code for found_code in found if found_code.startswith("client_certificate_")} - {"client_certificate_refused"}
                self.assertEqual(own, {code} if code else set())
                if code:
                    self.assertRegex(found[code][0]["text"], f"^the certificate of this client, {self.file(name)}, {text}")
                    printed = self.tls("nodes", *pair).stdout
                    self.assertRegex(printed, rf"(?m)^warn  all servers: .*{re.escape(found[code][0]['text'])}\n +-> {re.escape(found[code][0]['advice'])}$")

    def advice(self, servers, **more):
        """Returns {index of a server: (code, text, advice)} of the findings of `redlock nodes` about these servers that are not eligible."""
        _, found = self.findings("-s", servers, code=2, **more)
        ports = [int(address.split(":")[2].split("?")[0]) for address in servers.split(",")]
        return {ports.index(int(finding["server"].split(":")[1])): (finding["code"], finding["text"], finding["advice"])
                for code in ("tls", "connect", "unresponsive", "disconnect") for finding in found.get(code, [])}  # fmt: skip

    def assert_advice(self, servers, expected, **more):
        """Fails unless the findings about the servers have this code, and match this text and advice."""
        found = self.advice(servers, **more)
        for index, (code, text, advice) in enumerate(expected):
            with self.subTest(text=text):
                self.assertEqual(found[index][0], code)
                self.assertRegex(found[index][1], text)
                self.assertRegex(found[index][2], advice)

    def test_advice_follows_the_text(self):
        """The advice fits the reason, also if a certificate has a name with words of other reasons."""
        self.configure("named-client", indexes=[0])
        self.configure("for-clients", indexes=[1])
        old = 'port 0\ntls-port {port}\ntls-auth-clients no\ntls-protocols "TLSv1.1"'
        self.configure(lines=old + "\ntls-ciphers DEFAULT@SECLEVEL=0", indexes=[2])
        self.configure(lines="port {port}\ntls-port 0", indexes=[3])
        self.assert_advice(self.addresses(), [
            ("tls", 'it is for "client", "expired", not for', "in its subjectAltName, or write .sni=NAME"),
            ("tls", "the certificate was not accepted: unsuitable certificate purpose$", "extendedKeyUsage needs serverAuth"),
            ("tls", "the server supports neither TLS 1.2 nor TLS 1.3", "change tls-protocols of the server"),
            ("unresponsive", "no end of the TLS handshake in time", "use its tls-port; .* overloaded"),
        ])  # fmt: skip

    def test_advice_for_the_wrong_scheme(self):
        """redis:// to a port of TLS."""
        self.assert_advice(self.addresses(scheme="redis://"), COUNT * [
            ("disconnect", r"does this port expect TLS \(rediss://\)\?$", "write rediss:// in its address")])  # fmt: skip

    def test_advice_for_other_replies(self):
        """Ports that end or reset each connection, reply in plain text, or with an alert that no configuration of Redis causes."""
        replies = [b"", None, b"-ERR unknown command\r\n", b"\x15\3\3\0\2\2\x50", *(b"\x15\3\3\0\2\2" + bytes([alert]) for alert in (112, 10, 40, 51, 120))]
        servers = ",".join(f"rediss://127.0.0.1:{self.listen(reply)}?fresh=1" for reply in replies)
        self.assert_advice(servers, [
            ("connect", "the server has ended the TLS handshake", "^use its tls-port; read the server's log$"),
            ("connect", "the server has ended the TLS handshake|connection reset", "use its tls-port"),
            ("tls", "the server does not speak TLS on this port; use its tls-port$", "use its tls-port .redis:// only in a network"),
            ("tls", "the server reports an internal error; read its log$", "read the server's log"),
            ("tls", "the server does not know the name", "--tls-sni"),
            ("tls", "the server takes a message of this client for invalid; read its log$", "^read the server's log$"),
            ("tls", "the server refuses the handshake: it may .* or no cipher is common: check tls-ciphers$", "--tls-key; or correct its tls-ciphers$"),
            ("tls", "the server could not verify a signature of this client", "--tls-cert, --tls-key$"),
            ("tls", "the server demands another protocol than that of Redis", "^use its tls-port$"),
        ])  # fmt: skip

    def listen(self, reply):
        """Replies with these bytes to each connection, and closes it; None: resets it. Returns the port."""
        listener = socket.create_server(("127.0.0.1", 0))

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    with listener.accept()[0] as connection:
                        connection.recv(1 if reply is None else 65536)
                        connection.sendall(reply or b"")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        self.addCleanup(thread.join, TIME_LIMIT)
        self.addCleanup(listener.close)
        self.addCleanup(listener.shutdown, socket.SHUT_RDWR)
        return listener.getsockname()[1]

    def test_issuers_that_can_be_read_only_once(self):
        """A pipe is refused before a check begins, whose second client would find it empty."""
        with open(self.file("ca"), "rb") as file:
            issuer = file.read()
        read_end, write_end = os.pipe()
        os.write(write_end, issuer)
        os.close(write_end)
        environment = clean_environment(REDLOCK_SERVERS=self.addresses(), REDLOCK_TLS_CACERT="")
        command = [REDLOCK, "nodes", "--json", "--tls-cacert", f"/dev/fd/{read_end}"]
        result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment,
                                pass_fds=[read_end], timeout=TIME_LIMIT)  # fmt: skip
        os.close(read_end)
        self.assertCode(result, 78)
        self.assertIn(f"certificates of issuers /dev/fd/{read_end}: it is neither a file nor a directory; a pipe", result.stderr)


# A path that is not blamed on another setting.
LONG = "/" + 1050 * "x"

# Settings that the library refuses, and what is said.
INVALID = [
    (["-s", "b,rediss://u:p@a:1/2?cacert=/nowhere"], "option -s: cacert of a:1/2: TLS: certificates of issuers /nowhere: No such file"),
    (["-s", "x=rediss://a;y=rediss://b?cert=/dev/null&key=k"], "option -s: cert of b: TLS: certificate /dev/null: "),
    (["-s", "rediss://a?cert=nowhere"], "option -s: cert of a (relative to {directory}): TLS: certificate nowhere: No such file"),
    (["-s", "rediss:///run/redis.sock"], "TLS on a unix socket is not supported; write rediss://host, or unix:///path without TLS"),
    (["-s", "rediss://a", "--tls-sni", "localhost", "--tls-cacert", LONG], "option --tls-cacert: TLS: cacert must have 1 to"),
    (["-s", "rediss://a", "--tls-cert", "/c", "--tls-key", LONG], "option --tls-key: TLS: key must have 1 to"),
    (["-s", "rediss://a?verify=chain"], "option -s: a:6379: verify=chain needs cacert"),
    (["-s", "rediss://a?verify=full&verify=none"], "verify must be given once"),
    (["-s", "rediss://a", "--tls-sni", "a/b"], "option --tls-sni a/b: TLS: sni must be a host name"),
    (["-s", "rediss://a", "--tls-cacert", "/nowhere"], "option --tls-cacert: TLS: certificates of issuers /nowhere: No such file or directory"),
    (["-s", "rediss://a", "--tls-cacert", "/dev/null"], "certificates of issuers /dev/null: "),
    (["-s", "rediss://a", "--tls-cert", "/nowhere"], "option --tls-cert: TLS: certificate /nowhere: No such file or directory"),
]


class Invalid(CommandCase):
    """Settings that are refused before a server is contacted."""

    def test_invalid_settings(self):
        """Each row ends with exit code 78 and its words; without TLS, all addresses are refused."""
        tls = has_tls()
        for flags, words in INVALID:
            with self.subTest(flags=flags):
                result = self.redlock("run", *flags, "x", "true", env=clean_environment())
                self.assertCode(result, 78)
                self.assertIn(words.format(directory=os.getcwd()) if tls else "built without TLS", result.stderr)

    def test_settings_without_tls(self):
        """A library without TLS refuses each setting of TLS. The message names where it is set, and says what to do."""
        if has_tls():
            self.skipTest("built with TLS")
        words = "TLS: this library was built without TLS; build it with -Dtls=enabled"
        for name, value in (("tls-cacert", "/x"), ("tls-cert", "/x"), ("tls-sni", "a"), ("tls-verify", "none")):
            variable = f"REDLOCK_{name.upper().replace('-', '_')}"
            conf = self.path("conf", f"[redlock]\nservers = redis://a\n{name} = {value}\n")
            for origin, flags, environment in ((f"option --{name}", ["-s", "redis://a", f"--{name}", value], {}),
                                               (variable, ["-s", "redis://a"], {variable: value}), (f"{conf}:3", ["-f", conf], {})):  # fmt: skip
                with self.subTest(origin=origin):
                    result = self.redlock("nodes", *flags, env=clean_environment(**environment))
                    self.assertCode(result, 78)
                    self.assertIn(f"redlock: {origin}: {words}", result.stderr)

    def test_named_pipes_of_openssl(self):
        """A named pipe that a variable of OpenSSL names is refused. OpenSSL would wait for its other end."""
        if not has_tls():
            self.skipTest("built without TLS")
        pipe = self.path("pipe")
        os.mkfifo(pipe)
        self.addCleanup(os.unlink, pipe)
        for variable in "SSL_CERT_FILE", "OPENSSL_CONF":
            for words in ["run", "-n", "x", "true"], ["acquire", "-n", "x"], ["nodes"], ["top", "--once"]:
                with self.subTest(variable=variable, words=words):
                    result = self.redlock(*words, env=clean_environment(REDLOCK_SERVERS="rediss://127.0.0.1:1", **{variable: pipe}))
                    self.assertCode(result, 78)
                    self.assertIn(f"redlock: TLS: {variable} {pipe}: it is neither a file nor a directory", result.stderr)

    def test_faulty_configuration_of_openssl(self):
        """OpenSSL refuses to start with this file: the message names it, and not a lack of memory."""
        if not has_tls():
            self.skipTest("built without TLS")
        conf = self.path("openssl.cnf", "config_diagnostics = 1\nopenssl_conf = start\n[start]\nproviders = missing\n")
        result = self.redlock("run", "-n", "x", "true", env=clean_environment(REDLOCK_SERVERS="rediss://127.0.0.1:1", OPENSSL_CONF=conf))
        if result.returncode != 78 and "1.1.1" in self.redlock("--version").stdout:
            self.skipTest("OpenSSL ignores faults in the file")
        self.assertCode(result, 78)
        self.assertRegex(result.stderr, r"redlock: TLS: OpenSSL cannot be initialised \(.+\); check its openssl.cnf$")

    def test_files_in_other_places(self):
        """The message names the variable, or the line of the file, that names a file which cannot be read."""
        if not has_tls():
            self.skipTest("built without TLS")
        conf = self.path("conf", "[redlock]\nservers = rediss://a\ntls-cacert = nowhere\n")
        result = self.redlock("run", "-f", conf, "x", "true", env=clean_environment())
        self.assertCode(result, 78)
        self.assertIn(f"{conf}:3: tls-cacert (relative to {os.getcwd()}): TLS: certificates of issuers nowhere: ", result.stderr)
        result = self.redlock("run", "x", "true", env=clean_environment(REDLOCK_SERVERS="rediss://a", REDLOCK_TLS_CACERT="/nowhere"))
        self.assertCode(result, 78)
        self.assertIn("redlock: REDLOCK_TLS_CACERT: TLS: certificates of issuers /nowhere: ", result.stderr)


class Sandbox(CommandCase):
    """`redlock sandbox --tls`."""

    def test_without_tls(self):
        """A command without TLS refuses --tls, and starts nothing."""
        if has_tls():
            self.skipTest("built with TLS")
        result = self.redlock("sandbox", "--tls", "-n", "1", "--", "true")
        self.assertCode(result, 78)
        self.assertIn("built without TLS; build it with -Dtls=enabled", result.stderr)

    def test_server_without_tls(self):
        """A server that does not know tls-port, as one that was built without TLS, draws a question. Its log is shown once."""
        if not has_tls():
            self.skipTest("built without TLS")
        words = "Bad directive or wrong number of arguments"
        os.mkdir(self.path("bin"))
        self.addCleanup(shutil.rmtree, self.path("bin"))
        program = self.path("bin/redis-server", f"#!/bin/sh\necho '{words}'\nexit 1\n")
        os.chmod(program, 0o755)
        result = self.redlock("sandbox", "--tls", "-n", "1", "--", "true",
                              env=clean_environment(PATH=f"{os.path.dirname(program)}:{os.environ['PATH']}"))  # fmt: skip
        self.assertCode(result, 69)
        self.assertEqual(result.stderr.count(words), 1, result.stderr)
        self.assertIn("sandbox: server 1 did not start; was redis-server built with TLS (BUILD_TLS)?", result.stderr)

    def test_directory_that_no_address_can_name(self):
        """A temporary directory with a byte that no address may have is refused before a server is started, and nothing is left."""
        if not has_tls():
            self.skipTest("built without TLS")
        base = self.path("a\nb")
        os.mkdir(base)
        self.addCleanup(os.rmdir, base)
        result = self.redlock("sandbox", "--tls", "-n", "1", "--", "echo", "started", env=clean_environment(TMPDIR=base))
        self.assertCode(result, 71)
        self.assertEqual(result.stdout, "")
        self.assertRegex(result.stderr, r"^redlock: sandbox: \S+/a\\x0ab/\S+: .*the cacert contains a control byte.*; set TMPDIR to another directory\n$")

    def test_servers_speak_tls_only(self):
        """The command in it can lock, the key is for its user only, no port speaks plain text, and all is removed."""
        if not has_tls():
            self.skipTest("built without TLS")
        base = self.path('a b,&%\u00e9#"\\\'')  # has bytes with a meaning in an address or a configuration
        os.mkdir(base)
        self.addCleanup(os.rmdir, base)
        words = 'echo "$REDLOCK_SERVERS"; echo "$REDLOCK_SANDBOX_DIR"; "$REDLOCK" run x -- echo held; exec cat'
        environment = clean_environment(TMPDIR=base, REDLOCK=REDLOCK, REDLOCK_TLS_CACERT="/nowhere")
        process = subprocess.Popen([REDLOCK, "sandbox", "--tls", "-n", "3", "--", "sh", "-c", words], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True, env=environment, umask=0)  # fmt: skip
        self.addCleanup(process.wait, TIME_LIMIT)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stdin.close)
        servers, folder, held = (process.stdout.readline().strip() for _ in range(3))
        self.assertEqual(held, "held")
        self.assertEqual(re.findall(r"(\w+)://127\.0\.0\.1:\d+\?fresh=1&cacert=", servers), ["rediss"] * 3)
        self.assertEqual(stat.S_IMODE(os.stat(f"{folder}/server.key").st_mode), 0o600)
        self.assertEqual([name for name in os.listdir(folder) if name.endswith(".key")], ["server.key"])
        for port in map(int, re.findall(r":(\d+)\?", servers)):
            connection = TlsResp(port)
            self.assertEqual(connection.command("PING"), b"PONG")
            connection.close()
            connection = Resp(port)
            try:
                reply = connection.command("PING")
            except OSError:
                reply = b""
            connection.close()
            self.assertNotEqual(reply, b"PONG")
        process.stdin.close()
        self.assertEqual(process.wait(TIME_LIMIT), 0)
        self.assertFalse(os.path.exists(folder))


if __name__ == "__main__":
    tapcase.main()
