/* SPDX-License-Identifier: MIT
 * Statistics: copies taken under the mutex. */
#include "api/client.h"

#include <stdio.h>
#include <string.h>

int rl_copy_out(void *to, size_t size, const void *from, size_t known)
{
    if (to == NULL || size == 0)
        return REDLOCK_EINVAL;
    memcpy(to, from, size < known ? size : known);
    if (size > known)
        memset((char *)to + known, 0, size - known);
    return REDLOCK_OK;
}

static void add_stats(redlock_stats_t *to, const struct rl_engine_stats *from)
{
    to->acquired += from->acquired;
    to->contended += from->contended;
    to->no_quorum += from->no_quorum;
    to->too_slow += from->too_slow;
    to->refused += from->refused;
    to->canceled += from->canceled;
    to->attempts += from->attempts;
    to->split_votes += from->split_votes;
    to->extended += from->extended;
    to->extend_failed += from->extend_failed;
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
    for (size_t i = 0; i < RL_BUCKETS; i++)
        to->wait_us_hist[i] += from->wait_us_hist[i];
}

/* Of `count` sets from `first` on. */
static int get_stats(redlock_t *rl, size_t first, size_t count, redlock_stats_t *ret_stats,
                     size_t size)
{
    redlock_stats_t stats = {0};

    int error = rl_client_look(rl);
    if (error != REDLOCK_OK)
        return error;
    for (size_t i = 0; i < count; i++)
        add_stats(&stats, &rl->sets[first + i].engine.stats);
    rl_client_unlock(rl);
    return rl_copy_out(ret_stats, size, &stats, sizeof stats);
}

REDLOCK_API int redlock_get_stats(redlock_t *rl, redlock_stats_t *ret_stats, size_t size)
{
    if (rl == NULL || ret_stats == NULL || size == 0)
        return REDLOCK_EINVAL;
    return get_stats(rl, 0, rl->set_count, ret_stats, size);
}

REDLOCK_API int redlock_get_set_stats(redlock_t *rl, size_t index, redlock_stats_t *ret_stats,
                                      size_t size)
{
    if (rl == NULL || ret_stats == NULL || size == 0 || index >= rl->set_count)
        return REDLOCK_EINVAL;
    return get_stats(rl, index, 1, ret_stats, size);
}

static uint64_t votes_again_ms(const struct rl_node *node, uint64_t now_ns)
{
    uint64_t ns = rl_admission_votes_again_ns(&node->admission, node->bars, now_ns);

    return (ns + RL_MS - 1) / RL_MS;
}

static void fill_facts(const struct rl_node *node, redlock_node_stats_t *stats)
{
    const struct rl_info *info = &node->info;
    bool told = info->run_id[0] != '\0' && !info->refused;

    stats->facts = (told ? REDLOCK_FACT_INFO : 0u) | (info->aof ? REDLOCK_FACT_AOF : 0u) |
                   (info->aof && info->aof_failing ? REDLOCK_FACT_AOF_FAILING : 0u) |
                   (node->admission.durable ? REDLOCK_FACT_DURABLE : 0u) |
                   (node->admission.fresh ? REDLOCK_FACT_FRESH : 0u);
    stats->replicas = (uint32_t)rl_min_u64(info->replicas, UINT32_MAX);
    stats->maxmemory = info->maxmemory;
    memcpy(stats->policy, info->policy, sizeof stats->policy);
}

static int wakeups_of(const struct rl_set *set, const struct rl_node *node)
{
    if (!set->engine.params.wakeups)
        return REDLOCK_WAKEUPS_OFF;
    if (node->tracker.state == RL_TRACKER_REFUSED)
        return REDLOCK_WAKEUPS_REFUSED;
    if (node->state != RL_NODE_READY || !node->tracker.wanted)
        return REDLOCK_WAKEUPS_IDLE;
    return rl_tracker_tells(node) ? REDLOCK_WAKEUPS_ON : REDLOCK_WAKEUPS_PENDING;
}

static void fill_node(const struct rl_set *set, unsigned index, redlock_node_stats_t *stats)
{
    const struct rl_node *node = &set->engine.nodes[index];
    bool up = rl_node_answers(node);
    bool votes = up && (set->engine.view.voters & RL_NODE(index)) != 0;
    struct rl_now now = rl_clock_now();
    int64_t wall_offset_us = (int64_t)rl_clock_wall_us() - (int64_t)(now.boot_ns / RL_US);
    const struct rl_node_counters *counters = &node->counters;

    *stats = (redlock_node_stats_t){
        .node = rl_set_node_name(set, index),
        .may_vote = votes,
        .cause = votes ? REDLOCK_CAUSE_NONE : set->engine.view.cause[index],
        .requests = counters->requests,
        .granted = counters->granted,
        .denied = counters->denied,
        .errors = counters->errors,
        .timeouts = counters->timeouts,
        .replies_late = counters->replies_late,
        .reconnects = counters->reconnects,
        .rtt_us = node->srtt_ns / RL_US,
        .uptime_s = node->info.uptime_s,
        .undos_pending = rl_node_undos_pending(node),
        .features = node->features,
        .wakeups = wakeups_of(set, node),
        .pushes = counters->pushes,
        .set = set->config->name,
        .set_index = (uint32_t)(set - set->rl->sets),
    };
    memcpy(stats->rtt_us_hist, counters->rtt_us_hist, sizeof stats->rtt_us_hist);
    memcpy(stats->version, node->info.version, sizeof stats->version);
    memcpy(stats->role, node->info.role, sizeof stats->role);
    memcpy(stats->run_id, node->run_id, sizeof stats->run_id);
    rl_admission_offset_us(&node->admission, wall_offset_us, &stats->clock_offset_us);
    fill_facts(node, stats);
    if (stats->wakeups == REDLOCK_WAKEUPS_REFUSED)
        memcpy(stats->wakeups_text, node->tracker.text, sizeof stats->wakeups_text);
    if (votes)
        return;
    if (up) {
        rl_admission_text(&node->admission, node->bars, now.boot_ns, stats->text,
                          sizeof stats->text);
        stats->votes_again_ms = votes_again_ms(node, now.boot_ns);
    } else if (node->duplicate)
        snprintf(stats->text, sizeof stats->text, "same server as %.120s",
                 rl_set_node_name(set, node->duplicate_of));
    else
        snprintf(stats->text, sizeof stats->text, "%s",
                 node->text[0] != '\0' ? node->text : "not connected yet");
}

REDLOCK_API int redlock_get_node_stats(redlock_t *rl, size_t index, redlock_node_stats_t *ret_stats,
                                       size_t size)
{
    redlock_node_stats_t stats;

    if (rl == NULL || ret_stats == NULL || size == 0 || index >= redlock_node_count(rl))
        return REDLOCK_EINVAL;
    int error = rl_client_look(rl);
    if (error != REDLOCK_OK)
        return error;
    const struct rl_set *set = rl_sets_of_node(rl, index);
    fill_node(set, (unsigned)index - set->config->first, &stats);
    rl_client_unlock(rl);
    return rl_copy_out(ret_stats, size, &stats, sizeof stats);
}
