# SPDX-License-Identifier: MIT
"""Runs a command with a port for TLS on each server.

usage: redlock sandbox -- python3 bench/with_tls.py COMMAND [ARGUMENT...]

Makes a certificate for 127.0.0.1 and localhost, which is its own authority. Sets it and a port for TLS on each server
in REDLOCK_SERVERS, beside the plain port, also for a later restart of the server. The command finds the addresses with
TLS in REDLOCK_TLS_SERVERS, in the same order, and the authority in the variables from which OpenSSL, go, rustls and node
read theirs. Needs openssl, and servers that are built with TLS.
"""

import os
import random
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "compare"))
import nodes

# Below the ports that the kernel gives to clients.
PORTS = range(10240, 30240)
TRIES = 50  # ports that are tried for a server
AUTHORITY = ("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS")  # variables that name a file with certificates of authorities
EXIT_USAGE = 64
EXIT_NO_SERVERS = 69


class Failure(Exception):
    """The command cannot be run. The argument says why."""


def make_certificate(directory, key=("ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")):
    """Makes cert.pem and key.pem in the directory, for a key of this kind."""
    words = ["openssl", "req", "-x509", "-newkey", *key, "-nodes",
             "-keyout", "key.pem", "-out", "cert.pem", "-days", "2", "-subj", "/CN=redlock-bench",
             "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost",
             "-addext", "basicConstraints=critical,CA:FALSE"]  # rustls refuses an authority as a server # fmt: skip
    try:
        done = subprocess.run(words, cwd=directory, capture_output=True, text=True, check=False)
    except OSError as error:
        raise Failure(f"openssl: {error.strerror}: apt-get install openssl") from error
    if done.returncode != 0:
        raise Failure(f"openssl cannot make a certificate:\n{done.stderr}")


def open_port(node, directory):
    """Has the server listen for TLS on a free port. Returns the port."""
    files = ["tls-cert-file", f"{directory}/cert.pem", "tls-key-file", f"{directory}/key.pem",
             "tls-ca-cert-file", f"{directory}/cert.pem", "tls-auth-clients", "no"]  # fmt: skip
    reason = None
    for port in random.sample(PORTS, TRIES):
        try:
            node.request("CONFIG", "SET", *files, "tls-port", port)
            node.request("CONFIG", "REWRITE")
            return port
        except OSError as error:  # the port is taken, or the server refuses for another reason
            reason = error
    raise Failure(f"{node.url}: no port for TLS: {reason}")


def tls_url(node, port, directory):
    """Returns the address with TLS. It keeps the parameters of the plain one."""
    query = node.url.partition("?")[2]
    return f"rediss://{node.host}:{port}?{query}{'&' if query else ''}cacert={directory}/cert.pem"


def main(words):
    """Opens the ports and runs the command. Returns its exit status."""
    servers = os.environ.get("REDLOCK_SERVERS")
    if not words or not servers:
        print(__doc__.strip() if not words else "with_tls: no servers: set REDLOCK_SERVERS", file=sys.stderr)
        return EXIT_USAGE
    directory = tempfile.mkdtemp(prefix="redlock-bench-")
    try:
        make_certificate(directory)
        items = [nodes.Node(url) for url in nodes.normal(servers).split(",")]
        urls = [tls_url(node, open_port(node, directory), directory) for node in items]
        authority = dict.fromkeys(AUTHORITY, f"{directory}/cert.pem")
        environment = {**os.environ, **authority, "REDLOCK_TLS_SERVERS": ",".join(urls)}
        return subprocess.run(words, env=environment, check=False).returncode
    except Failure as failure:
        print(f"with_tls: {failure}", file=sys.stderr)
        return EXIT_NO_SERVERS
    finally:
        shutil.rmtree(directory)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
