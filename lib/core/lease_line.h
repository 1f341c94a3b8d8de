/* SPDX-License-Identifier: MIT
 * How a waiting lease uses the line of its resource; used by the files of the lease only. `view`
 * and `fx` are those of lease_hold.h.
 *
 * The line is kept by the preferred node. A waiter joins it there and sends no attempt until it is
 * a head: then the server notifies it, once of its turn and from then on of each change of the key.
 * Only a head makes attempts, and when the node of the line grants, the next waiter becomes a head.
 * Nothing here decides whether a lock is held: the line only says who asks when.
 *
 * A lock has one head, and two for a while after LINE_FRONT. A semaphore has up to
 * RL_LINE_HEADS_MAX, which search for a free slot at the same time (lease_permit.c). A lock of
 * several keys stands in the line of one of its keys: the one that existed in the last attempt. */
#ifndef RL_CORE_LEASE_LINE_H
#define RL_CORE_LEASE_LINE_H

#include "core/contention.h"
#include "core/lease.h"

/* Returns what this client remembers of the lines of the resource. */
static inline struct rl_line_memory *rl_line_memory_of(const struct rl_lease *lease)
{
    return &lease->contention->line;
}
/* Sets the time of the next TICK: a random one between the bounds, but early enough for a last
 * attempt. */
void rl_line_plan(struct rl_lease *lease, uint64_t min_ns, uint64_t max_ns,
                  const struct rl_view *view);
/* Returns whether the key on the node of the line does not show whether the lock is held. */
bool rl_line_is_stale(const struct rl_lease *lease);
/* Returns whether the lease waits in a line, or asks to. */
bool rl_line_is_in(const struct rl_lease *lease);
/* Returns whether the lease must make no attempt now, because it is in a line and no head. */
bool rl_line_blocks(const struct rl_lease *lease);
/* Joins the line, or looks at it again, before the first attempt of a call or after a denied one.
 * Returns false if no line can be used. Then the lease is in no line, and leaves those that it was
 * in. */
bool rl_line_enter(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx);
/* Leaves the line of the present key and joins that of another key of the lock: lease->taken. */
void rl_line_move(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx);
/* Leaves all lines after an attempt that failed for another reason than a denial. */
void rl_line_leave(struct rl_lease *lease, struct rl_effects *fx);
/* Has an attempt that begins now leave the line if the node of the line grants. Does nothing if the
 * lease is not in a line. */
void rl_line_leave_if_granted(struct rl_lease *lease, struct rl_effects *fx);
/* Asks the line how many wait there, together with an attempt that was begun without it. */
void rl_line_count_waiters(struct rl_lease *lease, const struct rl_view *view,
                           struct rl_effects *fx);
/* Processes the reply to a request to a line; NULL: there was none, or it was an error. */
void rl_line_vote(struct rl_lease *lease, const struct rl_ballot *ballot,
                  const struct rl_line_reply *reply, const struct rl_view *view,
                  struct rl_effects *fx);
/* Processes a WAKE while the lease is in a line. */
void rl_line_wake(struct rl_lease *lease, rl_nodes nodes, bool turn, const struct rl_view *view,
                  struct rl_effects *fx);
/* Processes the TICK at lease->next while the lease is in a line. */
void rl_line_tick(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx);
/* Leaves the lines after a step that has decided the call. `before`: the state before the step. */
void rl_line_after_step(struct rl_lease *lease, uint8_t before, struct rl_effects *fx);

#endif
