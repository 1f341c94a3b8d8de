/* SPDX-License-Identifier: MIT
 * The step function of a lease: passes each event to the part that the state selects, and then sets
 * the time of the next TICK. The parts are lease_attempt.c (an attempt), lease_wait.c and
 * lease_permit.c (between attempts) and lease_hold.c (a held lock and its release). This file
 * itself processes what does not belong to a part: inspection and verification, the client's queue,
 * and cancellation. An inspection or verification uses the state ACQUIRING, but only reads keys:
 * one round of GET requests to all nodes. */
#include "core/lease.h"

#include "core/lease_hold.h"
#include "core/lease_line.h"
#include "core/reservation.h"
#include "redlock/redlock.h"

#include <string.h>

/* Changes the state of the lease; aborts if moves[] does not allow the transition. */
void rl_lease_move(struct rl_lease *lease, enum rl_lease_state state)
{
    /* Element `from` has bit `to` set if a lease may go from state `from` to state `to`. Both are
     * of enum rl_lease_state. */
    static const uint8_t moves[] = {
        [RL_STATE_NEW] = 1u << RL_STATE_ACQUIRING | 1u << RL_STATE_WAITING |
                         1u << RL_STATE_RELEASING | 1u << RL_STATE_QUEUED | 1u << RL_STATE_ENDED,
        [RL_STATE_QUEUED] =
            1u << RL_STATE_ACQUIRING | 1u << RL_STATE_WAITING | 1u << RL_STATE_ENDED,
        [RL_STATE_ACQUIRING] = 1u << RL_STATE_WAITING | 1u << RL_STATE_HELD | 1u << RL_STATE_ENDED,
        [RL_STATE_WAITING] = 1u << RL_STATE_ACQUIRING | 1u << RL_STATE_ENDED,
        [RL_STATE_HELD] = 1u << RL_STATE_EXTENDING | 1u << RL_STATE_RELEASING |
                          1u << RL_STATE_WAITING | 1u << RL_STATE_ENDED,
        [RL_STATE_EXTENDING] =
            1u << RL_STATE_HELD | 1u << RL_STATE_RELEASING | 1u << RL_STATE_ENDED,
        [RL_STATE_RELEASING] = 1u << RL_STATE_ENDED,
        [RL_STATE_ENDED] = 0,
    };

    RL_ASSERT((moves[lease->state] & (1u << state)) != 0);
    lease->state = (uint8_t)state;
}

/* Makes a lease in state NEW. Takes the terms and the memory for its parts from `storage`, the rest
 * from `params`. */
void rl_lease_init(struct rl_lease *lease, const struct rl_lease_params *params,
                   const struct rl_lease_storage *storage)
{
    memset(lease, 0, sizeof *lease);
    lease->terms = storage->terms;
    lease->permit = storage->permit;
    lease->fence = storage->fence;
    lease->decided = storage->decided;
    lease->keys = params->keys;
    lease->wait_ns = params->wait_ns;
    lease->salt = params->salt;
    lease->unconfirmed = params->confirms;
    lease->fresh = params->unproven;
    rl_round_init(&lease->round, storage->terms->nodes, storage->terms->quorum, storage->rtt_us,
                  storage->cause);
    if (lease->fence != NULL)
        lease->fence->chosen = params->fence;
    lease->wake_ns = RL_NEVER;
}

/* Returns the time until the deadline in nanoseconds; 0 if the lock is not held. */
uint64_t rl_lease_remaining_ns(const struct rl_lease *lease, struct rl_now now)
{
    if (!rl_lease_is_held(lease))
        return 0;
    return rl_remaining_ns(lease->deadline, now);
}

/* Ends the lease, and with it the call, with the result `status`. Undoes nothing. */
void rl_lease_end(struct rl_lease *lease, int status, struct rl_effects *fx)
{
    rl_lease_move(lease, RL_STATE_ENDED);
    lease->status = status;
    fx->status = status;
    fx->flags |= RL_FX_DONE | RL_FX_ENDED;
}

/* Returns whether the lease changes no key: it inspects or verifies. */
static bool only_reads_keys(const struct rl_lease *lease)
{
    return lease->terms->kind == RL_LEASE_INSPECT || lease->terms->kind == RL_LEASE_VERIFY;
}

/* Counts the votes of an inspection or verification, and ends the lease if they decide it: OK if a
 * quorum replied (inspection) or has our key (verification), ELOST if a verification proves that no
 * quorum has it, else the error of the round. */
static void judge_reads(struct rl_lease *lease, struct rl_effects *fx)
{
    bool verify = lease->terms->kind == RL_LEASE_VERIFY;
    enum rl_outcome outcome =
        verify ? rl_round_judge_verify(&lease->round) : rl_round_judge(&lease->round);
    int status = rl_round_status(&lease->round);

    if (outcome == RL_OUTCOME_OPEN)
        return;
    if (outcome == RL_OUTCOME_WON)
        status = REDLOCK_OK;
    else if (outcome == RL_OUTCOME_LOST)
        status = REDLOCK_ELOST;
    else if (verify && status == REDLOCK_ECONTENDED)
        status = REDLOCK_ENOQUORUM;
    rl_lease_end(lease, status, fx);
}

/* Begins an inspection or verification: sends GET to all nodes. A verification does not count the
 * grants of excluded nodes, nor those of nodes in `fresh`: rl_lease_params.unproven, whose keys do
 * not prove that the lock was held without a break. */
static void start_reads(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    rl_nodes all = rl_nodes_all(lease->terms->nodes);
    rl_nodes unproven = lease->fresh & all & ~view->excluded;

    rl_lease_move(lease, RL_STATE_ACQUIRING);
    lease->attempts = 1;
    rl_round_open(&lease->round, RL_VERB_GET, all,
                  lease->terms->kind == RL_LEASE_VERIFY ? unproven | view->excluded : 0, view);
    for (unproven &= lease->round.requested; unproven != 0; unproven &= unproven - 1)
        lease->round.cause[__builtin_ctz(unproven)] = REDLOCK_CAUSE_HEALED;
    judge_reads(lease, fx);
    if (lease->state == RL_STATE_ENDED)
        lease->round.requested = 0; /* decided before any node was asked */
    fx->request = lease->round.requested;
}

/* Processes START: begins what the lease is for, see enum rl_lease_kind. The wait budget runs from
 * now on. */
static void on_start(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    lease->begun = view->now;
    switch (lease->terms->kind) {
    case RL_LEASE_RELEASE:
        lease->ours = rl_nodes_all(lease->terms->nodes);
        rl_hold_release(lease, RL_VERB_RELEASE, view, fx);
        break;
    case RL_LEASE_INSPECT:
    case RL_LEASE_VERIFY:
        start_reads(lease, view, fx);
        break;
    default:
        rl_wait_start(lease, view, fx);
        break;
    }
}

/* Processes a TICK of a lease in the client's queue: ends it if its wait budget is used up. No
 * request was sent, so nothing is undone. */
static void on_queued_tick(struct rl_lease *lease, const struct rl_view *view,
                           struct rl_effects *fx)
{
    if (rl_remaining_ns(rl_lease_wait_until(lease), view->now) == 0)
        rl_lease_end(lease, lease->status, fx);
}

/* Processes CANCEL: ends a call that waits, with `status`. A running attempt is undone. A release
 * that was sent goes on without its caller. A lock that is held stays held. */
static void on_cancel(struct rl_lease *lease, int status, const struct rl_view *view,
                      struct rl_effects *fx)
{
    switch (lease->state) {
    case RL_STATE_NEW:
        rl_lease_end(lease, status, fx);
        break;
    case RL_STATE_ACQUIRING:
        if (only_reads_keys(lease))
            rl_lease_end(lease, status, fx);
        else
            rl_attempt_fail(lease, status, view, fx);
        break;
    case RL_STATE_QUEUED:
    case RL_STATE_WAITING:
        rl_lease_end(lease, status, fx);
        break;
    case RL_STATE_RELEASING: /* its requests stay in flight */
        rl_lease_end(lease, status, fx);
        break;
    default:
        break;
    }
}

/* Returns the boot time in nanoseconds at which a lease in the client's queue needs its next TICK:
 * the end of its wait budget, or, with several keys, the next change of its reservation
 * (core/reservation.h), if that is earlier. RL_NEVER: none. */
static uint64_t queued_wake_ns(const struct rl_lease *lease, struct rl_now now)
{
    uint64_t left = RL_NEVER;

    if (lease->wait_ns != RL_NEVER)
        left = rl_remaining_ns(rl_lease_wait_until(lease), now);
    if (lease->keys > 1)
        left = rl_min_u64(left, rl_reservation_left_ns(rl_elapsed_ns(lease->begun, now)));
    return left == RL_NEVER ? RL_NEVER : rl_due_ns(now, left);
}

/* Sets lease->wake_ns, the time of the next TICK, for the present state. */
static void update_wake(struct rl_lease *lease, const struct rl_view *view)
{
    struct rl_now now = view->now;

    switch (lease->state) {
    case RL_STATE_QUEUED:
        lease->wake_ns = queued_wake_ns(lease, now);
        break;
    case RL_STATE_ACQUIRING:
        lease->wake_ns = only_reads_keys(lease) ? RL_NEVER : rl_attempt_wake_ns(lease, view);
        break;
    case RL_STATE_WAITING:
        lease->wake_ns = rl_wait_wake_ns(lease, view);
        break;
    case RL_STATE_HELD:
    case RL_STATE_EXTENDING:
        lease->wake_ns = rl_hold_wake_ns(lease, now);
        break;
    default:
        lease->wake_ns = RL_NEVER;
        break;
    }
}

/* Counts a vote of an inspection or verification, and ends the lease if the votes decide it. */
static void on_read_vote(struct rl_lease *lease, const struct rl_ballot *ballot,
                         const struct rl_view *view, struct rl_effects *fx)
{
    if (!rl_round_count(&lease->round, ballot))
        return;
    if (lease->terms->kind == RL_LEASE_VERIFY)
        rl_round_exclude(&lease->round, view->excluded, view);
    judge_reads(lease, fx);
}

/* Processes a VOTE: passes it to the part that the state selects. Drops votes on probes (PTTL)
 * unless the lease waits, and all votes if no part is waiting for one. */
static void on_vote(struct rl_lease *lease, const struct rl_event *event,
                    const struct rl_view *view, struct rl_effects *fx)
{
    const struct rl_ballot *ballot = &event->ballot;

    if (rl_verb_is_line((enum rl_verb)ballot->verb)) {
        if (lease->contention != NULL)
            rl_line_vote(lease, ballot, event->line, view, fx);
        return;
    }
    if (ballot->verb == RL_VERB_PTTL && lease->state != RL_STATE_WAITING)
        return;
    switch (lease->state) {
    case RL_STATE_ACQUIRING:
        if (only_reads_keys(lease))
            on_read_vote(lease, ballot, view, fx);
        else
            rl_attempt_vote(lease, ballot, view, fx);
        break;
    case RL_STATE_WAITING:
        rl_wait_vote(lease, ballot, view, fx);
        break;
    case RL_STATE_HELD:
    case RL_STATE_EXTENDING:
        rl_hold_vote(lease, ballot, view, fx);
        break;
    case RL_STATE_RELEASING:
        rl_release_vote(lease, ballot, fx);
        break;
    default:
        break;
    }
}

/* Processes a TICK: passes it to the part that the state selects. Other states need none. */
static void on_tick(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    switch (lease->state) {
    case RL_STATE_QUEUED:
        on_queued_tick(lease, view, fx);
        break;
    case RL_STATE_ACQUIRING:
        if (!only_reads_keys(lease))
            rl_attempt_tick(lease, view, fx);
        break;
    case RL_STATE_WAITING:
        rl_wait_tick(lease, view, fx);
        break;
    case RL_STATE_HELD:
    case RL_STATE_EXTENDING:
        rl_hold_tick(lease, view, fx);
        break;
    default:
        break;
    }
}

/* Processes INVALIDATE: keys that were set on `nodes` before now may be gone. Their grants stop
 * counting, in a running attempt or for a held lock; each then may fail or be lost. */
static void on_invalidate(struct rl_lease *lease, rl_nodes nodes, const struct rl_view *view,
                          struct rl_effects *fx)
{
    if (lease->state == RL_STATE_ACQUIRING && !only_reads_keys(lease)) {
        rl_round_exclude(&lease->round, nodes, view);
        rl_attempt_judge(lease, view, fx);
    } else if (rl_lease_is_held(lease)) {
        lease->backing &= ~nodes; /* rl_hold_invalidate() does this for nodes of `ours` only */
        rl_hold_invalidate(lease, nodes, view, fx);
    }
}

/* Processes QUEUE, which comes instead of START: enters state QUEUED, because another lock of this
 * client comes first. The wait budget runs from now on. */
static void on_queue(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    RL_ASSERT(lease->terms->kind == RL_LEASE_ACQUIRE);
    lease->begun = view->now;
    lease->status = REDLOCK_ECONTENDED;
    rl_lease_move(lease, RL_STATE_QUEUED);
    fx->status = lease->status;
    fx->flags |= RL_FX_WAITING;
}

/* Processes one event: overwrites `fx` with the effects, and sets lease->wake_ns. A WAKE during an
 * attempt for an ordinary lock is ignored: if the attempt is denied, the lease asks again whether
 * the key exists. */
void rl_lease_step(struct rl_lease *lease, const struct rl_event *event, const struct rl_view *view,
                   struct rl_effects *fx)
{
    uint8_t before = lease->state;

    memset(fx, 0, sizeof *fx);
    switch (event->kind) {
    case RL_EVENT_START:
        on_start(lease, view, fx);
        break;
    case RL_EVENT_VOTE:
        on_vote(lease, event, view, fx);
        break;
    case RL_EVENT_TICK:
        on_tick(lease, view, fx);
        break;
    case RL_EVENT_QUEUE:
        on_queue(lease, view, fx);
        break;
    case RL_EVENT_TURN:
        if (lease->state == RL_STATE_QUEUED)
            rl_wait_start(lease, view, fx);
        break;
    case RL_EVENT_WAKE:
        if (lease->state == RL_STATE_WAITING || rl_permit_is(lease))
            rl_wait_wake(lease, event, view, fx);
        break;
    case RL_EVENT_CANCEL:
        on_cancel(lease, event->status, view, fx);
        break;
    case RL_EVENT_CONFIRM:
        if (rl_lease_is_held(lease))
            rl_hold_confirm(lease, view, fx);
        break;
    case RL_EVENT_EXTEND:
        rl_hold_extend(lease, event->ttl_ns, view, fx);
        break;
    case RL_EVENT_RELEASE:
        rl_hold_release(lease, RL_VERB_RELEASE, view, fx);
        break;
    case RL_EVENT_SHORTEN:
        rl_hold_release(lease, RL_VERB_SHORTEN, view, fx);
        break;
    case RL_EVENT_INVALIDATE:
        on_invalidate(lease, event->nodes, view, fx);
        break;
    default:
        RL_ASSERT(event->kind == RL_EVENT_DETACH);
        rl_hold_detach(lease, view, fx);
        break;
    }
    rl_line_after_step(lease, before, fx);
    if (lease->state != RL_STATE_ACQUIRING)
        fx->raise = 0; /* this step has ended the attempt */
    RL_ASSERT((fx->request & ~(view->up | view->suspect)) == 0);
    RL_ASSERT(((fx->raise | fx->probe) & ~view->up) == 0);
    /* Most votes change nothing that the time of the next TICK depends on. */
    if (event->kind != RL_EVENT_VOTE || fx->flags != 0 || lease->round.deferred != 0 ||
        lease->state == RL_STATE_WAITING)
        update_wake(lease, view);
}
