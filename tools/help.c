/* SPDX-License-Identifier: MIT
 * The help texts, one screen each (24 lines of 80 columns where the flags fit in).
 */
#include "help.h"

#include <stdio.h>
#include <string.h>

void help_examples(void)
{
    fputs("redlock holds a lock on a majority of independent Redis servers.\n"
          "\n"
          "  try it, nothing needed:  redlock sandbox -- sh -c 'redlock run hello -- date'\n"
          "  run a job, once at a time:\n"
          "      export REDLOCK_SERVERS=a:6379,b:6379,c:6379\n"
          "      redlock run -w 10s backup -- ./backup.sh\n"
          "  who holds it:            redlock status backup\n"
          "\n"
          "All commands: redlock --help\n",
          stdout);
}

void help_overview(void)
{
    fputs("Usage: redlock COMMAND [flags] ...\n"
          "\n"
          "  run NAME -- CMD      run CMD while holding the lock NAME\n"
          "  acquire NAME         take the lock, print its token; it lives for its TTL\n"
          "  extend NAME TOKEN    give it a new TTL\n"
          "  release NAME TOKEN   give it back\n"
          "  status NAME...       who holds it, for how long\n"
          "  watch NAME...        who holds it, a line of JSON for each change\n"
          "  nodes                are the servers fit for use\n"
          "  break --yes NAME     take the lock away from its holder\n"
          "  config               the settings in effect and where each comes from\n"
          "  sandbox [-- CMD]     throw-away servers on this machine\n"
          "\n"
          "  redlock COMMAND --help   flags and an example      redlock --version\n"
          "\n"
          "Servers: -s LIST, or REDLOCK_SERVERS, or a file (-f, REDLOCK_CONFIG,\n"
          "~/.config/redlock/redlock.conf, /etc/redlock.conf). Durations: 250ms 30s 5m 2h;\n"
          "a bare number is seconds.\n"
          "Exit: 0 done, 75 held by another, 69 no quorum, 64 usage, 77 refused by the\n"
          "servers, 78 configuration. `run`: also the command's own status and 124.\n",
          stdout);
}

#define SERVERS                                                                                    \
    "  -s LIST -f FILE --prefix P --user U --pass-file F --max-ttl D --node-timeout D\n"           \
    "  --connect-timeout D   servers and client      --json -q -v   output\n"

static const char run_text[] =
    "Usage: redlock run [flags] NAME [--] CMD [ARG...]\n"
    "Runs CMD while holding NAME on a majority of the servers. The lock is renewed\n"
    "until CMD ends, then released; nothing is held after that. If it cannot be kept,\n"
    "CMD and all it started are stopped before another client can get the lock.\n"
    "  -w D  wait at most D (default: for ever); -n, -w 0: do not wait\n"
    "  -E N  exit code when another holds it (75)   -a NAME  too: both or none\n"
    "  -t D  TTL (30s, at most --max-ttl)     --renew D  renew every D (ttl/3)\n"
    "  -k D  grace: CMD gets --signal (TERM) D before the lock ends, then KILL\n"
    "        (5s, at most ttl/4)              --no-renew  CMD must end within the TTL\n"
    "  -c STRING  run STRING with /bin/sh -c instead of CMD\n"
    "  --on-loss stop|warn  what to do when the lock cannot be kept (stop)\n"
    "  --min-hold D  hold at least so long    --max-hold D  stop CMD after D\n"
    "  --keep  do not release: the TTL ends it  --keep-env  leave CMD the passwords\n"
    "  --foreground    leave CMD in our process group  --allow-nested  NAME in NAME\n"
    "  --preserve-status  CMD's status even where we stopped it (else 124)\n"
    "  --permits L  one of L permits of NAME    --export-token  REDLOCK_TOKEN for CMD\n"
    "  --status-fd N  events as JSON lines on N    --fence  REDLOCK_FENCE for CMD\n" SERVERS
    "Exit: CMD's, 128+n, 75 held, 69 no quorum, 124 stopped, 126/127 no such CMD,\n"
    "      64 usage, 77 refused by the servers, 78 configuration\n"
    "Example: redlock run -w 10s backup -- ./backup.sh --full\n";

static const char acquire_text[] =
    "Usage: redlock acquire [flags] NAME...\n"
    "Takes the lock and prints its token. No process holds it: it lives for its TTL,\n"
    "or until `redlock release NAME TOKEN`; `redlock extend` gives it a new TTL. For\n"
    "a lock that lives as long as a command, use `redlock run`. Several NAMEs are one\n"
    "lock of all of them, or of none; their token belongs to all of them together.\n"
    "  -t D  TTL (30s, at most --max-ttl)\n"
    "  -w D  wait at most D (default: for ever); -n, -w 0: do not wait\n"
    "  -E N  exit code when another holds it (75)   -a NAME  one more name\n"
    "  --fence  prints a number behind the token that grows with each holder\n"
    "  --permits L  one of L permits of NAME; its own name, NAME{#0} to NAME{#L-1}, is\n"
    "             printed before the token: give that to extend and release\n" SERVERS
    "Exit: 0, 75 held, 69 no quorum, 64 usage, 77 refused by the servers, 78 config\n"
    "Example: token=$(redlock acquire -t 20s deploy) && ./deploy.sh;\n"
    "         redlock release deploy \"$token\"\n";

static const char extend_text[] =
    "Usage: redlock extend [flags] NAME... TOKEN\n"
    "       redlock extend [flags] --token-file FILE NAME...  (FILE - is stdin)\n"
    "Gives a lock that is still held a new TTL and prints how long it is valid.\n"
    "  -t D  the new TTL (30s, at most --max-ttl); it never gets shorter\n"
    "  -a NAME  one more name\n" SERVERS
    "Exit: 0, 1 not held with this token any more, 69 no quorum, 64, 77, 78\n"
    "Example: redlock extend -t 20s deploy \"$token\"\n";

static const char release_text[] =
    "Usage: redlock release [flags] NAME... TOKEN\n"
    "       redlock release [flags] --token-file FILE NAME... (FILE - is stdin)\n"
    "Gives the lock back. If it is no longer ours, nothing is done: a warning, exit 0\n"
    "  --strict  then exit 1     -a NAME  one more name\n" SERVERS
    "Exit: 0, 1 (--strict) it was no longer ours, 69 no quorum, 64, 77, 78\n"
    "Example: redlock release deploy \"$token\"\n";

static const char status_text[] =
    "Usage: redlock status [flags] NAME...\n"
    "Who holds each lock, for how long, and what each server says. This is advice:\n"
    "the answer may be old when you read it. To be sure of a lock, take it.\n"
    "  --permits L  NAME has L permits: how many are free, and who holds the others\n" SERVERS
    "Exit: 0 held, 1 free, 3 not known; of several names the highest; 64, 77, 78\n"
    "      --permits: 0 all are held, 1 some are free, 3 some not known and none free\n"
    "Example: redlock status backup deploy\n";

static const char watch_text[] =
    "Usage: redlock watch [flags] NAME...\n"
    "Prints who holds each lock, and again whenever that changes: a JSON object on a\n"
    "line, until it gets a signal. It looks every --interval; what comes and goes\n"
    "between two looks is not seen, nor that the same client took it once more.\n"
    "  -i D, --interval D  how often to look (500ms)\n" SERVERS
    "Exit: 128+n when signal n ended it, 74 stdout was closed, 64, 77, 78\n"
    "Example: redlock watch billing-leader | jq -r .owner\n";

static const char nodes_text[] =
    "Usage: redlock nodes [flags]\n"
    "Are the servers fit to hold locks? Findings, with cause and advice: unreachable,\n"
    "user refused, restarted, promoted, replica, evicting, listed twice, clocks, data\n"
    "It takes a lock for a moment on each, and says what did not work.\n"
    "  --wait     first wait until all vote (a restarted one does not for max-ttl)\n"
    "  -w D       but not longer than that\n"
    "  --fence    are they fit for fences, too?\n"
    "  --acl      prints the smallest user that locks need (--fence: and fences)\n"
    "  --init     takes the fence records of all that answer into use: after a\n"
    "             majority has lost them, or for another list of servers. Not while\n"
    "             fenced locks are being taken.\n" SERVERS
    "Exit: 0 OK, 1 WARN something to mend, 2 CRIT no lock can be had or exclusion is\n"
    "      at risk, 3 UNKNOWN\n"
    "Example: redlock nodes --wait -s a:6379,b:6379,c:6379\n";

static const char break_text[] =
    "Usage: redlock break --yes [flags] NAME\n"
    "Prints who holds the lock, then takes it away on all servers. The holder notices\n"
    "at its next renewal; until then it goes on working. For a holder that is known\n"
    "to be dead, and not needed if you can wait for its TTL.\n"
    "  --yes  do it; without it nothing is done\n" SERVERS
    "Exit: 0 gone, 1 it was free, 69 no quorum, 64, 77, 78\n"
    "Example: redlock status backup; redlock break --yes backup\n";

static const char config_text[] =
    "Usage: redlock config [flags]\n"
    "Prints the settings in effect and where each comes from; passwords are masked.\n"
    "Flags win over the environment, the environment over the file.\n"
    "  -t D -w D -k D --renew D   as for `run`\n" SERVERS
    "File (INI): [redlock] servers prefix user pass-file password max-ttl ttl wait\n"
    "  grace renew connect-timeout node-timeout fence-key fence-records admission\n"
    "  drift heartbeat clock-slack (equal in all clients, as max-ttl);\n"
    "  [node.NAME] url; several sets of servers: [shard.NAME] servers\n"
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
    "Without CMD it prints how to use it and waits for Ctrl-C. All files are below\n"
    "one temporary directory, REDLOCK_SANDBOX_DIR, which holds for each node 1 to N:\n"
    "  DIR/1/port DIR/1/pid DIR/1/log   DIR/1/conf starts it again if it was killed:\n"
    "  \"$REDLOCK_SANDBOX_DIR/redis-server\" \"$REDLOCK_SANDBOX_DIR/1/conf\" &\n"
    "  -n N  number of servers    -q -v  less or more output\n"
    "Exit: CMD's, 128+n, 69 no server program or no start, 126/127 no such CMD, 64\n"
    "Example: redlock sandbox -- sh -c 'redlock run hello -- date; redlock nodes'\n";

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
