# SPDX-License-Identifier: MIT
"""Checks compose.yaml against its first lines and bench/README.md: five servers that keep nothing, lose nothing while they
run, are not reachable from the network, and have the addresses of the documented command."""

import os
import re
import shutil
import subprocess
import unittest

import tapcase

try:
    import yaml
except ImportError:
    yaml = None

HERE = os.path.dirname(os.path.abspath(__file__))
COMPOSE = os.path.join(HERE, "compose.yaml")
README = os.path.join(HERE, "README.md")
# Ports that the servers of compose.yaml publish.
PORTS = [7101, 7102, 7103, 7104, 7105]


def options(command):
    """Returns the options of a command line redis-server --a x --b y as a dictionary."""
    words = command[1:]
    return {words[i]: words[i + 1] for i in range(0, len(words), 2)}


def check(text):
    """Returns all errors of the file as a list of texts."""
    bad = []
    document = yaml.safe_load(text)
    services = document.get("services") or {}
    if len(services) != len(PORTS):
        bad.append(f"{len(services)} services")
    published = []
    for name, service in services.items():
        if not isinstance(service, dict):
            bad.append(f"{name}: no mapping")
            continue
        image = service.get("image", "")
        if not re.fullmatch(r"(redis|valkey/valkey):\d+\.\d+\.\d+(-alpine)?", image):
            bad.append(f"{name}: image {image!r} is not pinned to one version")
        command = service.get("command")
        if not isinstance(command, list) or not all(isinstance(word, str) for word in command):
            bad.append(f"{name}: command is not a list of strings")
            continue
        if command[0] != "redis-server" or len(command) % 2 != 1:
            bad.append(f"{name}: command {command!r}")
            continue
        given = options(command)
        # An image decides whether its servers begin in protected mode, which refuses clients of a published port.
        wanted = {"--save": "", "--appendonly": "no", "--maxmemory-policy": "noeviction", "--protected-mode": "no"}
        for option, value in wanted.items():
            if given.get(option) != value:
                bad.append(f"{name}: {option} is {given.get(option)!r}")
        size = re.fullmatch(r"(\d+)mb", given.get("--maxmemory", ""))
        limit = re.fullmatch(r"(\d+)m", str(service.get("mem_limit")))
        if not size or not limit or int(size[1]) >= int(limit[1]):
            bad.append(f"{name}: the container would be killed before the server says that it is full")
        if service.get("memswap_limit") != service.get("mem_limit"):
            bad.append(f"{name}: may swap")
        if service.get("restart") != "no":
            bad.append(f"{name}: restart is {service.get('restart')!r}: a restart loses keys unseen")
        if "cpus" in service or "deploy" in service:
            bad.append(f"{name}: a limit on processors would be measured")
        for unwanted in ("volumes", "network_mode", "privileged"):
            if unwanted in service:
                bad.append(f"{name}: {unwanted}")
        test = (service.get("healthcheck") or {}).get("test")
        if not isinstance(test, list) or test[0] != "CMD-SHELL" or "PONG" not in test[1]:
            bad.append(f"{name}: healthcheck {test!r}")
        for port in service.get("ports") or ["none"]:
            found = re.fullmatch(r"127\.0\.0\.1:(\d+):6379", str(port))
            if found:
                published.append(int(found[1]))
            else:
                bad.append(f"{name}: port {port!r} is not of the loopback address alone")
    if sorted(published) != PORTS:
        bad.append(f"ports {published}")
    return bad


@unittest.skipIf(yaml is None, "python3-yaml is missing")
class Compose(unittest.TestCase):
    def setUp(self):
        with open(COMPOSE, encoding="utf-8") as file:
            self.text = file.read()

    def test_the_file_has_no_error(self):
        self.assertEqual(check(self.text), [])

    def test_check_finds_each_error(self):
        for old, new in [
            ("redis:7.2.5-alpine", "redis:latest"),
            ("127.0.0.1:7103:6379", "7103:6379"),
            ("127.0.0.1:7103:6379", "127.0.0.1:7102:6379"),
            ("noeviction", "allkeys-lru"),
            ('    - --save\n    - ""\n', ""),
            ('    - "no"\n', "    - no\n"),
            ('    - --protected-mode\n    - "no"\n', ""),
            ('restart: "no"', "restart: always"),
            ("mem_limit: 384m\n", "mem_limit: 256m\n"),
            ("grep -qx PONG", "true"),
            ("  redis-5:\n    <<: *redis\n", "  redis-5:\n    <<: *redis\n    volumes: [a:/data]\n"),
            ("  redis-5:\n    <<: *redis\n", "  redis-5:\n    <<: *redis\n    cpus: 1\n"),
        ]:
            with self.subTest(new=new):
                self.assertIn(old, self.text)
                self.assertNotEqual(check(self.text.replace(old, new)), [])

    def test_no_key_is_there_twice(self):
        def keys(node):
            if isinstance(node, yaml.MappingNode):
                names = [key.value for key, _ in node.value if key.value != "<<"]
                self.assertEqual(len(names), len(set(names)), names)
                for _, value in node.value:
                    keys(value)
            elif isinstance(node, yaml.SequenceNode):
                for value in node.value:
                    keys(value)

        keys(yaml.compose(self.text, Loader=yaml.SafeLoader))

    def test_the_documented_command(self):
        with open(README, encoding="utf-8") as file:
            readme = file.read()
        self.assertIn("docker compose -f bench/compose.yaml up --detach --wait", readme)
        self.assertIn("docker compose -f bench/compose.yaml down", readme)
        lists = re.findall(r"REDLOCK_SERVERS='([^']*127\.0\.0\.1:71[^']*)'", readme)
        self.assertTrue(lists)
        for servers in lists:
            ports = [int(port) for port in re.findall(r"127\.0\.0\.1:(\d+)", servers)]
            self.assertEqual(ports, PORTS)

    def test_docker_reads_it(self):
        for words in (["docker", "compose"], ["docker-compose"]):
            if not shutil.which(words[0]):
                continue
            version = subprocess.run([*words, "version"], capture_output=True, timeout=30, check=False)
            if version.returncode != 0:
                continue
            done = subprocess.run(
                [*words, "-f", COMPOSE, "config"], capture_output=True, text=True, timeout=60, check=False
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            services = yaml.safe_load(done.stdout)["services"]
            self.assertEqual(len(services), len(PORTS))
            for service in services.values():
                self.assertEqual(options(service["command"])["--maxmemory-policy"], "noeviction")
            return
        self.skipTest("no docker compose here")


if __name__ == "__main__":
    tapcase.main()
