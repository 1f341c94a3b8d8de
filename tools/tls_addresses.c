/* SPDX-License-Identifier: MIT
 * Compares the settings of TLS with the parameters in the addresses of the servers.
 */
#include "tls_addresses.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "say.h"
#include "server_address.h"
#include "shards.h"

/* Takes what one address says of TLS; `host` is its part before the parameters, without the login.
 * Both are borrowed. Returns true to end the walk. */
typedef bool visit_fn(const struct server_security *own, const char *host, void *arg);

/* Returns the part of an address before its parameters, without scheme and login. To be freed. */
static char *host_of(const char *address, size_t len)
{
    const char *scheme = memmem(address, len, "://", 3);
    const char *begin = scheme ? scheme + 3 : address;
    size_t rest = strcspn(begin, "?,");
    const char *at = memrchr(begin, '@', rest);

    begin = at ? at + 1 : begin;
    return text_format("%.*s", (int)strcspn(begin, "?,"), begin);
}

/* Calls `visit` for the addresses of one shard, each of which ends with a comma. Returns true if
 * one call has. */
static bool walk_shard(const char *list, visit_fn *visit, void *arg)
{
    bool ended = false;

    for (size_t i = 0; *list && !ended; i++) {
        size_t len = strcspn(list, ",");
        char *address = text_format("%.*s", (int)len, list), *host = host_of(address, len);
        struct server_security own = server_security_of(address, 0);
        ended = len > 0 && visit(&own, host, arg);
        server_security_free(&own);
        explicit_bzero(address, len);
        free(address);
        free(host);
        list += len + (list[len] == ',');
    }
    return ended;
}

/* Calls `visit` for each address of the settings, until one call returns true. */
static void walk(const struct settings *settings, visit_fn *visit, void *arg)
{
    const char *servers = settings->values[SET_SERVERS].text;
    bool more = true;

    for (size_t shard = 0; more; shard++) {
        char *list = shards_addresses(servers, shard);
        more = *list && !walk_shard(list, visit, arg) && shards_are_named(servers);
        explicit_bzero(list, strlen(list));
        free(list);
    }
}

/* A complaint of the library, and where the file comes from. */
struct search {
    const struct settings *settings;
    const char *why;
    char *found; /* NULL: it is not known yet */
};

/* Returns true if the complaint is about the file `path` (NULL: none): it has the path as a word
 * before a colon. */
static bool is_about(const struct search *search, const char *path)
{
    char *word = path ? text_format(" %s: ", path) : NULL;
    bool found = word && strstr(search->why, word);

    free(word);
    return found;
}

/* Notes that the complaint is about the file `path`, which `name` of `origin` names. */
static void note(struct search *search, const char *origin, const char *name, const char *path)
{
    char *directory = *path == '/' ? NULL : getcwd(NULL, 0);

    search->found = text_format("%s%s%s%s%s%s", origin, *name ? ": " : "", name,
                                directory ? " (relative to " : "", directory ? directory : "",
                                directory ? ")" : "");
    free(directory);
}

/* Implements visit_fn: looks for the file in an address. */
static bool find_in_address(const struct server_security *own, const char *host, void *arg)
{
    struct search *search = arg;
    const char *origin = search->settings->values[SET_SERVERS].origin;
    const struct {
        const char *name, *path;
    } files[] = {{"cacert", own->cacert}, {"key", own->key}, {"cert", own->cert}};

    for (size_t i = 0; own->used && i < sizeof files / sizeof files[0]; i++) {
        if (!is_about(search, files[i].path))
            continue;
        char *name = text_format("%s of %s", files[i].name, host);
        note(search, origin, name, files[i].path);
        free(name);
        return true;
    }
    return false;
}

/* Looks for the file in the settings, then in the addresses. A complaint about verify is about an
 * address: settings_check_tls() has checked the setting. */
char *tls_origin(const struct settings *settings, const char *why)
{
    static const enum setting_id ids[] = {SET_TLS_CACERT, SET_TLS_KEY, SET_TLS_CERT};
    struct search search = {.settings = settings, .why = why};

    for (size_t i = 0; !search.found && i < sizeof ids / sizeof ids[0]; i++) {
        const struct setting *value = &settings->values[ids[i]];
        if (is_about(&search, value->text))
            note(&search, value->origin, value->rank == RANK_FILE ? setting_name(ids[i]) : "",
                 value->text);
    }
    if (!search.found)
        walk(settings, find_in_address, &search);
    if (!search.found && strstr(why, ": verify="))
        search.found = text_copy(settings->values[SET_SERVERS].origin);
    return search.found;
}

/* The settings of TLS that may have no effect. */
static const struct {
    enum setting_id id;
    const char *own; /* what the addresses have in its place */
} COMMON[] = {{SET_TLS_CACERT, "cacert or verify=none"},
              {SET_TLS_CERT, "cert"},
              {SET_TLS_SNI, "sni"},
              {SET_TLS_VERIFY, "cacert or verify"}};
#define COMMON_COUNT (sizeof COMMON / sizeof COMMON[0])

/* Which settings some server uses, by their index in COMMON. */
struct usage {
    bool tls; /* some server is connected with TLS */
    bool used[COMMON_COUNT];
};

/* Implements visit_fn: notes which common settings the server uses. */
static bool note_use(const struct server_security *own, const char *host, void *arg)
{
    struct usage *usage = arg;

    (void)host;
    if (!own->used)
        return false;
    usage->tls = true;
    usage->used[0] = usage->used[0] || !(own->cacert || own->verify == REDLOCK_TLS_VERIFY_NONE);
    usage->used[1] = usage->used[1] || !own->cert;
    usage->used[2] = usage->used[2] || !own->sni;
    usage->used[3] = usage->used[3] || !(own->cacert || own->has_verify);
    return false;
}

/* Warns about settings without effect; about the first one only if no server uses TLS. */
void tls_warn_unused(const struct settings *settings)
{
    enum setting_id first = settings_first_tls(settings);
    struct usage usage = {.tls = false};

    if (first == SET_COUNT)
        return;
    walk(settings, note_use, &usage);
    if (!usage.tls) {
        say(SAY_WARNING,
            "%s: %s has no effect: no server is connected with TLS; write rediss://host",
            settings->values[first].origin, setting_name(first));
        return;
    }
    for (size_t i = 0; i < COMMON_COUNT; i++) {
        enum setting_id id = COMMON[i].id;
        if (!usage.used[i] && settings_weighs(settings, id))
            say(SAY_WARNING, "%s: %s has no effect: every address has its own %s",
                settings->values[id].origin, setting_name(id), COMMON[i].own);
    }
}
