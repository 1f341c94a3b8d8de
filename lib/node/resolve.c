/* SPDX-License-Identifier: MIT
 * Resolves host names with getaddrinfo(), on a thread that may outlive the client. */
#include "node/resolve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HOST_MAX    255                  /* bytes of the longest name */
#define STACK_BYTES ((size_t)256 * 1024) /* name service modules of libc need much stack */

/* The state of a look-up, as rl_lookup_poll() returns it. */
enum state { RUNNING = 0, DONE = 1, FAILED = -1 };

/* One look-up. The caller and the thread share it; the one that drops it last frees it. It is
 * allocated by libc and has a descriptor of its own, because getaddrinfo() cannot be interrupted:
 * the client, its allocator and its poller may be gone when it returns.
 *
 * The thread writes `text` and `found` before it sets `state`; the caller reads them only after
 * `state` is no longer RUNNING. The other fields are constant. */
struct rl_lookup {
    atomic_int refs;           /* 2: caller and thread; 1: one of them */
    atomic_int state;          /* enum state */
    pid_t pid;                 /* process in which the thread runs; not that of a forked child */
    int wake_fd;               /* owned duplicate of the caller's eventfd */
    uint16_t port;             /* port to put into the addresses */
    unsigned first;            /* number of the address with which the result begins */
    char host[HOST_MAX + 1];   /* name that is looked up */
    char text[160];            /* FAILED: why; else "" */
    struct rl_addresses found; /* DONE: the result */
};

/* Returns true if the address is IPv4 or IPv6, and fits into a struct sockaddr_storage. */
static bool is_usable(const struct addrinfo *info)
{
    return (info->ai_family == AF_INET || info->ai_family == AF_INET6) &&
           info->ai_addrlen <= sizeof(struct sockaddr_storage);
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

/* Frees the look-up and closes its descriptor. */
static void destroy(struct rl_lookup *lookup)
{
    close(lookup->wake_fd);
    free(lookup);
}

/* Drops one reference, and destroys the look-up with the last one. */
static void drop_ref(struct rl_lookup *lookup)
{
    if (atomic_fetch_sub(&lookup->refs, 1) == 1)
        destroy(lookup);
}

/* Runs the look-up `arg`, as the start function of its thread: stores the result, writes to the
 * eventfd, and drops the thread's reference. */
static void *run(void *arg)
{
    struct rl_lookup *lookup = arg;
    int rc = query_addresses(lookup->host, lookup->port, 0, lookup->first, &lookup->found);
    int error = errno;

    if (rc == EAI_SYSTEM)
        snprintf(lookup->text, sizeof lookup->text, "%s: error %d of the operating system",
                 gai_strerror(rc), error);
    else if (rc != 0)
        snprintf(lookup->text, sizeof lookup->text, "%s", gai_strerror(rc));
    atomic_store(&lookup->state, rc == 0 ? DONE : FAILED);

    uint64_t one = 1;
    ssize_t written = write(lookup->wake_fd, &one, sizeof one);
    (void)written; /* fails only if the counter is full; then the descriptor is readable anyway */
    drop_ref(lookup);
    return NULL;
}

/* Starts the thread, detached and with all signals blocked, so that signals go to the threads of
 * the program. Returns 0, or -1 if there is no thread. */
static int start_thread(struct rl_lookup *lookup)
{
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all, before;

    if (pthread_attr_init(&attr) != 0)
        return -1;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    if (rc == 0)
        rc = pthread_attr_setstacksize(&attr, STACK_BYTES);
    if (rc == 0)
        rc = pthread_create(&thread, &attr, run, lookup);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return rc == 0 ? 0 : -1;
}

/* Starts a look-up on a thread of its own. Returns NULL if memory, threads or descriptors are
 * exhausted, or the name is too long. */
struct rl_lookup *rl_lookup_start(const char *host, uint16_t port, unsigned first, int wake_fd)
{
    size_t len = strlen(host);
    struct rl_lookup *lookup = len <= HOST_MAX ? calloc(1, sizeof *lookup) : NULL;

    if (lookup == NULL)
        return NULL;
    memcpy(lookup->host, host, len + 1);
    lookup->port = port;
    lookup->first = first;
    lookup->pid = getpid();
    atomic_init(&lookup->refs, 2);
    atomic_init(&lookup->state, RUNNING);
    lookup->wake_fd = fcntl(wake_fd, F_DUPFD_CLOEXEC, 0);
    if (lookup->wake_fd < 0) {
        free(lookup);
        return NULL;
    }
    if (start_thread(lookup) != 0) {
        destroy(lookup);
        return NULL;
    }
    return lookup;
}

/* Returns 0 while the look-up runs; 1 when it has succeeded, with the addresses in `*ret`; -1 when
 * it has failed. */
int rl_lookup_poll(const struct rl_lookup *lookup, struct rl_addresses *ret)
{
    int state = atomic_load(&lookup->state);
    if (state == DONE)
        *ret = lookup->found;
    return state;
}

/* Returns why the look-up has failed; "": it has not. */
const char *rl_lookup_text(const struct rl_lookup *lookup)
{
    return lookup->text;
}

/* Ends the use of the look-up by its caller. NULL is ignored. */
void rl_lookup_drop(struct rl_lookup *lookup)
{
    if (lookup == NULL)
        return;
    if (lookup->pid != getpid())
        destroy(lookup); /* a forked child has copies of both, but no thread that would free them */
    else
        drop_ref(lookup);
}
