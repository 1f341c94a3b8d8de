/* SPDX-License-Identifier: MIT
 * The environment of a command: ours, with some names replaced.
 */
#ifndef TOOLS_ENVIRONMENT_H
#define TOOLS_ENVIRONMENT_H

#include <stddef.h>

/* The value of REDLOCK_LOGIN in the environment of a command that had REDLOCK_AUTH removed. */
#define LOGIN_REMOVED "removed"

struct environment {
    char **list; /* ends with NULL */
    size_t count;
};

void environment_copy(struct environment *environment);
void environment_unset(struct environment *environment, const char *name);
void environment_set(struct environment *environment, const char *name, const char *value);

/* Removes REDLOCK_AUTH and masks the passwords in REDLOCK_SERVERS. Sets REDLOCK_LOGIN if
 * REDLOCK_AUTH was removed, so that a redlock inside the command can report what it lacks. */
void environment_remove_passwords(struct environment *environment);

void environment_free(struct environment *environment);

#endif
