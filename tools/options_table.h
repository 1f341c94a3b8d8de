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

/* One flag of some subcommands. The same name may be another flag in other subcommands. */
struct option_spec {
    const char *name;
    char letter; /* 0: none */
    bool takes_value;
    int id;            /* enum option_id */
    unsigned commands; /* the subcommands that accept it, bits of enum command_bit */
};

/* Upper bound of option_specs_count. */
#define OPTION_SPECS_MAX 64

extern const struct option_spec option_specs[];
extern const size_t option_specs_count;

/* Writes the tables that getopt_long() needs for one subcommand. */
void option_table(unsigned command, struct option long_options[OPTION_SPECS_MAX],
                  char short_options[2 * OPTION_SPECS_MAX + 3]);

/* Returns the enum option_id of a letter in a subcommand, 0 if it has none. */
int option_by_letter(unsigned command, int letter);

/* Returns the name of the subcommand's flag that is most similar to `word`, or NULL. */
const char *option_nearest(unsigned command, const char *word);

/* Writes the subcommands that accept the flag `word` to `buffer`, as "run, acquire", and returns
 * it. Returns NULL if there is none. */
const char *option_elsewhere(const char *word, char *buffer, size_t size);

/* Returns the subcommand that is most similar to `word`, or NULL. */
const char *command_nearest(const char *word);

/* Entry i is the subcommand of bit i of enum command_bit; ends with NULL. */
extern const char *const command_names[];

#endif
