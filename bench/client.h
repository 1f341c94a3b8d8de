/* SPDX-License-Identifier: MIT
 * The library's side of the comparison, through its public interface only: a client and the
 * resources that are locked over and over. */
#ifndef BENCH_CLIENT_H
#define BENCH_CLIENT_H

#include "result.h"

#include <redlock/redlock.h>
#include <stdatomic.h>

struct client_settings {
    const char *servers; /* list of URLs */
    const char *prefix;  /* of the resources */
    unsigned depth;      /* callers or operations in flight */
    unsigned resources;  /* that they share; as many as `depth` if there is no contention, and
                          * more, a multiple of it, if each takes another one every time */
    unsigned permits;    /* each resource is a semaphore of so many; 0: a lock */
    unsigned also;       /* so many further resources are locked together with each */
    uint64_t ttl_ms, wait_ms;
    const char *fence_key; /* locks have a fence, whose records are there; NULL: they have none */
    bool separate;         /* threaded: a client for each thread, as if they were processes */
    uint32_t node_timeout_ms; /* 0: measured */
    bool verbose;             /* what the library logs goes to stderr */
};

/* A resource and how many callers were told that it is theirs: too many are a violation. */
struct holding {
    char resource[96];
    atomic_uint held;
    unsigned holders_max;
    const char **also; /* names, or NULL */
};

redlock_t *client_new(const struct client_settings *settings, int mode, char *error,
                      size_t error_size);
redlock_opts_t client_opts(const struct client_settings *settings);
/* Attempts, and how many locks with a fence took one round or two so far; with a sign, to add
 * differences. */
void client_add_stats(redlock_t *client, int sign, struct result *result);
struct holding *client_holdings(const struct client_settings *settings);
void client_free_holdings(struct holding *holdings, const struct client_settings *settings);

/* Called when a lock was given: counts a violation if the resource is held already. */
void holding_acquired(struct holding *holding, struct result *result);
/* Called before it is given back. */
void holding_released(struct holding *holding);

/* Embedded mode: one thread, one poll loop, `depth` acquisitions in flight. */
struct embedded;
struct embedded *embedded_open(const struct client_settings *settings, char *error,
                               size_t error_size);
int embedded_run(void *embedded, uint64_t pairs, struct result *result);
/* Lets the library read what came after the majority and finish its undos, so that nothing of it is
 * late in the next slice. */
int embedded_settle(void *embedded);
/* Goes on until all nodes may vote. 0, or -1 after ten seconds. */
int embedded_wait_votes(struct embedded *embedded);
void embedded_close(struct embedded *embedded);

/* Threaded mode: `depth` threads that block. */
struct threaded;
struct threaded *threaded_open(const struct client_settings *settings, char *error,
                               size_t error_size);
int threaded_run(void *threaded, uint64_t pairs, struct result *result);
void threaded_close(struct threaded *threaded);

#endif
