/* SPDX-License-Identifier: MIT
 * What `redlock top` shows: the servers and the locks, as they were seen last. One struct top; the
 * thread that collects and the one that draws share it.
 */
#ifndef TOOLS_TOP_MODEL_H
#define TOOLS_TOP_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redlock/redlock.h"

/* Most locks that are listed. */
#define TOP_LOCKS_MAX 10000
/* Size of the label of a holder, with its NUL. */
#define TOP_OWNER_MAX 132

/* One lock, as its last inspection has shown it. Times are ns of CLOCK_BOOTTIME. */
struct top_lock {
    char *name;                /* owned */
    bool given;                /* the user named it, so it stays in the list when it is free */
    bool visible;              /* it is on the screen, so it is inspected first */
    uint64_t seen_ns;          /* when it was inspected; 0: not yet */
    int state;                 /* enum redlock_state */
    char owner[TOP_OWNER_MAX]; /* label of the holder; "": none */
    uint32_t votes;            /* servers that have a key of this name */
    uint32_t configured;       /* servers of its shard */
    uint32_t quorum;           /* of its shard */
    bool knows_waiting;        /* a server has said who is in its line */
    uint32_t waiting;          /* clients in its line; of a semaphore's first slot: in that of the
                                * semaphore */
    uint32_t holders;          /* set of the nodes that have a key, by their index in the client */
    uint64_t ttl_min_ms, ttl_max_ms; /* left at seen_ns, on a server; UINT64_MAX: not known */
    bool endless;                    /* a key never expires */
    size_t shard;                    /* index of its shard */
};

/* The list of locks in alphabetical order, and the servers. */
struct top_model {
    struct top_lock **locks; /* sorted by name; owned, and so are the elements */
    size_t count;            /* number of locks */
    size_t capacity;         /* allocated length of `locks` */
    bool overflow;           /* more than TOP_LOCKS_MAX were found */
    redlock_node_stats_t servers[REDLOCK_NODES_MAX]; /* the last statistics of each node */
    size_t server_count;                             /* number of nodes */
    size_t shard_count;                              /* number of shards */
    const char *shard_names[REDLOCK_SHARDS_MAX];     /* borrowed from the client */
};

/* Returns the lock of this name; NULL if it is not in the list. */
struct top_lock *top_find(const struct top_model *model, const char *name);
/* Adds a lock, unless it is in the list, and returns it. Returns NULL if the list is full. */
struct top_lock *top_add(struct top_model *model, const char *name);
/* Removes a lock and frees it. */
void top_remove(struct top_model *model, const char *name);
/* Frees all locks. */
void top_free(struct top_model *model);

/* Stores what an inspection has found at `now_ns`. `report` may be NULL. Returns false if the key
 * is none of a lock or is gone, so that the lock may leave the list. */
bool top_take_report(struct top_lock *lock, const redlock_report_t *report, uint64_t now_ns);

/* Returns how much time the key has left at `now_ns`, in ms; UINT64_MAX if it is not known. */
uint64_t top_left_ms(const struct top_lock *lock, uint64_t now_ns);

/* By what the locks are sorted. */
enum top_order {
    TOP_BY_NAME = 0,
    TOP_BY_LEFT,
    TOP_BY_HOLDER,
    TOP_BY_VOTES,
    TOP_BY_WAITING,
    TOP_ORDERS
};

/* Returns the locks whose name or holder contains `filter` ("": all), sorted; the array is to be
 * freed, its elements belong to the model. Locks that were not inspected yet are left out, unless
 * they were given. `now_ns` is the present time. */
struct top_lock **top_select(const struct top_model *model, enum top_order order, bool reverse,
                             const char *filter, uint64_t now_ns, size_t *ret_count);

/* Returns up to `max` locks that should be inspected next: those that were not inspected since
 * `since_ns`, visible ones first, then the oldest. The array is to be freed. */
struct top_lock **top_due(const struct top_model *model, uint64_t since_ns, size_t max,
                          size_t *ret_count);

#endif
