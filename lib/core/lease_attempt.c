/* SPDX-License-Identifier: MIT
 * One attempt to acquire or adopt a lock: which nodes it asks, what the votes mean, how it is
 * undone if it fails, and the pause before the next one. */
#include "core/lease_hold.h"

#include "redlock/redlock.h"

#include <string.h>

/* Returns whether another attempt would fail with the same error: the configuration is wrong, the
 * call was ended, or the adopted lock is lost. */
static bool is_final(int status)
{
    return status == REDLOCK_EAUTH || status == REDLOCK_EDUPLICATE || status == REDLOCK_ECANCELED ||
           status == REDLOCK_ECLOSED || status == REDLOCK_ELOST;
}

/* Bounds of the pause between attempts by timer, if a node sends notifications. */
#define POLL_MIN_NS (100 * RL_MS)
#define POLL_MAX_NS (300 * RL_MS)
/* Least time that an attempt waits for the preferred node before it asks the others. A shorter
 * delay is as likely to be the client's own. */
#define HEDGE_MIN_NS (2 * RL_MS)

/* Returns the pause before the next attempt by timer in nanoseconds, at least 1. */
static uint64_t poll_delay_ns(const struct rl_lease *lease, const struct rl_view *view)
{
    const struct rl_lease_terms *terms = lease->terms;
    uint64_t random = rl_jitter(view->random, lease->salt, lease->attempts);
    uint64_t delay = rl_backoff_ns(&terms->backoff, lease->failures, view->round_trip_ns, random);

    if (rl_wait_is_notified(lease, view))
        delay = rl_max_u64(delay, POLL_MIN_NS + random % (POLL_MAX_NS - POLL_MIN_NS));
    return rl_max_u64(delay, 1); /* retry_delay_ns() uses 0 for "no attempt" */
}

/* The attempt needs two round trips, and one millisecond at least. */
uint64_t rl_attempt_spare_ns(const struct rl_lease *lease, const struct rl_view *view)
{
    if (lease->wait_ns == 0 || lease->wait_ns == RL_NEVER)
        return lease->wait_ns;
    uint64_t left = rl_remaining_ns(rl_lease_wait_until(lease), view->now);
    return rl_sub_sat(left, rl_max_u64(2 * view->round_trip_ns, RL_MS));
}

/* Returns the pause before the next attempt in nanoseconds; 0 if the budget does not allow another
 * attempt. The last attempt begins just before the budget ends, so that the whole budget is used.
 */
static uint64_t retry_delay_ns(const struct rl_lease *lease, const struct rl_view *view)
{
    uint64_t spare = rl_attempt_spare_ns(lease, view);

    return spare == 0 ? 0 : rl_min_u64(poll_delay_ns(lease, view), spare);
}

/* Returns the preferred node if the attempt was denied, but not by that node: then the holder has
 * perhaps acquired the lock without it. An attempt that asked all nodes at once shows that only if
 * the preferred node granted and a quorum denied. 0: the preferred node denied.
 * RL_CONTENTION_UNKNOWN: the attempt does not show it. */
static rl_nodes missed_nodes(const struct rl_lease *lease, const struct rl_view *view)
{
    const struct rl_round *round = &lease->round;

    if (lease->wait.preferred != 0)
        return lease->wait.preferred & ~round->denied;
    rl_nodes first = rl_wait_preferred(lease, view);
    if ((first & round->denied) != 0)
        return 0;
    if ((first & round->granted) != 0 && rl_nodes_count(round->denied) >= round->quorum)
        return first;
    return RL_CONTENTION_UNKNOWN;
}

/* Notes a denial in the contention memory, for the client's next attempts. */
static void note_denied(struct rl_lease *lease, const struct rl_view *view)
{
    if (rl_permit_is_contended(lease))
        rl_contention_note_denial(lease->contention, lease->round.granted != 0,
                                  missed_nodes(lease, view), view->now.boot_ns);
    if (lease->wait.request_all)
        rl_contention_note_request_all(lease->contention, false);
}

/* Undoes the attempt on the nodes of `ours` only: a node that denied has not executed our SET. */
void rl_attempt_fail(struct rl_lease *lease, int status, const struct rl_view *view,
                     struct rl_effects *fx)
{
    if (lease->terms->kind == RL_LEASE_ACQUIRE)
        fx->undo |=
            (lease->ours & ~fx->request) | /* the requests of this step are not sent any more */
            lease->remnants;
    fx->request = 0;
    lease->ours = lease->remnants = 0;
    lease->fresh = lease->confirmed = lease->probation = 0;
    fx->raise = 0;
    bool cut = lease->round.outcome == RL_OUTCOME_OPEN; /* undecided: shows no contention */
    lease->round.outcome = RL_OUTCOME_FAILED;
    if (lease->contention != NULL && status == REDLOCK_ECONTENDED && !cut)
        note_denied(lease, view);
    if (!rl_permit_denied(lease, status, view, fx))
        rl_attempt_pause(lease, status, view, fx);
}

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

/* Returns the deadline that the lock gets if this attempt wins. */
static struct rl_now attempt_deadline(const struct rl_lease *lease)
{
    return rl_deadline(lease->round.t1, lease->terms->ttl_ns, &lease->terms->drift);
}

/* Returns the error of the present attempt. An adoption that too many nodes deny is ELOST. */
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

/* Notes a won attempt in the contention memory. */
static void note_won(struct rl_lease *lease, const struct rl_view *view)
{
    rl_nodes first = rl_wait_preferred(lease, view);

    rl_contention_note_grant(lease->contention);
    if (lease->round.denied != 0)
        rl_contention_note_contender(lease->contention);
    /* A denial by the preferred node says nothing after an attempt that asked all nodes at once:
     * another contender had the vote, and undoes it. */
    if ((first & lease->round.granted) != 0 ||
        ((first & lease->round.denied) != 0 && !lease->wait.request_all))
        rl_contention_note_preferred(lease->contention, first, (first & lease->round.granted) != 0);
    if (lease->wait.request_all)
        rl_contention_note_request_all(lease->contention, true);
}

/* A won round holds the lock only if the fence is agreed on, and only if
 * ttl - drift - lost margin - elapsed, with elapsed up to now, is at least the least validity. */
void rl_attempt_judge(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    switch (rl_round_judge(&lease->round)) {
    case RL_OUTCOME_OPEN:
        return;
    case RL_OUTCOME_WON:
        break;
    default:
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
        note_won(lease, view);
    rl_hold_begin(lease, deadline, view, fx);
    fx->status = REDLOCK_OK;
    fx->flags |= RL_FX_DONE | RL_FX_HELD;
}

/* Defers the other nodes until the preferred one has granted or is late. If it denies, the client
 * wants a notification of the key's next change. The probe is sent together with the request, which
 * saves a round trip in which the key could change.
 * Two rounds of requests take two round trips. If the budget has no time for them, all nodes are
 * asked at once. */
static void request_preferred(struct rl_lease *lease, rl_nodes first, const struct rl_view *view,
                              struct rl_effects *fx)
{
    if (lease->wait_ns != 0 && rl_attempt_spare_ns(lease, view) == 0)
        first = 0;
    first &= lease->round.requested & ~lease->round.excluded & ~lease->round.suspect;
    lease->wait.preferred = first;
    if (first == 0)
        return;
    rl_round_defer(&lease->round, ~first);
    /* With several keys, it is unknown which of them to probe; lease_permit.c probes slots. */
    if (lease->wait_ns != 0 && lease->keys <= 1 && !rl_permit_is(lease))
        lease->wait.probed = fx->probe = first & view->notifying;
}

/* Asks the deferred nodes now. */
static void request_deferred(struct rl_lease *lease, const struct rl_view *view,
                             struct rl_effects *fx)
{
    rl_nodes requested = rl_round_take_deferred(&lease->round, view);

    lease->ours |= requested;
    fx->request |= requested;
}

/* Saves the round of the previous attempt for the report. */
static void save_decided(struct rl_lease *lease)
{
    if (lease->decided == NULL || lease->attempts == 0)
        return;
    rl_round_copy(&lease->decided->round, &lease->round);
    lease->decided->status = lease->status;
}

void rl_attempt_begin(struct rl_lease *lease, rl_nodes first, const struct rl_view *view,
                      struct rl_effects *fx)
{
    bool adopt = lease->terms->kind == RL_LEASE_ADOPT;
    rl_nodes all = rl_nodes_all(lease->terms->nodes);

    save_decided(lease);
    rl_lease_move(lease, RL_STATE_ACQUIRING);
    lease->attempts++;
    lease->taken = 0;
    lease->wait.probed = 0;
    lease->wait.notified = false;
    if (!adopt && lease->fence != NULL)
        *lease->fence = (struct rl_fence){.chosen = 0};
    rl_round_open(&lease->round, adopt ? RL_VERB_EXTEND : RL_VERB_ACQUIRE, all,
                  adopt ? view->excluded : ~view->eligible, view);
    if (view->duplicate && !adopt) {
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
    request_preferred(lease, first, view, fx);
    lease->ours = adopt ? all : lease->round.requested;
    fx->request = lease->round.requested;
    fx->flags |= adopt ? 0 : RL_FX_ATTEMPT;
}

/* Returns whether the preferred node's vote ends the attempt before the others are asked. A denial
 * does, unless the call would end with it: one node may still have a key that its holder has
 * released or lost elsewhere. A search for a permit goes on after a denial in any case, see
 * rl_permit_denied(). */
static bool decides_alone(const struct rl_lease *lease, uint8_t vote, const struct rl_view *view)
{
    return vote == RL_VOTE_DENIED && (rl_permit_is(lease) || rl_attempt_spare_ns(lease, view) != 0);
}

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
    /* A node that was asked while connecting may have been excluded by its handshake since. */
    bool adopt = lease->terms->kind == RL_LEASE_ADOPT;
    rl_round_exclude(&lease->round, adopt ? view->excluded : ~view->eligible, view);
    if (!adopt)
        rl_lease_note_set(lease, ballot);
    else if (ballot->vote == RL_VOTE_DENIED) /* without a denial the adopted key may be there */
        rl_lease_note_missing(lease, ballot->node);
    if (ballot->key != 0)
        rl_wait_note_taken(lease, ballot, view);
    if (rl_lease_is_fenced(lease))
        rl_lease_fence_vote(lease, ballot, view, fx);
    if (ballot->vote == RL_VOTE_FAILED && ballot->cause == REDLOCK_CAUSE_NO_MEMORY)
        rl_round_fail_deferred(&lease->round, ballot->cause); /* there may be no token to send */
    else if (lease->round.deferred != 0 && !decides_alone(lease, ballot->vote, view))
        request_deferred(lease, view, fx);
    rl_attempt_judge(lease, view, fx);
}

/* Returns whether the wait budget has an end other than the first attempt's. */
static bool is_limited(const struct rl_lease *lease)
{
    return lease->wait_ns != 0 && lease->wait_ns != RL_NEVER;
}

bool rl_attempt_is_expired(const struct rl_lease *lease, const struct rl_view *view)
{
    return is_limited(lease) && rl_remaining_ns(rl_lease_wait_until(lease), view->now) == 0;
}

uint64_t rl_attempt_hedge_ns(const struct rl_view *view)
{
    return rl_max_u64(2 * view->round_trip_ns, HEDGE_MIN_NS);
}

/* Returns when the deferred nodes are asked without the preferred node's grant. */
static struct rl_now hedge_time(const struct rl_lease *lease, const struct rl_view *view)
{
    return rl_later(lease->round.t1, rl_attempt_hedge_ns(view));
}

/* Fails an attempt at the end of the budget. The attempt is undecided, so the call reports the last
 * attempt that was decided. If there was none, it reports the missing votes. */
static void cut_attempt(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    struct rl_decided *decided = lease->decided;
    int status = failure_status(lease);

    if (decided != NULL && decided->status != REDLOCK_OK) {
        rl_round_complete(&decided->round, &lease->round);
        bool few = rl_nodes_count(decided->round.requested) < decided->round.quorum;
        bool alone = few && decided->status == REDLOCK_ECONTENDED; /* one node's denial only */
        status = alone ? REDLOCK_ENOQUORUM : decided->status;
        decided->reported = true;
    } else if (lease->round.outcome == RL_OUTCOME_WON) {
        status = REDLOCK_ENOQUORUM; /* a quorum granted, but the fence is undecided */
    }
    rl_attempt_fail(lease, status, view, fx);
}

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
