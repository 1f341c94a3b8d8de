/* SPDX-License-Identifier: MIT
 * Changes a copy of the environment.
 */
#include "environment.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mask.h"
#include "say.h"

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

void environment_set(struct environment *environment, const char *name, const char *value)
{
    environment_unset(environment, name);
    environment->list =
        must(realloc(environment->list, (environment->count + 2) * sizeof *environment->list));
    environment->list[environment->count++] = text_format("%s=%s", name, value);
    environment->list[environment->count] = NULL;
}

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

void environment_free(struct environment *environment)
{
    for (size_t i = 0; i < environment->count; i++)
        free(environment->list[i]);
    free(environment->list);
    *environment = (struct environment){0};
}
