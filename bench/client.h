/* SPDX-License-Identifier: MIT
 * The side of the comparison that runs the library, through its public interface only: a client,
 * and the resources that it locks again and again. */
#ifndef BENCH_CLIENT_H
#define BENCH_CLIENT_H

#include "result.h"

#include <redlock/redlock.h>
#include <stdatomic.h>

/* How to run the library. Borrowed: the texts must outlive what is opened with these settings. */
struct client_settings {
    const char *servers; /* list of URLs, as in redlock_config_add_nodes() */
    const char *prefix;  /* of the names of the resources */
    unsigned depth; /* acquisitions in flight at a time: blocked threads, or operations of a loop */
    /* Number of resources. Equal to `depth`: no contention. Smaller: callers contend for them. A
     * multiple of `depth`: a caller takes the next of its resources for each pair. */
    unsigned resources;
    unsigned permits; /* each resource is a semaphore with this many permits; 0: a lock */
    unsigned also;    /* further resources that each acquisition locks together with the first */
    uint64_t ttl_ms;  /* TTL of the locks */
    uint64_t wait_ms; /* longest wait of one acquisition for a held lock */
    /* Acquire with a fencing token, with the fence records under this key. NULL: no fences. */
    const char *fence_key;
    bool separate; /* threaded mode: one client for each thread, as if each were a process */
    uint32_t connect_timeout_ms; /* 0: the default of the library */
    uint32_t node_timeout_ms;    /* time limit of a request; 0: derived from the round trips */
    bool verbose;                /* print the library's log on stderr */
};

/* One resource, and the number of callers that hold it now. More than `holders_max` at a time are a
 * violation of mutual exclusion, which the benchmark counts. */
struct holding {
    char resource[96];
    atomic_uint held;     /* callers that hold the resource now */
    unsigned holders_max; /* 1, or the number of permits */
    const char **also;    /* names of the further resources, owned; NULL: none */
};

/* Creates a client in `mode` (REDLOCK_MODE_...). Returns NULL and a text in `error` on failure. The
 * caller frees the client with redlock_free(). */
redlock_t *client_new(const struct client_settings *settings, int mode, char *error,
                      size_t error_size);
/* Returns the options of an acquisition for these settings, without the names in `opts.also`. */
redlock_opts_t client_opts(const struct client_settings *settings);
/* Adds the client's statistics to `result`: attempts, and locks with a fence that took one or two
 * rounds. With a negative `sign` it subtracts them, so that two calls around a run add the
 * difference. */
void client_add_stats(redlock_t *client, int sign, struct result *result);
/* Returns settings->resources resources named <prefix><number>, or NULL if out of memory. */
struct holding *client_holdings(const struct client_settings *settings);
/* Frees what client_holdings() returned; `holdings` may be NULL. `settings` must be the same. */
void client_free_holdings(struct holding *holdings, const struct client_settings *settings);

/* Counts a holder of the resource, right after an acquisition. Adds a violation to `result` if the
 * resource had all its holders already. */
void holding_acquired(struct holding *holding, struct result *result);
/* Counts one holder less. Must be called before the release begins. */
void holding_released(struct holding *holding);

/* Embedded mode: one thread, one poll loop, `depth` acquisitions in flight. */
struct embedded;
/* Connects and waits until the servers are ready. Returns NULL and a text in `error` on failure. */
struct embedded *embedded_open(const struct client_settings *settings, char *error,
                               size_t error_size);
/* Runs `pairs` acquisitions with their releases and adds the measurements to `result`. `embedded`
 * is a struct embedded, as struct side requires. Returns 0, or -1 after a line on stderr. */
int embedded_run(void *embedded, uint64_t pairs, struct result *result);
/* Runs the loop until no reply and no undo is pending, at most a second, so that work left from one
 * slice does not fall into the next one. Returns 0, or -1 if the client has failed. */
int embedded_settle(void *embedded);
/* Runs the loop until all nodes are eligible. Returns 0, or -1 after ten seconds. */
int embedded_wait_votes(struct embedded *embedded);
/* Shuts the client down and frees everything. */
void embedded_close(struct embedded *embedded);

/* Threaded mode: `depth` threads with blocking calls. */
struct threaded;
/* Connects and waits until the servers are ready. Returns NULL and a text in `error` on failure. */
struct threaded *threaded_open(const struct client_settings *settings, char *error,
                               size_t error_size);
/* Runs `pairs` pairs in all threads together and adds the measurements to `result`. `threaded` is a
 * struct threaded. Returns 0; ends the program if threads cannot start. */
int threaded_run(void *threaded, uint64_t pairs, struct result *result);
/* Shuts the clients down and frees everything. */
void threaded_close(struct threaded *threaded);

#endif
