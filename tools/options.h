/* SPDX-License-Identifier: MIT
 * The command line of every subcommand. One table says which flag belongs where.
 */
#ifndef TOOLS_OPTIONS_H
#define TOOLS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* Values that may also come from the environment or a file stay text here; settings.c merges and
 * parses them. NULL: flag not given. */
struct options {
    unsigned command;
    const char *command_name;

    char *servers; /* all -s joined with blanks */
    const char *config_file, *prefix, *user, *pass_file;
    const char *max_ttl, *connect_timeout, *node_timeout, *ttl, *wait, *grace, *renew;

    bool json, quiet, nonblock;
    int verbose;

    int conflict_code;
    uint64_t min_hold_ms, max_hold_ms; /* 0: none */
    int stop_signal, status_fd;        /* status_fd -1: none */
    bool no_renew, keep, keep_env, warn_on_loss, foreground, preserve_status, allow_nested;
    bool export_token;
    const char *shell_command;
    const char *token_file;
    bool strict, yes;
    bool fence, init, wait_all, acl;
    unsigned nodes;       /* sandbox */
    unsigned slots;       /* permits of a semaphore; 0: NAME is a lock */
    uint64_t interval_ms; /* watch */

    const char **also; /* further NAMEs, of --also */
    size_t also_count;
    char **operands; /* NAME and what follows it */
    size_t operand_count;
};

/* -1: go on; else the exit code (help was printed, or the usage was wrong and that was said). */
int options_parse(unsigned command, const char *command_name, int argc, char **argv,
                  struct options *ret_options);

#endif
