/* SPDX-License-Identifier: MIT
 * The names that a command was given: one lock, or several that are acquired together.
 */
#ifndef TOOLS_NAMES_H
#define TOOLS_NAMES_H

#include <jansson.h>

#include "options.h"
#include "redlock/redlock.h"

/* The names of one lock. names_collect() fills it. The strings of `list` are those of the command
 * line. */
struct names {
    const char *list[REDLOCK_RESOURCES_MAX]; /* the names, in the order of the command line */
    size_t count;                            /* number of names in `list`, at least 1 */
    char *text; /* all of them, separated by commas, for messages; owned */
};

/* Collects the first `operands` operands and the names of --also, and checks them. Returns -1 on
 * success, or EXIT_USAGE after a message. */
int names_collect(struct names *ret_names, const struct options *options, size_t operands);
/* Frees names->text. */
void names_free(struct names *names);

/* Sets opts->also to all names but the first. `names` must outlive `opts`. */
void names_to_opts(const struct names *names, redlock_opts_t *opts);
/* Adds the array "names" to `object` if there are several. */
void names_to_json(const struct names *names, json_t *object);
/* Returns true if one of the names equals the `len` bytes at `name`. */
bool names_have(const struct names *names, const char *name, size_t len);

#endif
