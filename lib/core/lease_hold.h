/* SPDX-License-Identifier: MIT
 * Functions that lease.c and lease_*.c share; no other file uses them. They are the parts of one
 * step of a lease, see rl_lease_step(). `view` is what the engine knows in this tick: the time, the
 * nodes and a random word. `fx` takes the effects: what the engine must do after the step.
 * Functions without `fx` and with a const lease change nothing.
 *
 * The wait budget is the time that a call to acquire may take: lease->wait_ns from lease->begun on.
 * The functions *_wake_ns() return the boot time of the next RL_EVENT_TICK; they are not about
 * RL_EVENT_WAKE, which the functions *_wake() process. */
#ifndef RL_CORE_LEASE_HOLD_H
#define RL_CORE_LEASE_HOLD_H

#include "core/lease.h"

/* ---- lease.c and lease_hold.c: states and times ---- */

/* Returns the time in nanoseconds until `deadline`, which follows from a T1 at which
 * rl_view.wall_us was `wall_us`. Returns 0 if the wall clock has jumped ahead by more than
 * wall_slack_us since that T1: all clocks of a virtual machine may stand still together, and
 * afterwards only the corrected wall clock shows that time has passed. */
uint64_t rl_lease_left_ns(const struct rl_lease *lease, struct rl_now deadline, int64_t wall_us,
                          const struct rl_view *view);

/* Returns the instant at which the wait budget ends; wait_ns is neither 0 nor RL_NEVER. */
static inline struct rl_now rl_lease_wait_until(const struct rl_lease *lease)
{
    return rl_later(lease->begun, lease->wait_ns);
}

/* Changes the state; aborts if the state machine does not have this transition. */
void rl_lease_move(struct rl_lease *lease, enum rl_lease_state state);

/* Ends the lease, and with it the call, with the result `status`. Undoes nothing: the function that
 * calls this one has done so, if it was necessary. */
void rl_lease_end(struct rl_lease *lease, int status, struct rl_effects *fx);

/* ---- lease_attempt.c: one attempt ---- */

/* Begins an attempt: asks the node of `first` and defers the other nodes until it has granted or is
 * late. If `first` is 0, asks all nodes at once. */
void rl_attempt_begin(struct rl_lease *lease, rl_nodes first, const struct rl_view *view,
                      struct rl_effects *fx);
/* Processes a vote of the running attempt, and judges the attempt. */
void rl_attempt_vote(struct rl_lease *lease, const struct rl_ballot *ballot,
                     const struct rl_view *view, struct rl_effects *fx);
/* Judges the votes that have come: starts to hold the lock, or fails the attempt, or does nothing
 * if the votes do not decide it yet. */
void rl_attempt_judge(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx);
/* Processes a TICK during an attempt: fails it if the wait budget is used up or the validity would
 * be too short, and asks the deferred nodes if the preferred node is late. */
void rl_attempt_tick(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx);
/* Returns the boot time of the next TICK that the attempt needs. */
uint64_t rl_attempt_wake_ns(const struct rl_lease *lease, const struct rl_view *view);
/* Fails the attempt, for the reason `status`: undoes what it may have set on any node. Then a
 * search for a permit goes on, or a pause begins, or the call ends with `status`. */
void rl_attempt_fail(struct rl_lease *lease, int status, const struct rl_view *view,
                     struct rl_effects *fx);

/* Begins the pause after an attempt that failed with `status`. Ends the call with `status` instead,
 * if no other attempt can succeed, or if the wait budget does not allow another one. */
void rl_attempt_pause(struct rl_lease *lease, int status, const struct rl_view *view,
                      struct rl_effects *fx);
/* Returns the pause before the next attempt by timer in nanoseconds, at least 1. */
uint64_t rl_attempt_poll_ns(const struct rl_lease *lease, const struct rl_view *view);
/* Returns the spare time in nanoseconds: how long the lease may pause and still make an attempt
 * within its wait budget. RL_NEVER: the budget has no end. 0: the call is about to end, without
 * another pause and attempt. */
uint64_t rl_attempt_spare_ns(const struct rl_lease *lease, const struct rl_view *view);
/* Returns whether the wait budget is used up; never true if wait_ns is 0 or RL_NEVER. */
bool rl_attempt_is_expired(const struct rl_lease *lease, const struct rl_view *view);
/* Returns the hedge delay in nanoseconds: how long an attempt waits for the preferred node before
 * it asks the others without its grant. */
uint64_t rl_attempt_hedge_ns(const struct rl_view *view);

/* ---- lease_permit.c: the search for a permit ---- */

/* Returns whether the lease is for a permit. The other functions require that, unless they say
 * otherwise. */
bool rl_permit_is(const struct rl_lease *lease);
/* Prepares the search of a new call and chooses the slot of its first attempt. */
void rl_permit_start(struct rl_lease *lease, const struct rl_view *view);
/* Begins the first attempt of the call. */
void rl_permit_begin(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx);
/* Begins a search while the lease waits. */
void rl_permit_search(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx);
/* Begins or continues the search after an attempt that failed with `status`. Returns false if there
 * is nothing to search: the lease is not for a permit, the attempt was not denied, or the wait
 * budget is used up. */
bool rl_permit_denied(struct rl_lease *lease, int status, const struct rl_view *view,
                      struct rl_effects *fx);
/* Returns whether a denial shows that other clients try to acquire the resource. It always does for
 * an ordinary lock. The denial of a slot may only mean that its permit is held. */
bool rl_permit_is_contended(const struct rl_lease *lease);
/* Ends the search when a pause begins, after an attempt that failed with `status`. */
void rl_permit_pause(struct rl_lease *lease, int status, const struct rl_view *view);
/* Plans no attempt for a slot chosen in turn, and forgets which slots are taken: others in the line
 * come first. */
void rl_permit_stand_by(struct rl_lease *lease);
/* Processes a TICK in state WAITING: begins the attempt that is due, or continues the search. */
void rl_permit_tick(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx);
/* Processes the vote on a probe: GRANTED means that the key of the slot exists, DENIED that it does
 * not. */
void rl_permit_vote(struct rl_lease *lease, const struct rl_ballot *ballot,
                    const struct rl_view *view, struct rl_effects *fx);
/* Processes a WAKE for `slot`; see RL_EVENT_WAKE. */
void rl_permit_wake(struct rl_lease *lease, rl_nodes nodes, uint16_t slot,
                    const struct rl_view *view, struct rl_effects *fx);
/* Returns the boot time of the next TICK that the search needs. */
uint64_t rl_permit_wake_ns(const struct rl_lease *lease, const struct rl_view *view);

/* ---- lease_wait.c: between two attempts ---- */

/* Begins the first attempt, or enters the line before it, or waits before it if this client yields
 * to other contenders. */
void rl_wait_start(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx);
/* Begins to wait after an attempt that failed with `status`: enters the line, or, without one,
 * probes and tracks the key. lease->next is the time of the next attempt at the latest. */
void rl_wait_begin(struct rl_lease *lease, int status, const struct rl_view *view,
                   struct rl_effects *fx);
/* Processes a TICK while waiting: begins the attempt that is due. */
void rl_wait_tick(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx);
/* Plans an attempt for the time at which the key expires, in `pttl_ms` milliseconds; 0: never. */
void rl_wait_note_expiry(struct rl_lease *lease, uint64_t pttl_ms, const struct rl_view *view);
/* Processes the reply to a probe: whether the key exists, and when it expires. */
void rl_wait_vote(struct rl_lease *lease, const struct rl_ballot *ballot,
                  const struct rl_view *view, struct rl_effects *fx);
/* Processes a WAKE; see RL_EVENT_WAKE. */
void rl_wait_wake(struct rl_lease *lease, const struct rl_event *event, const struct rl_view *view,
                  struct rl_effects *fx);
/* Notes which key of a lock of several keys exists, from a denial that says so. */
void rl_wait_note_taken(struct rl_lease *lease, const struct rl_ballot *ballot,
                        const struct rl_view *view);
/* Returns the boot time of the next TICK that a waiting lease needs. */
uint64_t rl_wait_wake_ns(const struct rl_lease *lease, const struct rl_view *view);
/* Returns the preferred node of the resource; 0: there is none at present. */
rl_nodes rl_wait_preferred(const struct rl_lease *lease, const struct rl_view *view);
/* Returns the node that contenders prefer most, without those of `requested`; 0: there is none. */
rl_nodes rl_wait_next_node(const struct rl_lease *lease, rl_nodes requested,
                           const struct rl_view *view);
/* Returns the boot time before which no notification begins an attempt: the end of a random pause
 * after an attempt that has split the votes; 0 after any other. */
uint64_t rl_wait_pause_until_ns(const struct rl_lease *lease, const struct rl_view *view);
/* Returns whether some node can send a notification when the key changes. */
bool rl_wait_is_notified(const struct rl_lease *lease, const struct rl_view *view);

/* ---- lease_hold.c: what is known of our keys ---- */

/* Notes that a node does not have all of our keys any more. Keys that it may still have are undone
 * when the lock is released or lost. */
void rl_lease_note_missing(struct rl_lease *lease, unsigned node);

/* Notes what the vote on an ACQUIRE says about the key on that node. */
void rl_lease_note_set(struct rl_lease *lease, const struct rl_ballot *ballot);

/* ---- lease_fence.c: the fence of an attempt ---- */

/* Returns whether the attempts of the lease choose a fence. The other functions require that,
 * unless they say otherwise. */
bool rl_lease_is_fenced(const struct rl_lease *lease);
/* Processes a vote on ACQUIRE that was counted: takes its register value into account. */
void rl_lease_fence_vote(struct rl_lease *lease, const struct rl_ballot *ballot,
                         const struct rl_view *view, struct rl_effects *fx);
/* Processes a vote on RAISE, during an attempt or when the lock is already held. Ignores it if the
 * lease has no fence. */
void rl_lease_fence_raised(struct rl_lease *lease, const struct rl_ballot *ballot);
/* Chooses the fence, if that was not done yet, and returns whether a quorum holds it. Call it once
 * the round has won. */
enum rl_fence_outcome rl_lease_fence_judge(struct rl_lease *lease, const struct rl_view *view,
                                           struct rl_effects *fx);
/* Returns the error of an attempt whose second round failed. */
int rl_lease_fence_status(const struct rl_lease *lease);

/* ---- lease_hold.c: a held lock ---- */

/* Starts to hold the lock until `deadline`, after a quorum has granted. */
void rl_hold_begin(struct rl_lease *lease, struct rl_now deadline, const struct rl_view *view,
                   struct rl_effects *fx);
/* Processes CONFIRM, right before the won attempt is reported to the caller: checks the validity
 * once more. If it has become shorter than validity_min_ns, the attempt fails instead. Else the
 * lock counts as reported: it may be extended, and a later loss is reported as a loss. */
void rl_hold_confirm(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx);
/* Fails the attempt of a held lock whose grant was not reported to the caller yet. */
void rl_hold_fail_unconfirmed(struct rl_lease *lease, const struct rl_view *view,
                              struct rl_effects *fx);
/* Processes a TICK of a held lock: loss, ENDANGERED, automatic extension. */
void rl_hold_tick(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx);
/* Processes a vote while the lock is held: on EXTEND, HEAL or RAISE, or a late one on ACQUIRE. */
void rl_hold_vote(struct rl_lease *lease, const struct rl_ballot *ballot,
                  const struct rl_view *view, struct rl_effects *fx);
/* Begins the extension that the caller requests; ttl_ns 0: the TTL of the terms. */
void rl_hold_extend(struct rl_lease *lease, uint64_t ttl_ns, const struct rl_view *view,
                    struct rl_effects *fx);
/* Begins to release the lock; `verb` is RELEASE or SHORTEN. Also for a lease of kind RELEASE, which
 * holds nothing. */
void rl_hold_release(struct rl_lease *lease, enum rl_verb verb, const struct rl_view *view,
                     struct rl_effects *fx);
/* Processes INVALIDATE: what these nodes have granted before now does not count any more. */
void rl_hold_invalidate(struct rl_lease *lease, rl_nodes nodes, const struct rl_view *view,
                        struct rl_effects *fx);
/* Ends the lease without releasing the lock. */
void rl_hold_detach(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx);
/* Processes a vote while the lock is being released. NULL: there is no vote yet, judges the round.
 */
void rl_release_vote(struct rl_lease *lease, const struct rl_ballot *ballot, struct rl_effects *fx);
/* Returns the boot time of the next TICK that a held lock needs. */
uint64_t rl_hold_wake_ns(const struct rl_lease *lease, struct rl_now now);
/* Returns the boot time of the TICK for something that is due in `ns` on either clock. Far from the
 * due time it is earlier than that, because the two clocks may drift apart until then. */
uint64_t rl_due_ns(struct rl_now now, uint64_t ns);

#endif
