/* SPDX-License-Identifier: MIT
 * The fence of an attempt. The grants return register values, the first quorum chooses the fence,
 * and if no quorum stored the proposal, a second round (RAISE) writes it. T1 is that of the first
 * round, so the deadline also accounts for the second one. core/fence.h has the algorithm. */
#include "core/lease_hold.h"

#include "redlock/redlock.h"

/* Turns the grants of `nodes` into failures with `cause` (enum redlock_cause), in the round and in
 * the choice of the fence, because RAISE failed or could not be sent. */
static void cannot_raise(struct rl_lease *lease, rl_nodes nodes, uint8_t cause)
{
    lease->round.granted &= ~nodes;
    lease->round.failed |= nodes;
    for (; nodes != 0; nodes &= nodes - 1) {
        unsigned node = (unsigned)__builtin_ctz(nodes);
        lease->round.cause[node] = cause;
        rl_fence_raised(lease->fence, node, false);
    }
}

/* Has the engine send RAISE to those of `nodes` that are up. The others count as failed. */
static void raise_on(struct rl_lease *lease, rl_nodes nodes, const struct rl_view *view,
                     struct rl_effects *fx)
{
    rl_nodes unreachable = nodes & ~view->up;

    fx->raise |= nodes & view->up;
    for (; unreachable != 0; unreachable &= unreachable - 1) {
        unsigned node = (unsigned)__builtin_ctz(unreachable);
        cannot_raise(lease, RL_NODE(node), view->cause[node]);
    }
}

/* Returns whether the attempts of the lease choose a fence. An adopted lock keeps the one it has.
 */
bool rl_lease_is_fenced(const struct rl_lease *lease)
{
    return lease->terms->fence && lease->terms->kind == RL_LEASE_ACQUIRE;
}

/* Passes a grant of the attempt to the choice of the fence, and sends the node a RAISE if the fence
 * was chosen before. Does nothing for other votes. */
void rl_lease_fence_vote(struct rl_lease *lease, const struct rl_ballot *ballot,
                         const struct rl_view *view, struct rl_effects *fx)
{
    if (ballot->vote != RL_VOTE_GRANTED)
        return;
    if (rl_fence_grant(lease->fence, ballot->node, ballot->register_value, ballot->accepted))
        raise_on(lease, RL_NODE(ballot->node), view, fx);
}

/* Processes a vote on RAISE. DENIED: the server does not have our key any more, so its grant in the
 * round becomes a denial, also if the lock is held already. During the attempt the result also
 * counts for the fence: only GRANTED means that the register holds it, and FAILED turns the node's
 * grant in the round into a failure. Does nothing for a lease without a fence, for a vote of
 * another round, for a node whose grant is not used, and for SUSPECT, because the reply may still
 * come. */
void rl_lease_fence_raised(struct rl_lease *lease, const struct rl_ballot *ballot)
{
    rl_nodes bit = RL_NODE(ballot->node);
    struct rl_round *round = &lease->round;

    if (lease->fence == NULL || ballot->round != round->number || (lease->fence->used & bit) == 0)
        return;
    if (ballot->vote == RL_VOTE_SUSPECT)
        return;
    if (ballot->vote == RL_VOTE_DENIED) {
        /* The server does not have our key any more: its grant does not back the deadline. */
        rl_lease_note_missing(lease, ballot->node);
        round->granted &= ~bit;
        round->denied |= bit;
    }
    if (lease->state != RL_STATE_ACQUIRING)
        return;
    if (ballot->vote == RL_VOTE_FAILED) {
        cannot_raise(lease, bit, ballot->cause);
        return;
    }
    rl_fence_raised(lease->fence, ballot->node, ballot->vote == RL_VOTE_GRANTED);
}

/* Chooses the fence of a round that has won, if that was not done yet, and has RAISE sent if it is
 * needed. Returns whether a quorum holds the fence; OPEN: replies are missing. */
enum rl_fence_outcome rl_lease_fence_judge(struct rl_lease *lease, const struct rl_view *view,
                                           struct rl_effects *fx)
{
    const struct rl_round *round = &lease->round;

    if (lease->fence->chosen == 0)
        raise_on(lease, rl_fence_choose(lease->fence, rl_round_counted(round), round->quorum), view,
                 fx);
    return rl_fence_judge(lease->fence, rl_round_counted(round),
                          rl_round_pending(round) & ~round->excluded, round->quorum);
}

/* Returns the error (enum redlock_error) of an attempt that a quorum granted, but whose second
 * round failed. Without a denial that is not ECONTENDED but ENOQUORUM. */
int rl_lease_fence_status(const struct rl_lease *lease)
{
    int status = rl_round_status(&lease->round);

    return status == REDLOCK_ECONTENDED && lease->round.denied == 0 ? REDLOCK_ENOQUORUM : status;
}
