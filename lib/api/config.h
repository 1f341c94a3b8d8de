/* SPDX-License-Identifier: MIT
 * What a client is built from. The client copies it and does not keep the pointer. */
#ifndef RL_API_CONFIG_H
#define RL_API_CONFIG_H

#include "core/drift.h"
#include "core/types.h"
#include "engine/params.h"
#include "platform/log.h"
#include "platform/memory.h"

#include <redlock/redlock.h>

#define RL_SHARD_NAME_MAX 64

struct rl_config_shard {
    char name[RL_SHARD_NAME_MAX + 1]; /* "": the only one, of redlock_config_add_nodes() */
    unsigned first, count;            /* its nodes */
};

struct redlock_config {
    struct rl_mem mem;
    struct rl_node_spec *nodes;
    size_t node_count;
    struct rl_config_shard shards[RL_SHARDS_MAX]; /* in the order of their nodes */
    unsigned shard_count;
    char *user, *password; /* for nodes whose address has none; NULL: none */
    int mode;              /* enum redlock_mode */
    char prefix[RL_PREFIX_MAX + 1];
    size_t prefix_len;
    char fence_key[RL_PREFIX_MAX + 1];
    size_t fence_key_len;
    int fence_records; /* enum redlock_fence_records */
    char owner[RL_OWNER_MAX + 1];
    size_t owner_len;
    uint64_t max_ttl_ms;
    uint32_t connect_timeout_ms;
    uint32_t node_timeout_ms; /* 0: from measured round trips */
    uint32_t retry_ms_min, retry_ms_max;
    struct rl_drift drift;
    uint32_t heartbeat_ms;
    uint32_t queue_max;
    bool notifications;
    uint32_t clock_slack_ms; /* 0: the wall clock is not looked at */
    int admission;           /* enum redlock_admission */
    struct rl_log log;
    redlock_event_fn event_fn;
    void *event_userdata;
    char error[512]; /* the last refusal, or "" */
};

/* Sets the text of redlock_config_error(). */
void rl_config_refuse(struct redlock_config *config, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* A deep copy, with the same allocator; 0 or REDLOCK_ENOMEM. */
int rl_config_copy(struct redlock_config **ret_config, const struct redlock_config *config);

#endif
