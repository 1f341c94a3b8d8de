/* SPDX-License-Identifier: MIT
 * Reads from the list of addresses and from the names of servers what a connection of the command
 * needs. The library has checked the list before.
 */
#include "server_address.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

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

/* Returns the enum redlock_tls_verify that a word of `len` bytes stands for: as in the library, in
 * lower case only. */
static int verify_of(const char *word, size_t len)
{
    if (len == 5 && !memcmp(word, "chain", len))
        return REDLOCK_TLS_VERIFY_CHAIN;
    return len == 4 && !memcmp(word, "none", len) ? REDLOCK_TLS_VERIFY_NONE
                                                  : REDLOCK_TLS_VERIFY_FULL;
}

/* Reads one parameter "name=value" of `len` bytes, if it is one of TLS. */
static void read_parameter(const char *text, size_t len, struct server_security *security)
{
    const struct {
        const char *name;
        char **to;
    } texts[] = {{"cacert=", &security->cacert},
                 {"cert=", &security->cert},
                 {"key=", &security->key},
                 {"sni=", &security->sni}};
    static const char verify[] = "verify=";
    size_t name_len = strlen(verify);

    if (len >= name_len && !strncasecmp(text, verify, name_len)) {
        security->verify = verify_of(text + name_len, len - name_len);
        security->has_verify = true;
        return;
    }
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        name_len = strlen(texts[i].name);
        if (len < name_len || strncasecmp(text, texts[i].name, name_len) != 0)
            continue;
        free(*texts[i].to);
        *texts[i].to = decoded(text + name_len, len - name_len);
    }
}

/* Finds the scheme and the parameters of one entry of the list. */
struct server_security server_security_of(const char *list, size_t index)
{
    struct server_security security = {.verify = REDLOCK_TLS_VERIFY_FULL};
    const char *entry = "";
    size_t len = find_entry(list, index, &entry);

    security.used = (len >= 9 && !strncasecmp(entry, "rediss://", 9)) ||
                    (len >= 10 && !strncasecmp(entry, "valkeys://", 10));
    const char *at = security.used ? memchr(entry, '?', len) : NULL;
    while (at && at < entry + len) {
        at++;
        size_t rest = (size_t)(entry + len - at);
        const char *next = memchr(at, '&', rest);
        read_parameter(at, next ? (size_t)(next - at) : rest, &security);
        at = next;
    }
    return security;
}

/* Frees all texts. */
void server_security_free(struct server_security *security)
{
    free(security->cacert);
    free(security->cert);
    free(security->key);
    free(security->sni);
    *security = (struct server_security){.used = false};
}

/* Puts what an address says of TLS in place of the common settings, by the rules of the library:
 * certificate and key are one setting; an address with issuers of its own verifies in full unless
 * it says how; one without verification needs no issuers. */
void server_security_apply(const struct server_security *own, redlock_tls_t *tls)
{
    if (own->cacert || own->has_verify)
        tls->verify = own->verify;
    if (own->cacert || tls->verify == REDLOCK_TLS_VERIFY_NONE)
        tls->cacert = own->cacert;
    if (own->cert) {
        tls->cert = own->cert;
        tls->key = own->key;
    }
    if (own->sni)
        tls->sni = own->sni;
}
