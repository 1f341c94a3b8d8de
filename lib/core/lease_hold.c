/* SPDX-License-Identifier: MIT
 * A held lock: extension, healing, loss, release.
 *
 * An extension counts only keys that have existed without a break since before a round that won
 * without them. A key that was healed, or whose SET may have been executed late, proves nothing
 * about the time before it was set: another client may have held and released the lock in between.
 * Such a key goes through these sets of struct rl_lease:
 *
 *   fresh -> probation, when a reply has shown that it exists and the next round begins
 *         -> counted, when that round has won without it
 *
 * A grant of the attempt itself that arrives after the decision counts at once. */
#include "core/lease_hold.h"

#include "redlock/redlock.h"

/* If something is due later than this, the next TICK comes after seven eighths of the time. The
 * timer runs on the boot clock only and deadlines on two clocks, whose rates differ. */
#define CLOSE_NS (20 * RL_MS)

/* Grids on the boot clock to which TICKs and extensions of many locks are aligned, so that they
 * share wake-ups and writes. Powers of two. */
#define WAKE_GRID_NS   (UINT64_C(1) << 24) /* 17 ms: less than seven eighths of CLOSE_NS */
#define EXTEND_GRID_NS (UINT64_C(1) << 23) /* 8 ms */

uint64_t rl_due_ns(struct rl_now now, uint64_t ns)
{
    if (ns > CLOSE_NS)
        ns -= ns / 8;
    return rl_add_sat(now.boot_ns, rl_max_u64(ns, 1));
}

uint64_t rl_lease_left_ns(const struct rl_lease *lease, struct rl_now deadline, int64_t wall_us,
                          const struct rl_view *view)
{
    uint64_t slack_us = lease->terms->wall_slack_us;
    bool ahead = view->wall_us > wall_us && (uint64_t)(view->wall_us - wall_us) > slack_us;

    if (slack_us != 0 && ahead)
        return 0;
    return rl_remaining_ns(deadline, view->now);
}

/* Returns the validity that is left; 0: the deadline has passed, or the wall clock has jumped. */
static uint64_t left_ns(const struct rl_lease *lease, const struct rl_view *view)
{
    return rl_lease_left_ns(lease, lease->deadline, lease->wall_us, view);
}

/* Sets the deadline that follows from the round that has just won, at most hold_end. Invariant:
 * `deadline`, `backing` and `wall_us` belong to the same round, the last one that has won, and that
 * round gave the keys of `backing` a TTL that reaches the deadline. */
static void set_deadline(struct rl_lease *lease, struct rl_now deadline, struct rl_effects *fx)
{
    lease->deadline.boot_ns = rl_min_u64(deadline.boot_ns, lease->hold_end.boot_ns);
    lease->deadline.raw_ns = rl_min_u64(deadline.raw_ns, lease->hold_end.raw_ns);
    lease->backing = rl_round_counted(&lease->round);
    lease->wall_us = lease->round.t1_wall_us;
    lease->endangered = false;
    fx->flags |= RL_FX_DEADLINE;
}

/* Returns whether another automatic extension is allowed and can move the deadline. */
static bool may_extend(const struct rl_lease *lease)
{
    const struct rl_lease_terms *terms = lease->terms;

    if (!terms->auto_extend || lease->deadline.boot_ns == lease->hold_end.boot_ns)
        return false;
    return terms->extends_max == 0 || lease->extends < terms->extends_max;
}

/* Returns `wait_ns` shortened at random by up to a quarter, so that locks acquired together are not
 * all extended together, and aligned to a grid. Extensions that are due in the same tick are sent
 * in one write for each node. */
static uint64_t spread_ns(const struct rl_lease *lease, uint64_t wait_ns,
                          const struct rl_view *view)
{
    uint64_t now_ns = view->now.boot_ns, grid_ns = EXTEND_GRID_NS;

    if (wait_ns < RL_MS)
        return wait_ns;
    wait_ns -= rl_jitter(view->random, lease->salt, lease->round.number) % (wait_ns / 4);
    while (grid_ns > wait_ns / 16)
        grid_ns /= 2;
    return ((now_ns + wait_ns) & ~(grid_ns - 1)) - now_ns;
}

/* Sets when the next automatic extension begins: when a third of the validity is used, or a little
 * less; or when only extend_at_ns is left, if that is set. */
static void plan_extension(struct rl_lease *lease, const struct rl_view *view)
{
    uint64_t left = rl_remaining_ns(lease->deadline, view->now);
    uint64_t at = lease->terms->extend_at_ns;
    uint64_t wait_ns = at != 0 ? rl_sub_sat(left, at) : spread_ns(lease, left / 3, view);

    lease->next =
        may_extend(lease) ? rl_later(view->now, wait_ns) : (struct rl_now){RL_NEVER, RL_NEVER};
}

void rl_hold_begin(struct rl_lease *lease, struct rl_now deadline, const struct rl_view *view,
                   struct rl_effects *fx)
{
    rl_lease_move(lease, RL_STATE_HELD);
    lease->hold_end = lease->terms->hold_max_ns != 0
                          ? rl_later(view->now, lease->terms->hold_max_ns)
                          : (struct rl_now){RL_NEVER, RL_NEVER};
    lease->extends = 0;
    lease->adopted = lease->terms->kind == RL_LEASE_ADOPT;
    set_deadline(lease, deadline, fx);
    plan_extension(lease, view);
}

uint64_t rl_hold_wake_ns(const struct rl_lease *lease, struct rl_now now)
{
    uint64_t left = rl_remaining_ns(lease->deadline, now);
    uint64_t due = left;

    if (!lease->endangered)
        due = rl_sub_sat(left, lease->terms->margin_ns);
    if (lease->state == RL_STATE_HELD)
        due = rl_min_u64(due, rl_remaining_ns(lease->next, now));
    uint64_t due_ns = rl_due_ns(now, due);
    /* An early TICK need not be exact: on the grid, thousands of locks share a few of them. */
    return due > CLOSE_NS ? due_ns & ~(WAKE_GRID_NS - 1) : due_ns;
}

/* The requests of this step are not sent, but the nodes of an extension have our key: so `ours`
 * keeps them, and rl_attempt_fail() undoes them. */
void rl_hold_fail_unconfirmed(struct rl_lease *lease, const struct rl_view *view,
                              struct rl_effects *fx)
{
    fx->request = fx->heal = 0;
    if (lease->state == RL_STATE_EXTENDING)
        rl_lease_move(lease, RL_STATE_HELD);
    rl_attempt_fail(lease, REDLOCK_ETOOSLOW, view, fx);
}

/* Loses the lock: reports the loss, undoes the keys that may be left, and ends the lease. If the
 * grant was not reported to the caller yet, the attempt fails instead, and the call goes on. */
static void lose(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    int status = REDLOCK_ELOST;

    if (lease->unconfirmed) {
        rl_hold_fail_unconfirmed(lease, view, fx);
        return;
    }
    if (lease->manual)
        fx->flags |= RL_FX_DONE;
    lease->manual = false;
    lease->lost = true;
    lease->status = status;
    lease->deadline = (struct rl_now){0, 0};
    fx->undo |= lease->ours | lease->remnants;
    lease->ours = lease->remnants = 0;
    fx->status = status;
    fx->flags |= RL_FX_LOST | RL_FX_DEADLINE | RL_FX_ENDED;
    rl_lease_move(lease, RL_STATE_ENDED);
}

/* Sets the keys again on the nodes of `missing` that are up and count. */
static void heal(struct rl_lease *lease, rl_nodes missing, const struct rl_view *view,
                 struct rl_effects *fx)
{
    missing &= view->up & ~view->excluded;
    lease->ours |= missing;
    lease->fresh |= missing;
    lease->confirmed &= ~missing;
    lease->probation &= ~missing;
    fx->heal |= missing;
}

/* Moves the deadline after a won extension, and heals the nodes that denied. */
static void extension_won(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    struct rl_now deadline =
        rl_deadline(lease->round.t1, lease->extend_ttl_ns, &lease->terms->drift);

    /* The deciding vote must come before the old deadline. After it another client may have held
     * the lock, even if a quorum of nodes has our key now. */
    if (left_ns(lease, view) == 0) {
        lose(lease, view, fx);
        return;
    }
    rl_lease_move(lease, RL_STATE_HELD);
    lease->extends += !lease->manual;
    lease->failures = 0;
    lease->probation = 0;
    set_deadline(lease, deadline, fx);
    plan_extension(lease, view);
    heal(lease, lease->round.denied, view, fx);
    fx->status = REDLOCK_OK;
    fx->flags |= RL_FX_EXTENDED | (lease->manual ? RL_FX_DONE : 0);
    lease->manual = false;
}

/* Ends a failed extension. The lock stays held until its deadline, unless the votes prove that no
 * quorum has our key any more: then another client can acquire it now, and the lock is lost. */
static void extension_failed(struct rl_lease *lease, const struct rl_view *view,
                             struct rl_effects *fx)
{
    int status = rl_round_status(&lease->round);

    if (rl_nodes_count(lease->ours) < lease->terms->quorum) {
        fx->flags |= RL_FX_EXTEND_FAILED;
        lose(lease, view, fx);
        return;
    }
    if (status == REDLOCK_ECONTENDED)
        status = REDLOCK_ENOQUORUM;
    rl_lease_move(lease, RL_STATE_HELD);
    lease->status = status;
    uint64_t delay = rl_backoff_ns(&lease->terms->backoff, lease->failures, view->round_trip_ns,
                                   rl_jitter(view->random, lease->salt, lease->round.number));
    uint64_t left = rl_remaining_ns(lease->deadline, view->now);
    lease->failures++;
    if (may_extend(lease))
        lease->next = rl_later(view->now, rl_max_u64(rl_min_u64(delay, left / 4), RL_MS));
    else
        lease->next = (struct rl_now){RL_NEVER, RL_NEVER};
    fx->status = status;
    fx->flags |= RL_FX_EXTEND_FAILED | (lease->manual ? RL_FX_DONE : 0);
    lease->manual = false;
}

/* Judges the votes of an extension that have come. */
static void judge_extension(struct rl_lease *lease, const struct rl_view *view,
                            struct rl_effects *fx)
{
    switch (rl_round_judge(&lease->round)) {
    case RL_OUTCOME_OPEN:
        break;
    case RL_OUTCOME_WON:
        extension_won(lease, view, fx);
        break;
    default:
        extension_failed(lease, view, fx);
        break;
    }
}

/* Returns the TTL to ask for: `ttl_ns`, or the TTL that the remaining validity needs, if that is
 * longer. The lock may have an older, longer TTL, but its keys may be shorter by now: a client with
 * the token may have shortened them or set them again. So the request covers all the validity that
 * the holder relies on. The result is never longer than the longest TTL asked for before. */
static uint64_t extension_ttl_ns(const struct rl_lease *lease, uint64_t ttl_ns,
                                 const struct rl_view *view)
{
    uint64_t promised_ns = left_ns(lease, view);

    if (rl_usable_ns(ttl_ns, &lease->terms->drift) >= promised_ns)
        return ttl_ns;
    return rl_ttl_for_ns(promised_ns, &lease->terms->drift);
}

/* Begins a round of extensions on all nodes. */
static void begin_extension(struct rl_lease *lease, uint64_t ttl_ns, const struct rl_view *view,
                            struct rl_effects *fx)
{
    ttl_ns = extension_ttl_ns(lease, ttl_ns, view);
    /* A SET without a reply may still be executed late, and its vote belongs to an old round now.
     */
    if (lease->round.verb == RL_VERB_ACQUIRE)
        lease->fresh |= rl_round_pending(&lease->round);
    /* A SET of the client that gave us the token may be executed late as well. */
    if (lease->adopted)
        lease->fresh |= lease->ours & ~lease->round.granted;
    lease->adopted = false;
    rl_nodes seen = lease->fresh & lease->confirmed;

    lease->probation |= seen;
    lease->fresh &= ~seen;
    lease->confirmed = 0;
    /* The round does not wait for nodes that are known not to have our key. */
    rl_nodes healed = lease->fresh | lease->probation;
    rl_nodes excluded = healed | ~lease->ours;
    if (lease->state == RL_STATE_HELD)
        rl_lease_move(lease, RL_STATE_EXTENDING);
    lease->extend_ttl_ns = ttl_ns;
    rl_round_open(&lease->round, RL_VERB_EXTEND, rl_nodes_all(lease->terms->nodes),
                  excluded | view->excluded, view);
    rl_nodes restored =
        (lease->fresh | lease->probation) & lease->round.requested & ~view->excluded;
    for (; restored != 0; restored &= restored - 1)
        lease->round.cause[__builtin_ctz(restored)] = REDLOCK_CAUSE_HEALED;
    fx->request = lease->round.requested;
    judge_extension(lease, view, fx);
}

void rl_hold_extend(struct rl_lease *lease, uint64_t ttl_ns, const struct rl_view *view,
                    struct rl_effects *fx)
{
    RL_ASSERT(rl_lease_is_held(lease));
    lease->manual = true;
    if (left_ns(lease, view) == 0) {
        lose(lease, view, fx);
        return;
    }
    begin_extension(lease, ttl_ns != 0 ? ttl_ns : lease->terms->ttl_ns, view, fx);
}

void rl_hold_tick(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    uint64_t left = left_ns(lease, view);

    if (left == 0) {
        lose(lease, view, fx);
        return;
    }
    if (!lease->endangered && left <= lease->terms->margin_ns) {
        lease->endangered = true;
        fx->flags |= RL_FX_ENDANGERED;
    }
    if (lease->state == RL_STATE_HELD && rl_remaining_ns(lease->next, view->now) == 0)
        begin_extension(lease, lease->terms->ttl_ns, view, fx);
}

void rl_lease_note_missing(struct rl_lease *lease, unsigned node)
{
    lease->ours &= ~RL_NODE(node);
    lease->backing &= ~RL_NODE(node);
    if (lease->keys > 1)
        lease->remnants |= RL_NODE(node);
}

/* Processes a vote on HEAL: the key was set, or another client's key exists. */
static void heal_vote(struct rl_lease *lease, const struct rl_ballot *ballot)
{
    rl_nodes bit = RL_NODE(ballot->node);

    if (ballot->vote == RL_VOTE_GRANTED) {
        lease->confirmed |= lease->fresh & bit;
        lease->remnants &= ~bit;
    } else if (ballot->vote == RL_VOTE_DENIED || ballot->unsent) {
        lease->ours &= ~bit;
        lease->fresh &= ~bit;
    }
}

void rl_lease_note_set(struct rl_lease *lease, const struct rl_ballot *ballot)
{
    rl_nodes bit = RL_NODE(ballot->node);

    if (ballot->vote == RL_VOTE_DENIED || ballot->unsent)
        lease->ours &= ~bit;
    else if (ballot->vote == RL_VOTE_FAILED)
        lease->fresh |= bit; /* unknown whether and when the SET was executed */
}

void rl_hold_vote(struct rl_lease *lease, const struct rl_ballot *ballot,
                  const struct rl_view *view, struct rl_effects *fx)
{
    rl_nodes bit = RL_NODE(ballot->node);

    if (ballot->round != lease->round.number)
        return;
    if (ballot->verb == RL_VERB_RAISE) {
        rl_lease_fence_raised(lease, ballot);
        return;
    }
    if (ballot->verb == RL_VERB_HEAL) {
        heal_vote(lease, ballot);
        return;
    }
    if (lease->round.verb == RL_VERB_ACQUIRE) {
        if (rl_round_count(&lease->round, ballot)) {
            rl_lease_note_set(lease, ballot);
            lease->backing = rl_round_counted(&lease->round);
        }
        return;
    }
    bool decided = lease->round.outcome != RL_OUTCOME_OPEN;
    rl_round_exclude(&lease->round, view->excluded, view);
    if (!rl_round_count(&lease->round, ballot))
        return;
    if (ballot->vote == RL_VOTE_GRANTED) {
        lease->fresh |= bit & ~lease->ours; /* a late SET of ours has been executed */
        lease->ours |= bit;
        lease->confirmed |= lease->fresh & bit;
        lease->remnants &= ~bit;
    } else if (ballot->vote == RL_VOTE_DENIED) {
        rl_lease_note_missing(lease, ballot->node);
    }
    if (lease->round.outcome == RL_OUTCOME_WON)
        lease->backing = rl_round_counted(&lease->round);
    if (!decided)
        judge_extension(lease, view, fx);
    else if (lease->round.outcome == RL_OUTCOME_WON && ballot->vote == RL_VOTE_DENIED)
        heal(lease, bit, view, fx);
    else if (rl_nodes_count(lease->ours) < lease->terms->quorum)
        lose(lease, view, fx); /* a late vote has proven it; the round had failed already */
}

void rl_hold_release(struct rl_lease *lease, enum rl_verb verb, const struct rl_view *view,
                     struct rl_effects *fx)
{
    RL_ASSERT(rl_lease_is_held(lease) || lease->state == RL_STATE_NEW);
    rl_lease_move(lease, RL_STATE_RELEASING);
    lease->manual = false;
    lease->deadline = (struct rl_now){0, 0};
    rl_round_open(&lease->round, verb, lease->ours, 0, view);
    fx->request = lease->round.requested;
    fx->undo = lease->round.failed; /* not up now: undone after the next reconnect */
    fx->undo |= lease->remnants & ~lease->ours;
    fx->flags |= RL_FX_DEADLINE;
    if (lease->contention != NULL && verb == RL_VERB_RELEASE)
        rl_contention_note_release(lease->contention, view->round_trip_ns,
                                   rl_jitter(view->random, lease->salt, lease->attempts),
                                   view->now.boot_ns);
    rl_release_vote(lease, NULL, fx);
    if (lease->state ==
        RL_STATE_ENDED) { /* decided without a request: the keys are undone all the same */
        fx->undo |= fx->request;
        fx->request = 0;
    }
}

void rl_release_vote(struct rl_lease *lease, const struct rl_ballot *ballot, struct rl_effects *fx)
{
    int status;

    if (ballot != NULL && !rl_round_count(&lease->round, ballot))
        return;
    switch (rl_round_judge(&lease->round)) {
    case RL_OUTCOME_OPEN:
        return;
    case RL_OUTCOME_WON:
        status = REDLOCK_OK;
        break;
    case RL_OUTCOME_LOST:
        status = REDLOCK_ELOST;
        break;
    default:
        status = rl_round_status(&lease->round);
        status = status == REDLOCK_ECONTENDED ? REDLOCK_ENOQUORUM : status;
        break;
    }
    rl_lease_move(lease, RL_STATE_ENDED);
    lease->status = status;
    lease->ours = lease->remnants = 0;
    fx->status = status;
    fx->flags |= RL_FX_DONE | RL_FX_ENDED;
}

/* The keys of `nodes` may have been lost, or expire too early. From now on they are treated like
 * healed keys, see the top of this file. The rest of `backing` must be a quorum, or another client
 * could reach one: then the lock is lost. */
void rl_hold_invalidate(struct rl_lease *lease, rl_nodes nodes, const struct rl_view *view,
                        struct rl_effects *fx)
{
    nodes &= lease->ours;
    lease->fresh |= nodes;
    lease->confirmed &= ~nodes;
    lease->probation &= ~nodes;
    lease->backing &= ~nodes;
    rl_round_exclude(&lease->round, nodes, view);
    if (rl_nodes_count(lease->backing) < lease->terms->quorum)
        lose(lease, view, fx);
    else if (lease->state == RL_STATE_EXTENDING)
        judge_extension(lease, view, fx);
}

void rl_hold_detach(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    (void)view;
    RL_ASSERT(rl_lease_is_held(lease));
    if (lease->manual)
        fx->flags |= RL_FX_DONE;
    fx->status = REDLOCK_ECANCELED;
    lease->manual = false;
    lease->deadline = (struct rl_now){0, 0};
    lease->ours = lease->remnants = 0;
    fx->flags |= RL_FX_DEADLINE | RL_FX_ENDED;
    rl_lease_move(lease, RL_STATE_ENDED);
}
