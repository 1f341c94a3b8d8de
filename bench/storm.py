#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Measures how many clients connect at once with TLS to the servers of REDLOCK_SERVERS (redlock sandbox starts five):
for each kind of key and each number of clients when the clients start, when the servers end all connections, and when
all servers are killed and started again. Needs openssl, servers that are built with TLS, and the processes of a sandbox.
Prints a table, or JSON with --json. The exit status is 1 if a client was not connected to all servers in time."""

import argparse
import concurrent.futures
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "compare")]
import nodes
import with_tls

# What `openssl req -newkey` expects for each kind of key.
KEYS = {
    "ec": ("ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
    "rsa2048": ("rsa:2048",),
    "rsa4096": ("rsa:4096",),
}
ROUNDS = ("start", "ended", "restart")
REPLY_S = 600  # for a server to reply: it may be busy with handshakes for minutes
# Explains the columns, below the table.
NOTES = """
start: the clients start; ended: the servers end all connections, and sessions are resumed; restart: all servers are killed
and started again, and know no session
first, median, last: when a client was connected to a majority; all: when the last client was connected to all servers
tries: connects of all programs in this network namespace, for each connection that was needed
unused: complete handshakes of the clients beyond those that were needed
server: processor time of the servers for each connection that was needed; busiest: that of the busiest server in the round
"""


class Server:
    """A server of the sandbox, with TLS beside the plain port."""

    def __init__(self, node, number, directory):
        self.node = node
        self.conf = os.path.join(os.environ["REDLOCK_SANDBOX_DIR"], str(number), "conf")
        self.port = with_tls.open_port(node, directory)
        self.url = with_tls.tls_url(node, self.port, directory)
        self.process = None
        self.before_s = 0.0
        self.keeper = None

    def ask(self, *words):
        """Sends a command to the plain port. Returns the reply. Tries again until REPLY_S have passed, because a server that was
        just started refuses connections. A busy one is late: each new connection would wait behind its handshakes again."""
        end_s = time.monotonic() + REPLY_S
        while True:
            try:
                return self.node.request(*words, timeout_s=REPLY_S)
            except OSError:
                if time.monotonic() > end_s:
                    raise
                time.sleep(0.01)

    def cpu_s(self):
        """Returns the processor time of the server in seconds. Does not ask the server, which may be too busy to reply: this is
        the clock of clock_getcpuclockid(), which Python lacks."""
        return time.clock_gettime(~self.node.pid << 3 | 2)

    def mark(self):
        """Notes the processor time at the beginning of a round."""
        self.before_s = self.cpu_s()

    def spent_s(self):
        """Returns the processor time since mark() or start()."""
        return self.cpu_s() - self.before_s

    def use_certificate(self, directory):
        """Has the server use the certificate in the directory from now on, also after a restart."""
        self.ask("CONFIG", "SET", "tls-cert-file", f"{directory}/cert.pem", "tls-key-file", f"{directory}/key.pem",
                 "tls-ca-cert-file", f"{directory}/cert.pem")  # fmt: skip
        self.ask("CONFIG", "REWRITE")

    def kill(self):
        """Kills the server. From then on a socket that does not listen keeps its port for TLS: another program could take it, and
        the server would not start again. The sandbox keeps the plain port."""
        os.kill(self.node.pid, signal.SIGKILL)
        if self.process is not None:
            self.process.wait()
        end_s = time.monotonic() + REPLY_S
        while self.keeper is None:
            keeper = socket.socket()
            keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                keeper.bind(("127.0.0.1", self.port))
                self.keeper = keeper
            except OSError:  # the server has not ended yet
                keeper.close()
                if time.monotonic() > end_s:
                    raise
                time.sleep(0.001)

    def start(self):
        """Starts the server again, with the program and the configuration that the sandbox keeps."""
        program = os.path.join(os.environ["REDLOCK_SANDBOX_DIR"], "redis-server")
        self.process = subprocess.Popen([program, self.conf], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, process_group=0)  # fmt: skip
        self.node.pid = self.process.pid
        self.before_s = 0.0


class Clients:
    """Processes of redlock-storm, which share the clients."""

    def __init__(self, arguments, urls, count):
        self.processes = []
        self.results = []
        environment = {**os.environ, "REDLOCK_SERVERS": ",".join(urls)}
        shares = min(arguments.processes, count)
        for i in range(shares):
            command = [os.path.join(arguments.build, "bench", "redlock-storm"),
                       str(count * (i + 1) // shares - count * i // shares), str(arguments.connect_timeout)]  # fmt: skip
            self.processes.append(subprocess.Popen(command, env=environment, stdin=subprocess.PIPE,
                                                   stdout=subprocess.PIPE, text=True))  # fmt: skip
        for process in self.processes:
            if process.stdout.readline() != "ready\n":
                raise with_tls.Failure("redlock-storm has failed")

    def tell(self, line):
        """Sends a line to all processes."""
        for process in self.processes:
            process.stdin.write(line + "\n")
            process.stdin.flush()

    def finish(self, limit_s):
        """Waits for the results of a round, at most `limit_s`; then ends the round. Returns them."""
        lines = {}

        def read(process):
            lines[process] = process.stdout.readline()

        threads = [threading.Thread(target=read, args=(process,)) for process in self.processes]
        for thread in threads:
            thread.start()
        end_s = time.monotonic() + limit_s
        for thread in threads:
            thread.join(max(0.0, end_s - time.monotonic()))
        self.tell("end")
        for thread in threads:
            thread.join()
        return [json.loads(line) for line in lines.values()]

    def close(self):
        """Ends the processes and waits for their ends."""
        for process in self.processes:
            process.stdin.close()
        for process in self.processes:
            process.wait()
            process.stdout.close()


def count_connects():
    """Returns how many connects of TCP all programs in this network namespace have begun."""
    with open("/proc/net/snmp", encoding="ascii") as file:
        names, values = [line.split() for line in file if line.startswith("Tcp:")]
    return int(values[names.index("ActiveOpens")])


def run_round(arguments, servers, clients, kind):
    """Runs one round: "start", "ended" or "restart". Returns a row of the table without the figures that name it."""
    for server in servers:
        server.mark()
    opened = count_connects()
    begin_s = time.monotonic()
    clients.tell("begin")
    if kind == "ended":
        with concurrent.futures.ThreadPoolExecutor(len(servers)) as pool:
            list(pool.map(lambda server: server.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"), servers))
    elif kind == "restart":
        for server in servers:
            server.kill()
        time.sleep(arguments.down)
        begin_s = time.monotonic()
        for server in servers:
            server.start()
    results = clients.finish(arguments.limit)
    opened = count_connects() - opened
    spent_s = [server.spent_s() for server in servers]
    quorum = [at_s - begin_s if at_s else None for result in results for at_s in result["quorum_s"]]
    complete = [at_s - begin_s if at_s else None for result in results for at_s in result["all_s"]]
    done = sorted(at_s for at_s in quorum if at_s is not None) or [0.0]
    needed = len(quorum) * len(servers)
    return {
        "clients": len(quorum),
        "round": kind,
        "without_quorum": quorum.count(None),
        "not_to_all": complete.count(None),
        "first_s": done[0],
        "median_s": done[len(done) // 2],
        "last_s": done[-1],
        "all_s": max((at_s for at_s in complete if at_s is not None), default=0.0),
        "tries": opened / needed,
        "unused": max(0, sum(result["connects"] for result in results) - needed),
        "server_ms": sum(spent_s) * 1000 / needed,
        "busiest_s": max(spent_s),
        "load": os.getloadavg()[0],
    }


def show(row):
    """Prints a row of the table."""
    failed = f"  {row['without_quorum']} without a majority, {row['not_to_all']} not at all servers" if row["not_to_all"] else ""
    print(f"{row['key']:<8}{row['clients']:>7} {row['round']:<8}{row['first_s']:>8.3f}{row['median_s']:>8.3f}{row['last_s']:>8.3f}"
          f"{row['all_s']:>8.3f}{row['tries']:>7.2f}{row['unused']:>8}{row['server_ms']:>8.2f} ms{row['busiest_s']:>7.2f} s"
          f"{row['load']:>6.1f}{failed}", flush=True)  # fmt: skip


def measure(arguments, directory):
    """Measures all combinations. Returns the rows."""
    found = nodes.Nodes(os.environ["REDLOCK_SERVERS"])
    if not found.read_pids():
        raise with_tls.Failure("the servers must be those of a sandbox")
    rows = []
    paths = {key: os.path.join(directory, key) for key in arguments.keys}
    for key, path in paths.items():
        os.mkdir(path)
        with_tls.make_certificate(path, KEYS[key])
    first = 0 if os.path.exists(os.path.join(os.environ["REDLOCK_SANDBOX_DIR"], "0")) else 1
    servers = [Server(node, number, paths[arguments.keys[0]]) for number, node in enumerate(found.list, first)]
    for key, path in paths.items():
        for server in servers:
            server.use_certificate(path)
        for count in arguments.clients:
            clients = Clients(arguments, [with_tls.tls_url(server.node, server.port, path) for server in servers], count)
            for kind in arguments.rounds:
                rows.append({"key": key, **run_round(arguments, servers, clients, kind)})
                if not arguments.json:
                    show(rows[-1])
            clients.close()
    return rows


def parse():
    """Returns the parsed command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build", help="directory of the programs (build)")
    parser.add_argument("--clients", default="10,100,300,1000", help="numbers of clients (10,100,300,1000)")
    parser.add_argument("--keys", default="ec,rsa4096", help=f"kinds of keys: {', '.join(KEYS)} (ec,rsa4096)")
    parser.add_argument("--rounds", default=",".join(ROUNDS), help=f"rounds, in this order ({','.join(ROUNDS)})")
    parser.add_argument("--processes", type=int, default=8, help="processes that share the clients (8)")
    parser.add_argument("--connect-timeout", type=int, default=0, help="of the clients, in ms (that of the library)")
    parser.add_argument("--down", type=float, default=0.0, help="seconds from the end of the servers to their start (0)")
    parser.add_argument("--limit", type=float, default=60.0, help="longest time of a round, in seconds (60)")
    parser.add_argument("--json", action="store_true", help="JSON instead of the table")
    arguments = parser.parse_args()
    try:
        arguments.clients = [int(word) for word in arguments.clients.split(",")]
    except ValueError:
        arguments.clients = [0]
    arguments.keys, arguments.rounds = arguments.keys.split(","), arguments.rounds.split(",")
    if min(arguments.clients) < 1 or max(arguments.clients) > 10000 or not 1 <= arguments.processes <= 64:
        parser.error("--clients needs numbers from 1 to 10000, --processes one from 1 to 64")
    if set(arguments.keys) - set(KEYS) or arguments.limit <= 0 or arguments.down < 0:
        parser.error(f"--keys needs some of {', '.join(KEYS)}, and times are positive")
    if set(arguments.rounds) - set(ROUNDS) or arguments.rounds[0] != "start":
        parser.error("--rounds begins with start, and has only start, ended, restart")
    if not os.environ.get("REDLOCK_SERVERS") or not os.environ.get("REDLOCK_SANDBOX_DIR"):
        parser.error("no servers: run it in a sandbox")
    return arguments


def main():
    """Measures and prints. Returns the exit status."""
    arguments = parse()
    if not arguments.json:
        print(f"{'key':<8}{'clients':>7} {'round':<8}{'first':>8}{'median':>8}{'last':>8}{'all':>8}{'tries':>7}{'unused':>8}"
              f"{'server':>11}{'busiest':>9}{'load':>6}", flush=True)  # fmt: skip
    directory = tempfile.mkdtemp(prefix="redlock-storm-")
    try:
        rows = measure(arguments, directory)
    except (with_tls.Failure, OSError) as failure:
        print(f"storm.py: {failure}", file=sys.stderr)
        return with_tls.EXIT_NO_SERVERS
    finally:
        shutil.rmtree(directory)
    if arguments.json:
        print(json.dumps({"schema": "redlock.storm/1", "rows": rows}, indent=2))
    else:
        print(NOTES, end="")
    return 1 if any(row["not_to_all"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
