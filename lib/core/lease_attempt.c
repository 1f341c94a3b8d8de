/* SPDX-License-Identifier: MIT
 * One attempt to take a lock: whom it asks, what the votes mean, and how it is taken back. */
#include "core/lease_hold.h"

#include "redlock/redlock.h"

#include <string.h>

/* Errors that another attempt cannot mend: the configuration is wrong, not the moment. */
static bool is_final(int status)
{
    return status == REDLOCK_EAUTH || status == REDLOCK_EDUPLICATE || status == REDLOCK_ECANCELED ||
           status == REDLOCK_ECLOSED || status == REDLOCK_ELOST;
}

/* Where pushes tell of a change, questions by timer are the exception. */
#define POLL_MIN_NS (100 * RL_MS)
#define POLL_MAX_NS (300 * RL_MS)
/* A node asked first that is silent for longer than this, or two round trips, does not hold up the
 * others: below, the delay is as likely to be ours. */
#define HEDGE_MIN_NS (2 * RL_MS)

static uint64_t poll_delay_ns(const struct rl_lease *lease, const struct rl_view *view)
{
    const struct rl_lease_terms *terms = lease->terms;
    uint64_t random = rl_jitter(view->random, lease->salt, lease->attempts);
    uint64_t delay = rl_backoff_ns(&terms->backoff, lease->failures, view->round_trip_ns, random);

    if (rl_wait_is_notified(lease, view))
        delay = rl_max_u64(delay, POLL_MIN_NS + random % (POLL_MAX_NS - POLL_MIN_NS));
    return rl_max_u64(delay, 1); /* 0 means the end */
}

/* Returns how long the lease may sleep and still make an attempt within its budget; RL_NEVER: the
 * budget has no end, 0: no other attempt follows. */
uint64_t rl_attempt_spare_ns(const struct rl_lease *lease, const struct rl_view *view)
{
    if (lease->wait_ns == 0 || lease->wait_ns == RL_NEVER)
        return lease->wait_ns;
    uint64_t left = rl_remaining_ns(rl_lease_wait_until(lease), view->now);
    return rl_sub_sat(left, rl_max_u64(2 * view->round_trip_ns, RL_MS));
}

/* How long to sleep before the next attempt, or 0 if the budget does not allow another one. The
 * last attempt starts just before the budget ends, so that no time of it is given away. */
static uint64_t retry_delay_ns(const struct rl_lease *lease, const struct rl_view *view)
{
    uint64_t spare = rl_attempt_spare_ns(lease, view);

    return spare == 0 ? 0 : rl_min_u64(poll_delay_ns(lease, view), spare);
}

/* The node that contenders ask first, if this attempt was denied although it was not denied there.
 * An attempt that asked all at once may have heard it, too: from there, that the key is free, and
 * from a majority, that it is another's. So the holder cannot reach that node, maybe. */
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

/* Notes for the client's next attempts that others want the resource. */
static void note_denied(struct rl_lease *lease, const struct rl_view *view)
{
    if (rl_permit_is_contended(lease))
        rl_contention_note_denial(lease->contention, lease->round.granted != 0,
                                  missed_nodes(lease, view), view->now.boot_ns);
    if (lease->wait.request_all)
        rl_contention_note_request_all(lease->contention, false);
}

/* Ends an attempt: what it may have set anywhere is undone at once, then the caller is told or the
 * next attempt is scheduled. A node that answered nil has provably not executed our SET. */
void rl_attempt_fail(struct rl_lease *lease, int status, const struct rl_view *view,
                     struct rl_effects *fx)
{
    if (lease->terms->kind == RL_LEASE_ACQUIRE)
        fx->undo |=
            (lease->ours & ~fx->request) | /* what this very step was to send does not leave */
            lease->remnants;
    fx->request = 0;
    lease->ours = lease->remnants = 0;
    lease->fresh = lease->confirmed = lease->probation = 0;
    fx->raise = 0;
    bool cut = lease->round.outcome == RL_OUTCOME_OPEN; /* it says nothing of others */
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

static struct rl_now attempt_deadline(const struct rl_lease *lease)
{
    return rl_deadline(lease->round.t1, lease->terms->ttl_ns, &lease->terms->drift);
}

/* Why the present attempt failed. */
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

static void note_won(struct rl_lease *lease, const struct rl_view *view)
{
    rl_nodes first = rl_wait_preferred(lease, view);

    rl_contention_note_grant(lease->contention);
    if (lease->round.denied != 0)
        rl_contention_note_contender(lease->contention);
    /* Whoever went ahead was denied there by one who came first and gives it back. */
    if ((first & lease->round.granted) != 0 ||
        ((first & lease->round.denied) != 0 && !lease->wait.request_all))
        rl_contention_note_preferred(lease->contention, first, (first & lease->round.granted) != 0);
    if (lease->wait.request_all)
        rl_contention_note_request_all(lease->contention, true);
}

/* What the votes so far mean for an attempt. */
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

/* Holds back the other nodes until the preferred one has granted, or does not answer. If it denies,
 * the client wants a notification of the key's next change: asking for it in the same write saves a
 * round trip, in which the key may have changed.
 * Asking one node before the others takes two round trips: where the budget has no time for them,
 * all nodes are asked at once. */
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
    /* Which of several keys will stand in the way nobody knows yet; of slots, all are watched. */
    if (lease->wait_ns != 0 && lease->keys <= 1 && !rl_permit_is(lease))
        lease->wait.probed = fx->probe = first & view->notifying;
}

static void request_deferred(struct rl_lease *lease, const struct rl_view *view,
                             struct rl_effects *fx)
{
    rl_nodes asked = rl_round_take_deferred(&lease->round, view);

    lease->ours |= asked;
    fx->request |= asked;
}

/* Keeps the attempt before this one for the report. */
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
    /* Without a possible majority nothing is sent: no key needs to be taken back. */
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

/* Returns whether the preferred node's vote ends the attempt before the others are asked. Its
 * denial does, but not if it were the end of the call: that node may have a key that its owner left
 * behind. A search for a permit goes on after a denial, see rl_permit_denied(). */
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
    /* A node that was asked while it was connecting has told since then who it is. */
    bool adopt = lease->terms->kind == RL_LEASE_ADOPT;
    rl_round_exclude(&lease->round, adopt ? view->excluded : ~view->eligible, view);
    if (!adopt)
        rl_lease_note_set(lease, ballot);
    else if (ballot->vote == RL_VOTE_DENIED) /* else what is adopted is there, asked or not */
        rl_lease_note_missing(lease, ballot->node);
    if (ballot->key != 0)
        rl_wait_note_taken(lease, ballot, view);
    if (rl_lease_is_fenced(lease))
        rl_lease_fence_vote(lease, ballot, view, fx);
    if (ballot->vote == RL_VOTE_FAILED && ballot->cause == REDLOCK_CAUSE_NO_MEMORY)
        rl_round_fail_deferred(&lease->round, ballot->cause); /* there may not even be a token */
    else if (lease->round.deferred != 0 && !decides_alone(lease, ballot->vote, view))
        request_deferred(lease, view, fx);
    rl_attempt_judge(lease, view, fx);
}

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

static struct rl_now hedge_time(const struct rl_lease *lease, const struct rl_view *view)
{
    return rl_later(lease->round.t1, rl_attempt_hedge_ns(view));
}

/* Ends an attempt at the end of the budget. Nodes that have not answered may yet do so in time:
 * what the call reports is the last attempt that was decided, or that these have not answered yet.
 */
static void cut_attempt(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    struct rl_decided *decided = lease->decided;
    int status = failure_status(lease);

    if (decided != NULL && decided->status != REDLOCK_OK) {
        rl_round_complete(&decided->round, &lease->round);
        bool few = rl_nodes_count(decided->round.requested) < decided->round.quorum;
        bool alone = few && decided->status == REDLOCK_ECONTENDED; /* the preferred node's word */
        status = alone ? REDLOCK_ENOQUORUM : decided->status;
        decided->reported = true;
    } else if (lease->round.outcome == RL_OUTCOME_WON) {
        status = REDLOCK_ENOQUORUM; /* granted, but the fence is not written */
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
