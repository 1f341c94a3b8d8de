/* SPDX-License-Identifier: MIT
 * Parses the command line of every subcommand.
 */
#ifndef TOOLS_OPTIONS_H
#define TOOLS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One bit for each subcommand, in the order of command_names. */
enum command_bit {
    CMD_RUN = 1u << 0,
    CMD_ACQUIRE = 1u << 1,
    CMD_EXTEND = 1u << 2,
    CMD_RELEASE = 1u << 3,
    CMD_STATUS = 1u << 4,
    CMD_NODES = 1u << 5,
    CMD_BREAK = 1u << 6,
    CMD_CONFIG = 1u << 7,
    CMD_SANDBOX = 1u << 8,
    CMD_WATCH = 1u << 9
};

/* The parsed command line. options_parse() fills it; nothing changes it later. Fields are named
 * after the flags that set them: a bool is true if its flag was given. Texts that may also come
 * from the environment or a file stay text; settings.c merges and parses them. NULL: the flag was
 * not given. The strings are borrowed from argv, except that main.c frees `servers`, `also` and
 * `operands`. */
struct options {
    unsigned command;         /* enum command_bit */
    const char *command_name; /* name of the subcommand, such as "run" */

    char *servers; /* all values of -s, joined with blanks */
    /* values of -f, --prefix, --user, --pass-file */
    const char *config_file, *prefix, *user, *pass_file;
    /* durations as text: --max-ttl, --connect-timeout, --node-timeout, -t, -w, -k, --renew */
    const char *max_ttl, *connect_timeout, *node_timeout, *ttl, *wait, *grace, *renew;

    bool json, quiet, nonblock; /* nonblock: -n of `run` and `acquire`, which sets `wait` to "0" */
    int verbose;                /* how many -v */

    int conflict_code;                 /* -E, the exit code if another client holds the lock */
    uint64_t min_hold_ms, max_hold_ms; /* 0: not given */
    int stop_signal;                   /* number of the signal of --signal */
    int status_fd;                     /* descriptor of --status-fd; -1: none */
    /* flags of `run`; warn_on_loss: --on-loss warn */
    bool no_renew, keep, keep_env, warn_on_loss, foreground, preserve_status, allow_nested;
    bool export_token;
    const char *shell_command; /* -c of `run` */
    const char *token_file;    /* of `extend` and `release` */
    bool strict, yes;          /* of `release`; of `break` */
    bool fence;                /* --fence: a fencing token is wanted, or is examined */
    bool init, wait_all, acl;  /* of `nodes`; wait_all: --wait */
    unsigned nodes;            /* sandbox: number of servers */
    unsigned permits;          /* number of permits of a semaphore; 0: NAME is a lock */
    uint64_t interval_ms;      /* watch: time between two inspections */

    const char **also; /* the names of --also */
    size_t also_count;
    char **operands; /* all arguments that are no flags */
    size_t operand_count;
};

/* Parses the arguments of the subcommand `command` (enum command_bit), argv[0] being its name, and
 * sets up messages. Returns -1 if the subcommand can be run. Else returns the exit code of the
 * program: help was printed, or the usage was wrong and a message was printed. */
int options_parse(unsigned command, const char *command_name, int argc, char **argv,
                  struct options *ret_options);

#endif
