/* SPDX-License-Identifier: MIT
 * Finds the names of locks for `redlock top`: SCAN on some servers of each shard, a bounded number
 * of keys at a time. Never KEYS, which would block a server.
 *
 * A held lock has its key on a majority of the servers. So of N servers with a quorum of Q it is
 * enough to search N - Q + 1: three of five.
 */
#ifndef TOOLS_TOP_SCAN_H
#define TOOLS_TOP_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "redlock/redlock.h"
#include "server_link.h"
#include "settings.h"

/* Size of the text about the servers that cannot be searched. */
#define SCAN_ERROR_MAX (LINK_ERROR_MAX + 1024)

/* The search on one server. */
struct scan_source {
    struct server_link *link; /* the connection; NULL: none; owned */
    char cursor[24];   /* the cursor of SCAN, as the server gave it; "0" at the begin of a pass */
    bool done;         /* this pass has ended */
    bool asked;        /* a SCAN of this step was sent */
    uint64_t retry_ns; /* after an error: when the server is tried again */
    char error[LINK_ERROR_MAX]; /* why the server could not be searched last; "": it could */
};

/* A search on all shards. scan_open() fills it; only top_scan.c changes it. Times are ns of
 * CLOCK_BOOTTIME. */
struct scan {
    redlock_t *rl;                   /* the client; borrowed */
    const struct settings *settings; /* borrowed */
    char *pattern;                   /* glob pattern for the whole key, with the prefix; owned */
    unsigned keys_per_step;          /* COUNT of each SCAN */
    uint64_t step_ns;                /* time between two steps */
    uint64_t due_ns;                 /* when the next step is due */
    struct scan_source sources[REDLOCK_NODES_MAX]; /* by index of the node */
    bool complete; /* the last pass over all keys was made on as many servers as needed */
    bool short_of; /* fewer servers than needed can be searched; then `error` says why */
    char error[SCAN_ERROR_MAX]; /* which servers cannot be searched, and why; "" if all can be */
};

/* Receives the name of a key that was found, without the prefix; it has `len` bytes and may contain
 * any. `context` is that of scan_step(). */
typedef void (*scan_found_fn)(void *context, const char *name, size_t len);

/* Prepares a search for the names that match the glob pattern `match`. A server examines at most
 * `rate` keys a second. scan_close() is needed. */
void scan_open(struct scan *scan, redlock_t *rl, const struct settings *settings, const char *match,
               unsigned rate);
/* Closes all connections and frees the pattern. */
void scan_close(struct scan *scan);

/* If a step is due, sends one SCAN to each server whose pass has not ended, and calls `found` for
 * each name. A name may come more than once. Blocks until all have replied, at most for the connect
 * timeout and a second for each. */
void scan_step(struct scan *scan, scan_found_fn found, void *context);

#endif
