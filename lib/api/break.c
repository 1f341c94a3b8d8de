/* SPDX-License-Identifier: MIT
 * Breaks a lock: inspects its key, then releases each value that was seen, by compare-and-delete on
 * all nodes. A key that another client sets in between has another value and is not deleted.
 *
 * The nodes may have different values, for example after a split vote. For each different value the
 * break starts one part, a handle of its own that releases this value on all nodes. The votes of
 * the parts are merged into one round, which the report of the break shows. In this round a grant
 * means that the key was deleted, and a denial that there was no key. The client's mutex is held in
 * all functions. */
#include "api/break.h"

#include "api/dispatch.h"
#include "api/names.h"
#include "engine/seen.h"

#include <string.h>

/* Allocates what the break `handle` and its parts share, and stores it in handle->breaking. Its
 * `merged` round starts as a release with the failures of the inspection, and with a denial for
 * each node without the key. Returns false without memory. */
static bool begin_merge(struct redlock_client *rl, struct redlock_lock *handle)
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
    merged->denied = seen->denied; /* nodes that have replied and do not have the key */
    memcpy(merged->rtt_us, seen->rtt_us, nodes * sizeof *merged->rtt_us);
    memcpy(merged->cause, seen->cause, nodes * sizeof *merged->cause);
    breaking->whole = handle;
    handle->breaking = breaking;
    return true;
}

/* Ends the break `handle`: with REDLOCK_OK if a quorum of nodes is known to be without the key,
 * else with REDLOCK_ENOQUORUM. */
static void end(struct redlock_client *rl, struct redlock_lock *handle)
{
    const struct rl_round *merged = &handle->breaking->merged;
    unsigned clean = rl_nodes_count(merged->granted | merged->denied);

    rl_dispatch_done(rl, handle, clean >= merged->quorum ? REDLOCK_OK : REDLOCK_ENOQUORUM);
}

/* Removes the ended part from its break. Returns whether no other part is running. */
bool rl_break_leave(struct redlock_lock *part)
{
    struct rl_break *breaking = part->breaking;

    part->breaking = NULL;
    return --breaking->running == 0;
}

/* Returns whether node `i` has a value that no node before it has. */
static bool is_first_with_value(const struct rl_seen *seen, unsigned i)
{
    for (unsigned j = 0; j < i; j++) {
        if (rl_seen_same(&seen[j], &seen[i]))
            return false;
    }
    return seen[i].value != NULL;
}

/* Starts a part of the break `parent`: releases on all nodes the value that node `index` has.
 * Without memory the part is left out, and its nodes stay without a vote. */
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
    (void)rl_names_keys(part, &keys); /* a single key needs no memory */
    part->breaking = parent->breaking;
    part->part = (uint8_t)index;
    parent->breaking->running++;
    rl_handle_ref(parent);
    if (rl_lock_start(&parent->shard->engine, &part->lock, &params, &storage, keys.list[0],
                      value) != REDLOCK_OK) {
        (void)rl_break_leave(part);
        rl_handle_drop(part);
        rl_handle_drop(parent);
    }
}

/* Continues the break `handle` after its inspection has ended: starts a part for each value that
 * was seen. Ends the break if the inspection has failed, if there is no memory, or if no part was
 * started. */
void rl_break_inspected(struct redlock_client *rl, struct redlock_lock *handle)
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
    for (unsigned i = 0; i < round->nodes; i++) {
        if (seen[i].foreign_kind) {
            breaking->merged.failed |= RL_NODE(i);
            breaking->merged.cause[i] = REDLOCK_CAUSE_WRONGTYPE;
        } else if (is_first_with_value(seen, i)) {
            start_part(handle, i);
        }
    }
    if (breaking->running == 0)
        end(rl, handle);
}

/* Adds the votes of a part that has ended to those of its break: a grant means that the node has
 * deleted the value. Ends the break with its last part. Drops the part's reference to the handle of
 * the break. */
void rl_break_part_done(struct redlock_client *rl, struct redlock_lock *part)
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
            merged->denied |= RL_NODE(node); /* the key has expired or was released meanwhile */
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
