/* SPDX-License-Identifier: MIT
 * The table of flags: their names, their letters and the subcommands that accept them.
 */
#ifndef TOOLS_OPTIONS_TABLE_H
#define TOOLS_OPTIONS_TABLE_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>

/* Identifies a flag. The values begin above all letters, as getopt_long() needs. */
enum option_id {
    OPT_SERVERS = 256,
    OPT_CONFIG,
    OPT_PREFIX,
    OPT_USER,
    OPT_PASS_FILE,
    OPT_MAX_TTL,
    OPT_CONNECT_TIMEOUT,
    OPT_NODE_TIMEOUT,
    OPT_JSON,
    OPT_QUIET,
    OPT_VERBOSE,
    OPT_HELP,
    OPT_NONBLOCK,
    OPT_WAIT,
    OPT_CONFLICT_CODE,
    OPT_TTL,
    OPT_GRACE,
    OPT_RENEW,
    OPT_NO_RENEW,
    OPT_SIGNAL,
    OPT_ON_LOSS,
    OPT_MIN_HOLD,
    OPT_MAX_HOLD,
    OPT_KEEP,
    OPT_KEEP_ENV,
    OPT_COMMAND,
    OPT_FOREGROUND,
    OPT_PRESERVE_STATUS,
    OPT_ALLOW_NESTED,
    OPT_EXPORT_TOKEN,
    OPT_FENCE,
    OPT_STATUS_FD,
    OPT_TOKEN_FILE,
    OPT_STRICT,
    OPT_YES,
    OPT_INIT,
    OPT_WAIT_ALL,
    OPT_ACL,
    OPT_NODES,
    OPT_INTERVAL,
    OPT_ALSO,
    OPT_PERMITS
};

/* One row of the table: a flag of some subcommands. The same name or letter may have another row,
 * with another id, for other subcommands. */
struct option_spec {
    const char *name;  /* long name without "--" */
    char letter;       /* letter of the short form; 0: none */
    bool takes_value;  /* the flag is followed by a value */
    int id;            /* enum option_id */
    unsigned commands; /* the subcommands that accept it, bits of enum command_bit */
};

/* Upper bound of option_specs_count. */
#define OPTION_SPECS_MAX 64

/* The table of all flags, and its number of rows. */
extern const struct option_spec option_specs[];
extern const size_t option_specs_count;

/* Writes the two tables that getopt_long() needs for the subcommand `command` (enum command_bit).
 * The short one has at most two bytes for each flag, two at its start and a NUL. */
void option_table(unsigned command, struct option long_options[OPTION_SPECS_MAX],
                  char short_options[2 * OPTION_SPECS_MAX + 3]);

/* Returns the enum option_id of the flag with this letter in the subcommand; 0 if there is none. */
int option_by_letter(unsigned command, int letter);

/* Returns the long name of the subcommand's flag that is most similar to `word`; NULL if no flag is
 * similar. */
const char *option_nearest(unsigned command, const char *word);

/* Writes the names of the subcommands that accept the flag `word` (a long name or a letter) to
 * `buffer`, such as "run, acquire". Returns `buffer`, or NULL if no subcommand accepts it. */
const char *option_elsewhere(const char *word, char *buffer, size_t size);

/* Returns the name of the subcommand that is most similar to `word`; NULL if none is similar. */
const char *command_nearest(const char *word);

/* Entry i is the subcommand of bit i of enum command_bit; ends with NULL. */
extern const char *const command_names[];

#endif
