/* SPDX-License-Identifier: MIT
 * Checks the table of pairs of options that contradict each other, or of which one would be
 * ignored. The build makes the rows from tools/manual/table.py.
 */
#include "conflicts.h"

#include <stdio.h>
#include <string.h>

#include "durations.h"
#include "exits.h"
#include "mask.h"
#include "options_table.h"
#include "say.h"

/* One row of the table: two options that may not be given together. */
struct option_conflict {
    unsigned commands;     /* the subcommands that have the rule, bits of enum command_bit */
    int one, other;        /* enum option_id */
    const char *one_value; /* only this value of `one` is refused; NULL: each */
    const char *text;      /* the reason, and what to do */
    int unless;            /* no conflict if this option is given; 0: always a conflict */
    bool needs;            /* `one` is refused without `other`, not with it */
    bool unless_zero;      /* no conflict if the value of `other` is a duration of 0 */
};

/* Defines option_conflicts. */
#include "conflicts_rows.inc"

/* The longest value that a message shows. */
#define VALUE_MAX 40

/* An option as a message writes it: "--no-renew", "-w 5s". */
struct shown_option {
    char text[128];
};

/* Returns the value with which the option was given, "" if it takes none; NULL if it was not
 * given. */
static const char *value_of(const struct options *options, int id)
{
    return options->given[id - OPT_FIRST];
}

/* Returns the shortest name of the option, and `value` after it unless it is NULL or "". */
static struct shown_option shown_option(const struct options *options, int id, const char *value)
{
    const struct option_spec *spec = option_by_id(options->command, id);
    struct shown_option shown;

    value = value ? mask_word(value) : "";
    const char *blank = *value ? " " : "";
    if (spec->letter)
        snprintf(shown.text, sizeof shown.text, "-%c%s%.*s", spec->letter, blank, VALUE_MAX, value);
    else
        snprintf(shown.text, sizeof shown.text, "--%s%s%.*s", spec->name, blank, VALUE_MAX, value);
    return shown;
}

/* Remembers the option, or refuses another value of an option that was given before. Returns -1 or
 * EXIT_USAGE. */
int conflicts_note(struct options *options, int id, const char *value)
{
    const char **given = &options->given[id - OPT_FIRST];
    const char *before = *given;

    *given = value ? value : "";
    if (!before || !strcmp(before, *given) || option_by_id(options->command, id)->repeats)
        return -1;
    say(SAY_ERROR, "%s: %s after %s: only one value counts; give this option once",
        options->command_name, shown_option(options, id, value).text,
        shown_option(options, id, before).text);
    return EXIT_USAGE;
}

/* Returns true if the value is a duration of 0. */
static bool is_zero(const char *value)
{
    uint64_t ms;

    return duration_parse(value, &ms) && ms == 0;
}

/* Returns true if the command line breaks the rule of the row. */
static bool applies(const struct options *options, const struct option_conflict *row)
{
    const char *one = value_of(options, row->one), *other = value_of(options, row->other);

    if (!(row->commands & options->command) || !one)
        return false;
    if (row->one_value && strcmp(one, row->one_value) != 0)
        return false;
    if (row->unless && value_of(options, row->unless))
        return false;
    if (row->needs)
        return !other;
    return other && !(row->unless_zero && is_zero(other));
}

/* Checks all rows. Returns -1, or EXIT_USAGE after a message about the first row that applies. */
int conflicts_check(const struct options *options)
{
    for (size_t i = 0; i < sizeof option_conflicts / sizeof option_conflicts[0]; i++) {
        const struct option_conflict *row = &option_conflicts[i];
        if (!applies(options, row))
            continue;
        say(SAY_ERROR, "%s: %s %s %s: %s", options->command_name,
            shown_option(options, row->one, value_of(options, row->one)).text,
            row->needs ? "without" : "with",
            shown_option(options, row->other, value_of(options, row->other)).text, row->text);
        return EXIT_USAGE;
    }
    return -1;
}
