/* SPDX-License-Identifier: MIT
 * Holding a lock: extension, healing, loss, release.
 *
 * Which keys count in an extension: those that have been there, unbroken, since before a round
 * that succeeded without them. A key that we put back (heal), or whose SET may have run late,
 * proves nothing about the time before it was made: in between another client may have held and
 * released the lock. So it goes fresh -> (seen, and a round begins) probation -> (that round
 * succeeds without it) counted. A SET that was granted in time, if after the decision, is one of
 * the attempt's grants and counts at once. */
#include "core/lease_hold.h"

#include "redlock/redlock.h"

/* Far from a due time it is looked at again after seven eighths of the wait: the timer runs on one
 * clock, the deadline on two, and slewing moves them against each other. */
#define CLOSE_NS (20 * RL_MS)

/* Times that many locks are looked at together, on the boot clock: powers of two. */
#define WAKE_GRID_NS   (UINT64_C(1) << 24) /* 17 ms: less than seven eighths of CLOSE_NS */
#define EXTEND_GRID_NS (UINT64_C(1) << 23)

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

static uint64_t left_ns(const struct rl_lease *lease, const struct rl_view *view)
{
    return rl_lease_left_ns(lease, lease->deadline, lease->wall_us, view);
}

/* Adopts the deadline that the round just won gives. Invariant: `deadline`, the nodes that carry it
 * (`backing`) and the reference of the wall clock are of one round, the last one won, and the keys
 * of `backing` were given a TTL that reaches the deadline. */
static void set_deadline(struct rl_lease *lease, struct rl_now deadline, struct rl_effects *fx)
{
    lease->deadline.boot_ns = rl_min_u64(deadline.boot_ns, lease->hold_end.boot_ns);
    lease->deadline.raw_ns = rl_min_u64(deadline.raw_ns, lease->hold_end.raw_ns);
    lease->backing = rl_round_counted(&lease->round);
    lease->wall_us = lease->round.t1_wall_us;
    lease->endangered = false;
    fx->flags |= RL_FX_DEADLINE;
}

static bool may_extend(const struct rl_lease *lease)
{
    const struct rl_lease_terms *terms = lease->terms;

    if (!terms->auto_extend || lease->deadline.boot_ns == lease->hold_end.boot_ns)
        return false;
    return terms->extends_max == 0 || lease->extends < terms->extends_max;
}

/* Locks that were taken together would be extended together, for ever, and those that were not, one
 * by one. So each begins up to a quarter of the way earlier, by lot, and at a time that others
 * have, too: what is due in the same tick leaves in one write for each node. */
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

/* Auto-extension starts when a third of the validity is used, or a little less; or when told. */
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
    /* A look on the way is not bound to its time: thousands of locks share a few. */
    return due > CLOSE_NS ? due_ns & ~(WAKE_GRID_NS - 1) : due_ns;
}

/* An extension that this very step was to send does not leave, but those nodes have our key. */
void rl_hold_fail_unconfirmed(struct rl_lease *lease, const struct rl_view *view,
                              struct rl_effects *fx)
{
    fx->request = fx->heal = 0;
    if (lease->state == RL_STATE_EXTENDING)
        rl_lease_move(lease, RL_STATE_HELD);
    rl_attempt_fail(lease, REDLOCK_ETOOSLOW, view, fx);
}

/* The lock is gone. What may be left of it on the nodes is of no use to anybody. Nobody loses what
 * he was not told of: he goes on waiting for it. */
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

static void extension_won(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    struct rl_now deadline =
        rl_deadline(lease->round.t1, lease->extend_ttl_ns, &lease->terms->drift);

    /* The deciding vote must come before the old validity ends: afterwards another client may
     * have been in between, whatever the nodes say now. */
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

/* A failed round leaves a lock that is still valid alone, unless the nodes prove that a majority
 * no longer has our key: then another client can take it this very moment. */
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

/* Returns the TTL to ask for: `ttl_ns`, or what the remaining validity needs if that is more. The
 * old TTL may have been longer, and the servers need not have its keys any more: another client may
 * have shortened them, or set them anew. So the servers are asked for all that the holder goes on
 * relying on. It is never more than the longest TTL that was asked for before. */
static uint64_t extension_ttl_ns(const struct rl_lease *lease, uint64_t ttl_ns,
                                 const struct rl_view *view)
{
    uint64_t promised_ns = left_ns(lease, view);

    if (rl_usable_ns(ttl_ns, &lease->terms->drift) >= promised_ns)
        return ttl_ns;
    return rl_ttl_for_ns(promised_ns, &lease->terms->drift);
}

static void begin_extension(struct rl_lease *lease, uint64_t ttl_ns, const struct rl_view *view,
                            struct rl_effects *fx)
{
    ttl_ns = extension_ttl_ns(lease, ttl_ns, view);
    /* A SET without an answer by now may still run late, and its vote is not heard any more. */
    if (lease->round.verb == RL_VERB_ACQUIRE)
        lease->fresh |= rl_round_pending(&lease->round);
    /* The giver's SET may run late as well. */
    if (lease->adopted)
        lease->fresh |= lease->ours & ~lease->round.granted;
    lease->adopted = false;
    rl_nodes seen = lease->fresh & lease->confirmed;

    lease->probation |= seen;
    lease->fresh &= ~seen;
    lease->confirmed = 0;
    /* Where our key is known not to be, nobody waits for the answer either. */
    rl_nodes healed = lease->fresh | lease->probation;
    rl_nodes excluded = healed | ~lease->ours;
    if (lease->state == RL_STATE_HELD)
        rl_lease_move(lease, RL_STATE_EXTENDING);
    lease->extend_ttl_ns = ttl_ns;
    rl_round_open(&lease->round, RL_VERB_EXTEND, rl_nodes_all(lease->terms->nodes),
                  excluded | view->excluded, view);
    rl_nodes put_back =
        (lease->fresh | lease->probation) & lease->round.requested & ~view->excluded;
    for (; put_back != 0; put_back &= put_back - 1)
        lease->round.cause[__builtin_ctz(put_back)] = REDLOCK_CAUSE_HEALED;
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

/* The answer to a heal: a key that was made, or that another client has by now. */
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

/* What the answer to an acquire SET says of the key on that node. */
void rl_lease_note_set(struct rl_lease *lease, const struct rl_ballot *ballot)
{
    rl_nodes bit = RL_NODE(ballot->node);

    if (ballot->vote == RL_VOTE_DENIED || ballot->unsent)
        lease->ours &= ~bit;
    else if (ballot->vote == RL_VOTE_FAILED)
        lease->fresh |= bit; /* executed or not, and when: unknown */
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
        lease->fresh |= bit & ~lease->ours; /* a late SET of ours after all */
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
        lose(lease, view, fx); /* proven after the round had failed for want of answers */
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
    fx->undo = lease->round.failed; /* not up now: owed to them when they come back */
    fx->undo |= lease->remnants & ~lease->ours;
    fx->flags |= RL_FX_DEADLINE;
    if (lease->contention != NULL && verb == RL_VERB_RELEASE)
        rl_contention_note_release(lease->contention, view->round_trip_ns,
                                   rl_jitter(view->random, lease->salt, lease->attempts),
                                   view->now.boot_ns);
    rl_release_vote(lease, NULL, fx);
    if (lease->state ==
        RL_STATE_ENDED) { /* decided before anybody was asked: clean up all the same */
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
    case RL_OUTCOME_GONE:
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

/* Their keys may expire earlier than we asked for, or have: they count again as healed ones do,
 * once they were seen and a round has succeeded without them. What is left must be a majority by
 * itself, or another client can have one. */
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
