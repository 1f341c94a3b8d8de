/* SPDX-License-Identifier: MIT
 * The fingerprint of a configuration, which fenced clients must agree on. */
#ifndef RL_API_FENCE_H
#define RL_API_FENCE_H

#include "api/config.h"
#include "core/fence.h"

/* Writes the fingerprint of a configuration on the nodes of a set; returns its length. */
size_t rl_fence_config_text(const struct redlock_config *config,
                            const struct rl_config_shard *shard, char ret[RL_FENCE_TEXT_MAX + 1]);

#endif
