/* SPDX-License-Identifier: MIT
 * Breaking a lock: an inspection, then a compare-and-delete of each value that it saw. What another
 * client sets in between is left alone. */
#include "api/break.h"

#include "api/dispatch.h"
#include "api/names.h"

#include <string.h>

/* What all parts together did is a release round of its own. */
static bool begin_merge(struct redlock *rl, struct redlock_lock *handle)
{
    const struct rl_round *seen = rl_lock_round(&handle->lock);
    size_t nodes = seen->nodes;
    struct rl_break *breaking =
        rl_alloc(&rl->mem, sizeof *breaking + nodes * (sizeof(uint32_t) + sizeof(uint8_t)));

    if (breaking == NULL)
        return false;
    struct rl_round *merged = &breaking->merged;
    uint32_t *rtt_us = (void *)(breaking + 1);
    rl_round_init(merged, seen->nodes, seen->quorum, rtt_us, (uint8_t *)(rtt_us + nodes));
    merged->verb = RL_VERB_RELEASE;
    merged->t1 = seen->t1;
    merged->requested = seen->requested;
    merged->failed = seen->failed;
    merged->denied = seen->denied; /* there was no key */
    memcpy(merged->rtt_us, seen->rtt_us, nodes * sizeof *merged->rtt_us);
    memcpy(merged->cause, seen->cause, nodes * sizeof *merged->cause);
    breaking->whole = handle;
    handle->breaking = breaking;
    return true;
}

static void end(struct redlock *rl, struct redlock_lock *handle)
{
    const struct rl_round *merged = &handle->breaking->merged;
    unsigned clean = rl_nodes_count(merged->granted | merged->denied);

    rl_dispatch_done(rl, handle, clean >= merged->quorum ? REDLOCK_OK : REDLOCK_ENOQUORUM);
}

bool rl_break_leave(struct redlock_lock *part)
{
    struct rl_break *breaking = part->breaking;

    part->breaking = NULL;
    return --breaking->running == 0;
}

static bool is_first_of_its_kind(const struct rl_seen *seen, unsigned i)
{
    for (unsigned j = 0; j < i; j++) {
        if (rl_seen_same(&seen[j], &seen[i]))
            return false;
    }
    return seen[i].value != NULL;
}

/* A release of what was seen on node `index`, on all nodes, on behalf of the parent. */
static void start_part(struct redlock_lock *parent, unsigned index)
{
    const struct rl_seen *seen = &rl_lock_seen(&parent->lock)[index];
    struct rl_arg value = {seen->value, seen->len};
    struct rl_keys keys;
    struct rl_lease_params params = {.terms = *rl_lock_terms(&parent->lock)};
    const struct rl_names names = {
        .count = 1, .list = {parent->bytes}, .lens = {(uint16_t)(parent->names_len - 1)}};

    params.terms.kind = RL_LEASE_RELEASE;
    struct rl_storage storage = rl_storage_for(&params);
    struct redlock_lock *part = rl_handle_new(parent->shard, &names, &storage);
    if (part == NULL)
        return;
    (void)rl_names_keys(part, &keys); /* one needs no memory */
    part->breaking = parent->breaking;
    part->part = (uint8_t)index;
    parent->breaking->running++;
    rl_handle_ref(parent);
    if (rl_lock_start(&parent->shard->engine, &part->lock, &params, &storage, keys.list[0],
                      value) != REDLOCK_OK) {
        (void)rl_break_leave(part); /* not the last: the operation itself counts, too */
        rl_handle_drop(part);
        rl_handle_drop(parent);
    }
}

void rl_break_inspected(struct redlock *rl, struct redlock_lock *handle)
{
    const struct rl_round *round = rl_lock_round(&handle->lock);
    const struct rl_seen *seen = rl_lock_seen(&handle->lock);

    if (rl_lock_status(&handle->lock) != REDLOCK_OK) {
        rl_dispatch_done(rl, handle, rl_lock_status(&handle->lock));
        return;
    }
    if (!begin_merge(rl, handle)) {
        rl_dispatch_done(rl, handle, REDLOCK_ENOMEM);
        return;
    }
    struct rl_break *breaking = handle->breaking;
    breaking->running = 1; /* held until all are started */
    for (unsigned i = 0; i < round->nodes; i++) {
        if (seen[i].foreign_kind) {
            breaking->merged.failed |= RL_NODE(i);
            breaking->merged.cause[i] = REDLOCK_CAUSE_WRONGTYPE;
        } else if (is_first_of_its_kind(seen, i)) {
            start_part(handle, i);
        }
    }
    if (--breaking->running == 0)
        end(rl, handle);
}

void rl_break_part_done(struct redlock *rl, struct redlock_lock *part)
{
    struct redlock_lock *whole = rl_break_whole(part);
    const struct rl_seen *seen = rl_lock_seen(&whole->lock);
    const struct rl_round *round = rl_lock_round(&part->lock);
    struct rl_round *merged = &whole->breaking->merged;

    merged->granted |= round->granted;
    merged->denied &= ~round->granted;
    for (rl_nodes rest = round->denied; rest != 0; rest &= rest - 1) {
        unsigned node = (unsigned)__builtin_ctz(rest);
        if (rl_seen_same(&seen[node], &seen[part->part]))
            merged->denied |= RL_NODE(node); /* expired or released in the meantime */
    }
    for (rl_nodes rest = round->failed & ~merged->granted; rest != 0; rest &= rest - 1) {
        unsigned node = (unsigned)__builtin_ctz(rest);
        merged->failed |= RL_NODE(node) & ~merged->denied;
        merged->cause[node] = round->cause[node];
    }
    if (rl_break_leave(part))
        end(rl, whole);
    rl_handle_drop(whole);
}
