/* SPDX-License-Identifier: MIT
 * Divides the additional memory of a lock into its parts: the terms, then what only some locks need
 * (a permit, a fence, a copy of the last decided attempt), then arrays with an element for each
 * node. The parts are in descending order of alignment, so that there are no gaps between them. */
#include "engine/storage.h"

/* Returns the bytes that a lock with these parameters needs; `at` of the result is NULL. */
struct rl_storage rl_storage_for(const struct rl_lease_params *params)
{
    /* One round's arrays: the round trip and the cause of each node. */
    size_t each_node = params->terms.nodes * (sizeof(uint32_t) + sizeof(uint8_t));
    struct rl_storage storage = {.size = sizeof(struct rl_lease_terms) + each_node};

    if (params->terms.permits != 0)
        storage.size += sizeof(struct rl_permit);
    if (rl_lease_needs_fence(params))
        storage.size += sizeof(struct rl_fence);
    if (rl_lease_may_be_cut(params))
        storage.size += sizeof(struct rl_decided) + each_node;
    return storage;
}

/* Returns `*at`, where a part of `size` bytes begins, and moves `*at` to the byte after the part.
 */
static void *take(char **at, size_t size)
{
    void *part = *at;

    *at += size;
    return part;
}

/* Copies the terms of `params` into the memory, and returns where each part of the memory begins; a
 * part that the lock does not need is NULL. Also prepares the round in the part `decided`, which
 * has arrays of its own. */
struct rl_lease_storage rl_storage_parts(const struct rl_storage *storage,
                                         const struct rl_lease_params *params)
{
    const struct rl_lease_terms *terms = &params->terms;
    char *at = storage->at;
    struct rl_lease_terms *own = take(&at, sizeof *own);
    struct rl_lease_storage parts = {.terms = own};

    *own = *terms;
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
