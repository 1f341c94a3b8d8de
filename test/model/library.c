/* SPDX-License-Identifier: MIT
 * A client that leaves its decisions to the library: what lib/core/lease_fence.c does with
 * lib/core/fence.c, with the replies of the model's nodes. It decides as soon as possible, and
 * grants that come after the choice may still count. */
#include "core/fence.h"
#include "model.h"

/* Returns the nodes whose cell has all of `flags` and, unless it is 0, one of `at_least_one`. */
static rl_nodes nodes_with(const struct model *model, const struct model_attempt *attempt,
                           unsigned flags, unsigned at_least_one)
{
    rl_nodes nodes = 0;

    for (unsigned n = 0; n < model->nodes; n++)
        if ((attempt->cell[n].flags & flags) == flags &&
            (at_least_one == 0 || (attempt->cell[n].flags & at_least_one) != 0))
            nodes |= RL_NODE(n);
    return nodes;
}

/* Restores the library's record of an attempt, which contains nothing that the model's does not. */
static struct rl_fence load_fence(const struct model *model, const struct model_attempt *attempt)
{
    struct rl_fence fence;

    rl_fence_begin(&fence, attempt->p != 0 ? attempt->p : 1); /* 0: no grant can come any more */
    fence.raising = attempt->phase == PHASE_RAISING;
    fence.chosen = fence.raising ? attempt->value : 0;
    fence.top = attempt->value;
    fence.used = nodes_with(model, attempt, CELL_USED, 0);
    fence.accepted = nodes_with(model, attempt, CELL_USED | CELL_ACCEPTED, 0);
    fence.acked = nodes_with(model, attempt, CELL_ACKED, 0);
    return fence;
}

/* Stores the library's record in the attempt. */
static void store_fence(const struct model *model, struct model_attempt *attempt,
                        const struct rl_fence *fence)
{
    attempt->value = (uint8_t)(fence->chosen != 0 ? fence->chosen : fence->top);
    if (fence->raising)
        attempt->phase = PHASE_RAISING;
    for (unsigned n = 0; n < model->nodes; n++) {
        uint16_t *flags = &attempt->cell[n].flags;
        if ((fence->used & RL_NODE(n)) != 0)
            *flags |= CELL_USED;
        if ((fence->acked & RL_NODE(n)) != 0)
            *flags |= CELL_ACKED;
        if ((fence->used & ~fence->accepted & RL_NODE(n)) != 0)
            *flags &= (uint16_t)~CELL_ACCEPTED;
    }
}

/* Asks the library whether the attempt has succeeded or failed, and ends it accordingly. Returns
 * false if the order of the fencing tokens is broken. */
static bool judge(const struct model *model, struct model_state *state, unsigned a,
                  const struct rl_fence *fence)
{
    struct model_attempt *attempt = &state->attempt[a];
    rl_nodes pending = nodes_with(model, attempt, 0, CELL_VOTE | CELL_GRANT);

    switch (rl_fence_judge(fence, rl_nodes_all(model->nodes), pending, model_quorum(model))) {
    case RL_FENCE_AGREED:
        return model_finish(model, state, a, (uint8_t)fence->chosen,
                            fence->raising ? CELL_ACKED : CELL_USED | CELL_ACCEPTED);
    case RL_FENCE_FAILED:
        model_give_up(model, attempt);
        return true;
    default:
        return true;
    }
}

/* Lets the library handle the GRANTED of node `n` to attempt `a`, with `prev` and `accepted` as in
 * the reply. Sends RAISE to the nodes that the library names. Returns false if the order of the
 * fencing tokens is broken. */
bool library_grant(const struct model *model, struct model_state *state, unsigned a, unsigned n,
                   uint8_t prev, bool accepted)
{
    struct model_attempt *attempt = &state->attempt[a];
    struct rl_fence fence = load_fence(model, attempt);
    unsigned q = model_quorum(model);
    rl_nodes raise = 0;

    if (rl_fence_grant(&fence, n, prev, accepted))
        raise = RL_NODE(n);
    if (fence.chosen == 0 && rl_nodes_count(fence.used) >= q)
        raise = rl_fence_choose(&fence, rl_nodes_all(model->nodes), q);
    store_fence(model, attempt, &fence);
    for (unsigned i = 0; i < model->nodes; i++)
        if ((raise & RL_NODE(i)) != 0)
            attempt->cell[i].flags |= CELL_RAISE;
    return judge(model, state, a, &fence);
}

/* Lets the library handle the ACK of node `n` to attempt `a`. Returns false if the order of the
 * fencing tokens is broken. */
bool library_ack(const struct model *model, struct model_state *state, unsigned a, unsigned n)
{
    struct rl_fence fence = load_fence(model, &state->attempt[a]);

    rl_fence_raised(&fence, n, true);
    store_fence(model, &state->attempt[a], &fence);
    return judge(model, state, a, &fence);
}
