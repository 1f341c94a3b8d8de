/* SPDX-License-Identifier: MIT
 * The configuration from which a client is created. The client copies it. A node of a configuration
 * is a struct rl_node_spec: the parsed address of one server, with what the operator attests. */
#ifndef RL_API_CONFIG_H
#define RL_API_CONFIG_H

#include "core/drift.h"
#include "core/types.h"
#include "engine/params.h"
#include "platform/log.h"
#include "platform/memory.h"

#include <redlock/redlock.h>

#define RL_SHARD_NAME_MAX 64 /* bytes of a shard's name */

/* The nodes of one shard. Owned by config_shards.c; part of struct redlock_config. */
struct rl_config_shard {
    char name[RL_SHARD_NAME_MAX + 1]; /* "": the only shard, of redlock_config_add_nodes() */
    unsigned first, count;            /* its nodes: `count` from redlock_config.nodes[first] on */
};

/* One configuration (redlock_config_t). Owned by config.c, the nodes and shards by config_shards.c.
 * Invariants: every value is in the range that its setter accepts; a setter that fails changes
 * nothing but `error`; each node belongs to exactly one shard. */
struct redlock_config {
    struct rl_mem mem;          /* allocator of the configuration and of its clients */
    struct rl_node_spec *nodes; /* `node_count`, those of one shard next to each other */
    size_t node_count;
    struct rl_config_shard shards[RL_SHARDS_MAX]; /* `shard_count`, in the order of their nodes */
    unsigned shard_count;
    struct rl_tls_settings tls; /* for nodes with TLS, as far as their address does not say it */
    char *user, *password;      /* for nodes whose address has none; NULL: none */
    int mode;                   /* enum redlock_mode */
    char prefix[RL_PREFIX_MAX + 1]; /* in front of each resource in its key */
    size_t prefix_len;
    char fence_key[RL_PREFIX_MAX + 1]; /* the key of the fence record; without the prefix */
    size_t fence_key_len;
    int fence_records;            /* enum redlock_fence_records */
    char owner[RL_OWNER_MAX + 1]; /* label in the tokens; "": none */
    size_t owner_len;
    bool has_owner;                      /* the caller has set the label, perhaps to none */
    uint64_t max_ttl_ms;                 /* longest TTL that a lock may have */
    uint32_t connect_timeout_ms;         /* limit for connecting to a server */
    uint32_t node_timeout_ms;            /* 0: computed from the measured round trips */
    uint32_t keepalive_ms;               /* idle time before TCP probes; 0: none are sent */
    uint32_t retry_ms_min, retry_ms_max; /* bounds of the pause between two attempts */
    struct rl_drift drift;               /* largest difference between clock rates */
    uint32_t heartbeat_ms;               /* interval of heartbeats */
    uint32_t queue_max;        /* longest queue of one resource in this client; 0: no limit */
    bool notifications;        /* servers may be asked for notifications */
    bool line;                 /* waiters may use lines, if they have notifications */
    uint32_t clock_slack_ms;   /* how far the wall clock may run ahead of the boot clock while
                                * a lock is held; 0: it is not checked */
    int admission;             /* enum redlock_admission */
    struct rl_log log;         /* the user's log function */
    redlock_event_fn event_fn; /* for events of servers; NULL: none */
    void *event_userdata;      /* passed to event_fn */
    char error[512];           /* text of redlock_config_error(): the last refusal; "": none */
};

/* Sets the text of redlock_config_error(), in the form of printf(). */
void rl_config_refuse(struct redlock_config *config, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Returns NULL if `text` has at most `len_max` bytes, all from `lowest` to `highest`; else the
 * predicate of a sentence that says what is wrong with it. */
const char *rl_config_text_flaw(const char *text, size_t len_max, unsigned char lowest,
                                unsigned char highest);

/* Creates a deep copy with the same allocator, which redlock_config_free() frees. Returns
 * REDLOCK_OK or REDLOCK_ENOMEM. */
int rl_config_copy(struct redlock_config **ret_config, const struct redlock_config *config);

/* Sets the label "host/pid/start" of this process and of this second since 1970, unless the caller
 * has set one. Bytes of the host name that a label cannot have, and '@', become '-'. */
void rl_config_label(struct redlock_config *config);

#endif
