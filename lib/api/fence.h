/* SPDX-License-Identifier: MIT
 * The fingerprint of the settings that all clients with fenced locks must share. */
#ifndef RL_API_FENCE_H
#define RL_API_FENCE_H

#include "api/config.h"
#include "core/fence.h"

/* Writes the fingerprint of a configuration for one shard. It covers the nodes of the shard, the
 * names of all shards, the key prefix, max_ttl and the kind of fence records. `ret` receives it
 * and a NUL. Returns its length in bytes without the NUL. */
size_t rl_fence_config_text(const struct redlock_config *config,
                            const struct rl_config_shard *shard, char ret[RL_FENCE_TEXT_MAX + 1]);

#endif
