/* SPDX-License-Identifier: MIT
 * The table of options: their names, their letters and the subcommands that accept them. The build
 * makes its rows, and the enums of options_ids.h, from tools/manual/table.py.
 */
#ifndef TOOLS_OPTIONS_TABLE_H
#define TOOLS_OPTIONS_TABLE_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>

#include "options_ids.h"

/* One row of the table: an option of some subcommands. The same name or letter may have another
 * row, with another id, for other subcommands. */
struct option_spec {
    const char *name;  /* long name without "--" */
    char letter;       /* letter of the short form; 0: none */
    bool takes_value;  /* the option is followed by a value */
    bool repeats;      /* may be given several times */
    int id;            /* enum option_id */
    unsigned commands; /* the subcommands that accept it, bits of enum command_bit */
};

/* Upper bound of option_specs_count; options_table.c checks it. */
#define OPTION_SPECS_MAX 64

/* The table of all options, and its number of rows. */
extern const struct option_spec option_specs[];
extern const size_t option_specs_count;

/* Writes the two tables that getopt_long() needs for the subcommand `command` (enum command_bit).
 * The short one has at most two bytes for each option, two at its start and a NUL. */
void option_table(unsigned command, struct option long_options[OPTION_SPECS_MAX],
                  char short_options[2 * OPTION_SPECS_MAX + 3]);

/* Returns the enum option_id of the option with this letter in the subcommand; 0 if there is none.
 */
int option_by_letter(unsigned command, int letter);

/* Returns the row of the option `id` (enum option_id) in the subcommand, that of its first long
 * name; NULL if the subcommand does not accept it. */
const struct option_spec *option_by_id(unsigned command, int id);

/* Returns the long name of the subcommand's option that is most similar to `word`; NULL if no
 * option is similar. */
const char *option_nearest(unsigned command, const char *word);

/* Writes the names of the subcommands that accept the option `word` (a long name or a letter) to
 * `buffer`, such as "run, acquire". Returns `buffer`, or NULL if no subcommand accepts it. */
const char *option_elsewhere(const char *word, char *buffer, size_t size);

/* Returns the name of the subcommand that is most similar to `word`; NULL if none is similar. */
const char *command_nearest(const char *word);

/* Entry i is the subcommand of bit i of enum command_bit; ends with NULL. */
extern const char *const command_names[];

#endif
