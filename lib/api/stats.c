/* SPDX-License-Identifier: MIT
 * Statistics: adds up the counters of the shards' engines with the client's mutex held, and copies
 * the sum to the user. The user's struct may be smaller or larger than the library's, because the
 * program may be compiled with another version of the header. */
#include "api/stats.h"

#include "api/client.h"

#include <string.h>

/* Copies the first bytes of `from`, a struct of `known` bytes, to the user's struct `to` of `size`
 * bytes. If `size` is larger, zeroes the rest of `to`. Returns REDLOCK_OK; or REDLOCK_EINVAL if
 * `to` is NULL or `size` is 0. */
int rl_copy_out(void *to, size_t size, const void *from, size_t known)
{
    if (to == NULL || size == 0)
        return REDLOCK_EINVAL;
    memcpy(to, from, size < known ? size : known);
    if (size > known)
        memset((char *)to + known, 0, size - known);
    return REDLOCK_OK;
}

/* Adds each counter and gauge of one engine to `to`. */
static void add_stats(redlock_stats_t *to, const struct rl_engine_stats *from)
{
    to->acquired += from->acquired;
    to->contended += from->contended;
    to->no_quorum += from->no_quorum;
    to->too_slow += from->too_slow;
    to->excluded += from->refused;
    to->canceled += from->canceled;
    to->attempts += from->attempts;
    to->split_votes += from->split_votes;
    to->extended += from->extended;
    to->extend_failed += from->extend_failed;
    to->endangered += from->endangered;
    to->lost += from->lost;
    to->released += from->released;
    to->release_failed += from->release_failed;
    to->undone += from->undone;
    to->undo_expired += from->undo_expired;
    to->undo_dropped += from->undo_dropped;
    to->held += from->held;
    to->waiting += from->waiting;
    to->fence_one_round += from->fence_one_round;
    to->fence_two_rounds += from->fence_two_rounds;
    to->queue_full += from->queue_full;
    to->wakeups += from->wakeups;
    to->queued += from->queued;
    to->line_joins += from->line_joins;
    to->line_turns += from->line_turns;
    to->line_missed += from->line_missed;
    to->line_fallbacks += from->line_fallbacks;
    to->wait_us_sum += from->wait_us_sum;
    for (size_t i = 0; i < RL_BUCKETS; i++)
        to->wait_us_hist[i] += from->wait_us_hist[i];
}

/* Copies the sum of the statistics of `count` shards, from the shard with index `first` on, to
 * *ret_stats of `size` bytes. Returns REDLOCK_OK, EFORKED or ECLOSED. */
static int get_stats(redlock_t *rl, size_t first, size_t count, redlock_stats_t *ret_stats,
                     size_t size)
{
    redlock_stats_t stats = {0};

    int error = rl_client_enter_readonly(rl);
    if (error != REDLOCK_OK)
        return error;
    for (size_t i = 0; i < count; i++)
        add_stats(&stats, rl_engine_stats(&rl->shards[first + i].engine));
    rl_client_unlock(rl);
    return rl_copy_out(ret_stats, size, &stats, sizeof stats);
}

/* Public function: copies the statistics of all shards together to *ret_stats of `size` bytes.
 * Returns REDLOCK_OK, EINVAL, EFORKED or ECLOSED. */
REDLOCK_API int redlock_get_stats(redlock_t *rl, redlock_stats_t *ret_stats, size_t size)
{
    if (rl == NULL || ret_stats == NULL || size == 0)
        return REDLOCK_EINVAL;
    return get_stats(rl, 0, rl->shard_count, ret_stats, size);
}

/* Public function: copies the statistics of shard `index` to *ret_stats of `size` bytes. Returns
 * REDLOCK_OK, EINVAL (also for an index past the last shard), EFORKED or ECLOSED. */
REDLOCK_API int redlock_get_shard_stats(redlock_t *rl, size_t index, redlock_stats_t *ret_stats,
                                        size_t size)
{
    if (rl == NULL || ret_stats == NULL || size == 0 || index >= rl->shard_count)
        return REDLOCK_EINVAL;
    return get_stats(rl, index, 1, ret_stats, size);
}

/* Public function: copies the statistics of one node to *ret_stats of `size` bytes. `index` counts
 * the nodes of all shards. Returns REDLOCK_OK, EINVAL (also for an index past the last node),
 * EFORKED or ECLOSED. */
REDLOCK_API int redlock_get_node_stats(redlock_t *rl, size_t index, redlock_node_stats_t *ret_stats,
                                       size_t size)
{
    redlock_node_stats_t stats;

    if (rl == NULL || ret_stats == NULL || size == 0 || index >= redlock_node_count(rl))
        return REDLOCK_EINVAL;
    int error = rl_client_enter_readonly(rl);
    if (error != REDLOCK_OK)
        return error;
    const struct rl_shard *shard = rl_shards_of_node(rl, index);
    rl_engine_node_stats(&shard->engine, (unsigned)index - shard->config->first, &stats);
    rl_client_unlock(rl);
    stats.shard = shard->config->name;
    stats.shard_index = (uint32_t)(shard - rl->shards);
    return rl_copy_out(ret_stats, size, &stats, sizeof stats);
}
