/* SPDX-License-Identifier: MIT
 * The environment of a command: ours, with some names replaced.
 */
#ifndef TOOLS_ENVIRONMENT_H
#define TOOLS_ENVIRONMENT_H

#include <stddef.h>

struct environment {
    char **list; /* ends with NULL */
    size_t count;
};

void environment_copy(struct environment *environment);
void environment_unset(struct environment *environment, const char *name);
void environment_set(struct environment *environment, const char *name, const char *value);
void environment_free(struct environment *environment);

#endif
