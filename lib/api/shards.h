/* SPDX-License-Identifier: MIT
 * The shards of a client, each with an engine of its own, and the choice of the shard that a name
 * belongs to. */
#ifndef RL_API_SHARDS_H
#define RL_API_SHARDS_H

#include "api/config.h"
#include "api/dispatch.h"
#include "api/names.h"
#include "core/fence.h"
#include "engine/io.h"
#include "engine/status.h"

/* One shard: a quorum group of nodes and the engine that works on them. Owned by client.c, which
 * fills it in redlock_new(); `pending` is owned by dispatch.c. */
struct rl_shard {
    struct redlock_client *rl;                /* the client that contains the shard */
    const struct rl_config_shard *config;     /* its name and nodes, in rl->config */
    char fence_config[RL_FENCE_TEXT_MAX + 1]; /* fingerprint of the settings that all clients with
                                               * fenced locks must share */
    struct rl_engine engine;
    struct rl_io_shard io;                 /* the sockets of the shard's nodes */
    struct rl_pending_node_events pending; /* events of its nodes that were not reported yet */
};

/* Finds the shard that these names belong to and stores it in *ret. Returns REDLOCK_OK, or
 * REDLOCK_EINVAL if they belong to several shards; then `refusal` (may be NULL) receives a report.
 */
int rl_shards_find(struct redlock_client *rl, const struct rl_names *names, struct rl_shard **ret,
                   redlock_report_t **refusal);
/* Returns the shard of a node. `index` counts the nodes of all shards, below
 * redlock_node_count(). */
struct rl_shard *rl_shards_of_node(struct redlock_client *rl, size_t index);
/* Returns the name of a node of the shard, by its number in the shard. */
const char *rl_shard_node_name(const struct rl_shard *shard, unsigned node);
/* Logs a warning for each other shard that contains the server of `node`, a node of `shard`. Locks
 * stay safe, because each name belongs to one shard only. */
void rl_shards_warn_shared(const struct rl_shard *shard, const struct rl_node_status *node);

#endif
