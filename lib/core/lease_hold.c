/* SPDX-License-Identifier: MIT
 * A held lock: extension, healing, loss and release.
 *
 * A won attempt calls rl_hold_begin(), which sets the deadline and the time of the first extension.
 * An extension is a round of EXTEND requests to all nodes. It begins at lease->next, or when the
 * caller requests it. If a quorum grants before the deadline, the lock gets a later deadline, and
 * nodes that denied are healed: a HEAL request sets their keys again. If the extension fails, the
 * lock stays held, and the next one begins after a short delay. The lock is lost at its deadline.
 * It is lost earlier if so few nodes have our key that another client can reach a quorum.
 *
 * "Our key" is the key of the lock with the token of this lease; a lock of several resources has
 * several keys on each node. Sets of nodes in struct rl_lease say what is known of our keys: `ours`
 * (they exist or may come to exist), `backing` (they do not expire before the deadline) and
 * `remnants` (some of several keys may be left).
 *
 * An extension counts only keys that have existed without a break since before a round that won
 * without them. A key that was healed, or whose SET may have been executed late, proves nothing
 * about the time before it was set: another client may have held and released the lock in between.
 * Nodes with such a key go through these sets of struct rl_lease:
 *
 *   fresh -> probation, when a reply has shown that the key exists (the node is then in `confirmed`
 *            as well), and the next round begins
 *         -> counted, when that round has won without the key
 *
 * A grant of the attempt itself that arrives after the decision counts at once. */
#include "core/lease_hold.h"

#include "redlock/redlock.h"

/* If something is due later than this, the next TICK comes after seven eighths of the time. The
 * timer of TICKs uses the boot clock only, but deadlines use two clocks, whose rates differ. */
#define CLOSE_NS (20 * RL_MS)

/* Grids on the boot clock to which TICKs and extensions of many locks are aligned, so that they
 * share wake-ups and writes. Powers of two. */
#define WAKE_GRID_NS   (UINT64_C(1) << 24) /* 17 ms: less than seven eighths of CLOSE_NS */
#define EXTEND_GRID_NS (UINT64_C(1) << 23) /* 8 ms */

/* Returns the boot time in nanoseconds of the TICK for something that is due `ns` after `now`, on
 * whichever of the two clocks is faster. That is `now` plus `ns`, or plus 7/8 of it if `ns` is
 * larger than CLOSE_NS, and always later than `now`. */
uint64_t rl_due_ns(struct rl_now now, uint64_t ns)
{
    if (ns > CLOSE_NS)
        ns -= ns / 8;
    return rl_add_sat(now.boot_ns, rl_max_u64(ns, 1));
}

/* Returns the time in nanoseconds until `deadline`. `wall_us` is the difference between wall clock
 * and boot clock, in microseconds, when the round that set the deadline began. Returns 0 if that
 * difference has grown by more than wall_slack_us since: the wall clock was then set ahead. */
uint64_t rl_lease_left_ns(const struct rl_lease *lease, struct rl_now deadline, int64_t wall_us,
                          const struct rl_view *view)
{
    uint64_t slack_us = lease->terms->wall_slack_us;
    bool ahead = view->wall_us > wall_us && (uint64_t)(view->wall_us - wall_us) > slack_us;

    if (slack_us != 0 && ahead)
        return 0;
    return rl_remaining_ns(deadline, view->now);
}

/* Returns the validity of the held lock in nanoseconds; 0: the deadline has passed, or the wall
 * clock has been set ahead too far. */
static uint64_t left_ns(const struct rl_lease *lease, const struct rl_view *view)
{
    return rl_lease_left_ns(lease, lease->deadline, lease->wall_us, view);
}

/* Sets the lock's deadline to `deadline`, which follows from the round that has just won, but at
 * most to hold_end. The margin before the new deadline has not begun, so `endangered` ends.
 * Invariant: `deadline`, `backing` and `wall_us` belong to the same round, the last one that has
 * won, and that round gave the keys of `backing` a TTL that reaches the deadline. */
static void set_deadline(struct rl_lease *lease, struct rl_now deadline, struct rl_effects *fx)
{
    lease->deadline.boot_ns = rl_min_u64(deadline.boot_ns, lease->hold_end.boot_ns);
    lease->deadline.raw_ns = rl_min_u64(deadline.raw_ns, lease->hold_end.raw_ns);
    lease->backing = rl_round_counted(&lease->round);
    lease->wall_us = lease->round.t1_wall_us;
    lease->endangered = false;
    fx->flags |= RL_FX_DEADLINE;
}

/* Returns whether another automatic extension is allowed and can move the deadline. A grant that
 * the caller has not received yet is not extended: a callback that never comes would keep the lock
 * for ever. */
static bool may_extend(const struct rl_lease *lease)
{
    const struct rl_lease_terms *terms = lease->terms;

    if (!terms->auto_extend || lease->unconfirmed ||
        lease->deadline.boot_ns == lease->hold_end.boot_ns)
        return false;
    return terms->extends_max == 0 || lease->extends < terms->extends_max;
}

/* Returns `wait_ns`, the time until an extension, shortened at random by up to a quarter, so that
 * locks acquired together are not all extended together. Then shortens it further, so that it ends
 * on a grid of the boot clock: extensions that are due in the same tick share one write to each
 * node. The grid is EXTEND_GRID_NS, or finer for a short `wait_ns`. Less than 1 ms is not changed.
 */
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

/* Sets lease->next to the time of the next automatic extension: when only extend_at_ns of the
 * validity is left, or, if that is 0, when between 7/30 and 1/3 of it is used. Sets it to
 * RL_NEVER if no automatic extension may follow. */
static void plan_extension(struct rl_lease *lease, const struct rl_view *view)
{
    uint64_t left = rl_remaining_ns(lease->deadline, view->now);
    uint64_t at = lease->terms->extend_at_ns;
    uint64_t wait_ns = at != 0 ? rl_sub_sat(left, at) : spread_ns(lease, left / 3, view);

    lease->next =
        may_extend(lease) ? rl_later(view->now, wait_ns) : (struct rl_now){RL_NEVER, RL_NEVER};
}

/* Starts to hold the lock until `deadline`, after an attempt has won: enters state HELD, limits the
 * time for which the lock may be held to hold_max_ns, and plans the first extension. */
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

/* Returns the boot time in nanoseconds at which a held lock needs its next TICK: for the next
 * extension, the margin before the deadline (where ENDANGERED is reported), or the deadline itself,
 * whichever is first. May be earlier than that; rl_hold_tick() then finds nothing to do. */
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

/* Fails the attempt of a lock that has won, but that was not reported to the caller yet, with
 * ETOOSLOW. rl_attempt_fail() undoes our keys, and begins a pause or ends the call. The requests of
 * this step are not sent. Clears them first: else rl_attempt_fail() would take the nodes of an
 * extension for nodes that were never sent our key, and would not undo it there. */
void rl_hold_fail_unconfirmed(struct rl_lease *lease, const struct rl_view *view,
                              struct rl_effects *fx)
{
    fx->request = fx->heal = 0;
    if (lease->state == RL_STATE_EXTENDING)
        rl_lease_move(lease, RL_STATE_HELD);
    rl_attempt_fail(lease, REDLOCK_ETOOSLOW, view, fx);
}

void rl_hold_confirm(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    bool confirmed = !lease->unconfirmed;

    lease->unconfirmed = left_ns(lease, view) < lease->terms->validity_min_ns;
    if (lease->unconfirmed)
        rl_hold_fail_unconfirmed(lease, view, fx);
    else if (!confirmed)
        plan_extension(lease, view);
}

/* Loses the lock: reports the loss, undoes the keys that may be left, and ends the lease. An
 * extension that the caller waits for ends with ELOST. If the lock was not reported to the caller
 * yet (`unconfirmed`), only its attempt fails: the call makes another attempt or ends. */
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

/* Sends HEAL, which sets our keys again, to those nodes of `missing` that are up and not excluded.
 * Their keys become fresh: they do not count in an extension yet. */
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

/* Processes a won extension: sets the new deadline, plans the next extension, heals the nodes that
 * denied, and reports. The keys in probation count from now on, because this round has won without
 * them. If the old deadline has passed, loses the lock instead. */
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

/* Returns whether the deadline of a held lock has passed, or the wall clock has jumped ahead,
 * so that the time until the deadline is unknown. */
bool rl_lease_is_expired(const struct rl_lease *lease, const struct rl_view *view)
{
    return rl_lease_is_held(lease) && left_ns(lease, view) == 0;
}

/* Processes a failed extension: reports the failure and plans the next extension, after a backoff
 * of at most a quarter of the validity. The lock stays held until its deadline, unless the votes
 * prove that no quorum has our key any more: then another client can acquire it now, and the lock
 * is lost. It is lost as well if the deadline has passed: the lock must not be reported as held. */
static void extension_failed(struct rl_lease *lease, const struct rl_view *view,
                             struct rl_effects *fx)
{
    int status = rl_round_status(&lease->round);

    if (rl_nodes_count(lease->ours) < lease->terms->quorum || left_ns(lease, view) == 0) {
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

/* Returns whether votes that are under way may prove that no quorum has our key. */
static bool may_show_loss(const struct rl_lease *lease)
{
    return rl_round_may_show_loss(&lease->round, rl_nodes_all(lease->terms->nodes) & ~lease->ours);
}

/* Counts the votes of the running extension. Ends it as won or failed if they decide it. A caller
 * who waits for the extension needs to know whether the lock is lost. So after a denial, such an
 * extension does not fail before the votes that can prove the loss have come. */
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
        if (!lease->manual || !may_show_loss(lease))
            extension_failed(lease, view, fx);
        break;
    }
}

/* Returns the TTL that an extension asks for, in nanoseconds: `ttl_ns`, or the TTL that the
 * remaining validity needs, if that is longer. An earlier request may have had a longer TTL, but
 * the keys may expire sooner than that by now: another client with the token may have shortened
 * them or set them again. So the request covers all the validity that the holder relies on. */
static uint64_t extension_ttl_ns(const struct rl_lease *lease, uint64_t ttl_ns,
                                 const struct rl_view *view)
{
    uint64_t promised_ns = left_ns(lease, view);

    if (rl_usable_ns(ttl_ns, &lease->terms->drift) >= promised_ns)
        return ttl_ns;
    return rl_ttl_for_ns(promised_ns, &lease->terms->drift);
}

/* Returns the nodes on which a SET of the lock may yet be executed, because no reply has shown that
 * it was: a SET of the attempt that has won; or, of an adopted lock, one of the previous holder. */
static rl_nodes late_sets(const struct rl_lease *lease)
{
    if (lease->adopted)
        return lease->ours & ~lease->round.granted;
    return lease->round.verb == RL_VERB_ACQUIRE ? rl_round_pending(&lease->round) : 0;
}

rl_nodes rl_lease_unproven(const struct rl_lease *lease)
{
    return lease->fresh | lease->probation | late_sets(lease) | ~lease->ours;
}

/* Begins an extension: opens a round and sends EXTEND to all nodes. `ttl_ns` is the TTL wanted; see
 * extension_ttl_ns(). Only grants of nodes that are not excluded and whose key has proven its
 * history (see the top of this file) count. Moves confirmed fresh keys to probation. If too few
 * nodes are left to win, the extension fails at once. */
static void begin_extension(struct rl_lease *lease, uint64_t ttl_ns, const struct rl_view *view,
                            struct rl_effects *fx)
{
    ttl_ns = extension_ttl_ns(lease, ttl_ns, view);
    /* A reply that comes from now on belongs to an earlier round and is ignored. */
    lease->fresh |= late_sets(lease);
    lease->adopted = false;
    rl_nodes seen = lease->fresh & lease->confirmed;

    lease->probation |= seen;
    lease->fresh &= ~seen;
    lease->confirmed = 0;
    /* Nodes that are known not to have our key count no more than these, so the round does not wait
     * for them. */
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

/* Begins the extension that the caller has requested, with a TTL of `ttl_ns`, or of the terms if
 * that is 0. Replaces an extension in flight. If the deadline has passed, loses the lock. */
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

/* Processes a TICK of a held lock: loses it if the deadline has passed, reports ENDANGERED once
 * when the margin begins, and begins the automatic extension that is due. */
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

/* Notes that a node does not have all of our keys any more. If the lock has several keys, the
 * others may still be there, so the node becomes one of `remnants`, which are undone at the end. */
void rl_lease_note_missing(struct rl_lease *lease, unsigned node)
{
    lease->ours &= ~RL_NODE(node);
    lease->backing &= ~RL_NODE(node);
    if (lease->keys > 1)
        lease->remnants |= RL_NODE(node);
}

/* Processes a vote on HEAL. GRANTED: our key was set, so it is confirmed. DENIED: a key exists
 * there that this request has not set, so it does not count as ours. A request of which no byte was
 * sent has not set our key either. Any other failure leaves the node in `ours` and `fresh`, because
 * the key may have been set. */
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

/* Notes what the vote on the SET of an attempt (ACQUIRE) says about our key on that node. DENIED,
 * or a request of which no byte was sent: our key is not there. Any other failure: the key may be
 * there, made at an unknown time, so it is fresh. GRANTED changes nothing: the node is in `ours`
 * since the request was sent. */
void rl_lease_note_set(struct rl_lease *lease, const struct rl_ballot *ballot)
{
    rl_nodes bit = RL_NODE(ballot->node);

    if (ballot->vote == RL_VOTE_DENIED || ballot->unsent)
        lease->ours &= ~bit;
    else if (ballot->vote == RL_VOTE_FAILED)
        lease->fresh |= bit; /* unknown whether and when the SET was executed */
}

/* Processes a vote while the lock is held; ignores votes of another round. A late vote on the
 * ACQUIRE of the attempt updates `backing`, `ours` and `fresh`. A vote on HEAL or RAISE is passed
 * on. A vote on EXTEND updates what is known of our key on that node, and ends the extension if it
 * can. After an extension that won, a late denial is healed. After any other, a late vote loses the
 * lock if it has made `ours` smaller than the quorum. */
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
    if (lease->state == RL_STATE_EXTENDING)
        judge_extension(lease, view, fx);
    else if (lease->round.outcome == RL_OUTCOME_WON && ballot->vote == RL_VOTE_DENIED)
        heal(lease, bit, view, fx);
    else if (rl_nodes_count(lease->ours) < lease->terms->quorum)
        lose(lease, view, fx); /* the late vote proves that no quorum has our key */
}

/* Begins to release the lock: sends `verb`, RELEASE or SHORTEN, to all nodes of `ours` that can be
 * asked. Nodes that cannot be asked now, and nodes with remnants, get an undo, which the engine
 * keeps until they are connected. Sets the deadline to 0: the lock must not be relied on any more.
 * Notes a RELEASE in the contention memory. Also for a lease of kind RELEASE, which was never held.
 */
void rl_hold_release(struct rl_lease *lease, enum rl_verb verb, const struct rl_view *view,
                     struct rl_effects *fx)
{
    RL_ASSERT(rl_lease_is_held(lease) || lease->state == RL_STATE_NEW);
    rl_lease_move(lease, RL_STATE_RELEASING);
    lease->manual = false;
    lease->deadline = (struct rl_now){0, 0};
    rl_round_open(&lease->round, verb, lease->ours, 0, view);
    fx->request = lease->round.requested;
    fx->undo = lease->round.failed; /* the nodes that cannot be asked now */
    fx->undo |= lease->remnants & ~lease->ours;
    fx->flags |= RL_FX_DEADLINE;
    if (lease->contention != NULL && verb == RL_VERB_RELEASE)
        rl_contention_note_release(lease->contention, view->round_trip_ns,
                                   rl_jitter(view->random, lease->salt, lease->attempts),
                                   view->now.boot_ns);
    rl_release_vote(lease, NULL, fx);
    /* If the release is decided without a vote, the lease has ended and no request can be sent. The
     * keys are undone all the same. */
    if (lease->state == RL_STATE_ENDED) {
        fx->undo |= fx->request;
        fx->request = 0;
    }
}

/* Counts a vote on RELEASE or SHORTEN, and ends the lease once the votes decide the outcome; a NULL
 * ballot only does the latter. The status is OK if a quorum is known not to have the key any more,
 * ELOST if the votes prove that the lock was lost before, else the reason why too few nodes voted.
 */
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

/* Notes that the keys of `nodes` may have been lost, or may expire too early. From now on these
 * keys are treated like healed keys, see the top of this file. If the rest of `backing` is smaller
 * than the quorum, another client could reach a quorum, so the lock is lost. */
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

/* Ends the lease without a request: the keys stay on the servers until they expire. An extension
 * that the caller waits for ends with ECANCELED. */
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
