/* SPDX-License-Identifier: MIT
 * The table of options, and searches in it.
 */
#include "options_table.h"

#include <stdio.h>
#include <string.h>

/* Defines command_names, option_specs and option_specs_count. */
#include "options_rows.inc"

_Static_assert(sizeof option_specs / sizeof option_specs[0] < OPTION_SPECS_MAX,
               "getopt_long() needs one more entry than there are options");

/* Writes the tables for getopt_long() with those options that the subcommand accepts. */
void option_table(unsigned command, struct option long_options[OPTION_SPECS_MAX],
                  char short_options[2 * OPTION_SPECS_MAX + 3])
{
    size_t count = 0;
    char *at = short_options;

    /* '+': stop at the first operand. ':': tell a missing value from an unknown option. */
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

/* Returns the id of the option with this letter in the subcommand, or 0. */
int option_by_letter(unsigned command, int letter)
{
    for (size_t i = 0; i < option_specs_count; i++)
        if (option_specs[i].letter == letter && (option_specs[i].commands & command))
            return option_specs[i].id;
    return 0;
}

/* Returns the first row of the option `id` that the subcommand accepts; NULL if there is none. */
const struct option_spec *option_by_id(unsigned command, int id)
{
    for (size_t i = 0; i < option_specs_count; i++)
        if (option_specs[i].id == id && (option_specs[i].commands & command))
            return &option_specs[i];
    return NULL;
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

/* Returns the option of the subcommand with the smallest rank(), or NULL if none is similar. */
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
