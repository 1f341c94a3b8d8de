/* SPDX-License-Identifier: MIT
 * The sets of nodes of a client, each with an engine of its own. */
#ifndef RL_API_SETS_H
#define RL_API_SETS_H

#include "api/config.h"
#include "api/dispatch.h"
#include "api/names.h"
#include "core/fence.h"
#include "engine/io.h"
#include "engine/status.h"

/* One set of nodes, and the engine that works on it. */
struct rl_shard {
    struct redlock *rl;
    const struct rl_config_shard *config;
    char fence_config[RL_FENCE_TEXT_MAX + 1]; /* fingerprint of what fenced clients must agree on */
    struct rl_engine engine;
    struct rl_io_shard io;
    struct rl_pending_node_events pending;
};

/* Finds the set that these names belong to. EINVAL: to more than one; `refusal` (may be NULL) says
 * so. */
int rl_shards_find(struct redlock *rl, const struct rl_names *names, struct rl_shard **ret,
                   redlock_report_t **refusal);
/* Returns the set of a node of the client, counted over all sets. */
struct rl_shard *rl_shards_of_node(struct redlock *rl, size_t index);
const char *rl_shard_node_name(const struct rl_shard *shard, unsigned node);
/* Says so in the log if this node of the set is in another one, too, under another address. Locks
 * are safe all the same: a name is in one set only. */
void rl_shards_warn_shared(const struct rl_shard *shard, const struct rl_node_status *node);

#endif
