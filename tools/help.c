/* SPDX-License-Identifier: MIT
 * The help texts, one screen each (24 lines of 80 columns where the flags fit in).
 */
#include "help.h"

#include <stdio.h>
#include <string.h>

/* Prints examples to stdout, for `redlock` without arguments. */
void help_examples(void)
{
    fputs("redlock holds a lock on a majority of independent Redis servers.\n"
          "\n"
          "  to try it:               redlock sandbox -- sh -c 'redlock run hello -- date'\n"
          "  to run one job at a time:\n"
          "      export REDLOCK_SERVERS=a:6379,b:6379,c:6379\n"
          "      redlock run -w 10s backup -- ./backup.sh\n"
          "  to see the holder:       redlock status backup\n"
          "\n"
          "All commands: redlock --help\n",
          stdout);
}

/* Prints the list of subcommands to stdout, for `redlock --help`. */
void help_overview(void)
{
    fputs("Usage: redlock COMMAND [flags] ...\n"
          "\n"
          "  run NAME -- CMD      run CMD while holding the lock NAME\n"
          "  acquire NAME         acquire the lock, print its token; it expires by its TTL\n"
          "  extend NAME TOKEN    set a new TTL\n"
          "  release NAME TOKEN   release the lock\n"
          "  status NAME...       the holder of each lock and its remaining time\n"
          "  watch NAME...        the holder of each lock, a line of JSON for each change\n"
          "  nodes                check whether the servers are fit to hold locks\n"
          "  break --yes NAME     delete the lock of another client\n"
          "  config               the settings in effect and the origin of each\n"
          "  sandbox [-- CMD]     throw-away servers on this machine\n"
          "\n"
          "  redlock COMMAND --help   flags and an example      redlock --version\n"
          "\n"
          "Servers: -s LIST, or REDLOCK_SERVERS, or a file (-f, REDLOCK_CONFIG,\n"
          "~/.config/redlock/redlock.conf, /etc/redlock.conf). Durations: 250ms 30s 5m 2h;\n"
          "a bare number is seconds.\n"
          "Exit: 0 done, 75 held by another client, 69 no quorum, 64 usage, 77 user refused\n"
          "by the servers, 78 configuration. `run`: also the status of CMD, and 124.\n",
          stdout);
}

/* The lines about flags that most subcommands have in common. */
#define SERVERS                                                                                    \
    "  -s LIST -f FILE --prefix P --user U --pass-file F --max-ttl D --node-timeout D\n"           \
    "  --connect-timeout D   servers and client      --json -q -v   output\n"

/* The help texts: one for each subcommand, printed by help_command(). */
static const char run_text[] =
    "Usage: redlock run [flags] NAME [--] CMD [ARG...]\n"
    "Runs CMD while it holds the lock NAME on a majority of the servers. The lock is\n"
    "extended until CMD ends, then released. If the lock cannot be extended in time,\n"
    "CMD and all it started are stopped before another client can acquire the lock.\n"
    "  -w D  wait at most D (default: no limit); -n, -w 0: do not wait\n"
    "  -E N  exit code if another client holds the lock (75)\n"
    "  -a, --also NAME   also lock NAME; all or nothing\n"
    "  -t D  TTL (30s, at most --max-ttl)     --renew D  extend every D (ttl/3)\n"
    "  -k D  grace: CMD gets --signal (TERM) D before the deadline, then KILL\n"
    "        (5s, at most ttl/4)              --no-renew  CMD must end within the TTL\n"
    "  -c STRING  run STRING with /bin/sh -c instead of CMD\n"
    "  --on-loss stop|warn  what to do if the lock is about to be lost (stop)\n"
    "  --min-hold D  hold the lock for at least D     --max-hold D  stop CMD after D\n"
    "  --keep  do not release: the lock expires   --keep-env  CMD gets the passwords\n"
    "  --foreground   CMD stays in our process group   --allow-nested  NAME in NAME\n"
    "  --preserve-status  exit with CMD's status even if it was stopped (else 124)\n"
    "  --permits L  acquire one of L permits of NAME   --export-token  REDLOCK_TOKEN\n"
    "  --status-fd N  write events to N as JSON lines  --fence  REDLOCK_FENCE for CMD\n" SERVERS
    "Exit: CMD's, 128+n, 75 held, 69 no quorum, 124 stopped, 126/127 no such CMD,\n"
    "      64 usage, 77 user refused by the servers, 78 configuration\n"
    "Example: redlock run -w 10s backup -- ./backup.sh --full\n";

static const char acquire_text[] =
    "Usage: redlock acquire [flags] NAME...\n"
    "Acquires the lock and prints its token. No process extends it: it expires after\n"
    "its TTL, or ends with `redlock release NAME TOKEN`; `redlock extend` gives it a\n"
    "new TTL. To hold a lock while a command runs, use `redlock run`. Several NAMEs\n"
    "are acquired together, all or nothing, with one token.\n"
    "  -t D  TTL (30s, at most --max-ttl)\n"
    "  -w D  wait at most D (default: no limit); -n, -w 0: do not wait\n"
    "  -E N  exit code if another client holds the lock (75)\n"
    "  -a, --also NAME   also lock NAME; all or nothing\n"
    "  --fence  print the fencing token after the token; it grows with each holder\n"
    "  --permits L  acquire one of L permits of NAME. Its slot, NAME{#0} and so on,\n"
    "               is printed before the token: extend and release that name\n" SERVERS
    "Exit: 0, 75 held, 69 no quorum, 64 usage, 77 user refused, 78 configuration\n"
    "Example: token=$(redlock acquire -t 20s deploy) && ./deploy.sh;\n"
    "         redlock release deploy \"$token\"\n";

static const char extend_text[] =
    "Usage: redlock extend [flags] NAME... TOKEN\n"
    "       redlock extend [flags] --token-file FILE NAME...  (FILE - is stdin)\n"
    "Sets a new TTL for a lock that is still held, and prints its validity.\n"
    "  -t D  the new TTL (30s, at most --max-ttl); it never shortens the validity\n"
    "  -a, --also NAME   one more name of the lock\n" SERVERS
    "Exit: 0, 1 not held with this token any more, 69 no quorum, 64, 77, 78\n"
    "Example: redlock extend -t 20s deploy \"$token\"\n";

static const char release_text[] =
    "Usage: redlock release [flags] NAME... TOKEN\n"
    "       redlock release [flags] --token-file FILE NAME... (FILE - is stdin)\n"
    "Releases the lock. If it is not held with this token any more, nothing changes:\n"
    "a warning, exit 0.\n"
    "  --strict  exit 1 in that case\n"
    "  -a, --also NAME   one more name of the lock\n" SERVERS
    "Exit: 0, 1 (--strict) not held with this token, 69 no quorum, 64, 77, 78\n"
    "Example: redlock release deploy \"$token\"\n";

static const char status_text[] =
    "Usage: redlock status [flags] NAME...\n"
    "Prints the holder of each lock, the time until it expires, and what each server\n"
    "replied. This is advice: it may be old when you read it. To be sure of a lock,\n"
    "acquire it.\n"
    "  --permits L  NAME has L permits: print how many are free, and their holders\n" SERVERS
    "Exit: 0 held, 1 free, 3 unknown; of several names the highest; 64, 77, 78\n"
    "      --permits: 0 all are held, 1 some are free, 3 some unknown and none free\n"
    "Example: redlock status backup deploy\n";

static const char watch_text[] =
    "Usage: redlock watch [flags] NAME...\n"
    "Prints the holder of each lock, and again after each change: a JSON object on a\n"
    "line, until a signal ends it. The locks are inspected every --interval: a change\n"
    "that is reverted in between is not seen, nor a new lock of the same holder.\n"
    "  -i D, --interval D  time between two inspections (500ms)\n" SERVERS
    "Exit: 128+n when signal n ended it, 74 stdout was closed, 64, 77, 78\n"
    "Example: redlock watch billing-leader | jq -r .owner\n";

static const char nodes_text[] =
    "Usage: redlock nodes [flags]\n"
    "Checks whether the servers are fit to hold locks. Prints findings with cause and\n"
    "advice: unreachable, user refused, restarted, promoted, replica, evicting, same\n"
    "server twice, clocks, data. It acquires a lock on each server for a moment, and\n"
    "prints what failed.\n"
    "  --wait     first wait until all are eligible (after a restart: max-ttl)\n"
    "  -w D       wait at most D\n"
    "  --fence    also check whether they are fit for fencing tokens\n"
    "  --acl      print the smallest user for locks (with --fence: and for fences)\n"
    "  --init     put the fence records of all servers that reply into use: after a\n"
    "             majority has lost them, or for another list of servers. Only while\n"
    "             no client holds or acquires a fenced lock.\n" SERVERS
    "Exit: 0 OK, 1 WARN something needs repair, 2 CRIT no lock can be acquired or\n"
    "      exclusion is at risk, 3 UNKNOWN\n"
    "Example: redlock nodes --wait -s a:6379,b:6379,c:6379\n";

static const char break_text[] =
    "Usage: redlock break --yes [flags] NAME\n"
    "Prints the holder of the lock, then deletes its key on all servers. The holder\n"
    "notices that at its next extension and works on until then. For a holder that is\n"
    "known to be dead, if its TTL is too long to wait for.\n"
    "  --yes  delete the key; without it nothing is done\n" SERVERS
    "Exit: 0 deleted, 1 it was free, 69 no quorum, 64, 77, 78\n"
    "Example: redlock status backup; redlock break --yes backup\n";

static const char config_text[] =
    "Usage: redlock config [flags]\n"
    "Prints the settings in effect and the origin of each; passwords are masked.\n"
    "Flags have precedence over the environment, the environment over the file.\n"
    "  -t D -w D -k D --renew D   as for `run`\n" SERVERS
    "File (INI): [redlock] servers prefix user pass-file password max-ttl ttl wait\n"
    "  grace renew connect-timeout node-timeout fence-key fence-records admission\n"
    "  drift heartbeat clock-slack (equal in all clients, like max-ttl);\n"
    "  [node.NAME] url; several shards: [shard.NAME] servers\n"
    "Environment: REDLOCK_SERVERS REDLOCK_PREFIX REDLOCK_USER REDLOCK_AUTH\n"
    "  REDLOCK_MAX_TTL REDLOCK_FENCE_KEY REDLOCK_FENCE_RECORDS REDLOCK_ADMISSION\n"
    "  REDLOCK_DRIFT REDLOCK_HEARTBEAT REDLOCK_CLOCK_SLACK\n"
    "  REDLOCK_CONFIG; REDIS_URL only if no server is set otherwise\n"
    "Exit: 0, 64 usage, 78 configuration\n"
    "Example: redlock config -f ./redlock.conf\n";

static const char sandbox_text[] =
    "Usage: redlock sandbox [-n N] [--] [CMD [ARG...]]\n"
    "Starts N (5) throw-away redis-server or valkey-server processes on free loopback\n"
    "ports, runs CMD with REDLOCK_SERVERS set, and removes everything when CMD ends.\n"
    "Without CMD it prints how to use them and waits for Ctrl-C. All files are in one\n"
    "temporary directory, REDLOCK_SANDBOX_DIR, which has for each server 1 to N:\n"
    "  DIR/1/port DIR/1/pid DIR/1/log   DIR/1/conf starts it again if it was killed:\n"
    "  \"$REDLOCK_SANDBOX_DIR/redis-server\" \"$REDLOCK_SANDBOX_DIR/1/conf\" &\n"
    "  -n N  number of servers    -q -v  less or more output\n"
    "Exit: CMD's, 128+n, 69 no server program or no start, 126/127 no such CMD, 64\n"
    "Example: redlock sandbox -- sh -c 'redlock run hello -- date; redlock nodes'\n";

/* Prints the help text of the subcommand `name` to stdout. Prints nothing if there is none. */
void help_command(const char *name)
{
    static const struct {
        const char *name, *text;
    } texts[] = {{"run", run_text},         {"acquire", acquire_text}, {"extend", extend_text},
                 {"release", release_text}, {"status", status_text},   {"nodes", nodes_text},
                 {"break", break_text},     {"config", config_text},   {"sandbox", sandbox_text},
                 {"watch", watch_text}};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (!strcmp(name, texts[i].name))
            fputs(texts[i].text, stdout);
}
