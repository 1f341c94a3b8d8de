/* SPDX-License-Identifier: MIT
 * The parts of a lease's life, shared by lease.c and lease_*.c only. */
#ifndef RL_CORE_LEASE_HOLD_H
#define RL_CORE_LEASE_HOLD_H

#include "core/lease.h"

/* Time left until `deadline` of a T1 at which rl_view.wall_us was `wall_us`. None if the wall clock
 * was set ahead since then: when a virtual machine stood still, with all its clocks, the wall clock
 * is corrected afterwards, and that is the only trace of it. */
uint64_t rl_lease_left_ns(const struct rl_lease *lease, struct rl_now deadline, int64_t wall_us,
                          const struct rl_view *view);

/* The end of the wait budget. */
static inline struct rl_now rl_lease_wait_until(const struct rl_lease *lease)
{
    return rl_later(lease->begun, lease->wait_ns);
}

/* Moves to another state; an impossible move is a broken invariant. */
void rl_lease_move(struct rl_lease *lease, enum rl_lease_state state);

/* The operation is over. */
void rl_lease_end(struct rl_lease *lease, int status, struct rl_effects *fx);

/* lease_attempt.c: asks `first`, and the others with its grant; 0: all at once. */
void rl_attempt_begin(struct rl_lease *lease, rl_nodes first, const struct rl_view *view,
                      struct rl_effects *fx);
void rl_attempt_vote(struct rl_lease *lease, const struct rl_ballot *ballot,
                     const struct rl_view *view, struct rl_effects *fx);
void rl_attempt_judge(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx);
void rl_attempt_tick(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx);
uint64_t rl_attempt_wake_ns(const struct rl_lease *lease, const struct rl_view *view);
void rl_attempt_fail(struct rl_lease *lease, int status, const struct rl_view *view,
                     struct rl_effects *fx);

/* An attempt has failed, and there is nothing else to be tried at once: sleeps until the next one,
 * or ends if the budget does not allow another. */
void rl_attempt_pause(struct rl_lease *lease, int status, const struct rl_view *view,
                      struct rl_effects *fx);
uint64_t rl_attempt_spare_ns(const struct rl_lease *lease, const struct rl_view *view);
/* The wait budget is used up. */
bool rl_attempt_is_expired(const struct rl_lease *lease, const struct rl_view *view);
/* How long a node that was asked first may be silent. */
uint64_t rl_attempt_hedge_ns(const struct rl_view *view);

/* lease_permit.c: the same for one of several slots. */
bool rl_permit_is(const struct rl_lease *lease);
void rl_permit_start(struct rl_lease *lease, const struct rl_view *view);
/* The first attempt. */
void rl_permit_begin(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx);
/* The slot was denied. false: nothing else is to be tried at once. */
bool rl_permit_denied(struct rl_lease *lease, int status, const struct rl_view *view,
                      struct rl_effects *fx);
/* The denial tells of others who want a permit, not only of one who has one. */
bool rl_permit_is_contended(const struct rl_lease *lease);
void rl_permit_pause(struct rl_lease *lease, int status);
void rl_permit_tick(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx);
void rl_permit_vote(struct rl_lease *lease, const struct rl_ballot *ballot,
                    const struct rl_view *view, struct rl_effects *fx);
void rl_permit_wake(struct rl_lease *lease, rl_nodes nodes, uint16_t slot,
                    const struct rl_view *view, struct rl_effects *fx);
uint64_t rl_permit_wake_ns(const struct rl_lease *lease, const struct rl_view *view);

/* lease_wait.c: the first attempt, now or after a pause that others need. */
void rl_wait_start(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx);
/* An attempt has failed, and lease->next says when the next one begins at the latest. */
void rl_wait_begin(struct rl_lease *lease, int status, const struct rl_view *view,
                   struct rl_effects *fx);
void rl_wait_tick(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx);
/* Whether the key is there on a node that was asked. */
void rl_wait_vote(struct rl_lease *lease, const struct rl_ballot *ballot,
                  const struct rl_view *view, struct rl_effects *fx);
/* The key has changed on these nodes; 0: this client has let it go. */
void rl_wait_wake(struct rl_lease *lease, rl_nodes nodes, uint16_t slot, const struct rl_view *view,
                  struct rl_effects *fx);
/* A node has told which key of several is taken there. */
void rl_wait_note_taken(struct rl_lease *lease, const struct rl_ballot *ballot,
                        const struct rl_view *view);
uint64_t rl_wait_wake_ns(const struct rl_lease *lease, const struct rl_view *view);
/* The node that contenders ask first; 0: there is none. */
rl_nodes rl_wait_preferred(const struct rl_lease *lease, const struct rl_view *view);
/* The next node in the order of contenders, without those of `asked`; 0: there is none. */
rl_nodes rl_wait_next_node(const struct rl_lease *lease, rl_nodes asked,
                           const struct rl_view *view);
/* The node that is asked first would tell of a change by itself. */
bool rl_wait_is_notified(const struct rl_lease *lease, const struct rl_view *view);

/* Not all of our keys are on this node any more. What is left there must be taken back in the end.
 */
void rl_lease_note_missing(struct rl_lease *lease, unsigned node);

/* What the answer to an acquire SET says of the key on that node. */
void rl_lease_note_set(struct rl_lease *lease, const struct rl_ballot *ballot);

/* lease_fence.c: an attempt that also needs a fence. */
bool rl_lease_is_fenced(const struct rl_lease *lease);
/* A vote that was counted. */
void rl_lease_fence_vote(struct rl_lease *lease, const struct rl_ballot *ballot,
                         const struct rl_view *view, struct rl_effects *fx);
/* The answer to a RAISE; also when the lock is held by now. */
void rl_lease_fence_raised(struct rl_lease *lease, const struct rl_ballot *ballot);
/* A majority has granted: does the fence stand? */
enum rl_fence_outcome rl_lease_fence_judge(struct rl_lease *lease, const struct rl_view *view,
                                           struct rl_effects *fx);
/* Why the second round failed. */
int rl_lease_fence_status(const struct rl_lease *lease);

/* A majority agreed in time: starts holding until `deadline`. */
void rl_hold_begin(struct rl_lease *lease, struct rl_now deadline, const struct rl_view *view,
                   struct rl_effects *fx);
/* Held for a moment, and nobody was told: the attempt has failed after all. */
void rl_hold_fail_unconfirmed(struct rl_lease *lease, const struct rl_view *view,
                              struct rl_effects *fx);
void rl_hold_tick(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx);
/* A vote that belongs to a lock that is held: of an extension, a heal, or a late acquire vote. */
void rl_hold_vote(struct rl_lease *lease, const struct rl_ballot *ballot,
                  const struct rl_view *view, struct rl_effects *fx);
void rl_hold_extend(struct rl_lease *lease, uint64_t ttl_ns, const struct rl_view *view,
                    struct rl_effects *fx);
void rl_hold_release(struct rl_lease *lease, enum rl_verb verb, const struct rl_view *view,
                     struct rl_effects *fx);
/* The word of these nodes, given before now, is worth nothing any more. */
void rl_hold_invalidate(struct rl_lease *lease, rl_nodes nodes, const struct rl_view *view,
                        struct rl_effects *fx);
void rl_hold_detach(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx);
void rl_release_vote(struct rl_lease *lease, const struct rl_ballot *ballot, struct rl_effects *fx);
/* When to look at a held lock again. */
uint64_t rl_hold_wake_ns(const struct rl_lease *lease, struct rl_now now);
/* Boot time at which to look again at something that is due in `ns`, on whichever clock. */
uint64_t rl_due_ns(struct rl_now now, uint64_t ns);

#endif
