/* SPDX-License-Identifier: MIT
 * Statistics of a client, of its shards and of its nodes. Part of redlock.h. */
#ifndef REDLOCK_STATS_H
#define REDLOCK_STATS_H

#include "redlock/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Statistics of the locks of a client or of one shard. Each field is a counter since redlock_new(),
 * except the fields marked as gauges: they are values of the moment. In a histogram, element i
 * counts durations of [2^i, 2^(i+1)) microseconds; element 0 also counts 0, and the last element
 * all longer ones. */
typedef struct redlock_stats {
    uint64_t acquired;         /* acquisitions that succeeded; adopted locks count nowhere */
    uint64_t contended;        /* acquisitions that failed with ECONTENDED */
    uint64_t no_quorum;        /* acquisitions that failed with ENOQUORUM */
    uint64_t too_slow;         /* acquisitions that failed with ETOOSLOW */
    uint64_t excluded;         /* acquisitions that failed with EEXCLUDED, EAUTH or EDUPLICATE */
    uint64_t canceled;         /* acquisitions that failed with ECANCELED or ECLOSED */
    uint64_t attempts;         /* attempts of all acquisitions in which a server was asked */
    uint64_t split_votes;      /* attempts that got some grants and failed with ECONTENDED */
    uint64_t extended;         /* extensions that succeeded */
    uint64_t extend_failed;    /* rounds of extensions that failed */
    uint64_t lost;             /* locks that were lost */
    uint64_t released;         /* releases that a majority confirmed, also those by token */
    uint64_t release_failed;   /* releases that ended with an error, also those by token */
    uint64_t undone;           /* undos that a server has executed */
    uint64_t held;             /* gauge: locks that are held */
    uint64_t waiting;          /* gauge: acquisitions that are under way */
    uint64_t wait_us_hist[32]; /* histogram: duration of acquisitions, also of failed ones */
    uint64_t fence_one_round;  /* acquisitions with a fence that succeeded: one round set it */
    uint64_t fence_two_rounds; /* the same, but a second round had to write the fence */
    uint64_t queue_full;       /* acquisitions refused with EQUEUEFULL; they count nowhere else */
    uint64_t wakeups;          /* acquisitions that a notification woke up */
    uint64_t queued;           /* gauge: of `waiting`, those in the queue of this client */
    uint64_t undo_expired;     /* undos dropped because their key expired before they were sent */
    uint64_t undo_dropped; /* undos dropped for lack of memory: the key stays until it expires */
    uint64_t wait_us_sum;  /* sum of the durations that wait_us_hist counts. Since 0.2.0 */
    uint64_t endangered;   /* times that the margin before the deadline of a lock began
                            * (REDLOCK_EVENT_ENDANGERED). Since 0.2.0 */
    uint64_t line_joins;   /* times that an acquisition asked to join a line
                            * (redlock_config_set_line()). Since 0.2.0 */
    uint64_t line_turns;   /* notifications that it is this client's turn. Since 0.2.0 */
    uint64_t line_missed;  /* times that this client, waiting behind, had another one removed from a
                            * line because it did not use its turn: it was stopped, had ended, or
                            * could not reach the server. Since 0.2.0 */
    uint64_t line_fallbacks; /* acquisitions that waited without a line, at least for a time,
                              * although lines are on: the rights of the user, the server's version
                              * or its state did not allow one. Since 0.2.0 */
} redlock_stats_t;

/* What a server reports of itself, and what its address attests. */
enum redlock_node_fact {
    REDLOCK_FACT_INFO = 1 << 0,        /* the server replies to INFO with its identity; without
                                        * this bit the next two facts are not known */
    REDLOCK_FACT_AOF = 1 << 1,         /* the server writes an append-only file */
    REDLOCK_FACT_AOF_FAILING = 1 << 2, /* the server fails to write its append-only file */
    REDLOCK_FACT_DURABLE = 1 << 3,     /* the address attests durable=1 */
    REDLOCK_FACT_FRESH = 1 << 4,       /* the address attests fresh=1 */
    REDLOCK_FACT_TLS = 1 << 5,         /* connections use TLS. Since 0.2.0 */
    REDLOCK_FACT_UNVERIFIED = 1 << 6   /* with TLS: the server's certificate is not verified. Since
                                        * 0.2.0 */
};

/* State of the notifications of one server (redlock_config_set_notifications()). */
enum redlock_notify_state {
    REDLOCK_NOTIFY_OFF = 0,     /* off in the configuration */
    REDLOCK_NOTIFY_IDLE = 1,    /* no waiter needed them yet, or the server is not connected */
    REDLOCK_NOTIFY_PENDING = 2, /* the second connection is being made */
    REDLOCK_NOTIFY_ON = 3,      /* the server notifies */
    REDLOCK_NOTIFY_REFUSED = 4  /* the server, or the rights of its user, do not allow it:
                                 * `notify_text` says why. Waiters poll. The client tries again
                                 * after a reconnect */
};

/* State of the lines of one server (redlock_config_set_line()). Since 0.2.0. */
enum redlock_line_state {
    REDLOCK_LINE_OFF = 0,    /* off in the configuration, or notifications are */
    REDLOCK_LINE_IDLE = 1,   /* no waiter needed the server's notifications yet, or it is not
                              * connected */
    REDLOCK_LINE_ON = 2,     /* the server notifies this client of its turns */
    REDLOCK_LINE_REFUSED = 3 /* the server has no GETEX (Redis 6.2), or the rights of its user do
                              * not allow lines: `line_text` says why. Waiters do without. The
                              * client tries again after a reconnect */
};

/* Statistics of one node: counters, gauges and a histogram as in redlock_stats_t. */
typedef struct redlock_node_stats {
    const char *node;         /* address, without secrets; borrowed until redlock_free() */
    int32_t eligible;         /* gauge: 1: votes of the node count; 0: they do not count */
    int32_t cause;            /* gauge: enum redlock_cause: why its votes do not count; else 0 */
    uint64_t requests;        /* requests about locks that were sent, undos included */
    uint64_t granted;         /* replies that were grants */
    uint64_t denied;          /* replies that were denials */
    uint64_t errors;          /* replies that were errors or not valid */
    uint64_t timeouts;        /* times that the server did not reply in time */
    uint64_t replies_late;    /* replies that came after their request had been given up */
    uint64_t reconnects;      /* connections after the first one */
    uint64_t rtt_us_hist[32]; /* histogram: round trips */
    uint64_t rtt_us;          /* gauge: moving average of round trips; 0: not measured */
    uint64_t uptime_s;        /* gauge: uptime of the server at the last INFO; 0: not known */
    uint64_t undos_pending;   /* gauge: undos that wait for this node */
    uint32_t features;        /* gauge: commands to delete by value; bit 0: DELEX, bit 1: DELIFEQ */
    char version[32];         /* gauge: for example "redis 7.0.15", "valkey 8.1.1"; "": not known */
    char role[16];            /* gauge: "master" or "slave"; "": not known */
    char run_id[48];          /* gauge: run_id of the server; "": not known */
    char text[160];           /* gauge: for people: why its votes do not count; else "" */
    uint64_t quarantine_ms;   /* gauge: time until its quarantine ends; 0: none */
    int64_t clock_offset_us;  /* gauge: clock of the server minus clock here; 0: not known */
    uint32_t facts;           /* gauge: enum redlock_node_fact */
    uint32_t replicas;        /* gauge: replicas of the server at the last INFO */
    uint64_t maxmemory;       /* gauge: in bytes; 0: no limit, or not known */
    char policy[24];          /* gauge: maxmemory-policy; "": not known */
    int32_t notify_state;     /* gauge: enum redlock_notify_state */
    uint64_t notifications;   /* notifications that arrived */
    char notify_text[96];     /* gauge: for people, with REDLOCK_NOTIFY_REFUSED: why; else "" */
    const char *shard;        /* name of its shard, "" for the only one; borrowed as `node` */
    uint32_t shard_index;     /* index of its shard */
    int32_t notify_cause;     /* gauge: with REDLOCK_NOTIFY_REFUSED: enum redlock_cause; else 0.
                               * Since 0.2.0 */
    uint64_t rtt_us_sum;      /* sum of the round trips that rtt_us_hist counts. Since 0.2.0 */
    int32_t line_state;       /* gauge: enum redlock_line_state. Since 0.2.0 */
    int32_t line_cause;       /* gauge: with REDLOCK_LINE_REFUSED: enum redlock_cause; else 0. Since
                               * 0.2.0 */
    char line_text[96];       /* gauge: for people, with REDLOCK_LINE_REFUSED: why; else "". Since
                               * 0.2.0 */
    int64_t certificate_expiry_s; /* gauge: when the certificate of the server, or one of its
                                   * issuers, expires first, in seconds of Unix time; 0: no TLS, or
                                   * not known. Since 0.2.0 */
} redlock_node_stats_t;

/* Copies the statistics of all shards together into *ret_stats.
 *
 * size: bytes of *ret_stats, not 0.
 * EINVAL: an argument is NULL, or size is 0.
 * EFORKED, ECLOSED.
 * [any thread] */
REDLOCK_API int redlock_get_stats(redlock_t *rl, redlock_stats_t *ret_stats, size_t size);

/* Returns the number of nodes of the client, in all shards; 0 if rl is NULL.
 * [any thread] */
REDLOCK_API size_t redlock_node_count(const redlock_t *rl);

/* Copies the statistics of one node into *ret_stats.
 *
 * index: 0 to redlock_node_count() - 1, in the order in which the nodes were added, over all
 *   shards.
 * size: bytes of *ret_stats, not 0.
 * EINVAL: an argument is NULL, size is 0, or index is past the last node.
 * EFORKED, ECLOSED.
 * [any thread] */
REDLOCK_API int redlock_get_node_stats(redlock_t *rl, size_t index, redlock_node_stats_t *ret_stats,
                                       size_t size);

/* Shards
 *
 * Quorum groups that redlock_config_add_shard() adds. A client that was configured without them has
 * one, with the name "". */

/* Returns the number of shards of the client; 0 if rl is NULL.
 * [any thread] */
REDLOCK_API size_t redlock_shard_count(const redlock_t *rl);

/* Returns the name of a shard. The name is borrowed until redlock_free(). NULL: rl is NULL, or
 * index is past the last shard.
 *
 * index: 0 to redlock_shard_count() - 1, in the order in which the shards were added.
 * [any thread] */
REDLOCK_API const char *redlock_shard_name(const redlock_t *rl, size_t index);

/* Returns the index of the shard that a resource belongs to: 0 to redlock_shard_count() - 1.
 *
 * resource: 1 to REDLOCK_RESOURCE_LEN_MAX bytes.
 * EINVAL: rl or resource is NULL, or the name has another length.
 * [any thread] */
REDLOCK_API int redlock_shard_of(const redlock_t *rl, const char *resource);

/* Copies the statistics of one shard into *ret_stats; those of all shards add up to those of
 * redlock_get_stats().
 *
 * index: 0 to redlock_shard_count() - 1.
 * size: bytes of *ret_stats, not 0.
 * EINVAL: an argument is NULL, size is 0, or index is past the last shard.
 * EFORKED, ECLOSED.
 * [any thread] */
REDLOCK_API int redlock_get_shard_stats(redlock_t *rl, size_t index, redlock_stats_t *ret_stats,
                                        size_t size);

/* Text for Prometheus */

#define REDLOCK_LABELS_MAX      16  /* most labels that a caller can add */
#define REDLOCK_LABEL_NAME_MAX  64  /* most bytes of a label's name */
#define REDLOCK_LABEL_VALUE_MAX 512 /* most bytes of a label's value */

/* A label that the caller adds to all figures, for example {"service", "billing"}. Since
 * 0.2.0. */
typedef struct redlock_label {
    const char *name;  /* 1 to REDLOCK_LABEL_NAME_MAX letters, digits and '_', no digit first, not
                        * "__" first, and none of the names that the library uses itself: cause, le,
                        * policy, result, role, rounds, server, shard, state, version */
    const char *value; /* at most REDLOCK_LABEL_VALUE_MAX bytes, whatever they are; bytes that are
                        * not UTF-8 become U+FFFD */
} redlock_label_t;

/* Writes the statistics of the client, of its shards and of its servers as text for Prometheus
 * (text format 0.0.4). Each figure has a line that explains it. The caller passes the text on, for
 * example as reply of its own HTTP server with the type "text/plain; version=0.0.4".
 *
 * Returns the length of the whole text without its NUL, as snprintf() does: if it is `size` or
 * more, the text was cut, and the caller tries again with a larger buffer. The next text may be
 * longer, because the numbers grow. Five servers need about 25 000 bytes.
 *
 * Each figure is read when its line is written. The client's mutex is held for that only, not while
 * text is written; the search for the shortest validity looks at each lock that is held. Nothing is
 * allocated.
 *
 * labels: added to each figure, no name twice; NULL if label_count is 0.
 * label_count: elements of labels: 0 to REDLOCK_LABELS_MAX.
 * ret_text: buffer for the text, which ends with a NUL. A text that does not fit is cut there.
 *   NULL if size is 0.
 * size: bytes of ret_text.
 * EINVAL: rl is NULL, ret_text is NULL and size is not 0, or labels are not as above.
 * EFORKED, ECLOSED.
 * After an error *ret_text is not valid.
 * Since 0.2.0.
 * [any thread] */
REDLOCK_API REDLOCK_NODISCARD int redlock_stats_prometheus(redlock_t *rl,
                                                           const redlock_label_t *labels,
                                                           size_t label_count, char *ret_text,
                                                           size_t size);

#ifdef __cplusplus
}
#endif
#endif
