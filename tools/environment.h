/* SPDX-License-Identifier: MIT
 * The environment of a command: a copy of our own, with some variables changed.
 */
#ifndef TOOLS_ENVIRONMENT_H
#define TOOLS_ENVIRONMENT_H

#include <stddef.h>

/* The value of the variable REDLOCK_LOGIN in the environment of a command from which REDLOCK_AUTH,
 * the password, was removed. */
#define LOGIN_REMOVED "removed"

/* A copy of an environment, which the caller owns. Only environment.c changes it. The last entry
 * of `list` is followed by NULL. */
struct environment {
    char **list;  /* entries "NAME=value", owned */
    size_t count; /* without the NULL at the end */
};

/* Copies the environment of this process. To be freed with environment_free(). */
void environment_copy(struct environment *environment);
/* Removes a variable. Does nothing if it is not there. */
void environment_unset(struct environment *environment, const char *name);
/* Sets or replaces a variable. The value is copied. */
void environment_set(struct environment *environment, const char *name, const char *value);

/* Removes REDLOCK_AUTH and masks the passwords in REDLOCK_SERVERS. Sets REDLOCK_LOGIN if
 * REDLOCK_AUTH was removed, so that a `redlock` inside the command can report what it lacks. */
void environment_remove_passwords(struct environment *environment);

/* Frees the entries and the list. All fields may be zero. */
void environment_free(struct environment *environment);

#endif
