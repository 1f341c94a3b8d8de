/* SPDX-License-Identifier: MIT
 * Fences as the user sees them, and the fingerprint of a configuration. */
#include "core/fence.h"
#include "api/client.h"
#include "platform/hash.h"

#include <string.h>

/* In the order of their names: clients may list them in any order. */
static void hash_nodes(const struct redlock_config *config, char ret[RL_HASH_TEXT_LEN + 1])
{
    const char *names[RL_NODES_MAX];
    char all[RL_NODES_MAX * RL_HASH_TEXT_LEN + 1];
    size_t count = config->node_count;

    for (size_t i = 0; i < count; i++) {
        const char *name = rl_node_spec_id(&config->nodes[i]);
        size_t at = i;
        for (; at > 0 && strcmp(names[at - 1], name) > 0; at--)
            names[at] = names[at - 1];
        names[at] = name;
    }
    for (size_t i = 0; i < count; i++)
        rl_hash_text(names[i], strlen(names[i]), all + i * RL_HASH_TEXT_LEN);
    rl_hash_text(all, count * RL_HASH_TEXT_LEN, ret);
}

size_t rl_fence_config_text(const struct redlock_config *config, char ret[RL_FENCE_TEXT_MAX + 1])
{
    char set[RL_HASH_TEXT_LEN + 1], prefix[RL_HASH_TEXT_LEN + 1];

    hash_nodes(config, set);
    rl_hash_text(config->prefix, config->prefix_len, prefix);
    return rl_fence_fingerprint(ret, &(struct rl_fence_config){
                                         .nodes = (unsigned)config->node_count,
                                         .max_ttl_ms = config->max_ttl_ms,
                                         .durable = config->fence_records == REDLOCK_FENCE_DURABLE,
                                         .set = set,
                                         .prefix = prefix,
                                     });
}

REDLOCK_API uint64_t redlock_lock_fence(const redlock_lock_t *lock)
{
    return lock != NULL ? lock->engine.lease.fence.number : 0;
}
