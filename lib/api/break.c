/* SPDX-License-Identifier: MIT
 * Breaking a lock: an inspection, then a compare-and-delete of each value that it saw. What another
 * client sets in between is left alone. */
#include "api/client.h"

#include <string.h>

/* What all parts together did is kept in `merged`, a release round of the parent. */
static bool begin_merge(struct redlock *rl, struct redlock_lock *lock)
{
    const struct rl_round *seen = &lock->engine.lease.round;
    struct rl_round *merged = rl_alloc(&rl->mem, sizeof *merged);

    if (merged == NULL)
        return false;
    merged->nodes = seen->nodes;
    merged->quorum = seen->quorum;
    merged->verb = RL_VERB_RELEASE;
    merged->t1 = seen->t1;
    merged->asked = seen->asked;
    merged->failed = seen->failed;
    merged->denied = seen->denied; /* there was no key */
    memcpy(merged->cause, seen->cause, sizeof merged->cause);
    memcpy(merged->rtt_us, seen->rtt_us, sizeof merged->rtt_us);
    lock->merged = merged;
    return true;
}

static void end(struct redlock *rl, struct redlock_lock *lock)
{
    const struct rl_round *merged = lock->merged;
    unsigned clean = rl_nodes_count(merged->granted | merged->denied);

    rl_dispatch_done(rl, lock, clean >= merged->quorum ? REDLOCK_OK : REDLOCK_ENOQUORUM);
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
    const struct rl_seen *seen = &parent->engine.seen[index];
    struct rl_arg value = {seen->value, seen->len};
    struct rl_keys keys;
    struct rl_lease_params params = parent->engine.lease.params;
    const struct rl_names names = {
        .count = 1, .list = {parent->bytes}, .lens = {(uint16_t)(parent->names_len - 1)}};
    struct redlock_lock *part = rl_api_lock_new(parent->set, &names, 0);

    if (part == NULL)
        return;
    (void)rl_names_keys(part, &keys); /* one needs no memory */
    params.kind = RL_LEASE_RELEASE;
    part->parent = parent;
    part->parts = index;
    parent->parts++;
    rl_api_lock_ref(parent);
    if (rl_lock_start(&parent->set->engine, &part->engine, &params, keys.list[0], value) !=
        REDLOCK_OK) {
        parent->parts--;
        part->parent = NULL;
        rl_api_lock_drop(part);
        rl_api_lock_drop(parent);
    }
}

void rl_break_inspected(struct redlock *rl, struct redlock_lock *lock)
{
    const struct rl_round *round = &lock->engine.lease.round;

    if (lock->engine.lease.status != REDLOCK_OK) {
        rl_dispatch_done(rl, lock, lock->engine.lease.status);
        return;
    }
    if (!begin_merge(rl, lock)) {
        rl_dispatch_done(rl, lock, REDLOCK_ENOMEM);
        return;
    }
    lock->parts = 1; /* held until all are started */
    for (unsigned i = 0; i < round->nodes; i++) {
        const struct rl_seen *seen = &lock->engine.seen[i];
        if (seen->foreign_kind) {
            lock->merged->failed |= RL_NODE(i);
            lock->merged->cause[i] = REDLOCK_CAUSE_WRONGTYPE;
        } else if (is_first_of_its_kind(lock->engine.seen, i)) {
            start_part(lock, i);
        }
    }
    if (--lock->parts == 0)
        end(rl, lock);
}

void rl_break_part_done(struct redlock *rl, struct redlock_lock *part)
{
    struct redlock_lock *parent = part->parent;
    const struct rl_round *round = &part->engine.lease.round;
    struct rl_round *merged = parent->merged;

    part->parent = NULL;
    merged->granted |= round->granted;
    merged->denied &= ~round->granted;
    for (rl_nodes rest = round->denied; rest != 0; rest &= rest - 1) {
        unsigned node = (unsigned)__builtin_ctz(rest);
        if (rl_seen_same(&parent->engine.seen[node], &parent->engine.seen[part->parts]))
            merged->denied |= RL_NODE(node); /* expired or released in the meantime */
    }
    for (rl_nodes rest = round->failed & ~merged->granted; rest != 0; rest &= rest - 1) {
        unsigned node = (unsigned)__builtin_ctz(rest);
        merged->failed |= RL_NODE(node) & ~merged->denied;
        merged->cause[node] = round->cause[node];
    }
    if (--parent->parts == 0)
        end(rl, parent);
    rl_api_lock_drop(parent);
}
