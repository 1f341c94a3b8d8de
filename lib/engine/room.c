/* SPDX-License-Identifier: MIT
 * Room beside a lock: its parts in descending order of their alignment. */
#include "engine/room.h"

#include "engine/engine.h"

static bool are_equal(const struct rl_lease_terms *a, const struct rl_lease_terms *b)
{
    return a->ttl_ns == b->ttl_ns && a->kind == b->kind && a->nodes == b->nodes &&
           a->quorum == b->quorum && a->auto_extend == b->auto_extend && a->fence == b->fence &&
           a->permits == b->permits && a->extends_max == b->extends_max &&
           a->drift.ppm == b->drift.ppm && a->drift.floor_us == b->drift.floor_us &&
           a->backoff.min_ns == b->backoff.min_ns && a->backoff.max_ns == b->backoff.max_ns &&
           a->validity_min_ns == b->validity_min_ns && a->extend_at_ns == b->extend_at_ns &&
           a->hold_max_ns == b->hold_max_ns && a->margin_ns == b->margin_ns &&
           a->wall_slack_us == b->wall_slack_us;
}

/* The place that has these terms, also if nobody uses it just now; else a free one, rather one that
 * never had any: locks of two kinds that come by turns are not to push each other out. */
static struct rl_terms *find(struct rl_engine *engine, const struct rl_lease_terms *terms)
{
    struct rl_terms *unused = NULL;

    for (unsigned i = 0; i < RL_TERMS_MAX; i++) {
        struct rl_terms *place = &engine->terms[i];
        if (are_equal(&place->terms, terms))
            return place;
        bool better = unused == NULL || (unused->terms.kind != 0 && place->terms.kind == 0);
        if (better && atomic_load_explicit(&place->locks, memory_order_acquire) == 0)
            unused = place;
    }
    return unused;
}

struct rl_room rl_room_for(struct rl_engine *engine, const struct rl_lease_params *params)
{
    struct rl_room room = {.shared = find(engine, &params->terms)};

    room.size = params->terms.nodes * (sizeof(uint32_t) + sizeof(uint8_t));
    if (room.shared == NULL)
        room.size += sizeof(struct rl_lease_terms);
    if (params->terms.permits != 0)
        room.size += sizeof(struct rl_permit);
    if (rl_lease_needs_fence(params))
        room.size += sizeof(struct rl_fence);
    if (rl_lease_may_be_cut(params))
        room.size +=
            sizeof(struct rl_decided) + params->terms.nodes * (sizeof(uint32_t) + sizeof(uint8_t));
    return room;
}

/* The next `size` bytes. */
static void *take(char **at, size_t size)
{
    void *part = *at;

    *at += size;
    return part;
}

struct rl_lease_room rl_room_parts(const struct rl_room *room, const struct rl_lease_params *params)
{
    const struct rl_lease_terms *terms = &params->terms;
    struct rl_lease_room parts = {.permit = NULL};
    char *at = room->at;

    if (room->shared != NULL) {
        if (atomic_load_explicit(&room->shared->locks, memory_order_acquire) == 0)
            room->shared->terms = *terms;
        atomic_fetch_add_explicit(&room->shared->locks, 1, memory_order_relaxed);
        parts.terms = &room->shared->terms;
    } else {
        struct rl_lease_terms *own = take(&at, sizeof *own);
        *own = *terms;
        parts.terms = own;
    }
    if (terms->permits != 0)
        parts.permit = take(&at, sizeof *parts.permit);
    if (rl_lease_needs_fence(params))
        parts.fence = take(&at, sizeof *parts.fence);
    if (rl_lease_may_be_cut(params))
        parts.decided = take(&at, sizeof *parts.decided);
    parts.rtt_us = take(&at, terms->nodes * sizeof *parts.rtt_us);
    uint32_t *rtt_us = parts.decided != NULL ? take(&at, terms->nodes * sizeof *rtt_us) : NULL;
    parts.cause = take(&at, terms->nodes * sizeof *parts.cause);
    if (parts.decided != NULL)
        rl_round_init(&parts.decided->round, terms->nodes, terms->quorum, rtt_us,
                      take(&at, terms->nodes * sizeof *parts.cause));
    return parts;
}

void rl_room_leave(struct rl_engine *engine, const struct rl_lease *lease)
{
    for (unsigned i = 0; i < RL_TERMS_MAX; i++) {
        struct rl_terms *place = &engine->terms[i];
        if (lease->terms != &place->terms)
            continue;
        atomic_fetch_sub_explicit(&place->locks, 1, memory_order_release);
        break;
    }
}
