# SPDX-License-Identifier: MIT
"""The table of subcommands, options and exit codes. From it the build makes the tables of the C program, the help
texts, the manual pages and the completions. To add an option, add a row here, and store its value in
tools/options.c. A new subcommand also needs its manual page in pages/ and its name in meson.build."""

from model import Command, Conflict, Exit, Option

ALL = "run acquire extend release status watch top nodes break config sandbox"
CLIENTS = "run acquire extend release status watch top nodes break config"  # connect to servers or show how they would
TAKING = "run acquire"

# The date of the manual pages.
DATE = "November 23, 2026"

# Headings of `--help` and of manual pages, in this order.
GROUPS = {
    "lock": "Lock",
    "waiting": "Waiting",
    "running": "While the command runs",
    "ending": "When the command ends",
    "task": "Options",
    "servers": "Servers and client",
    "output": "Output",
}

COMMANDS = [
    Command(
        "run",
        synopsis=("[options] NAME [--] CMD [ARG...]",),
        summary="run a command while holding a lock",
        about="Runs {command} while it holds the lock {name} on a majority of the servers. The lock is extended until {command} "
        "ends, then released. If the lock cannot be extended in time, {command} and all it started are stopped before "
        "another client can acquire the lock.",
        examples=(
            ("Run one job at a time on all machines:", "redlock run -w 10s backup -- ./backup.sh --full"),
            (
                "The same from cron, which mails output (20 s exceed the difference of the machines' clocks, and stay below the interval "
                "and the largest TTL):",
                "redlock run -q -n -E 0 --min-hold 20s report -- /usr/local/bin/report",
            ),
            (
                "Once per hour on all machines, however short the job is (the largest TTL must be equal in all clients):",
                "redlock run -n --max-ttl 1h -t 1h --min-hold 59m hourly -- ./job",
            ),
            (
                "Let the database reject a writer whose lock has expired:",
                "redlock run --fence import -- \\\n    sh -c 'psql -v fence=\"$REDLOCK_FENCE\" -f import.sql'",
            ),
        ),
    ),
    Command(
        "acquire",
        synopsis=("[options] NAME...",),
        summary="acquire the lock, print its token",
        about="Acquires the lock and prints its token. No process extends it: it expires after its TTL, or ends with "
        "`redlock release NAME TOKEN`; `redlock extend` gives it a new TTL. To hold a lock while a command runs, use "
        "`redlock run`. Several names are acquired together, all or nothing, with one token.",
        examples=(
            (
                "Hold a lock over several steps of a script:",
                'token=$(redlock acquire -t 20s deploy) || exit\n./deploy.sh; redlock release deploy "$token"',
            ),
        ),
    ),
    Command(
        "extend",
        synopsis=("[options] NAME... TOKEN", "[options] --token-file FILE NAME..."),
        summary="give the lock a new TTL",
        about="Sets a new TTL for a lock that is still held, and prints its validity.",
        examples=(("Give the lock another 20 seconds:", 'redlock extend -t 20s deploy "$token"'),),
    ),
    Command(
        "release",
        synopsis=("[options] NAME... TOKEN", "[options] --token-file FILE NAME..."),
        summary="release the lock",
        about="Releases the lock. If it is not held with this token any more, nothing changes: a warning, exit 0.",
        examples=(("Release the lock that `redlock acquire` has acquired:", 'redlock release deploy "$token"'),),
    ),
    Command(
        "status",
        synopsis=("[options] NAME...",),
        summary="show the holder of each lock and the time left",
        about="Prints the holder of each lock, the time until it expires, and what each server replied. This is "
        "advice: it may be old when you read it. To be sure of a lock, acquire it.",
        examples=(("Show the holders of two locks:", "redlock status backup deploy"),),
    ),
    Command(
        "watch",
        synopsis=("[options] NAME...",),
        summary="print the holder of each lock after each change",
        about="Prints the holder of each lock, and again after each change: a JSON object on a line, until a signal "
        "ends it. The locks are inspected every `--interval`: a change that is reverted in between is not seen, nor a "
        "new lock of the same holder.",
        examples=(("Print the name of each new leader:", "redlock watch billing-leader | jq -r .owner"),),
    ),
    Command(
        "top",
        synopsis=("[options] [NAME...]",),
        summary="show servers and locks on the whole screen",
        about="Shows the servers and the locks on the whole screen: which servers are eligible, and the holder, votes and "
        "time left of each lock. Keys sort and filter the list, and break a lock; `?` shows them. Without a NAME it "
        "searches for all locks: SCAN on as many servers as are needed to find each held lock (3 of 5).",
        examples=(
            ("Watch the locks of one application:", "redlock top --match 'billing/*'"),
            ("Print all locks once, for a script:", "redlock top --once --json | jq -r '.locks[].name'"),
        ),
    ),
    Command(
        "nodes",
        synopsis=("[options]",),
        summary="check whether the servers are fit to hold locks",
        about="Checks whether the servers are fit to hold locks. Prints findings with cause and advice: unreachable, "
        "user refused, restarted, promoted, replica, evicting, same server twice, clocks, data. It acquires a lock "
        "on each server for a moment, and prints what failed.",
        examples=(("Wait until restarted servers count again:", "redlock nodes --wait -s a:6379,b:6379,c:6379"),
            (
                "Upgrade one server after the other, and end at the first failure. The two seconds are for clients that "
                "start now, because they round the age of the server down:",
                'for host in a b c d e; do\n    upgrade "$host" && redlock nodes --wait -w 5m && sleep 2 || break\ndone',
            ),),
    ),
    Command(
        "break",
        synopsis=("--yes [options] NAME",),
        summary="delete the lock of another client",
        about="Prints the holder of the lock, then deletes its key on all servers. The holder notices that at its "
        "next extension and works on until then. For a holder that is known to be dead, if its TTL is too long to "
        "wait for.",
        examples=(("Look at the holder, then delete its lock:", "redlock status backup; redlock break --yes backup"),),
    ),
    Command(
        "config",
        synopsis=("[options]",),
        summary="print the settings in effect and their origins",
        about="Prints the settings in effect and the origin of each; passwords are masked. Options have precedence "
        "over the environment, the environment over the file.",
        notes="""\
File (INI): [redlock] servers prefix user pass-file password max-ttl ttl wait
  quorum-wait grace renew connect-timeout node-timeout tls-cacert tls-cert
  tls-key tls-sni tls-verify line fence-key fence-records admission drift
  heartbeat clock-slack (equal in all clients, like max-ttl);
  [node.NAME] url; several shards: [shard.NAME] servers
Environment: REDLOCK_SERVERS REDLOCK_PREFIX REDLOCK_USER REDLOCK_AUTH
  REDLOCK_MAX_TTL REDLOCK_FENCE_KEY REDLOCK_FENCE_RECORDS REDLOCK_ADMISSION
  REDLOCK_DRIFT REDLOCK_HEARTBEAT REDLOCK_CLOCK_SLACK REDLOCK_QUORUM_WAIT
  REDLOCK_LINE REDLOCK_TLS_CACERT REDLOCK_TLS_CERT REDLOCK_TLS_KEY
  REDLOCK_TLS_SNI REDLOCK_TLS_VERIFY REDLOCK_CONFIG; REDIS_URL only if no
  server is set otherwise
""",
        examples=(("Show the settings of one file:", "redlock config -f ./redlock.conf"),),
    ),
    Command(
        "sandbox",
        synopsis=("[-n N] [--tls] [--] [CMD [ARG...]]",),
        summary="start temporary servers on this machine",
        about="Starts {number} (5) temporary `redis-server` or `valkey-server` processes on free loopback ports, runs {command} with "
        "`REDLOCK_SERVERS` set, and removes everything when {command} ends. Without {command} it prints how to use them and waits "
        "for Ctrl-C. All files are in one temporary directory, `REDLOCK_SANDBOX_DIR`.",
        notes="""\
For each server 1 to N the directory has 1/port 1/pid 1/log and 1/conf, which
starts it again if it was killed. In any terminal, until the sandbox ends:
  "$REDLOCK_SANDBOX_DIR/redis-server" "$REDLOCK_SANDBOX_DIR/1/conf" &
""",
        examples=(
            ("Try locks without a server of your own:", "redlock sandbox -- sh -c 'redlock run hello -- date; redlock nodes'"),
        ),
    ),
]

OPTIONS = [
    Option(
        "ttl",
        letter="t",
        argument="duration",
        commands="run acquire extend config",
        group="lock",
        default="30s, or max-ttl if that is less",
        default_card="30s",
        card="TTL of the lock",
        hint="time after which the lock of a dead client expires",
        text="The TTL: the time after which the lock of a dead client expires.",
        special={"extend": {"hint": "new TTL of the lock", "card": "the new TTL", "text": "The new TTL. It never shortens the validity."}},
    ),
    Option(
        "also",
        letter="a",
        argument="name",
        commands="run acquire extend release",
        group="lock",
        repeats=True,
        card="also lock NAME",
        hint="also lock this name",
        text="Also lock this name; all or nothing. May be repeated.",
        special={
            "extend": {"hint": "one more name of the lock", "card": "one more name", "text": "One more name of the lock. May be repeated."},
            "release": {"hint": "one more name of the lock", "card": "one more name", "text": "One more name of the lock. May be repeated."},
        },
    ),
    Option(
        "permits",
        argument="limit",
        commands="run acquire status watch",
        group="lock",
        card="one of L permits",
        hint="acquire one of this many permits",
        text="Acquire one of {limit} permits of {name}: up to {limit} commands run at the same time.",
        special={
            "acquire": {
                "card": "acquire one of L permits of NAME; prints its slot first",
                "text": "Acquire one of {limit} permits of {name}. Its slot, `NAME{#0}` and so on, is printed before the "
                "token: extend and release that name.",
            },
            "status": {
                "hint": "show the holders of this many permits",
                "card": "NAME has L permits: print how many are free",
                "text": "{name} has {limit} permits: print how many are free, the holders of the others, and who waits.",
            },
            "watch": {
                "hint": "show the holders of this many permits",
                "card": "NAME has L permits: print the holder of each",
                "text": "{name} has {limit} permits: print the holder of each slot, `NAME{#0}` and so on, and who waits.",
            },
        },
    ),
    Option(
        "fence",
        commands="run acquire nodes",
        group="lock",
        card="set REDLOCK_FENCE",
        hint="set REDLOCK_FENCE to a fencing token",
        text="Acquire a fencing token, a number that is larger than that of every earlier holder, and give it to the "
        "command as `REDLOCK_FENCE`.",
        special={
            "acquire": {
                "hint": "print a fencing token, too",
                "card": "print the fencing token, too",
                "text": "Print a fencing token after the token: a number that is larger than that of every earlier holder.",
            },
            "nodes": {
                "hint": "also check for fencing tokens",
                "group": "task",
                "card": "also check for fencing tokens",
                "text": "Also check whether the servers are fit for fencing tokens.",
            },
        },
    ),
    Option(
        "token-file",
        argument="file",
        commands="extend release",
        group="lock",
        card="read TOKEN from F",
        hint="read the token from a file",
        text="Read the token from the first line of {file}, or of standard input if that is `-`, instead of the last word.",
    ),
    Option(
        "wait",
        letter="w",
        aliases=("timeout",),
        argument="duration",
        commands="run acquire config",
        group="waiting",
        default="forever",
        card="wait at most D",
        hint="longest wait for the lock",
        text="Wait at most this long for a lock that another client holds, or for servers that do not reply. `0`: do "
        "not wait.",
    ),
    Option(
        "quorum-wait",
        argument="duration",
        commands="run acquire config",
        group="waiting",
        default="30s",
        card="without a quorum",
        hint="longest wait without a quorum",
        text="Give up when no quorum could be had for this long in a row, at least half a second; `forever`: no limit. "
        "The time in which another client holds the lock does not count, nor that in which enough servers reply but "
        "some are in quarantine.",
    ),
    Option(
        "nonblock",
        letter="n",
        commands=TAKING,
        group="waiting",
        card="do not wait",
        hint="do not wait for the lock",
        text="Do not wait.",
    ),
    Option(
        "conflict-exit-code",
        letter="E",
        argument="number",
        commands=TAKING,
        group="waiting",
        default="75",
        card="exit code if held",
        hint="exit code if the lock is held",
        text="Exit with this code if another client holds the lock.",
        special={
            "run": {
                "text": "Exit with this code if another client holds the lock. The exit code of the command stays as it is, also "
                "75 of a `redlock run` inside it.",
            },
        },
    ),
    Option(
        "allow-nested",
        commands="run",
        group="waiting",
        card="also inside of NAME",
        hint="allow the lock inside of itself",
        text="Allow a lock inside the same lock, or a permit inside a permit of the same name.",
    ),
    Option(
        "command",
        letter="c",
        argument="string",
        commands="run",
        group="running",
        card="run STRING with sh",
        hint="run this text with sh",
        text="Run {string} with /bin/sh instead of a command.",
    ),
    Option(
        "renew",
        argument="duration",
        commands="run config",
        group="running",
        default="a third of the TTL",
        default_card="ttl/3",
        card="extend every D",
        hint="time between two extensions",
        text="Interval of the extensions of the lock.",
    ),
    Option(
        "no-renew",
        commands="run",
        group="running",
        card="never extend the lock",
        hint="do not extend the lock",
        text="Do not extend the lock: the command must end within the TTL.",
    ),
    Option(
        "grace",
        letter="k",
        argument="duration",
        commands="run config",
        group="running",
        default="5s, or a quarter of the TTL if that is less",
        default_card="5s",
        card="from stop signal to KILL",
        hint="time between the stop signal and KILL",
        text="The command gets the stop signal this long before the deadline of the lock. It is killed as long after the stop "
        "signal, but at the latest 250 ms before the deadline.",
    ),
    Option(
        "signal",
        argument="signal",
        commands="run",
        group="running",
        default="TERM",
        card="the stop signal",
        hint="signal that stops the command",
        text="The signal that stops the command.",
    ),
    Option(
        "on-loss",
        argument="stop|warn",
        commands="run",
        group="running",
        default="stop",
        card="if lost",
        hint="what to do if the lock is lost",
        text="What happens if the lock is about to be lost: the command is stopped, or only a warning is printed.",
    ),
    Option(
        "max-hold",
        argument="duration",
        commands="run",
        group="running",
        card="stop CMD after D",
        hint="stop the command after this time",
        text="Stop the command after this time. Without it there is no limit.",
    ),
    Option(
        "foreground",
        commands="run",
        group="running",
        card="CMD in caller's group",
        hint="keep the command in the process group of the caller",
        text="Leave the command in the process group of the caller. Signals then reach the command alone, not its "
        "process group.",
    ),
    Option(
        "keep-env",
        commands="run",
        group="running",
        card="CMD gets the passwords",
        hint="leave passwords in the environment of the command",
        text="Leave the passwords of the servers in the environment of the command. Without it `REDLOCK_AUTH` is "
        "removed, and each password in `REDLOCK_SERVERS` is replaced by `***`.",
    ),
    Option(
        "export-token",
        commands="run",
        group="running",
        card="set REDLOCK_TOKEN",
        hint="set REDLOCK_TOKEN to the token",
        text="Give the command the token as `REDLOCK_TOKEN`.",
    ),
    Option(
        "min-hold",
        argument="duration",
        commands="run",
        group="ending",
        card="hold for D or longer",
        hint="hold the lock for at least this time",
        text="Hold the lock until at least this long after it was acquired, even if the command has ended.",
    ),
    Option(
        "keep",
        commands="run",
        group="ending",
        card="let the lock expire",
        hint="let the lock expire instead of releasing it",
        text="Do not release the lock: it expires with its TTL.",
    ),
    Option(
        "preserve-status",
        commands="run",
        group="ending",
        card="CMD's code, not 124",
        hint="exit with the status of the command if it was stopped",
        text="Exit with the command's own status even if it was stopped, instead of 124.",
    ),
    Option(
        "strict",
        commands="release",
        group="task",
        card="exit 1 if it was not held",
        hint="exit with 1 if the lock is not held with this token",
        text="Exit with 1 if the lock is not held with this token any more.",
    ),
    Option(
        "wait",
        id="WAIT_ALL",
        commands="nodes",
        group="task",
        card="wait until all are eligible",
        hint="wait until all servers are eligible",
        text="First wait until all servers are eligible (after a restart: max-ttl).",
    ),
    Option(
        "timeout",
        id="WAIT_LIMIT",
        letter="w",
        argument="duration",
        commands="nodes",
        group="task",
        default="forever",
        card="wait at most D",
        hint="longest wait until all servers are eligible",
        text="With `--wait`: wait at most this long.",
    ),
    Option(
        "acl",
        commands="nodes",
        group="task",
        card="print the ACL user with the fewest rights (--fence: for fences, too)",
        hint="print the ACL user with the fewest rights",
        text="Only print the `ACL SETUSER` line of a user with only the rights that locks need; with `--fence`, also "
        "those that fencing tokens need.",
    ),
    Option(
        "init",
        commands="nodes",
        group="task",
        card="put the fence records of all servers that reply into use",
        hint="put the fence records of all servers that reply into use",
        text="Put the fence records of all servers that reply into use: after a majority has lost them, or for another "
        "list of servers. Only while no client holds or acquires a fenced lock.",
    ),
    Option(
        "interval",
        letter="i",
        argument="duration",
        commands="watch top",
        group="task",
        default="500ms",
        card="inspect every D",
        hint="time between two inspections",
        text="The time between two inspections.",
        special={
            "top": {
                "default": "1s",
                "text": "The time between two inspections of a lock. Each one sends a request to all servers; at most 256 "
                "locks are inspected in this time, those on the screen first.",
            },
        },
    ),
    Option(
        "once",
        commands="top",
        group="task",
        card="print once, and exit",
        hint="print servers and locks once",
        text="Print servers and locks once as text, with `--json` as JSON, and exit. Needs no terminal.",
    ),
    Option(
        "match",
        argument="pattern",
        commands="top",
        group="task",
        default="*",
        card="names to search for",
        hint="pattern of the names to search for",
        text="Search for locks whose name, without the prefix of the keys, matches this glob pattern of SCAN, such as "
        "`billing/*`. The cost for a server does not depend on it.",
    ),
    Option(
        "scan-rate",
        argument="number",
        commands="top",
        group="task",
        default="10000",
        card="search N keys a second",
        hint="number of keys to search in a second",
        text="Let SCAN examine at most this many keys a second on a server, 1 to 1000000, at most 1000 in one command. "
        "10000 take less than 1 % of its time. A search through a million keys then takes 100 seconds.",
    ),
    Option(
        "yes",
        commands="break",
        group="task",
        card="delete the key; without it nothing is done",
        hint="delete the key",
        text="Delete the key. Without this option nothing is done.",
    ),
    Option(
        "nodes",
        letter="n",
        argument="number",
        commands="sandbox",
        group="task",
        default="5",
        card="number of servers",
        hint="number of servers",
        text="The number of servers.",
    ),
    Option(
        "tls",
        commands="sandbox",
        group="task",
        card="servers speak TLS only",
        hint="start servers that speak TLS only",
        text="The servers speak TLS only, with a certificate from a CA that is made for this sandbox, "
        "`$REDLOCK_SANDBOX_DIR/ca.crt`. The addresses in `REDLOCK_SERVERS` name it.",
    ),
    Option(
        "servers",
        letter="s",
        argument="address",
        commands=CLIENTS,
        group="servers",
        repeats=True,
        card="the servers",
        hint="addresses of the servers",
        text="The servers, separated by commas: `host:port`, `redis://`, `rediss://` (TLS) or `unix://` addresses; `valkey://` and `valkeys://` are the same. May be repeated.",
    ),
    Option(
        "config",
        letter="f",
        argument="file",
        commands=CLIENTS,
        group="servers",
        card="configuration file",
        hint="configuration file",
        text="The configuration file.",
    ),
    Option(
        "prefix",
        argument="prefix",
        commands=CLIENTS,
        group="servers",
        default="none",
        card="key prefix",
        hint="text before each name",
        text="Put this before each name.",
    ),
    Option(
        "user",
        argument="user",
        commands=CLIENTS,
        group="servers",
        card="log in as U",
        hint="user to log in as",
        text="Log in as this user.",
    ),
    Option(
        "pass-file",
        argument="file",
        commands=CLIENTS,
        group="servers",
        card="password file",
        hint="file with the password",
        text="The password is the first line of this file.",
    ),
    Option(
        "max-ttl",
        argument="duration",
        commands=CLIENTS,
        group="servers",
        default="30s",
        card="the longest TTL",
        hint="longest TTL of all clients",
        text="The longest TTL that any client of these servers uses. It must be equal in all of them.",
    ),
    Option(
        "connect-timeout",
        argument="duration",
        commands=CLIENTS,
        group="servers",
        default="250ms",
        card="time to connect",
        hint="time limit for a connection",
        text="Time limit for a connection. With TLS, the handshake and the first replies have the same limit each, and more after a slow one.",
    ),
    Option(
        "node-timeout",
        argument="duration",
        commands=CLIENTS,
        group="servers",
        default="measured",
        card="time to reply",
        hint="time limit for a reply",
        text="Time limit for a reply.",
    ),
    Option(
        "tls-cacert",
        argument="file",
        commands=CLIENTS,
        group="servers",
        default="those of the system",
        default_card="system",
        card="trusted CA",
        hint="certificates of the CAs that are trusted",
        text="Trust certificates of servers from the CAs in this PEM file or directory.",
    ),
    Option(
        "tls-cert",
        argument="file",
        commands=CLIENTS,
        group="servers",
        card="client certificate",
        hint="certificate of this client",
        text="Show the servers this certificate (PEM) of the client.",
    ),
    Option(
        "tls-key",
        argument="file",
        commands=CLIENTS,
        group="servers",
        card="its private key",
        hint="private key of the client certificate",
        text="The private key of `--tls-cert`, without a passphrase. Not needed if that file has the key, too.",
    ),
    Option(
        "tls-sni",
        argument="name",
        commands=CLIENTS,
        group="servers",
        default="the host in the address",
        default_card="host",
        card="server's name",
        hint="name that the servers' certificates must have",
        text="The name that the servers are addressed by, and that their certificates must have.",
    ),
    Option(
        "tls-verify",
        argument="full|chain|none",
        commands=CLIENTS,
        group="servers",
        default="full",
        card="what is verified",
        hint="how far the servers' certificates are verified",
        text="`chain`: any name in the certificate is accepted; needs `--tls-cacert`. `none`: nothing is verified, so "
        "any process that can answer in place of a server can grant locks and read the password.",
    ),
    Option(
        "no-line",
        commands="run acquire nodes config",
        group="servers",
        card="do not queue on servers",
        hint="wait without a line on a server",
        text="Wait without a line. A line is a key beside that of the lock, `<key>{#q}`, in which waiters of all machines stand "
        "in order of arrival. This option is for users who may not write another key; it gives up that order.",
        special={
            "nodes": {
                "hint": "check for clients without lines",
                "card": "clients use no lines",
                "text": "Clients use no lines: `--acl` prints no rights for them, and their absence is no finding.",
            },
        },
    ),
    Option(
        "status-fd",
        argument="descriptor",
        commands="run",
        group="output",
        card="write events to N",
        hint="write events to this descriptor",
        text="Write events to this descriptor, a JSON object on each line.",
    ),
    Option(
        "metrics-file",
        argument="file",
        commands="run nodes",
        group="output",
        card="write figures to F",
        hint="write figures for Prometheus to a file",
        text="Replace this file with figures for the textfile collector of Prometheus' node_exporter, while the "
        "command runs and at its end. Its name ends in `.prom`, and is the label `file` of each figure. If it cannot be written, "
        "the lock is not requested.",
        special={
            "nodes": {
                "text": "Replace this file with figures for the textfile collector of Prometheus' node_exporter. Its "
                "name ends in `.prom`, and is the label `file` of each figure."
            }
        },
    ),
    Option("json", commands=CLIENTS, group="output", card="print JSON", hint="print JSON", text="Print JSON."),
    Option(
        "quiet",
        letter="q",
        commands=ALL,
        group="output",
        card="errors only",
        hint="print errors only",
        text="Print no notes and no warnings, only errors. That another client holds the lock is not an error.",
    ),
    Option(
        "verbose",
        letter="v",
        commands=ALL,
        group="output",
        repeats=True,
        card="more messages",
        hint="print more messages",
        text="Print more messages; twice: debugging messages as well.",
    ),
    Option(
        "help",
        letter="h",
        commands=ALL,
        group="output",
        card="this help",
        hint="print the options",
        text="Print the options: `-h` on one screen, `--help` with one option in each line.",
    ),
]

# A pair is here if one of the two would be ignored, or if they contradict each other. Rules that depend on more than
# two options (durations, the number of names) are where those are checked: tools/timing.c and tools/names.c.
CONFLICTS = [
    Conflict(TAKING, "NONBLOCK", "WAIT", "the one forbids to wait; give one of them", unless_zero=True),
    Conflict(TAKING, "NONBLOCK", "QUORUM_WAIT", "the one forbids to wait; give one of them", unless_zero=True),
    Conflict(TAKING, "WAIT=0", "QUORUM_WAIT", "the one forbids to wait; give one of them", unless_zero=True),
    Conflict("run", "NO_RENEW", "RENEW", "the one forbids what the other repeats; give one of them"),
    Conflict(
        "run",
        "ON_LOSS=warn",
        "SIGNAL",
        "without --max-hold the command is never stopped; leave one of them out, or add --max-hold",
        unless="MAX_HOLD",
    ),
    Conflict(
        "run",
        "ON_LOSS=warn",
        "PRESERVE_STATUS",
        "without --max-hold the command is never stopped; leave one of them out, or add --max-hold",
        unless="MAX_HOLD",
    ),
    Conflict("top", "JSON", "ONCE", "the screen is no JSON; add --once, or leave --json out", needs=True),
    Conflict("top", "ONCE", "INTERVAL", "it prints once; leave one of them out"),
    Conflict("nodes", "ACL", "INIT", "the one changes nothing, the other changes the servers; give one of them"),
    Conflict("nodes", "ACL", "WAIT_ALL", "the rights are printed without a server; give one of them"),
    Conflict("nodes", "ACL", "JSON", "the rights are a line for redis-cli; leave --json out"),
    Conflict("nodes", "ACL", "METRICS_FILE", "the rights are printed without a server; leave --metrics-file out"),
    Conflict("nodes", "INIT", "METRICS_FILE", "--init examines no server; run `redlock nodes --metrics-file` after it"),
    Conflict("nodes", "INIT", "WAIT_ALL", "--init examines no server; run `redlock nodes --wait` before it"),
    Conflict("nodes", "INIT", "FENCE", "--init examines no server; run `redlock nodes --fence` after it"),
    Conflict("nodes", "WAIT_LIMIT", "WAIT_ALL", "it limits only that wait; add --wait, or leave -w out", needs=True),
    Conflict(ALL, "QUIET", "VERBOSE", "the one prints less, the other more; give one of them"),
]

EXITS = [
    Exit("0", "acquire extend release", "", "Done."),
    Exit("0-125", "run sandbox", "CMD's", "The exit code of the command, unless it is one of these:"),
    Exit("0", "break", "deleted", "The key was deleted."),
    Exit("0", "config", "", "Done."),
    Exit("0", "top", "", "The user has ended it, or with `--once` all was printed."),
    Exit("0", "status", "held", "The lock is held. `--permits`: all permits are held. Of several names, the highest code counts."),
    Exit("0", "nodes", "OK", "Nothing needs repair."),
    Exit("1", "extend", "not held with this token any more", "The lock is not held with this token any more. A retry does not help."),
    Exit("1", "release", "(--strict) not held with this token", "With `--strict`: the lock was not held with this token any more."),
    Exit("1", "status", "free", "The lock is free. `--permits`: at least one permit is free."),
    Exit("1", "nodes", "WARN something needs repair", "Something needs repair."),
    Exit("1", "break", "it was free", "The lock was free."),
    Exit("2", "nodes", "CRIT no lock can be acquired or exclusion is at risk", "No lock can be acquired, or exclusion is at risk."),
    Exit("3", "status", "unknown", "Too few servers replied to know. `--permits`: no permit is known to be free, and not all are known to be held."),
    Exit("3", "nodes", "UNKNOWN", "The check could not be made, or is incomplete: this process has too few descriptors or threads."),
    Exit("64", ALL, "usage", "Wrong usage, or options that contradict each other."),
    Exit("69", TAKING, "no quorum", "No quorum: too few servers replied or granted the lock. Standard error has the reason of each."),
    Exit("69", "extend release break", "no quorum", "No quorum: too few servers replied. Standard error has the reason of each."),
    Exit("69", "nodes", "(--init) no quorum", "With `--init`: too few servers replied, and nothing was changed; or too few confirmed the change."),
    Exit("69", "top", "(--once) locks may be missing", "With `--once`: there is no quorum, or too few servers can be searched, so locks may be missing."),
    Exit("69", "sandbox", "no server program, or it does not start", "There is no server program, or it does not start."),
    Exit("70", "run sandbox", "", "An internal error; also if the guardian process was killed."),
    Exit("70", "acquire extend release break", "", "An internal error."),
    Exit("71", "run", "", "An error of the operating system; also if no process could be started for the command after the lock was acquired."),
    Exit("71", ALL.replace("run ", ""), "", "An error of the operating system: no memory, process or descriptor."),
    Exit("74", "extend release status top nodes break config", "", "The output could not be written."),
    Exit("74", "watch", "stdout was closed", "The output could not be written, for example because its reader has ended."),
    Exit("74", "acquire", "", "The output could not be written; the lock was released."),
    Exit("74", "run", "", "The file of `--metrics-file` could not be written; the lock was not requested."),
    Exit("75", TAKING, "held", "Another client holds the lock. `-E` changes this code."),
    Exit("77", "run acquire extend release status watch break", "user refused", "The servers refuse the user."),
    Exit("78", CLIENTS, "configuration", "The configuration is wrong."),
    Exit("78", "sandbox", "(--tls) built without TLS", "With `--tls`: the command was built without TLS."),
    Exit("124", "run", "stopped", "The lock could not be extended in time, or `--max-hold` was reached, and the command was stopped."),
    Exit("126", "run sandbox", "cannot run CMD", "The command cannot be executed."),
    Exit("127", "run sandbox", "no such CMD", "The command was not found."),
    Exit("128+n", "run", "signal n", "Signal n ended the command or the wait."),
    Exit("128+n", "acquire", "signal n", "Signal n ended the wait."),
    Exit("128+n", "watch top", "signal n", "Signal n ended it."),
    Exit("128+n", "sandbox", "signal n", "Signal n ended the command or the sandbox."),
]
