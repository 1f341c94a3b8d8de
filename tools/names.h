/* SPDX-License-Identifier: MIT
 * The locks that a command is about: one, or several that are taken together.
 */
#ifndef TOOLS_NAMES_H
#define TOOLS_NAMES_H

#include <jansson.h>

#include "options.h"
#include "redlock/redlock.h"

struct names {
    const char *list[REDLOCK_RESOURCES_MAX];
    size_t count;
    char *text; /* all of them, for people */
};

/* The first `operands` operands and what --also says. -1, or EXIT_USAGE, said. */
int names_collect(struct names *ret_names, const struct options *options, size_t operands);
void names_free(struct names *names);

/* Beside the first one. */
void names_to_opts(const struct names *names, redlock_opts_t *opts);
/* Adds "names" if there are several. */
void names_to_json(const struct names *names, json_t *object);
/* The name is one of them. */
bool names_have(const struct names *names, const char *name, size_t len);

#endif
