/* SPDX-License-Identifier: MIT
 * One attempt to acquire or adopt a lock, and the pause after an attempt that failed.
 *
 * rl_attempt_begin() opens a round of ACQUIRE requests, or of EXTEND requests for an adoption. It
 * asks all nodes at once, or only the preferred node and defers the others. The deferred nodes are
 * asked when the preferred node grants, or when it has not replied for a short time: the hedge
 * delay. If the preferred node denies, the attempt fails without them.
 *
 * After each vote, rl_attempt_judge() counts the votes. A quorum of grants wins: the lock is held,
 * if the fence is chosen and enough validity is left. If a quorum has become impossible, or the
 * time is used up, rl_attempt_fail() undoes what the attempt may have set. Then a search for a
 * permit goes on (lease_permit.c), or rl_attempt_pause() begins a pause before the next attempt, or
 * the call ends.
 *
 * The wait budget (lease->wait_ns, from lease->begun on) is the time that the call may take. The
 * spare time is how long the lease may still pause and then make one more attempt within the
 * budget.
 */
#include "core/lease_hold.h"
#include "core/lease_line.h"

#include "redlock/redlock.h"

#include <string.h>

/* Returns whether another attempt would fail with the same error, `status`: the configuration is
 * wrong, the call was cancelled, or the adopted lock is lost. */
static bool is_final(int status)
{
    return status == REDLOCK_EAUTH || status == REDLOCK_EDUPLICATE || status == REDLOCK_ECANCELED ||
           status == REDLOCK_ECLOSED || status == REDLOCK_ELOST;
}

/* Bounds of the pause before an attempt by timer, if a node will send a notification when the key
 * changes. The timer is then only the fallback. */
#define POLL_MIN_NS (100 * RL_MS)
#define POLL_MAX_NS (300 * RL_MS)
/* Least hedge delay. If the preferred node's reply is late by less, the cause is as likely to be a
 * delay of this client. */
#define HEDGE_MIN_NS (2 * RL_MS)

/* Returns the pause before the next attempt by timer in nanoseconds, at least 1: the random
 * backoff, or a longer time if a node will send a notification. */
uint64_t rl_attempt_poll_ns(const struct rl_lease *lease, const struct rl_view *view)
{
    const struct rl_lease_terms *terms = lease->terms;
    uint64_t random = rl_jitter(view->random, lease->salt, lease->attempts);
    uint64_t delay = rl_backoff_ns(&terms->backoff, lease->failures, view->round_trip_ns, random);

    if (rl_wait_is_notified(lease, view))
        delay = rl_max_u64(delay, POLL_MIN_NS + random % (POLL_MAX_NS - POLL_MIN_NS));
    if (rl_line_is_in(lease)) /* others remove a head that makes no request for longer */
        delay = rl_min_u64(delay, POLL_MAX_NS);
    return rl_max_u64(delay, 1); /* retry_delay_ns() uses 0 for "no attempt" */
}

/* Returns the spare time in nanoseconds: how long the lease may pause and still make an attempt
 * within the wait budget. Reserves two round trips for that attempt, and 1 ms at least. RL_NEVER:
 * the budget has no end. 0: the call is about to end, because no other attempt fits in, or because
 * it makes one attempt only (wait_ns 0). */
uint64_t rl_attempt_spare_ns(const struct rl_lease *lease, const struct rl_view *view)
{
    if (lease->wait_ns == 0 || lease->wait_ns == RL_NEVER)
        return lease->wait_ns;
    uint64_t left = rl_remaining_ns(rl_lease_wait_until(lease), view->now);
    return rl_sub_sat(left, rl_max_u64(2 * view->round_trip_ns, RL_MS));
}

/* Returns the pause before the next attempt in nanoseconds; 0: no other attempt may follow. The
 * pause is shortened to the spare time, so the last attempt begins just early enough to end with
 * the budget. */
static uint64_t retry_delay_ns(const struct rl_lease *lease, const struct rl_view *view)
{
    uint64_t spare = rl_attempt_spare_ns(lease, view);

    return spare == 0 ? 0 : rl_min_u64(rl_attempt_poll_ns(lease, view), spare);
}

/* Fails the present attempt with `status`, the reason. Undoes what it may have set: on the nodes of
 * `ours`, which a node that denied is not in, and on those with remnants. An adoption undoes
 * nothing. Then a search for a permit goes on, or a pause begins, or the call ends with `status`.
 */
void rl_attempt_fail(struct rl_lease *lease, int status, const struct rl_view *view,
                     struct rl_effects *fx)
{
    if (lease->terms->kind == RL_LEASE_ACQUIRE)
        fx->undo |=
            (lease->ours & ~fx->request) | /* the requests of this step are not sent at all */
            lease->remnants;
    fx->request = 0;
    lease->ours = lease->remnants = 0;
    lease->fresh = lease->confirmed = lease->probation = 0;
    fx->raise = 0;
    bool undecided = lease->round.outcome == RL_OUTCOME_OPEN; /* then it shows no contention */
    lease->round.outcome = RL_OUTCOME_FAILED;
    if (lease->contention != NULL && status == REDLOCK_ECONTENDED && !undecided &&
        rl_permit_is_contended(lease))
        rl_contention_note_denial(lease->contention, lease->round.granted != 0, view->now.boot_ns);
    if (!rl_permit_denied(lease, status, view, fx))
        rl_attempt_pause(lease, status, view, fx);
}

/* Begins the pause before the next attempt, with `status` as the reason why the last one failed.
 * Ends the call with `status` instead, if no further attempt can succeed or the budget does not
 * allow one. */
void rl_attempt_pause(struct rl_lease *lease, int status, const struct rl_view *view,
                      struct rl_effects *fx)
{
    lease->failures++;
    uint64_t delay_ns = is_final(status) ? 0 : retry_delay_ns(lease, view);
    if (delay_ns == 0) {
        rl_lease_end(lease, status, fx);
        return;
    }
    if (lease->state != RL_STATE_WAITING)
        rl_lease_move(lease, RL_STATE_WAITING);
    lease->status = status;
    lease->next = rl_later(view->now, delay_ns);
    rl_wait_begin(lease, status, view, fx);
    fx->status = status;
    fx->flags |= RL_FX_WAITING;
}

/* Returns the deadline that the lock gets if the present attempt wins; it follows from T1. */
static struct rl_now attempt_deadline(const struct rl_lease *lease)
{
    return rl_deadline(lease->round.t1, lease->terms->ttl_ns, &lease->terms->drift);
}

/* Returns the error of the present attempt, which has failed. An adoption fails with ELOST if
 * the denials leave no quorum that can have the key; fewer denials are ENOQUORUM. */
static int failure_status(const struct rl_lease *lease)
{
    const struct rl_round *round = &lease->round;
    unsigned spare = (unsigned)(round->nodes - round->quorum);

    if (lease->terms->kind != RL_LEASE_ADOPT)
        return rl_round_status(round);
    if (rl_nodes_count(round->denied) > spare)
        return REDLOCK_ELOST;
    int status = rl_round_status(round);
    return status == REDLOCK_ECONTENDED ? REDLOCK_ENOQUORUM : status;
}

/* Counts the votes of the present attempt. If they are undecided, does nothing. If a quorum is
 * impossible, fails the attempt; an adoption first waits for the votes that are under way and can
 * prove that no quorum has the lock. If a quorum has granted, starts to hold the lock, on two
 * conditions: a quorum has agreed on the fence, if there is one; and the validity that is left, ttl
 * - drift - loss margin - elapsed, is at least validity_min_ns. While the fence is undecided, waits
 * for more votes. If a condition cannot be met, fails the attempt. */
void rl_attempt_judge(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    switch (rl_round_judge(&lease->round)) {
    case RL_OUTCOME_OPEN:
        return;
    case RL_OUTCOME_WON:
        break;
    default:
        if (lease->terms->kind != RL_LEASE_ADOPT ||
            !rl_round_may_show_loss(&lease->round, lease->round.denied))
            rl_attempt_fail(lease, failure_status(lease), view, fx);
        return;
    }
    if (rl_lease_is_fenced(lease)) {
        enum rl_fence_outcome outcome = rl_lease_fence_judge(lease, view, fx);
        if (outcome == RL_FENCE_FAILED)
            rl_attempt_fail(lease, rl_lease_fence_status(lease), view, fx);
        if (outcome != RL_FENCE_AGREED)
            return;
    }
    struct rl_now deadline = attempt_deadline(lease);
    if (rl_lease_left_ns(lease, deadline, lease->round.t1_wall_us, view) <
        lease->terms->validity_min_ns) {
        rl_attempt_fail(lease, REDLOCK_ETOOSLOW, view, fx);
        return;
    }
    lease->failures = 0;
    if (lease->contention != NULL)
        rl_contention_note_grant(lease->contention);
    rl_hold_begin(lease, deadline, view, fx);
    fx->status = REDLOCK_OK;
    fx->flags |= RL_FX_DONE | RL_FX_HELD;
}

/* Makes the attempt ask the node of `first` only, and defers the other nodes. Does nothing if
 * `first` is 0, if that node cannot be asked, is suspect or does not count, or if the wait budget
 * has no time for two rounds of requests in sequence. Then all nodes are asked at once. */
static void request_preferred(struct rl_lease *lease, rl_nodes first, const struct rl_view *view)
{
    if (lease->wait_ns != 0 && rl_attempt_spare_ns(lease, view) == 0)
        first = 0;
    first &= lease->round.requested & ~lease->round.excluded & ~lease->round.suspect;
    lease->wait.preferred = first;
    if (first != 0)
        rl_round_defer(&lease->round, ~first);
}

/* Asks the deferred nodes now. Those that cannot be asked any more count as failed. */
static void request_deferred(struct rl_lease *lease, const struct rl_view *view,
                             struct rl_effects *fx)
{
    rl_nodes requested = rl_round_take_deferred(&lease->round, view);

    lease->ours |= requested;
    fx->request |= requested;
}

/* Saves the round and status of the previous attempt in lease->decided, for the report of the call;
 * see cut_attempt(). Does nothing before the first attempt, or if no attempt can be cut short. */
static void save_decided(struct rl_lease *lease)
{
    if (lease->decided == NULL || lease->attempts == 0)
        return;
    rl_round_copy(&lease->decided->round, &lease->round);
    lease->decided->status = lease->status;
}

/* Begins an attempt: opens a round and asks the node of `first` and defers the others, or asks all
 * nodes at once if `first` is 0. Only the grants of eligible nodes count, also in an adoption: this
 * client does not know whether the token ever had a quorum, so a restarted server may have lost the
 * key of a holder before it got the token. Fails at once, without a request, if a quorum is
 * impossible from the start, or if two addresses lead to one server. */
void rl_attempt_begin(struct rl_lease *lease, rl_nodes first, const struct rl_view *view,
                      struct rl_effects *fx)
{
    bool adopt = lease->terms->kind == RL_LEASE_ADOPT;
    rl_nodes all = rl_nodes_all(lease->terms->nodes);

    save_decided(lease);
    rl_lease_move(lease, RL_STATE_ACQUIRING);
    lease->attempts++;
    lease->taken = 0;
    if (!adopt && lease->fence != NULL)
        *lease->fence = (struct rl_fence){.chosen = 0};
    rl_round_open(&lease->round, adopt ? RL_VERB_EXTEND : RL_VERB_ACQUIRE, all, ~view->eligible,
                  view);
    if (view->duplicate) {
        lease->round.requested = 0;
        rl_attempt_fail(lease, REDLOCK_EDUPLICATE, view, fx);
        return;
    }
    lease->extend_ttl_ns = lease->terms->ttl_ns;
    /* If a quorum is impossible from the start, no request is sent, so there is nothing to undo. */
    if (rl_round_judge(&lease->round) == RL_OUTCOME_FAILED) {
        lease->round.requested = 0;
        rl_attempt_judge(lease, view, fx);
        return;
    }
    request_preferred(lease, first, view);
    lease->ours = adopt ? all : lease->round.requested;
    fx->request = lease->round.requested;
    fx->flags |= adopt ? 0 : RL_FX_ATTEMPT;
    rl_line_leave_if_granted(lease, fx);
}

/* Returns whether `vote`, that of the preferred node, decides the attempt before the deferred nodes
 * are asked. A denial does, if another attempt can follow, or if the lease searches for a permit,
 * which goes on after a denial (rl_permit_denied()). If the call would end with this denial, the
 * others are asked: the preferred node may have a key that was released or has expired elsewhere.
 */
static bool decides_alone(const struct rl_lease *lease, uint8_t vote, const struct rl_view *view)
{
    return vote == RL_VOTE_DENIED && (rl_permit_is(lease) || rl_attempt_spare_ns(lease, view) != 0);
}

/* Processes a vote of the present attempt, on ACQUIRE, EXTEND (adoption) or RAISE. Counts it,
 * updates what is known of our keys and of the fence, asks the deferred nodes unless
 * decides_alone() is true, and judges the attempt. */
void rl_attempt_vote(struct rl_lease *lease, const struct rl_ballot *ballot,
                     const struct rl_view *view, struct rl_effects *fx)
{
    if (ballot->verb == RL_VERB_RAISE) {
        rl_lease_fence_raised(lease, ballot);
        rl_attempt_judge(lease, view, fx);
        return;
    }
    if (!rl_round_count(&lease->round, ballot))
        return;
    /* A node that was asked while it was connecting may have been excluded since, by what its
     * server said of itself. */
    bool adopt = lease->terms->kind == RL_LEASE_ADOPT;
    rl_round_exclude(&lease->round, ~view->eligible, view);
    if (!adopt)
        rl_lease_note_set(lease, ballot);
    else if (ballot->vote ==
             RL_VOTE_DENIED) /* else the node may have the key of the adopted lock */
        rl_lease_note_missing(lease, ballot->node);
    if (ballot->key != 0)
        rl_wait_note_taken(lease, ballot, view);
    if (rl_lease_is_fenced(lease))
        rl_lease_fence_vote(lease, ballot, view, fx);
    if (ballot->vote == RL_VOTE_FAILED && ballot->cause == REDLOCK_CAUSE_NO_MEMORY)
        /* Without memory there may be no token that the deferred nodes could be sent. */
        rl_round_fail_deferred(&lease->round, ballot->cause);
    else if (lease->round.deferred != 0 && !decides_alone(lease, ballot->vote, view))
        request_deferred(lease, view, fx);
    rl_attempt_judge(lease, view, fx);
}

/* Returns whether the wait budget is a time limit; it is not if the call makes one attempt (0) or
 * may wait without end (RL_NEVER). */
static bool is_limited(const struct rl_lease *lease)
{
    return lease->wait_ns != 0 && lease->wait_ns != RL_NEVER;
}

/* Returns whether the wait budget was a time limit and is used up. A call of one attempt (wait_ns
 * 0) has no such limit. */
bool rl_attempt_is_expired(const struct rl_lease *lease, const struct rl_view *view)
{
    return is_limited(lease) && rl_remaining_ns(rl_lease_wait_until(lease), view->now) == 0;
}

/* Returns the hedge delay in nanoseconds: how long the preferred node may take to reply before the
 * deferred nodes are asked without its grant. */
uint64_t rl_attempt_hedge_ns(const struct rl_view *view)
{
    return rl_max_u64(2 * view->round_trip_ns, HEDGE_MIN_NS);
}

/* Returns the instant at which the deferred nodes are asked without the preferred node's grant. */
static struct rl_now hedge_time(const struct rl_lease *lease, const struct rl_view *view)
{
    return rl_later(lease->round.t1, rl_attempt_hedge_ns(view));
}

/* Fails the present attempt, which is undecided, because the wait budget has ended. The call
 * reports the last attempt that was decided, because that one has more votes. If there was none, it
 * reports the present attempt, with its missing votes as failures. */
static void cut_attempt(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    struct rl_decided *decided = lease->decided;
    int status = failure_status(lease);

    if (decided != NULL && decided->status != REDLOCK_OK) {
        rl_round_complete(&decided->round, &lease->round);
        bool few = rl_nodes_count(decided->round.requested) < decided->round.quorum;
        /* A denial by fewer nodes than the quorum does not prove that the lock is held. */
        bool alone = few && decided->status == REDLOCK_ECONTENDED;
        status = alone ? REDLOCK_ENOQUORUM : decided->status;
        decided->reported = true;
    } else if (lease->round.outcome == RL_OUTCOME_WON) {
        status = REDLOCK_ENOQUORUM; /* a quorum granted, but the fence is undecided */
    }
    rl_attempt_fail(lease, status, view, fx);
}

/* Processes a TICK during an attempt. Fails the attempt with ETOOSLOW if a win would leave too
 * little validity. Fails it if the wait budget is used up. Asks the deferred nodes if the hedge
 * delay has passed. */
void rl_attempt_tick(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    uint64_t left = rl_remaining_ns(attempt_deadline(lease), view->now);
    bool too_slow = left < lease->terms->validity_min_ns;
    bool budget_used = rl_attempt_is_expired(lease, view);

    if (budget_used && !too_slow) {
        cut_attempt(lease, view, fx);
        return;
    }
    if (!too_slow) {
        if (lease->round.deferred != 0 &&
            rl_remaining_ns(hedge_time(lease, view), view->now) == 0) {
            request_deferred(lease, view, fx);
            rl_attempt_judge(lease, view, fx);
        }
        return;
    }
    rl_attempt_fail(lease, REDLOCK_ETOOSLOW, view, fx);
}

/* Returns the boot time in nanoseconds at which the attempt needs its next TICK; see
 * rl_attempt_tick() for the three things that may be due. */
uint64_t rl_attempt_wake_ns(const struct rl_lease *lease, const struct rl_view *view)
{
    struct rl_now now = view->now;
    uint64_t left =
        rl_sub_sat(rl_remaining_ns(attempt_deadline(lease), now), lease->terms->validity_min_ns) +
        1;

    if (is_limited(lease))
        left = rl_min_u64(left, rl_remaining_ns(rl_lease_wait_until(lease), now));
    if (lease->round.deferred != 0)
        left = rl_min_u64(left, rl_remaining_ns(hedge_time(lease, view), now));
    return rl_due_ns(now, left);
}
