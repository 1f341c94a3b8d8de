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

/* Copies the settings with their strings. Returns 0, or REDLOCK_ENOMEM with zeroed settings. */
int rl_node_spec_tls_copy(const struct rl_mem *mem, struct rl_tls_settings *to,
                          const struct rl_tls_settings *from)
{
    *to = (struct rl_tls_settings){.verify = from->verify};
    if (copy_text(mem, &to->cacert, from->cacert) != 0 ||
        copy_text(mem, &to->cert, from->cert) != 0 || copy_text(mem, &to->key, from->key) != 0 ||
        copy_text(mem, &to->sni, from->sni) != 0) {
        rl_node_spec_tls_done(mem, to);
        return REDLOCK_ENOMEM;
    }
    return 0;
}

/* Frees the strings and zeroes the settings. */
void rl_node_spec_tls_done(const struct rl_mem *mem, struct rl_tls_settings *settings)
{
    rl_free(mem, settings->cacert);
    rl_free(mem, settings->cert);
    rl_free(mem, settings->key);
    rl_free(mem, settings->sni);
    memset(settings, 0, sizeof *settings);
}

/* Returns true if both strings are NULL, or both are equal. */
static bool is_same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* Returns true if both settings use the same files in the same way. */
bool rl_node_spec_tls_same(const struct rl_tls_settings *a, const struct rl_tls_settings *b)
{
    return a->verify == b->verify && is_same_text(a->cacert, b->cacert) &&
           is_same_text(a->cert, b->cert) && is_same_text(a->key, b->key);
}

/* Copies a spec with its strings. Returns 0, or REDLOCK_ENOMEM with a zeroed `to`. */
int rl_node_spec_copy(const struct rl_mem *mem, struct rl_node_spec *to,
                      const struct rl_node_spec *from)
{
    *to = *from;
    to->user = to->password = NULL;
    to->tls_settings = (struct rl_tls_settings){.verify = from->tls_settings.verify};
    if (copy_text(mem, &to->user, from->user) != 0 ||
        copy_text(mem, &to->password, from->password) != 0 ||
        rl_node_spec_tls_copy(mem, &to->tls_settings, &from->tls_settings) != 0) {
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

/* Wipes and frees the user and the password, frees the other strings, and zeroes the spec. */
void rl_node_spec_done(const struct rl_mem *mem, struct rl_node_spec *spec)
{
    free_secret(mem, spec->user);
    free_secret(mem, spec->password);
    rl_node_spec_tls_done(mem, &spec->tls_settings);
    memset(spec, 0, sizeof *spec);
}
