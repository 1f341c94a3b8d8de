/* SPDX-License-Identifier: MIT
 * Finds the shard that a name belongs to, by rendezvous hashing: each shard gets a score for the
 * name, from a hash of both, and the shard with the highest score owns the name. */
#include "api/shards.h"

#include "api/client.h"
#include "api/report.h"
#include "core/hash_tag.h"
#include "platform/hash.h"

#include <string.h>

_Static_assert(RL_SHARD_NAME_MAX == RL_HASH_NAME_MAX, "rl_hash_score() takes every name");

/* Returns whether `shard`, whose score for a name is `score`, owns the name rather than `best` with
 * `best_score`. Of two equal scores the shard with the smaller name wins, so that the result does
 * not depend on the order of the shards. */
static bool wins(const struct rl_config_shard *shard, uint64_t score,
                 const struct rl_config_shard *best, uint64_t best_score)
{
    return score != best_score ? score > best_score : strcmp(shard->name, best->name) < 0;
}

/* Returns the index of the shard to which the resource `name` of `len` bytes belongs. Only the hash
 * tag of the name is hashed. */
static unsigned find(const struct redlock_config *config, const char *name, size_t len)
{
    struct rl_arg hash_tag = rl_hash_tag((struct rl_arg){name, len});
    unsigned best = 0;
    uint64_t best_score = 0;

    for (unsigned i = 0; config->shard_count > 1 && i < config->shard_count; i++) {
        const struct rl_config_shard *shard = &config->shards[i];
        uint64_t score =
            rl_hash_score(shard->name, strlen(shard->name), hash_tag.data, hash_tag.len);
        if (i == 0 || wins(shard, score, &config->shards[best], best_score)) {
            best = i;
            best_score = score;
        }
    }
    return best;
}

/* Finds the shard that all `names` belong to and stores it in *ret. Returns REDLOCK_OK; or
 * REDLOCK_EINVAL if the names belong to several shards, with a report in `refusal` (may be NULL).
 * Mutex held. */
int rl_shards_find(struct redlock_client *rl, const struct rl_names *names, struct rl_shard **ret,
                   redlock_report_t **refusal)
{
    const struct redlock_config *config = rl->config;

    *ret = &rl->shards[0];
    if (config->shard_count == 1)
        return REDLOCK_OK;
    unsigned first = find(config, names->list[0], names->lens[0]);
    for (unsigned i = 1; i < names->count; i++) {
        unsigned other = find(config, names->list[i], names->lens[i]);
        if (other != first)
            return rl_report_refuse(
                rl, refusal, REDLOCK_EINVAL,
                "'%.40s' is in shard %.24s, '%.40s' in %.24s: resources of one lock must be in one "
                "shard; put a common part of their names into braces",
                names->list[0], config->shards[first].name, names->list[i],
                config->shards[other].name);
    }
    *ret = &rl->shards[first];
    return REDLOCK_OK;
}

/* Returns the shard of a node. `index` counts the nodes of all shards; it must be below
 * redlock_node_count(). */
struct rl_shard *rl_shards_of_node(struct redlock_client *rl, size_t index)
{
    unsigned at = 0;

    while (index >= rl->shards[at].config->first + rl->shards[at].config->count)
        at++;
    return &rl->shards[at];
}

/* Returns the name of a node, without secrets, by its number in the shard. The client owns the
 * text. */
const char *rl_shard_node_name(const struct rl_shard *shard, unsigned node)
{
    return shard->rl->config->nodes[shard->config->first + node].name;
}

/* Logs a warning for each node of another shard that has the same server as `node`, a node of
 * `shard`: the server reports the same run id. Does nothing if the run id is not known. Mutex
 * held. */
void rl_shards_warn_shared(const struct rl_shard *shard, const struct rl_node_status *node)
{
    const struct redlock_client *rl = shard->rl;

    for (unsigned i = 0; node->run_id[0] != '\0' && i < rl->shard_count; i++) {
        const struct rl_shard *other = &rl->shards[i];
        for (unsigned j = 0; other != shard && j < other->config->count; j++) {
            const struct rl_node_status same = rl_engine_node_status(&other->engine, j);
            if (strcmp(same.run_id, node->run_id) == 0)
                rl_logf(
                    &rl->log, REDLOCK_LOG_WARN,
                    "%s: same server as %s of shard %s: both shards lose a vote with it, and it "
                    "keeps the fence record of one; give each shard servers of its own",
                    node->name, same.name, other->config->name);
        }
    }
}

/* Public function: returns the number of shards; 0 for NULL. */
REDLOCK_API size_t redlock_shard_count(const redlock_t *rl)
{
    return rl != NULL ? rl->shard_count : 0;
}

/* Public function: returns the name of shard `index`, "" for the only one; NULL if `rl` is NULL or
 * `index` is too large. */
REDLOCK_API const char *redlock_shard_name(const redlock_t *rl, size_t index)
{
    return rl != NULL && index < rl->shard_count ? rl->config->shards[index].name : NULL;
}

/* Public function: returns the index of the shard that a resource belongs to; REDLOCK_EINVAL if an
 * argument is NULL, or the name is empty or too long. */
REDLOCK_API int redlock_shard_of(const redlock_t *rl, const char *resource)
{
    size_t len = resource != NULL ? strnlen(resource, RL_RESOURCE_MAX + 1) : 0;

    if (rl == NULL || len == 0 || len > RL_RESOURCE_MAX)
        return REDLOCK_EINVAL;
    return (int)find(rl->config, resource, len);
}
