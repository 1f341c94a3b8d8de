/* SPDX-License-Identifier: MIT
 * The builder of a client. Part of redlock.h. */
#ifndef REDLOCK_CONFIG_H
#define REDLOCK_CONFIG_H

#include "redlock/report.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Configuration */

enum redlock_mode {
    REDLOCK_MODE_THREADED = 1, /* default: own I/O thread, callbacks run on it */
    REDLOCK_MODE_EMBEDDED = 2, /* no engine thread: poll redlock_get_fd(), call redlock_process() */
    REDLOCK_MODE_HYBRID = 3    /* own I/O thread, callbacks run in redlock_process() */
};
enum redlock_fence_records {
    REDLOCK_FENCE_RECORDS_DURABLE =
        1, /* default: all nodes keep them over a restart, attested durable=1 */
    REDLOCK_FENCE_RECORDS_VOLATILE = 2 /* a node that was restarted counts as having forgotten */
};
enum redlock_admission {
    REDLOCK_ADMISSION_STRICT = 1,  /* default: a server that does not tell who it is may not vote */
    REDLOCK_ADMISSION_LENIENT = 2, /* it may; a restart of it that loses keys goes unseen */
    REDLOCK_ADMISSION_PROVEN = 3   /* as strict; and how long a server was there when the client
                                    * came does not rest on its wall clock: only the processor
                                    * time that it has used since its start shortens the wait */
};
enum redlock_log_level {
    REDLOCK_LOG_ERROR = 1,
    REDLOCK_LOG_WARN = 2,
    REDLOCK_LOG_INFO = 3,
    REDLOCK_LOG_DEBUG = 4
};

/* One line, without a newline, a secret or a token; borrowed for the call. May come from any
 * thread and while the client is locked: it must not call this library and should not wait. */
typedef void (*redlock_log_fn)(int level, const char *message, void *userdata);

/* All three functions are required and may be called from any thread. */
typedef struct redlock_allocator {
    size_t size; /* sizeof(redlock_allocator_t) */
    void *(*malloc_fn)(size_t size, void *userdata);
    void *(*realloc_fn)(void *ptr, size_t size, void *userdata);
    void (*free_fn)(void *ptr, void *userdata);
    void *userdata;
} redlock_allocator_t;

/* A configuration with all defaults and no nodes. allocator: copied; for this configuration and
 * all that is made from it; NULL: libc. [any thread] */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_new(redlock_config_t **ret_config,
                                                     const redlock_allocator_t *allocator);
/* Clients that were made from it go on. [builder] */
REDLOCK_API void redlock_config_free(redlock_config_t *config);

/* Why a setter or redlock_new() refused last: what, where, what to do; without secrets. Never
 * NULL; borrowed until the next call on `config`. [builder] */
REDLOCK_API const char *redlock_config_error(const redlock_config_t *config);

/* The setters change all of what they are for, or nothing. Beyond EINVAL (the text says why) and
 * ENOMEM there is no error. [builder] */

/* urls: one or several, separated by commas or blanks: redis://[[user]:password@]host[:port][/db],
 * unix://[[user]:password@]/path[?db=n], host, host:port, /path. Behind a '?', joined by '&', an
 * operator attests of a server: durable=1 (never loses keys over a restart: append-only file,
 * synced always), fresh=1 (no lock was there before this client came: a test's). id=NAME: how all
 * clients call this server, where they reach it under different addresses: contenders ask the
 * servers in an order that is made from their names, and fences rest on the same names in all
 * clients. EINVAL also for a server that is in the list already, and beyond REDLOCK_NODES_MAX. All
 * clients of a lock need the same nodes, listed in the same way. */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_add_nodes(redlock_config_t *config,
                                                           const char *urls);
/* Several sets of nodes instead of one, for more than one set can do: each resource belongs to one
 * of them, by a hash of its name and of theirs, and each set is a quorum of its own. The order of
 * the calls does not matter. name: 1..64 letters, digits, '.', '_' and '-'; what the set is known
 * by, the same in all clients, whatever becomes of its nodes. urls: as above. All clients need the
 * same sets: where they differ, two clients can hold one lock. EINVAL also for a name that is
 * taken, a server of another set, beyond REDLOCK_SHARDS_MAX, beyond REDLOCK_NODES_MAX in all, and
 * after redlock_config_add_nodes() without sets. The same in one text, also for
 * redlock_config_add_nodes(): "name=url,url,url; name=url,url,url".
 *
 * If a resource has braces with something in between, only what is between the first two is hashed:
 * "{order:7}:pay" and "{order:7}:ship" are in one set, as locks on several resources at once need
 * it. Adding a set moves some resources: docs/embedding.md says how. */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_add_shard(redlock_config_t *config,
                                                           const char *name, const char *urls);
/* For nodes whose URL has no user and password. user NULL or "": the default user; password NULL:
 * no login (then user must be NULL, too). */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_set_auth(redlock_config_t *config,
                                                          const char *user, const char *password);
REDLOCK_API REDLOCK_NODISCARD int redlock_config_set_mode(redlock_config_t *config, int mode);
/* What keys begin with; default "", at most 256 bytes. The same in all clients of a lock. */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_set_key_prefix(redlock_config_t *config,
                                                                const char *prefix);
/* The key of the hash in which each node keeps the numbers of fences (REDLOCK_FLAG_FENCE): 1..256
 * bytes, default "redlock:fence", without the prefix. The same in all clients, and of nothing else:
 * a lock or slot with this key is refused. */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_set_fence_key(redlock_config_t *config,
                                                               const char *key);
/* What becomes of these numbers when a node is restarted (enum redlock_fence_records). The same in
 * all clients. docs/guarantees.md says what to choose. */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_set_fence_records(redlock_config_t *config,
                                                                   int records);
/* Who we are, for operators: readable in Redis behind our tokens, shown by redlock_inspect(). At
 * most 128 printable ASCII characters without blanks; default "". */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_set_owner(redlock_config_t *config,
                                                           const char *label);
/* The longest TTL that is accepted, REDLOCK_TTL_MS_MIN..REDLOCK_TTL_MS_MAX; default 30000. The
 * same in all clients of these nodes. */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_set_max_ttl_ms(redlock_config_t *config,
                                                                uint64_t max_ttl_ms);
/* For connecting, and again for the greeting: 1..60000; default 250. */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_set_connect_timeout_ms(redlock_config_t *config,
                                                                        uint32_t timeout_ms);
/* For each answer of a node: 1..60000. Default 0: it may be silent for eight smoothed round trips,
 * within 10..250, and an answer may take 250. */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_set_node_timeout_ms(redlock_config_t *config,
                                                                     uint32_t timeout_ms);
/* Bounds of the random delay between attempts: 1..60000, min <= max; default 10 and 200. Where a
 * server tells of changes the delay is 100..300, or this one if it is longer. */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_set_retry_ms(redlock_config_t *config,
                                                              uint32_t delay_ms_min,
                                                              uint32_t delay_ms_max);
/* By how much clock rates may differ, in parts per million of the TTL (0..500000, default 10000),
 * plus a constant (0..1000000, default 2000). Both come off the validity. */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_set_drift(redlock_config_t *config,
                                                           uint32_t drift_ppm,
                                                           uint32_t drift_constant_us);
/* Returns how long a lock with this TTL is valid if it is granted in no time: the TTL less what
 * redlock_config_set_drift() takes off and less the margin in which a loss is announced, rounded
 * down to milliseconds. ttl_ms: any TTL. 0: nothing is left, or `config` is NULL. Since 0.2.0.
 * [builder] */
REDLOCK_API uint64_t redlock_config_validity_ms(const redlock_config_t *config, uint64_t ttl_ms);
/* Default true: servers are asked to tell when a key changes that somebody waits for (CLIENT
 * TRACKING, over a second connection that is opened when somebody waits). Where a server or its
 * user lacks that, and with false, waiting means asking again (redlock_config_set_retry_ms());
 * redlock_node_stats_t.notify_state tells. The rights: redlock nodes --acl. */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_set_notifications(redlock_config_t *config,
                                                                   bool on);
/* How many acquisitions of one resource may wait behind another one of this client; more are
 * refused with REDLOCK_EQUEUEFULL: 0..1000000; default 0: no limit. First come, first served; an
 * acquisition with wait_ms 0 does not queue, but asks the servers. */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_set_queue_max(redlock_config_t *config,
                                                               uint32_t waiters);
/* How often each server is asked for its clock, its identity and its eviction policy while locks
 * are held or wanted: 10..60000; default 1000. So late a step of its clock, or a policy that evicts
 * keys, is noticed. */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_set_heartbeat_ms(redlock_config_t *config,
                                                                  uint32_t interval_ms);
/* How far the wall clock (CLOCK_REALTIME) may be set ahead while a lock is held: 0..60000; default
 * 100; 0: as far as you like. Beyond it the lock counts as lost: a virtual machine that stood still
 * has no other trace of it. A first synchronisation after the start of a machine does the same: let
 * it be over before locks are taken. */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_set_clock_slack_ms(redlock_config_t *config,
                                                                    uint32_t slack_ms);
/* What becomes of servers that do not tell who they are, or since when they are there (enum
 * redlock_admission). */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_set_admission(redlock_config_t *config,
                                                               int admission);
/* Lines up to level_max (enum redlock_log_level) go to fn; NULL: none, the default. */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_set_log(redlock_config_t *config, int level_max,
                                                         redlock_log_fn fn, void *userdata);
/* All events of the client go to fn, after a lock's own function; NULL: none. It is not called
 * any more when redlock_free() of the last client of this configuration has returned. [builder] */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_set_event(redlock_config_t *config,
                                                           redlock_event_fn fn, void *userdata);

#ifdef __cplusplus
}
#endif
#endif
