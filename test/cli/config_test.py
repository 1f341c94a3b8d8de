# SPDX-License-Identifier: MIT
"""Sources of settings, the configuration file, and masked passwords. Needs no server. world.CommandCase gives a
directory, and no servers. redlock() runs the command and returns its result."""

import json
import os
import stat
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import tapcase  # noqa: E402
from world import CommandCase, clean_environment  # noqa: E402

FILE = """
# a comment
[redlock]
servers = f1:1,f2:2
prefix = file:
user = fileuser
password = filesecret
max-ttl = 20s
ttl = 10s
grace = 1s
renew = 2s
wait = 5s
quorum-wait = 40s
connect-timeout = 100ms
node-timeout = 50ms
line = off
"""

# Settings of TLS, each with a value.
TLS = {"tls-cacert": "/f/ca", "tls-cert": "/f/cert", "tls-key": "/f/key", "tls-sni": "f.example", "tls-verify": "chain"}


class Settings(CommandCase):
    """What `redlock config` prints for settings from flags, variables and files."""

    def settings(self, *args, **environment):
        """Runs `redlock config --json` with these variables. Returns {name: {"value": ..., "origin": ...}}."""
        result = self.redlock("config", "--json", *args, env=clean_environment(**environment))
        self.assertCode(result, 0)
        return json.loads(result.stdout)["settings"]

    def check(self, settings, name, value, origin):
        """Fails unless the setting has this value and its origin contains this text."""
        self.assertEqual(settings[name]["value"], value)
        self.assertIn(origin, settings[name]["origin"])

    def test_defaults(self):
        """Without any source, each setting has its default."""
        settings = self.settings()
        self.check(settings, "servers", None, "default")
        self.check(settings, "prefix", "", "default")
        self.check(settings, "ttl", "30s", "default")
        self.check(settings, "max-ttl", "30s", "default")
        self.check(settings, "grace", "5s", "default")
        self.check(settings, "renew", "10s", "default")
        self.check(settings, "wait", "forever", "default")
        self.check(settings, "quorum-wait", "30s", "default")
        self.check(settings, "connect-timeout", "250ms", "default")
        self.check(settings, "line", "on", "default")
        self.check(settings, "tls-cacert", None, "default")
        self.check(settings, "tls-verify", "full", "default")

    def test_file(self):
        """Settings of the file FILE are used, with the file and the line as origin."""
        path = self.path("conf", FILE)
        for settings in self.settings("-f", path), self.settings(REDLOCK_CONFIG=path):
            self.check(settings, "servers", "f1:1,f2:2", f"{path}:4")
            self.check(settings, "prefix", "file:", f"{path}:5")
            self.check(settings, "max-ttl", "20s", path)
            self.check(settings, "ttl", "10s", path)
            self.check(settings, "wait", "5s", path)
            self.check(settings, "quorum-wait", "40s", path)
            self.check(settings, "node-timeout", "50ms", path)
            self.check(settings, "line", "off", path)

    def test_environment_wins_over_the_file_and_flags_over_both(self):
        """Flags come before variables, variables before the file."""
        path = self.path("conf", FILE)
        environment = {"REDLOCK_SERVERS": "e:1", "REDLOCK_PREFIX": "env:", "REDLOCK_MAX_TTL": "25s", "REDIS_URL": "r:1",
                       "REDLOCK_QUORUM_WAIT": "50s", "REDLOCK_LINE": "on"}
        settings = self.settings("-f", path, **environment)
        self.check(settings, "servers", "e:1", "REDLOCK_SERVERS")
        self.check(settings, "prefix", "env:", "REDLOCK_PREFIX")
        self.check(settings, "max-ttl", "25s", "REDLOCK_MAX_TTL")
        self.check(settings, "ttl", "10s", path)
        self.check(settings, "quorum-wait", "50s", "REDLOCK_QUORUM_WAIT")
        self.check(settings, "line", "on", "REDLOCK_LINE")
        self.check(self.settings("--no-line", **environment), "line", "off", "option --no-line")
        settings = self.settings("-f", path, "-w", "forever", "--quorum-wait", "forever", **environment)
        self.check(settings, "wait", "forever", "option -w")
        self.check(settings, "quorum-wait", "forever", "option --quorum-wait")
        settings = self.settings("-f", path, "-s", "a:1", "-s", "b:2,c:3", "--prefix", "", "--max-ttl", "28s", "-t", "9s", **environment)
        self.check(settings, "servers", "a:1 b:2,c:3", "option -s")
        self.check(settings, "prefix", "", "option --prefix")
        self.check(settings, "max-ttl", "28s", "option --max-ttl")
        self.check(settings, "ttl", "9s", "option -t")

    def test_settings_of_tls(self):
        """Each setting of TLS has a key in the file, a variable and an option: the variable wins over the file, and the
        option over both. No server is set, so that a library without TLS has nothing to refuse."""
        path = self.path("conf", "[redlock]\n" + "".join(f"{name} = {value}\n" for name, value in TLS.items()))
        for name, value in TLS.items():
            self.check(self.settings("-f", path), name, value, path)
            variable = "REDLOCK_" + name.upper().replace("-", "_")
            self.check(self.settings("-f", path, **{variable: "none"}), name, "none", variable)
            self.check(self.settings("-f", path, f"--{name}", "full", **{variable: "none"}), name, "full", f"option --{name}")

    def test_settings_of_tls_that_belong_together(self):
        """A certificate has no key of a source with less precedence, and issuers no such way to verify. Nothing verified needs
        no issuers of such a source."""
        path = self.path("conf", "[redlock]\n" + "".join(f"{name} = {value}\n" for name, value in TLS.items()))
        for settings in self.settings("-f", path, "--tls-cert", "both"), self.settings("-f", path, REDLOCK_TLS_CERT="both"):
            self.check(settings, "tls-cert", "both", "")
            self.check(settings, "tls-key", None, "default")
            self.check(settings, "tls-verify", "chain", path)
        settings = self.settings("-f", path, "--tls-key", "other")
        self.check(settings, "tls-cert", "/f/cert", path)
        self.check(settings, "tls-key", "other", "option --tls-key")
        for verify in "chain", "none":
            path = self.path("conf", f"[redlock]\ntls-verify = {verify}\n")
            for settings in self.settings("-f", path, "--tls-cacert", "ca"), self.settings("-f", path, REDLOCK_TLS_CACERT="ca"):
                self.check(settings, "tls-cacert", "ca", "")
                self.check(settings, "tls-verify", "full", "default")
            settings = self.settings("-f", path, "--tls-cacert", "ca", REDLOCK_TLS_VERIFY="chain")
            self.check(settings, "tls-verify", "full", "default")
        settings = self.settings("-f", path, "--tls-cacert", "ca", "--tls-verify", "chain")
        self.check(settings, "tls-verify", "chain", "option --tls-verify")
        settings = self.settings("--tls-verify", "none", REDLOCK_TLS_CACERT="ca")
        self.check(settings, "tls-cacert", None, "default")

    def test_wrong_words_of_verify(self):
        """Only the three words in lower case are known, in each source. The variable is checked also where an option replaces it."""
        words = "unknown; write full, chain or none"
        options = (), ("--tls-verify", "full"), ("--tls-cacert", "ca"), ("--tls-cacert", "ca", "--tls-verify", "chain")
        for word in "None", "NONE", "nonee", "0":
            path = self.path("conf", f"[redlock]\ntls-verify = {word}\n")
            for origin, code, flags, variable in (
                *((f"REDLOCK_TLS_VERIFY={word}", 78, flags, word) for flags in options),
                (f"option --tls-verify {word}", 64, ("--tls-verify", word), "full"),
                (f"{path}:2: tls-verify {word}", 78, ("-f", path), ""),
            ):
                with self.subTest(origin=origin, flags=flags):
                    result = self.redlock("run", "-n", "-s", "rediss://127.0.0.1:1", *flags, "x", "true",
                                          env=clean_environment(REDLOCK_TLS_VERIFY=variable))  # fmt: skip
                    self.assertCode(result, code)
                    self.assertIn(f"redlock: {origin}: {words}", result.stderr)

    def test_redis_url_is_used_last_with_a_warning(self):
        """REDIS_URL names the server only if nothing else does."""
        self.check(self.settings(REDIS_URL="redis://r:1"), "servers", "redis://r:1", "REDIS_URL")
        path = self.path("conf", FILE)
        self.check(self.settings("-f", path, REDIS_URL="redis://r:1"), "servers", "f1:1,f2:2", path)
        result = self.redlock("acquire", "-n", "x", env=clean_environment(REDIS_URL="redis://127.0.0.1:1"))
        self.assertCode(result, 69)
        self.assertIn("warning: REDIS_URL names one server", result.stderr)

    def test_node_sections(self):
        """The addresses in [node.NAME] sections are added to those in `servers`."""
        path = self.path("conf", "[node.a]\nurl = redis://a:1\n[node.b]\nurl = b:2\n[redlock]\nservers = c:3\n")
        self.check(self.settings("-f", path), "servers", "redis://a:1 b:2 c:3", path)

    def test_long_lines(self):
        """A line holds addresses and paths of any length; an indented line goes on with the servers."""
        servers = ", ".join(f"rediss://redis-lock-{name}.prod.example.com:6380?id=redis-lock-{name}.prod.example.com:6379" for name in "abcde")
        self.check(self.settings("-f", self.path("conf", f"[redlock]\nservers = {servers}\n")), "servers", servers, "conf:2")
        self.check(self.settings("-f", self.path("conf", "[redlock]\nservers = a:1,\n    b:2\n    c:3\n")), "servers", "a:1, b:2 c:3", "conf")
        path = "/" + "x" * 1000
        self.check(self.settings("-f", self.path("conf", f"[redlock]\ntls-cacert = {path}\n")), "tls-cacert", path, "conf:2")

    def test_home_directory(self):
        """The file is found in the directory for settings of the user."""
        os.mkdir(self.path("redlock"))
        self.addCleanup(os.rmdir, self.path("redlock"))
        path = self.path("redlock/redlock.conf", "[redlock]\nservers = x:1\n")
        self.addCleanup(os.unlink, path)
        self.check(self.settings(XDG_CONFIG_HOME=self.directory), "servers", "x:1", path)

    def test_invalid_files_are_refused_with_line_and_advice(self):
        """Each invalid text ends in exit code 78 with a message that names the line and the remedy."""
        cases = {
            "[redlock]\nserver = a\n": r":2: unknown key server; use one of: servers.* node-timeout tls-cacert tls-cert tls-key tls-sni tls-verify line fence-key fence-records admission drift heartbeat clock-slack$",
            "[redis]\nservers = a\n": r":2: unknown section redis; write \[redlock\]",
            "servers = a\n": r":1: unknown section \(none\)",
            "[redlock]\nttl = 3s\nttl = 4s\n": r":3: second value for ttl; keep one",
            "[redlock]\nnonsense\n": r":2: not a line of this format; write",
            "[node.a]\nhost = a\n": r":2: unknown key host; a \[node.NAME\] section has: url",
            "[redlock]\nline = no\n": r":2: line no: unknown; write on or off",
            "[redlock]\ntls-verify = no\n": r":2: tls-verify no: unknown; write full, chain or none",
            "[redlock]\nservers = a\ntls-sni =\n": r':3: tls-sni "": empty; give a value',
            "[redlock]\nttl = 30x\n": r":2: ttl 30x: not a duration; write 250ms",
            "[redlock]\npass-file = a\npassword = b\n": r"both password and pass-file",
        }
        for text, pattern in cases.items():
            with self.subTest(text=text[:40]):
                path = self.path("conf", text)
                result = self.redlock("config", "-f", path, env=clean_environment())
                self.assertCode(result, 78)
                self.assertRegex(result.stderr, pattern)
        result = self.redlock("config", "-f", self.directory, env=clean_environment())
        self.assertCode(result, 78)
        self.assertIn(f"{self.directory}: Is a directory; give a configuration file", result.stderr)
        result = self.redlock("config", "-f", "/nonexistent/file", env=clean_environment())
        self.assertCode(result, 78)
        self.assertIn("option -f /nonexistent/file: No such file", result.stderr)

    def test_binary_and_large_files_are_refused(self):
        """Files above 64 kB or with zero bytes are refused; empty ones are not."""
        cases = {
            "/dev/zero": "/dev/zero: larger than 64 kB; give a configuration file",
            "/dev/full": "/dev/full: larger than 64 kB",
            self.path("large", "# comment\n" * 7000): "larger than 64 kB",
            self.path("zeros", "[redlock]\nttl = 3s\0\n"): "zeros: contains zero bytes; give a text file",
        }
        for path, words in cases.items():
            with self.subTest(path=path):
                result = self.redlock("config", env=clean_environment(REDLOCK_CONFIG=path))
                self.assertCode(result, 78)
                self.assertIn(words, result.stderr)
        for path in "/dev/null", self.path("empty", ""):
            self.check(self.settings("-f", path), "ttl", "30s", "default")
        path = self.path("most", "# comment\n" * 6500 + "[redlock]\nttl = 3s\n")
        self.check(self.settings("-f", path), "ttl", "3s", f"{path}:6502")
        path = self.path("unended", "[redlock]\nttl = 3s")
        self.check(self.settings("-f", path), "ttl", "3s", f"{path}:2")

    def without_privileges(self, directory):
        """Runs `redlock config` as a user without rights for the directory and the file."""
        command = [os.environ.get("REDLOCK", "redlock"), "config"]
        if os.geteuid() == 0:
            command = ["setpriv", "--inh-caps=-all", "--bounding-set=-all", *command]
        return subprocess.run(
            command, env=clean_environment(XDG_CONFIG_HOME=directory), capture_output=True, text=True, check=False
        )

    def test_unreadable_file_is_reported(self):
        """A file without the right to read it ends in 78. A directory that cannot be searched counts as a missing
        file."""
        home = self.path("redlock")
        os.mkdir(home)
        self.addCleanup(os.rmdir, home)
        path = self.path("redlock/redlock.conf", "[redlock]\nservers = x:1\n")
        self.addCleanup(os.unlink, path)
        self.addCleanup(os.chmod, home, 0o700)
        os.chmod(path, 0)
        result = self.without_privileges(self.directory)
        self.assertCode(result, 78)
        self.assertIn(f"{path}: Permission denied", result.stderr)
        os.chmod(home, 0)
        result = self.without_privileges(self.directory)
        self.assertCode(result, 0)
        self.assertIn(f"warning: {path}: Permission denied: skipped; if it is yours", result.stderr)
        self.assertNotIn("x:1", result.stdout)

    def test_secrets_are_masked(self):
        """No form of an address shows its password."""
        secret = "s3cr3t"
        lists = [
            f"redis://user:{secret}@a:1,redis://:{secret}@b:2",
            f"redis://user:{secret},x@a:1",
            f"user:{secret}@a:1 redis://b:2",
            f"redis://u:{secret}@ss@a:1",
            f"://u:{secret}@a,redis://b",
            f"redis://u:a://{secret}@b",
            f"redis://u:{secret}://x@b",
            f"redis://u:{secret}@aredis://u:x@b",
            f"a:1,u:{secret}@b:2",
            f"valkey://u:{secret}@a:1 c:3 unix://u:{secret}@/run/x",
            f"u:{secret}@a:6379;redis://u:{secret}@b:6379",
            f"u:{secret}@a:6379|redis://u:{secret}@b:6379",
            f"u:{secret}@a:6379/redis://x",
            f"redis://a?password={secret},b",
            f"redis://u:{secret},b",
        ]
        for servers in lists:
            with self.subTest(servers=servers):
                for flags in ["--json"], []:
                    result = self.redlock(
                        "config", *flags, env=clean_environment(REDLOCK_SERVERS=servers, REDLOCK_AUTH=secret)
                    )
                    self.assertNotIn(secret, result.stdout + result.stderr)
                    self.assertIn("***", result.stdout)

    def test_a_file_with_a_password_that_others_may_read_draws_a_warning(self):
        """A file with a password gives a warning if its mode lets the group or all users read it; a file without one
        does not."""
        secret = {
            "password": "[redlock]\nservers = a:1\npassword = s3cr3t\n",
            "address": "[node.a]\nurl = redis://u:s3cr3t@a:1\n",
            "addresses": "[redlock]\nservers = a:1 redis://:s3cr3t@b:1\n",
            "set": "[shard.east]\nservers = redis://u:s3cr3t@a:1\n[shard.west]\nservers = b:1\n",
        }
        plain = {"plain": "[redlock]\nservers = a:1\n", "comment": "# password = x@y\n"}
        for name, text in {**secret, **plain}.items():
            path = self.path("conf", text)
            for mode, readers in (0o644, "all users"), (0o604, "all users"), (0o640, "its group"), (0o600, ""), (0o622, ""):
                with self.subTest(name=name, mode=oct(mode)):
                    os.chmod(path, mode)
                    result = self.redlock("config", "-f", path, "-t", "1s", env=clean_environment())
                    warning = f"redlock: warning: {path} contains a password and can be read by {readers}; chmod 600 it\n"
                    self.assertEqual(result.stderr.count(warning), readers != "" and name in secret, result.stderr)
                    self.assertEqual(result.stderr.count("can be read by"), readers != "" and name in secret)
        # The warning does not depend on which value wins.
        path = self.path("conf", secret["password"])
        os.chmod(path, 0o644)
        result = self.redlock("config", "-f", path, env=clean_environment(REDLOCK_AUTH="x", REDLOCK_SERVERS="b:1"))
        self.assertIn("contains a password", result.stderr)

    def test_refused_lists_of_servers_are_masked(self):
        """A list of servers that is refused is printed as ***."""
        for servers in "a:1,a:1", "redis://u:s3cr3t@a:1;b:2", "http://a":
            result = self.redlock("config", env=clean_environment(REDLOCK_SERVERS=servers))
            self.assertCode(result, 78)
            self.assertRegex(result.stdout, r"(?m)^servers +\*\*\* +# REDLOCK_SERVERS$")

    def test_address_in_another_setting_is_masked(self):
        """An address in the wrong place of the command line does not show its password in the message."""
        address = "redis://u:s3cr3t@a:1"
        for args in (
            ["run", f"--sevrers={address}", "x", "true"],
            ["run", f"--json={address}", "x", "true"],
            ["run", "-t", address, "x", "true"],
            ["run", "-E", address, "x", "true"],
            ["run", "--signal", address, "x", "true"],
            ["run", "--on-loss", address, "x", "true"],
            ["run", "-s", "a:1", "x", address],
            ["run", "-s", "a:1", "x", address, "--", "true"],
            ["run", "-f", address, "x", "true"],
            ["run", "--pass-file", address, "x", "true"],
            ["release", "--token-file", address, "x"],
            [address],
        ):
            with self.subTest(args=args):
                result = self.redlock(*args, env=clean_environment())
                self.assertIn(result.returncode, (64, 78, 127))
                self.assertIn("redlock: ", result.stderr)
                self.assertNotIn("s3cr3t", result.stdout + result.stderr)
        result = self.redlock("config", env=clean_environment(REDLOCK_MAX_TTL=address))
        self.assertCode(result, 78)
        self.assertNotIn("s3cr3t", result.stdout + result.stderr)

    def test_password_in_a_wrong_place_of_the_file_is_masked(self):
        """The message about a line that is refused does not show the password in it."""
        for text in (
            "[redlock]\nredis://u:s3cr3t@a:1\n",
            "[redlock]\npassword =\ns3cr3t==\n",  # the end of a password in base64
            "[redlock]\n@s3cr3t = 1\n",
            "[node.a]\ns3cr3t = 1\n",
            "[shard.a]\ns3cr3t = 1\n",
            "[redis://u:s3cr3t@a:1]\n[x]\na = 1\n",
            "[redis://u:s3cr3t@a:1]\na = 1\n",
            "[shard.u:s3cr3t@a]\nservers = a:1\n",
        ):
            with self.subTest(text=text):
                result = self.redlock("config", "-f", self.path("conf", text), env=clean_environment())
                self.assertCode(result, 78)
                self.assertNotIn("s3cr3t", result.stdout + result.stderr)

    def test_user_needs_a_password(self):
        """A user without a password is refused."""
        result = self.redlock("acquire", "--user", "ada", "x", env=clean_environment(REDLOCK_SERVERS="a:1"))
        self.assertCode(result, 78)
        self.assertIn("option --user: user ada without a password; set REDLOCK_AUTH", result.stderr)

    def test_pass_file(self):
        """The password file is used, and gives a warning if others may read it."""
        path = self.path("pass", "s3cr3t\n")
        os.chmod(path, 0o600)
        settings = self.settings("--pass-file", path, REDLOCK_AUTH="other")
        self.check(settings, "pass-file", path, "option --pass-file")
        os.chmod(path, stat.S_IRUSR | stat.S_IROTH)
        result = self.redlock("config", "--pass-file", path, env=clean_environment())
        self.assertEqual(result.stderr, f"redlock: warning: {path} contains a password and can be read by all users; chmod 600 it\n")
        os.chmod(path, stat.S_IRUSR | stat.S_IRGRP)
        result = self.redlock("config", "--pass-file", path, env=clean_environment())
        self.assertEqual(result.stderr, f"redlock: warning: {path} contains a password and can be read by its group; chmod 600 it\n")
        result = self.redlock("config", "--pass-file", "/nonexistent/x", env=clean_environment())
        self.assertCode(result, 78)
        empty = self.path("empty", "")
        self.assertCode(self.redlock("config", "--pass-file", empty, env=clean_environment()), 78)
        result = self.redlock("config", "--pass-file", self.path("long", "p" * 1025), env=clean_environment())
        self.assertCode(result, 78)
        self.assertIn("its first line is too long for a password", result.stderr)


if __name__ == "__main__":
    tapcase.main()
