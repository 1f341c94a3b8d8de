/* SPDX-License-Identifier: MIT
 * Names, compares, copies and frees the parsed addresses of servers. */
#include "node/spec.h"

#include <redlock/redlock.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

/* Writes spec->name: "host:port" or "unix:path", and the number of the database unless it is 0. */
void rl_node_spec_name(struct rl_node_spec *spec)
{
    bool brackets = strchr(spec->host, ':') != NULL;
    int len;

    if (spec->is_unix)
        len = snprintf(spec->name, sizeof spec->name, "unix:%s", spec->path);
    else
        len = snprintf(spec->name, sizeof spec->name, brackets ? "[%s]:%u" : "%s:%u", spec->host,
                       (unsigned)spec->port);
    RL_ASSERT(len > 0 && (size_t)len < sizeof spec->name);
    if (spec->db != 0)
        snprintf(spec->name + len, sizeof spec->name - (size_t)len,
                 spec->is_unix ? "?db=%u" : "/%u", spec->db);
}

/* Returns the name by which all clients of the server know it: its id, or its name if it has no id.
 */
const char *rl_node_spec_id(const struct rl_node_spec *spec)
{
    return spec->id[0] != '\0' ? spec->id : spec->name;
}

/* Returns true if both specs have the same path, or the same host and port. */
bool rl_node_spec_same_server(const struct rl_node_spec *a, const struct rl_node_spec *b)
{
    if (a->is_unix != b->is_unix)
        return false;
    if (a->is_unix)
        return strcmp(a->path, b->path) == 0;
    return a->port == b->port && strcmp(a->host, b->host) == 0;
}

/* Stores a copy of the string `from`, which may be NULL, in `*to`. Returns 0, or REDLOCK_ENOMEM
 * with NULL in `*to`. */
static int copy_text(const struct rl_mem *mem, char **to, const char *from)
{
    *to = from == NULL ? NULL : rl_strdup_len(mem, from, strlen(from));
    return from != NULL && *to == NULL ? REDLOCK_ENOMEM : 0;
}

/* Copies a spec with its user and password. Returns 0, or REDLOCK_ENOMEM with a zeroed `to`. */
int rl_node_spec_copy(const struct rl_mem *mem, struct rl_node_spec *to,
                      const struct rl_node_spec *from)
{
    *to = *from;
    to->user = to->password = NULL;
    if (copy_text(mem, &to->user, from->user) != 0 ||
        copy_text(mem, &to->password, from->password) != 0) {
        rl_node_spec_done(mem, to);
        return REDLOCK_ENOMEM;
    }
    return 0;
}

/* Wipes and frees a string; ignores NULL. */
static void free_secret(const struct rl_mem *mem, char *text)
{
    if (text != NULL)
        rl_free_wiped(mem, text, strlen(text));
}

/* Wipes and frees the user and the password, and zeroes the spec. */
void rl_node_spec_done(const struct rl_mem *mem, struct rl_node_spec *spec)
{
    free_secret(mem, spec->user);
    free_secret(mem, spec->password);
    memset(spec, 0, sizeof *spec);
}
