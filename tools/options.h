/* SPDX-License-Identifier: MIT
 * Parses the command line of every subcommand.
 */
#ifndef TOOLS_OPTIONS_H
#define TOOLS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "options_ids.h"

/* The parsed command line. options_parse() fills it; nothing changes it later. Fields are named
 * after the options that set them: a bool is true if its option was given. Texts that may also come
 * from the environment or a file stay text; settings.c merges and parses them. NULL: the option was
 * not given. The strings are borrowed from argv, except that main.c frees `servers`, `also` and
 * `operands`. */
struct options {
    unsigned command;         /* enum command_bit */
    const char *command_name; /* name of the subcommand, such as "run" */

    /* Entry `id - OPT_FIRST` is the last value of the option `id` as text: "" if it takes none,
     * NULL if it was not given. */
    const char *given[OPT_END - OPT_FIRST];

    char *servers;           /* all values of -s, joined with blanks */
    const char *config_file; /* -f */
    const char *prefix;      /* --prefix */
    const char *user;        /* --user */
    const char *pass_file;   /* --pass-file: file with the password */
    /* durations as text: --max-ttl, --connect-timeout, --node-timeout */
    const char *max_ttl, *connect_timeout, *node_timeout;
    /* the options of TLS, as text: --tls-cacert, --tls-cert, --tls-key, --tls-sni, --tls-verify */
    const char *tls_cacert, *tls_cert, *tls_key, *tls_sni, *tls_verify;
    const char *ttl;         /* -t, a duration as text */
    const char *wait;        /* -w, a duration as text; "0" after -n */
    const char *quorum_wait; /* --quorum-wait, a duration as text */
    const char *grace;       /* -k, a duration as text: time between the stop signal and KILL */
    const char *renew;       /* --renew, a duration as text: time between two extensions */

    bool json;     /* print JSON */
    bool quiet;    /* -q: print errors only */
    bool once;     /* `top`: print once instead of drawing */
    bool nonblock; /* -n of `run` and `acquire`: do not wait for the lock */
    int verbose;   /* number of -v */

    int conflict_code;         /* -E, the exit code if another client holds the lock */
    uint64_t min_hold_ms;      /* how long `run` holds the lock at least; 0: not given */
    uint64_t max_hold_ms;      /* after which time `run` stops the command; 0: not given */
    int stop_signal;           /* number of the signal of --signal */
    int status_fd;             /* descriptor to which `run` writes events; -1: none */
    bool no_renew;             /* do not extend the lock */
    bool no_line;              /* do not use lines; settings.c merges it with other sources */
    bool keep;                 /* do not release the lock at the end */
    bool keep_env;             /* leave passwords in the environment of the command */
    bool warn_on_loss;         /* --on-loss warn: do not stop the command if the lock is lost */
    bool foreground;           /* keep the command in our process group */
    bool preserve_status;      /* exit with the status of the command even if it was stopped */
    bool allow_nested;         /* allow to wait for a lock that an enclosing `redlock run` holds */
    bool export_token;         /* give the command the token of the lock */
    const char *shell_command; /* -c of `run`: a command for /bin/sh */
    const char *token_file;    /* of `extend` and `release`: file with the token */
    const char *metrics_file;  /* of `run` and `nodes`: file for figures */
    bool strict;               /* `release` fails if the lock is not held with this token */
    bool yes;                  /* `break` really deletes the key */
    bool fence;                /* acquire with a fencing token; `nodes`: examine fences, too */
    bool init;                 /* `nodes` takes the fence records into use */
    bool wait_all;             /* --wait of `nodes`: wait until all servers are eligible */
    bool acl;                  /* `nodes` prints the rights that a user needs */
    unsigned nodes;            /* sandbox: number of servers */
    bool tls;                  /* sandbox: the servers speak TLS only */
    unsigned permits;          /* number of permits of a semaphore; 0: NAME is a lock */
    uint64_t interval_ms;      /* watch, top: time between two inspections */
    const char *match;         /* top: glob pattern of the names to search for */
    unsigned scan_rate;        /* top: keys that SCAN examines a second on a server */

    const char **also; /* the names of --also */
    size_t also_count;
    char **operands; /* all arguments that are no options */
    size_t operand_count;
};

/* Parses the arguments of the subcommand `command` (enum command_bit), argv[0] being its name, and
 * sets up messages. Returns -1 if the subcommand can be run. Else returns the exit code of the
 * program: help was printed, or the usage was wrong and a message was printed. */
int options_parse(unsigned command, const char *command_name, int argc, char **argv,
                  struct options *ret_options);

#endif
