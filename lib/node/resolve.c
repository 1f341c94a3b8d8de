/* SPDX-License-Identifier: MIT
 * Resolves host names with getaddrinfo(), on a thread that may outlive the client. */
#include "node/resolve.h"

#include "node/background.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOST_MAX 255 /* bytes of the longest name */

/* One look-up. The thread writes `found`, `failed` and `text`; the other fields are constant. */
struct rl_lookup {
    struct rl_background work; /* must be the first member */
    uint16_t port;             /* port to put into the addresses */
    unsigned first;            /* number of the address with which the result begins */
    char host[HOST_MAX + 1];   /* name that is looked up */
    bool failed;               /* there is no address */
    char text[160];            /* failed: why; else "" */
    struct rl_addresses found; /* not failed: the result */
};

/* Returns true if the address is IPv4 or IPv6, and fits into a union rl_address. */
static bool is_usable(const struct addrinfo *info)
{
    return (info->ai_family == AF_INET || info->ai_family == AF_INET6) &&
           info->ai_addrlen <= sizeof(union rl_address);
}

/* Copies usable addresses of `list` to `*ret`, as many as fit: from number `first`, modulo the
 * number of usable ones, to the end of the list. */
static void copy_addresses(const struct addrinfo *list, unsigned first, struct rl_addresses *ret)
{
    unsigned usable = 0, skip;

    for (const struct addrinfo *at = list; at != NULL; at = at->ai_next)
        usable += is_usable(at);
    memset(ret, 0, sizeof *ret);
    skip = usable != 0 ? first % usable : 0;
    for (const struct addrinfo *at = list; at != NULL && ret->count < RL_ADDRESSES_MAX;
         at = at->ai_next) {
        if (!is_usable(at))
            continue;
        if (skip > 0) {
            skip--;
            continue;
        }
        memcpy(&ret->list[ret->count], at->ai_addr, at->ai_addrlen);
        ret->len[ret->count] = at->ai_addrlen;
        ret->count++;
    }
}

/* Calls getaddrinfo() with these AI_ flags, and copies its result from address number `first` on to
 * `*ret`. Returns 0 with at least one address, or an EAI_ error. */
static int query_addresses(const char *host, uint16_t port, int flags, unsigned first,
                           struct rl_addresses *ret)
{
    struct addrinfo hints;
    struct addrinfo *list = NULL;
    char service[8];

    memset(&hints, 0, sizeof hints);
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICSERV | flags;
    snprintf(service, sizeof service, "%u", (unsigned)port);
    int rc = getaddrinfo(host, service, &hints, &list);
    if (rc != 0)
        return rc;
    copy_addresses(list, first, ret);
    freeaddrinfo(list);
    return ret->count > 0 ? 0 : EAI_NONAME;
}

/* Parses an IPv4 address, or an IPv6 address without a zone, into `*ret`. Returns false if `host`
 * is neither. Needs no memory, unlike getaddrinfo(): if memory is short, an address must not be
 * treated as a name. */
static bool parse(const char *host, uint16_t port, struct rl_addresses *ret)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    bool is_v4 = inet_pton(AF_INET, host, &v4.sin_addr) == 1;

    if (!is_v4 && inet_pton(AF_INET6, host, &v6.sin6_addr) != 1)
        return false;
    memset(ret, 0, sizeof *ret);
    ret->count = 1;
    ret->len[0] = is_v4 ? sizeof v4 : sizeof v6;
    memcpy(&ret->list[0], is_v4 ? (void *)&v4 : (void *)&v6, ret->len[0]);
    return true;
}

/* Parses a numeric address, an IPv6 one with or without a zone. Returns 1 with the address in
 * `*ret`, or 0 if `host` is a name. */
int rl_resolve_numeric(const char *host, uint16_t port, struct rl_addresses *ret)
{
    struct rl_addresses found;
    if (parse(host, port, ret))
        return 1;
    if (query_addresses(host, port, AI_NUMERICHOST, 0, &found) != 0)
        return 0;
    *ret = found;
    return 1;
}

/* Implements rl_background.destroy. */
static void destroy(struct rl_background *work)
{
    free(work);
}

/* Implements rl_background.run: stores the result. */
static void run(struct rl_background *work)
{
    struct rl_lookup *lookup = (struct rl_lookup *)work;
    int rc = query_addresses(lookup->host, lookup->port, 0, lookup->first, &lookup->found);
    int error = errno;

    if (rc == EAI_SYSTEM)
        snprintf(lookup->text, sizeof lookup->text, "%s: error %d of the operating system",
                 gai_strerror(rc), error);
    else if (rc != 0)
        snprintf(lookup->text, sizeof lookup->text, "%s", gai_strerror(rc));
    lookup->failed = rc != 0;
}

/* Starts a look-up on a thread of its own. Returns NULL if memory, threads or descriptors are
 * exhausted, or the name is too long. */
struct rl_lookup *rl_lookup_start(const char *host, uint16_t port, unsigned first, int wake_fd)
{
    size_t len = strlen(host);
    struct rl_lookup *lookup = len <= HOST_MAX ? calloc(1, sizeof *lookup) : NULL;

    if (lookup == NULL)
        return NULL;
    lookup->work.run = run;
    lookup->work.destroy = destroy;
    memcpy(lookup->host, host, len + 1);
    lookup->port = port;
    lookup->first = first;
    return rl_background_start(&lookup->work, wake_fd) ? lookup : NULL;
}

/* Returns 0 while the look-up runs; 1 when it has succeeded, with the addresses in `*ret`; -1 when
 * it has failed. */
int rl_lookup_poll(const struct rl_lookup *lookup, struct rl_addresses *ret)
{
    if (!rl_background_is_done(&lookup->work))
        return 0;
    if (lookup->failed)
        return -1;
    *ret = lookup->found;
    return 1;
}

/* Returns why the look-up has failed; "": it has not. */
const char *rl_lookup_text(const struct rl_lookup *lookup)
{
    return lookup->text;
}

/* Ends the use of the look-up by its caller. NULL is ignored. */
void rl_lookup_drop(struct rl_lookup *lookup)
{
    if (lookup != NULL)
        rl_background_drop(&lookup->work);
}
