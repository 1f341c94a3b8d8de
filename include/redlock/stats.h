/* SPDX-License-Identifier: MIT
 * Numbers of a client and of its nodes. Part of redlock.h. */
#ifndef REDLOCK_STATS_H
#define REDLOCK_STATS_H

#include "redlock/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Statistics: numbers since redlock_new(); gauges marked */

typedef struct redlock_stats {
    uint64_t acquired, contended, no_quorum, too_slow, excluded, canceled;
    uint64_t attempts, split_votes, extended, extend_failed, lost, released, release_failed, undone;
    uint64_t held, waiting;    /* gauges */
    uint64_t wait_us_hist[32]; /* log2 buckets: i counts [2^i, 2^(i+1)) us */
    /* Of `acquired`, those with a fence: agreed on by the votes, and written in a second round. */
    uint64_t fence_one_round, fence_two_rounds;
    uint64_t queue_full; /* acquisitions refused with EQUEUEFULL: they count nowhere else */
    uint64_t wakeups;    /* times that a server's word woke an acquisition */
    uint64_t queued;     /* gauge: of `waiting`, those behind another lock of this client */
    /* Deletes that were given up: the node was not reached until the key was over by itself; there
     * was no memory to keep them, and the key stays until it is over. */
    uint64_t undo_expired, undo_dropped;
} redlock_stats_t;

/* What a server says of itself, and what its address attests. */
enum redlock_node_fact {
    REDLOCK_FACT_INFO = 1 << 0,        /* it tells: without this bit the others are not known */
    REDLOCK_FACT_AOF = 1 << 1,         /* keeps an append-only file */
    REDLOCK_FACT_AOF_FAILING = 1 << 2, /* and fails to write it */
    REDLOCK_FACT_DURABLE = 1 << 3,     /* ?durable=1 */
    REDLOCK_FACT_FRESH = 1 << 4        /* ?fresh=1 */
};

/* Does a server tell when a key changes that somebody waits for
 * (redlock_config_set_notifications())? */
enum redlock_notify_state {
    REDLOCK_NOTIFY_OFF = 0,     /* the configuration says no */
    REDLOCK_NOTIFY_IDLE = 1,    /* nobody has waited for it yet, or it is not connected */
    REDLOCK_NOTIFY_PENDING = 2, /* its second connection is being made */
    REDLOCK_NOTIFY_ON = 3,
    REDLOCK_NOTIFY_REFUSED = 4 /* by the server, or to its user: `notify_text` says why. Waiting
                                * means asking again; tried again after a reconnect */
};

typedef struct redlock_node_stats {
    const char *node;        /* borrowed: until redlock_free() */
    int32_t eligible, cause; /* gauges: 1 or 0; enum redlock_cause: why not */
    uint64_t requests, granted, denied, errors, timeouts, replies_late, reconnects;
    uint64_t rtt_us_hist[32]; /* log2 buckets */
    uint64_t rtt_us;          /* gauge: smoothed round trip; 0: not measured */
    uint64_t uptime_s;        /* gauge: of the server when we connected */
    uint64_t undos_pending;   /* gauge: compare-and-deletes that wait for this node */
    uint32_t features;        /* gauge: bit 0 DELEX, 1 DELIFEQ, 2 SET IFEQ */
    char version[32];         /* gauge: "redis 7.0.15", "valkey 8.1.1"; "" if not known */
    char role[16];            /* gauge: "master", "slave"; "" if not known */
    char run_id[48];          /* gauge: "" if not known */
    char text[160];           /* gauge: for people: why it does not vote; "" if it does */
    uint64_t quarantine_ms;   /* gauge: restart and clock guards: time until it votes; else 0 */
    int64_t clock_offset_us;  /* gauge: the server's clock minus ours; 0: not known */
    uint32_t facts;           /* gauge: enum redlock_node_fact */
    uint32_t replicas;        /* gauge: attached to it when we connected */
    uint64_t maxmemory;       /* gauge: bytes; 0: no limit, or not known */
    char policy[24];          /* gauge: its maxmemory-policy; "" if not known */
    int32_t notify_state;     /* gauge: enum redlock_notify_state */
    uint64_t notifications;   /* times that it told of changes */
    char notify_text[96];     /* gauge: for people: why it refuses to tell; "" if it does not */
    const char *shard;        /* which it belongs to: redlock_shard_name(); borrowed as `node` */
    uint32_t shard_index;
    int32_t notify_cause; /* gauge: enum redlock_cause: why it refuses to tell; 0: it does not.
                           * Since 0.2.0 */
} redlock_node_stats_t;

/* Copies of this moment; `size` is the size of the struct. index: the order in which nodes were
 * added, up to redlock_node_count() - 1, over all sets. [any thread] */
REDLOCK_API int redlock_get_stats(redlock_t *rl, redlock_stats_t *ret_stats, size_t size);
REDLOCK_API size_t redlock_node_count(const redlock_t *rl);
REDLOCK_API int redlock_get_node_stats(redlock_t *rl, size_t index, redlock_node_stats_t *ret_stats,
                                       size_t size);

/* Sets of nodes (redlock_config_add_shard()); a client without them has one, called "". index: the
 * order in which they were added, up to redlock_shard_count() - 1. [any thread] */
REDLOCK_API size_t redlock_shard_count(const redlock_t *rl);
/* NULL: no such set; borrowed: until redlock_free(). */
REDLOCK_API const char *redlock_shard_name(const redlock_t *rl, size_t index);
/* Which set this name belongs to: its index, or EINVAL: no name. */
REDLOCK_API int redlock_shard_of(const redlock_t *rl, const char *resource);
/* redlock_get_stats() of one set: those of all sets add up to the client's. */
REDLOCK_API int redlock_get_shard_stats(redlock_t *rl, size_t index, redlock_stats_t *ret_stats,
                                        size_t size);

#ifdef __cplusplus
}
#endif
#endif
