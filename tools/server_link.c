/* SPDX-License-Identifier: MIT
 * Connects to a single server with hiredis. The library names the place of each server, and the
 * settings have the logins: those in the addresses, else the common one.
 */
#include "server_link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "say.h"
#include "shards.h"

/* Removes "/db" or "?db=N" from the end of `text`. Returns N; 0 if there is none. */
static int cut_db(char *text, const char *mark)
{
    char *last = NULL;

    for (char *at = strstr(text, mark); at; at = strstr(at + 1, mark))
        last = at;
    if (!last)
        return 0;
    int db = atoi(last + strlen(mark));
    *last = '\0';
    return db;
}

/* Splits the name of a server into its place and its database. */
struct server_place server_place_of(const char *node)
{
    struct server_place place = {.host = ""};

    if (!strncmp(node, "unix:", 5)) {
        snprintf(place.path, sizeof place.path, "%s", node + 5);
        place.db = cut_db(place.path, "?db=");
        return place;
    }
    bool brackets = node[0] == '[';
    snprintf(place.host, sizeof place.host, "%s", node + brackets);
    place.db = cut_db(place.host, "/");
    char *colon = strrchr(place.host, ':');
    if (!colon)
        return place;
    place.port = atoi(colon + 1);
    *colon = '\0';
    size_t len = strlen(place.host);
    if (brackets && len > 0 && place.host[len - 1] == ']')
        place.host[len - 1] = '\0';
    return place;
}

/* Returns the value of a hex digit, or -1. */
static int hex_value(char digit)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    const char *at = digit ? strchr(digits, digit) : NULL;

    return at ? (int)((at - digits) % 16) : -1;
}

/* Returns a copy of `len` bytes with each "%HH" decoded; NULL if `len` is 0. To be freed. */
static char *decoded(const char *text, size_t len)
{
    char *copy = must(malloc(len + 1)), *to = copy;

    for (size_t i = 0; i < len; i++) {
        int high = i + 2 < len ? hex_value(text[i + 1]) : -1;
        int low = i + 2 < len ? hex_value(text[i + 2]) : -1;
        if (text[i] == '%' && high >= 0 && low >= 0) {
            *to++ = (char)(high * 16 + low);
            i += 2;
        } else {
            *to++ = text[i];
        }
    }
    *to = '\0';
    if (len > 0)
        return copy;
    free(copy);
    return NULL;
}

/* Finds entry `index` of the list. Returns its length, with its start in *ret; 0 if there is none.
 */
static size_t find_entry(const char *list, size_t index, const char **ret)
{
    const char *separators = shards_separators(list);

    for (list += strspn(list, separators); *list; list += strspn(list, separators)) {
        size_t len = strcspn(list, separators);
        *ret = list;
        if (index-- == 0)
            return len;
        list += len;
    }
    return 0;
}

/* Finds the login between the scheme and the '@' of one entry of the list. */
struct server_login server_login_of(const char *list, size_t index)
{
    const char *entry;
    size_t len = find_entry(list, index, &entry);
    const char *scheme = len ? memmem(entry, len, "://", 3) : NULL;

    if (!scheme)
        return (struct server_login){NULL, NULL};
    const char *start = scheme + 3;
    size_t authority = strcspn(start, "/?#");
    if (authority > len - (size_t)(start - entry))
        authority = len - (size_t)(start - entry);
    const char *at = memrchr(start, '@', authority);
    const char *colon = at ? memchr(start, ':', (size_t)(at - start)) : NULL;
    if (!colon)
        return (struct server_login){NULL, NULL};
    return (struct server_login){.user = decoded(start, (size_t)(colon - start)),
                                 .password = decoded(colon + 1, (size_t)(at - colon - 1))};
}

/* Overwrites and frees one text. */
static void wipe(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}

/* Overwrites and frees both texts. */
void server_login_free(struct server_login *login)
{
    wipe(login->user);
    wipe(login->password);
    *login = (struct server_login){NULL, NULL};
}

/* Sends one command and frees its reply. Returns true if the reply is no error. */
static bool command(redisContext *context, const char *const *words, int count)
{
    redisReply *reply = redisCommandArgv(context, count, (const char **)(uintptr_t)words, NULL);
    bool good = reply && reply->type != REDIS_REPLY_ERROR;

    if (reply)
        freeReplyObject(reply);
    return good;
}

/* Logs in with the login of the address, else with the common one, if there is one. Returns false
 * if the server refuses it. The reply is not shown, because it may repeat the password. */
static bool log_in(redisContext *context, const struct settings *settings, size_t shard,
                   size_t place)
{
    char *list = shards_addresses(settings->values[SET_SERVERS].text, shard);
    struct server_login login = server_login_of(list, place);
    bool own = login.password != NULL;
    const char *user = own ? login.user : settings->values[SET_USER].text;
    const char *password = own ? login.password : settings->password;
    bool good = true;

    if (password && user)
        good = command(context, (const char *[]){"AUTH", user, password}, 3);
    else if (password)
        good = command(context, (const char *[]){"AUTH", password}, 2);
    server_login_free(&login);
    wipe(list);
    return good;
}

/* Selects the database of the server unless it is 0. Returns false if the server refuses it. */
static bool select_db(redisContext *context, int db)
{
    char number[16];

    snprintf(number, sizeof number, "%d", db);
    return db == 0 || command(context, (const char *[]){"SELECT", number}, 2);
}

/* Returns the duration as hiredis needs it. */
static struct timeval timeval_of(uint32_t ms)
{
    return (struct timeval){.tv_sec = (time_t)(ms / 1000),
                            .tv_usec = (suseconds_t)(ms % 1000) * 1000};
}

/* Connects, logs in and selects the database. */
redisContext *server_connect(const struct settings *settings, const redlock_node_stats_t *node,
                             size_t place, uint32_t reply_ms, char error[LINK_ERROR_MAX])
{
    struct server_place where = server_place_of(node->node);
    struct timeval connect_time = timeval_of(settings->connect_timeout_ms);
    redisContext *context = *where.path
                                ? redisConnectUnixWithTimeout(where.path, connect_time)
                                : redisConnectWithTimeout(where.host, where.port, connect_time);

    must(context);
    const char *why = NULL;
    if (context->err)
        why = context->errstr;
    else if (redisSetTimeout(context, timeval_of(reply_ms)) != REDIS_OK)
        why = context->errstr;
    else if (!log_in(context, settings, node->shard_index, place))
        why = context->err ? context->errstr : "the server refuses the login";
    else if (!select_db(context, where.db))
        why = context->err ? context->errstr : "the server refuses the database";
    if (!why)
        return context;
    snprintf(error, LINK_ERROR_MAX, "%s", why);
    redisFree(context);
    return NULL;
}
