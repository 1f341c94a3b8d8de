/* SPDX-License-Identifier: MIT
 * Computes the fingerprint of a configuration, and returns the fencing token of a lock. */
#include "api/fence.h"

#include "api/handle.h"
#include "platform/hash.h"

#include <string.h>

/* Writes one hash of `count` texts (at most RL_NODES_MAX) to `ret`. Sorts `texts` first, so that
 * their order does not matter. */
static void hash_texts(const char **texts, size_t count, char ret[RL_HASH_TEXT_LEN + 1])
{
    char all[RL_NODES_MAX * RL_HASH_TEXT_LEN + 1];

    for (size_t i = 1; i < count; i++) {
        const char *text = texts[i];
        size_t at = i;
        for (; at > 0 && strcmp(texts[at - 1], text) > 0; at--)
            texts[at] = texts[at - 1];
        texts[at] = text;
    }
    for (size_t i = 0; i < count; i++)
        rl_hash_text(texts[i], strlen(texts[i]), all + i * RL_HASH_TEXT_LEN);
    rl_hash_text(all, count * RL_HASH_TEXT_LEN, ret);
}

/* Writes the hash of the identities (id or address) of the shard's nodes to `ret`. */
static void hash_nodes(const struct redlock_config *config, const struct rl_config_shard *shard,
                       char ret[RL_HASH_TEXT_LEN + 1])
{
    const char *names[RL_NODES_MAX];

    for (size_t i = 0; i < shard->count; i++)
        names[i] = rl_node_spec_id(&config->nodes[shard->first + i]);
    hash_texts(names, shard->count, ret);
}

/* Writes to `ret` the hash of the shard's nodes and, if there are several shards, of its name and
 * of the names of all shards. The nodes of other shards are left out, because they do not decide
 * where a resource belongs. */
static void hash_shard(const struct redlock_config *config, const struct rl_config_shard *shard,
                       char ret[RL_HASH_TEXT_LEN + 1])
{
    const char *names[RL_SHARDS_MAX];
    char parts[3 * RL_HASH_TEXT_LEN + 1];

    hash_nodes(config, shard, ret);
    if (config->shard_count == 1)
        return;
    for (size_t i = 0; i < config->shard_count; i++)
        names[i] = config->shards[i].name;
    memcpy(parts, ret, RL_HASH_TEXT_LEN);
    rl_hash_text(shard->name, strlen(shard->name), parts + RL_HASH_TEXT_LEN);
    hash_texts(names, config->shard_count, parts + 2 * RL_HASH_TEXT_LEN);
    rl_hash_text(parts, sizeof parts - 1, ret);
}

/* Writes the fingerprint of the configuration for one shard to `ret`, and returns its length. It
 * covers the nodes of the shard, the names of all shards, the key prefix, max_ttl and the kind of
 * fence records. */
size_t rl_fence_config_text(const struct redlock_config *config,
                            const struct rl_config_shard *shard, char ret[RL_FENCE_TEXT_MAX + 1])
{
    char hash[RL_HASH_TEXT_LEN + 1], prefix[RL_HASH_TEXT_LEN + 1];

    hash_shard(config, shard, hash);
    rl_hash_text(config->prefix, config->prefix_len, prefix);
    return rl_fence_fingerprint(
        ret, &(struct rl_fence_config){
                 .nodes = shard->count,
                 .max_ttl_ms = config->max_ttl_ms,
                 .durable = config->fence_records == REDLOCK_FENCE_RECORDS_DURABLE,
                 .shard = hash,
                 .prefix = prefix,
             });
}

/* Public function: returns the fencing token of the lock; 0 if it has none, or for NULL. */
REDLOCK_API uint64_t redlock_lock_fence(const redlock_lock_t *handle)
{
    return handle != NULL ? rl_lock_fence(&handle->lock) : 0;
}
