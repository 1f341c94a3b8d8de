/* SPDX-License-Identifier: MIT
 * Makes and changes a copy of the environment of this process, for a command.
 */
#include "environment.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mask.h"
#include "say.h"

/* Fills *environment with a copy of the environment of this process. To be freed with
 * environment_free(). */
void environment_copy(struct environment *environment)
{
    size_t count = 0;

    while (environ[count])
        count++;
    environment->list = must(calloc(count + 1, sizeof *environment->list));
    environment->count = count;
    for (size_t i = 0; i < count; i++)
        environment->list[i] = text_copy(environ[i]);
}

/* Removes the variable `name`, if it is there. */
void environment_unset(struct environment *environment, const char *name)
{
    size_t len = strlen(name), kept = 0;

    for (size_t i = 0; i < environment->count; i++) {
        char *entry = environment->list[i];
        if (!strncmp(entry, name, len) && entry[len] == '=')
            free(entry);
        else
            environment->list[kept++] = entry;
    }
    environment->count = kept;
    environment->list[kept] = NULL;
}

/* Sets the variable `name` to a copy of `value`, and replaces an old value. */
void environment_set(struct environment *environment, const char *name, const char *value)
{
    environment_unset(environment, name);
    environment->list =
        must(realloc(environment->list, (environment->count + 2) * sizeof *environment->list));
    environment->list[environment->count++] = text_format("%s=%s", name, value);
    environment->list[environment->count] = NULL;
}

/* Removes REDLOCK_AUTH, sets REDLOCK_LOGIN if it had a value, and masks the passwords in
 * REDLOCK_SERVERS. Looks at the environment of this process for both. */
void environment_remove_passwords(struct environment *environment)
{
    const char *servers = getenv("REDLOCK_SERVERS");
    const char *password = getenv("REDLOCK_AUTH");

    environment_unset(environment, "REDLOCK_AUTH");
    if (password && *password)
        environment_set(environment, "REDLOCK_LOGIN", LOGIN_REMOVED);
    if (!servers)
        return;
    char *masked = mask_addresses(servers);
    environment_set(environment, "REDLOCK_SERVERS", masked);
    free(masked);
}

/* Frees all entries and the list, and sets the fields to zero. */
void environment_free(struct environment *environment)
{
    for (size_t i = 0; i < environment->count; i++)
        free(environment->list[i]);
    free(environment->list);
    *environment = (struct environment){0};
}
