/* SPDX-License-Identifier: MIT
 * The table of flags, and searches in it.
 */
#include "options_table.h"

#include <stdio.h>
#include <string.h>

#include "options.h"

/* Sets of subcommands, for the last column of the table: those that connect to servers or read
 * settings (all but `sandbox`); those that hand out or take a token; those that acquire; and
 * `config`, which prints what would be in effect with the flag. */
#define ALL     (CMD_RUN | TOKENS | CMD_STATUS | CMD_NODES | CMD_BREAK | CMD_CONFIG | CMD_WATCH)
#define TOKENS  (CMD_ACQUIRE | CMD_EXTEND | CMD_RELEASE)
#define TAKING  (CMD_RUN | CMD_ACQUIRE)
#define SETTING (CMD_CONFIG)

/* The subcommands in the order of enum command_bit. */
const char *const command_names[] = {"run",   "acquire", "extend",  "release", "status", "nodes",
                                     "break", "config",  "sandbox", "watch",   NULL};

/* Columns: long name, letter (0: none), whether it takes a value, id, subcommands that accept it.
 * Rows with the same id are two spellings of one flag. */
const struct option_spec option_specs[] = {
    {"servers", 's', true, OPT_SERVERS, ALL},
    {"config", 'f', true, OPT_CONFIG, ALL},
    {"prefix", 0, true, OPT_PREFIX, ALL},
    {"user", 0, true, OPT_USER, ALL},
    {"pass-file", 0, true, OPT_PASS_FILE, ALL},
    {"max-ttl", 0, true, OPT_MAX_TTL, ALL},
    {"connect-timeout", 0, true, OPT_CONNECT_TIMEOUT, ALL},
    {"node-timeout", 0, true, OPT_NODE_TIMEOUT, ALL},
    {"json", 0, false, OPT_JSON, ALL},
    {"quiet", 'q', false, OPT_QUIET, ALL | CMD_SANDBOX},
    {"verbose", 'v', false, OPT_VERBOSE, ALL | CMD_SANDBOX},
    {"help", 'h', false, OPT_HELP, ALL | CMD_SANDBOX},
    {"nonblock", 'n', false, OPT_NONBLOCK, TAKING},
    {"wait", 'w', true, OPT_WAIT, TAKING | SETTING},
    {"timeout", 0, true, OPT_WAIT, TAKING | SETTING},
    {"conflict-exit-code", 'E', true, OPT_CONFLICT_CODE, TAKING},
    {"ttl", 't', true, OPT_TTL, TAKING | CMD_EXTEND | SETTING},
    {"grace", 'k', true, OPT_GRACE, CMD_RUN | SETTING},
    {"renew", 0, true, OPT_RENEW, CMD_RUN | SETTING},
    {"no-renew", 0, false, OPT_NO_RENEW, CMD_RUN},
    {"signal", 0, true, OPT_SIGNAL, CMD_RUN},
    {"on-loss", 0, true, OPT_ON_LOSS, CMD_RUN},
    {"min-hold", 0, true, OPT_MIN_HOLD, CMD_RUN},
    {"max-hold", 0, true, OPT_MAX_HOLD, CMD_RUN},
    {"keep", 0, false, OPT_KEEP, CMD_RUN},
    {"keep-env", 0, false, OPT_KEEP_ENV, CMD_RUN},
    {"command", 'c', true, OPT_COMMAND, CMD_RUN},
    {"foreground", 0, false, OPT_FOREGROUND, CMD_RUN},
    {"preserve-status", 0, false, OPT_PRESERVE_STATUS, CMD_RUN},
    {"allow-nested", 0, false, OPT_ALLOW_NESTED, CMD_RUN},
    {"export-token", 0, false, OPT_EXPORT_TOKEN, CMD_RUN},
    {"fence", 0, false, OPT_FENCE, TAKING | CMD_NODES},
    {"status-fd", 0, true, OPT_STATUS_FD, CMD_RUN},
    {"also", 'a', true, OPT_ALSO, TAKING | CMD_EXTEND | CMD_RELEASE},
    {"token-file", 0, true, OPT_TOKEN_FILE, CMD_EXTEND | CMD_RELEASE},
    {"strict", 0, false, OPT_STRICT, CMD_RELEASE},
    {"yes", 0, false, OPT_YES, CMD_BREAK},
    {"init", 0, false, OPT_INIT, CMD_NODES},
    {"wait", 0, false, OPT_WAIT_ALL, CMD_NODES},
    {"timeout", 'w', true, OPT_WAIT, CMD_NODES},
    {"acl", 0, false, OPT_ACL, CMD_NODES},
    {"nodes", 'n', true, OPT_NODES, CMD_SANDBOX},
    {"permits", 0, true, OPT_PERMITS, TAKING | CMD_STATUS},
    {"interval", 'i', true, OPT_INTERVAL, CMD_WATCH},
};
const size_t option_specs_count = sizeof option_specs / sizeof option_specs[0];

/* Writes the tables for getopt_long() with those flags that the subcommand accepts. */
void option_table(unsigned command, struct option long_options[OPTION_SPECS_MAX],
                  char short_options[2 * OPTION_SPECS_MAX + 3])
{
    size_t count = 0;
    char *at = short_options;

    /* '+': stop at the first operand. ':': tell a missing value from an unknown flag. */
    *at++ = '+';
    *at++ = ':';
    for (size_t i = 0; i < option_specs_count; i++) {
        const struct option_spec *spec = &option_specs[i];
        if (!(spec->commands & command))
            continue;
        long_options[count++] =
            (struct option){.name = spec->name,
                            .has_arg = spec->takes_value ? required_argument : no_argument,
                            .val = spec->id};
        if (spec->letter) {
            *at++ = spec->letter;
            if (spec->takes_value)
                *at++ = ':';
        }
    }
    long_options[count] = (struct option){0};
    *at = '\0';
}

/* Returns the id of the flag with this letter in the subcommand, or 0. */
int option_by_letter(unsigned command, int letter)
{
    for (size_t i = 0; i < option_specs_count; i++)
        if (option_specs[i].letter == letter && (option_specs[i].commands & command))
            return option_specs[i].id;
    return 0;
}

/* Longest word, in bytes, that is compared; also the distance of words that are not similar. */
#define WORD_MAX 32

/* Returns the smaller number. */
static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Returns how many bytes must be inserted, removed or replaced to make `b` of `a`; two swapped
 * neighbours count once. Returns WORD_MAX if a word is longer than that. */
static unsigned distance(const char *a, const char *b)
{
    /* rows[i][j] is the distance of the first i bytes of `a` and the first j bytes of `b` */
    unsigned rows[WORD_MAX + 1][WORD_MAX + 1];
    size_t a_len = strlen(a), b_len = strlen(b);

    if (a_len > WORD_MAX || b_len > WORD_MAX)
        return WORD_MAX;
    for (size_t i = 0; i <= a_len; i++)
        for (size_t j = 0; j <= b_len; j++) {
            if (i == 0 || j == 0) {
                rows[i][j] = (unsigned)(i + j);
                continue;
            }
            unsigned differs = a[i - 1] != b[j - 1];
            unsigned best =
                least(rows[i - 1][j - 1] + differs, least(rows[i - 1][j], rows[i][j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = least(best, rows[i - 2][j - 2] + 1);
            rows[i][j] = best;
        }
    return rows[a_len][b_len];
}

/* Returns how little `name` is similar to `word`: 1 if `word` has two bytes or more and `name`
 * begins with it; else their distance; WORD_MAX if that exceeds a third of the length of `name`,
 * plus one. */
static unsigned rank(const char *word, const char *name)
{
    size_t len = strlen(word);

    if (len >= 2 && !strncmp(word, name, len))
        return 1;
    unsigned found = distance(word, name);
    return found <= 1 + strlen(name) / 3 && found < strlen(name) ? found : WORD_MAX;
}

/* Returns the flag of the subcommand with the smallest rank(), or NULL if none is similar. */
const char *option_nearest(unsigned command, const char *word)
{
    const char *best = NULL;
    unsigned best_rank = WORD_MAX;

    for (size_t i = 0; i < option_specs_count; i++) {
        if (!(option_specs[i].commands & command))
            continue;
        unsigned here = rank(word, option_specs[i].name);
        if (here < best_rank) {
            best_rank = here;
            best = option_specs[i].name;
        }
    }
    return best;
}

/* Collects the subcommands of all rows with this name or letter, and writes their names to
 * `buffer`. Returns `buffer`, or NULL if there is no such row. */
const char *option_elsewhere(const char *word, char *buffer, size_t size)
{
    unsigned commands = 0;
    size_t used = 0;

    for (size_t i = 0; i < option_specs_count; i++) {
        const struct option_spec *spec = &option_specs[i];
        bool letter = word[0] && !word[1] && word[0] == spec->letter;
        if (letter || !strcmp(word, spec->name))
            commands |= spec->commands;
    }
    if (!commands)
        return NULL;
    buffer[0] = '\0';
    for (size_t i = 0; command_names[i]; i++)
        if ((commands & (1u << i)) && used < size)
            used += (size_t)snprintf(buffer + used, size - used, "%s%s", used ? ", " : "",
                                     command_names[i]);
    return buffer;
}

/* Returns the subcommand with the smallest rank(), or NULL if none is similar. */
const char *command_nearest(const char *word)
{
    const char *best = NULL;
    unsigned best_rank = WORD_MAX;

    for (size_t i = 0; command_names[i]; i++) {
        unsigned here = rank(word, command_names[i]);
        if (here < best_rank) {
            best_rank = here;
            best = command_names[i];
        }
    }
    return best;
}
