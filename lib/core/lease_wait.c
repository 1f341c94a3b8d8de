/* SPDX-License-Identifier: MIT
 * Waiting for a resource that another client holds. A node that can tell is asked whether the key
 * is still there, and tells when that changes: the one that is asked first, if it can. A timer asks
 * all of them again in any case: that node may be wrong, or stop. */
#include "core/lease_hold.h"

#include "redlock/redlock.h"

#include <string.h>

/* Nodes that would not hold anybody up. */
static rl_nodes request_all_now(const struct rl_view *view)
{
    return view->up & view->eligible & ~view->slow;
}

rl_nodes rl_wait_preferred(const struct rl_lease *lease, const struct rl_view *view)
{
    return lease->contention != NULL
               ? rl_contention_preferred(lease->contention, request_all_now(view))
               : 0;
}

rl_nodes rl_wait_next_node(const struct rl_lease *lease, rl_nodes asked, const struct rl_view *view)
{
    rl_nodes left = view->up & view->eligible & ~asked;

    if ((left & request_all_now(view)) != 0)
        left &= request_all_now(view);
    return lease->contention != NULL ? rl_contention_preferred(lease->contention, left) : 0;
}

/* The holder has won without the node that is asked first, it seems: those that denied have its
 * key, and can tell of its end. */
static bool is_held_elsewhere(const struct rl_lease *lease, const struct rl_view *view)
{
    return lease->keys <= 1 && (rl_wait_preferred(lease, view) & lease->round.granted) != 0 &&
           rl_contention_doubts_preferred(lease->contention);
}

/* The one that is asked first, or, as long as that one cannot tell, the next that can: a release
 * changes the key on all of them. */
static rl_nodes notifier_of(const struct rl_lease *lease, const struct rl_view *view)
{
    rl_nodes notifying = request_all_now(view) & view->notifying;

    if (rl_permit_is(lease)) /* all its slots are watched where they are asked for */
        notifying &= rl_wait_preferred(lease, view);
    else if (is_held_elsewhere(lease, view))
        notifying &= lease->round.denied;
    return lease->contention != NULL ? rl_contention_preferred(lease->contention, notifying) : 0;
}

bool rl_wait_is_notified(const struct rl_lease *lease, const struct rl_view *view)
{
    return notifier_of(lease, view) != 0;
}

static void begin_contended(struct rl_lease *lease, const struct rl_view *view,
                            struct rl_effects *fx)
{
    bool hot =
        lease->contention != NULL && rl_contention_is_recent(lease->contention, view->now.boot_ns);

    if (rl_permit_is(lease))
        rl_permit_begin(lease, view, fx);
    else
        rl_attempt_begin(lease, hot ? rl_wait_preferred(lease, view) : 0, view, fx);
}

void rl_wait_start(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    struct rl_contention *contention = lease->contention;
    uint64_t now_ns = view->now.boot_ns;

    memset(&lease->wait, 0, sizeof lease->wait);
    if (rl_permit_is(lease))
        rl_permit_start(lease, view);
    if (contention != NULL)
        rl_contention_note_start(contention, view->round_trip_ns, now_ns);
    uint64_t yield_ns = contention != NULL ? rl_sub_sat(contention->yield_until_ns, now_ns) : 0;
    yield_ns = rl_min_u64(yield_ns, rl_attempt_spare_ns(lease, view));
    if (yield_ns == 0) {
        begin_contended(lease, view, fx);
        return;
    }
    rl_lease_move(lease, RL_STATE_WAITING);
    lease->status = REDLOCK_ECONTENDED;
    lease->next = rl_later(view->now, yield_ns);
}

/* Who goes ahead must do without the first node, which somebody else may have got: that is for a
 * set of which nobody else is missing. */
static bool may_request_all(const struct rl_lease *lease, const struct rl_view *view)
{
    rl_nodes fit = view->up & view->eligible & ~lease->round.failed;

    return fit == rl_nodes_all(lease->terms->nodes) && lease->terms->nodes > lease->terms->quorum;
}

/* Whoever asks another node first (of several resources: who wants another one of them) meets us
 * half-way, and we wake each other: again and again, if both go at once. So a while goes by after
 * an attempt that split the votes; from its end on, not from the next word on: see
 * rl_contention_pause_ns(). */
static uint64_t pause_until_ns(const struct rl_lease *lease, const struct rl_view *view)
{
    bool split = lease->round.granted != 0;
    unsigned spare = lease->keys > 1 ? 0 : 1; /* the first is mended without it */

    if (!split || rl_contention_splits(lease->contention) <= spare)
        return 0;
    uint64_t random = rl_jitter(view->random, lease->salt, lease->attempts + 2);
    return rl_add_sat(view->now.boot_ns,
                      rl_contention_pause_ns(lease->contention, view->round_trip_ns, random));
}

/* The key is gone, or was when we heard of it, and others have heard it, too. */
static void queue_behind_preferred(struct rl_lease *lease, const struct rl_view *view)
{
    uint64_t now_ns = view->now.boot_ns;
    uint64_t random = rl_jitter(view->random, lease->salt, lease->attempts + 1);
    struct rl_wait *wait = &lease->wait;

    wait->free = true;
    wait->request_all =
        may_request_all(lease, view) && rl_contention_requests_all(lease->contention, random);
    if (wait->request_all)
        return;
    uint64_t lag_ns = rl_contention_delay_ns(lease->contention, view->round_trip_ns, random >> 16);
    wait->start_ns = rl_max_u64(wait->start_ns, rl_add_sat(now_ns, lag_ns));
}

void rl_wait_begin(struct rl_lease *lease, int status, const struct rl_view *view,
                   struct rl_effects *fx)
{
    struct rl_contention *contention = lease->contention;
    struct rl_wait *wait = &lease->wait;
    /* Right behind its denial it was asked: nothing is between the two. */
    rl_nodes piped = lease->round.deferred != 0 ? wait->probed & lease->round.denied : 0;
    bool told = wait->notified, tried = wait->is_guess;

    if (rl_permit_is(lease)) {
        rl_permit_pause(lease, status);
        return;
    }
    memset(wait, 0, sizeof *wait);
    wait->key = (uint8_t)(lease->taken - (lease->taken != 0));
    wait->tried = tried;
    if (contention == NULL || status != REDLOCK_ECONTENDED)
        return;
    fx->track = rl_wait_preferred(lease, view);
    if ((fx->track & view->notifying) == 0 && lease->attempts > 1)
        fx->track |= rl_contention_preferred(contention, request_all_now(view) & ~fx->track);
    if (is_held_elsewhere(lease, view))
        fx->track |=
            rl_contention_preferred(contention, request_all_now(view) & lease->round.denied);
    wait->start_ns = pause_until_ns(lease, view);
    wait->tracked = notifier_of(lease, view);
    if (piped != wait->tracked)
        fx->probe = wait->tracked;
    if (told && piped != 0) /* also if another one is to tell from now on */
        queue_behind_preferred(lease, view);
}

/* The node that all ask first has said that the key is not there any more, or it has changed. */
static void start_now(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    if (!lease->wait.free || lease->wait.start_ns > view->now.boot_ns)
        return;
    rl_nodes first = rl_wait_preferred(lease, view);
    rl_attempt_begin(lease, lease->wait.request_all ? 0 : first, view, fx);
    lease->wait.preferred = first & lease->round.requested; /* on its word, in any case */
}

void rl_wait_tick(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    if (rl_permit_is(lease))
        rl_permit_tick(lease, view, fx);
    else if (rl_remaining_ns(lease->next, view->now) != 0)
        start_now(lease, view, fx);
    else if (lease->attempts == 0)
        begin_contended(lease, view, fx);
    else {
        lease->wait.is_guess = false;
        rl_attempt_begin(lease, 0, view, fx);
    }
}

/* That the key is not there. On another node than the first the holder may never have had it. But
 * it may have been there, and have gone before we asked, and nobody pushes that: so it is believed
 * once, and then not again before something else has brought us back. */
static bool is_new_notification(struct rl_lease *lease, rl_nodes node, const struct rl_view *view)
{
    struct rl_wait *wait = &lease->wait;

    if (rl_wait_preferred(lease, view) == node ||
        (is_held_elsewhere(lease, view) && (lease->round.denied & node) != 0))
        return true;
    wait->is_guess = !wait->tried;
    return wait->is_guess;
}

void rl_wait_vote(struct rl_lease *lease, const struct rl_ballot *ballot,
                  const struct rl_view *view, struct rl_effects *fx)
{
    if (rl_permit_is(lease)) {
        rl_permit_vote(lease, ballot, view, fx);
        return;
    }
    if (ballot->verb != RL_VERB_PTTL || ballot->round != lease->round.number ||
        (lease->wait.tracked & RL_NODE(ballot->node)) == 0)
        return;
    if (ballot->vote == RL_VOTE_DENIED) {
        if (!is_new_notification(lease, RL_NODE(ballot->node), view))
            return;
        if (!lease->wait.free)
            queue_behind_preferred(lease, view);
        start_now(lease, view, fx);
        return;
    }
    /* Expiry is told late or not at all. */
    if (ballot->vote == RL_VOTE_GRANTED && ballot->pttl_ms != 0 &&
        ballot->pttl_ms < RL_NEVER / RL_MS) {
        struct rl_now expired = rl_later(view->now, ballot->pttl_ms * RL_MS + RL_MS);
        if (expired.boot_ns < lease->next.boot_ns)
            lease->next = expired;
    }
}

static void wake(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    rl_contention_note_notification(lease->contention, view->now.boot_ns);
    lease->wait.is_guess = false;
    if (!lease->wait.free)
        queue_behind_preferred(lease, view);
    start_now(lease, view, fx);
}

void rl_wait_wake(struct rl_lease *lease, rl_nodes nodes, uint16_t slot, const struct rl_view *view,
                  struct rl_effects *fx)
{
    if (rl_permit_is(lease)) {
        rl_permit_wake(lease, nodes, slot, view, fx);
        return;
    }
    if (nodes == 0) {
        lease->next = view->now;
        rl_wait_tick(lease, view, fx);
        return;
    }
    /* Where no majority has answered, the key is not in the way. */
    bool denied = lease->attempts > 0 && lease->status == REDLOCK_ECONTENDED;
    if (denied && lease->wait.tracked == 0) /* it can tell only now */
        lease->wait.tracked = fx->probe = nodes & view->notifying & view->up & view->eligible;
    else if (denied && lease->wait.tracked != nodes && nodes == rl_wait_preferred(lease, view) &&
             (nodes & view->notifying) != 0 &&
             !is_held_elsewhere(lease, view)) /* better than who was watched */
        lease->wait.tracked = fx->probe = nodes;
    else if ((nodes & lease->wait.tracked) != 0)
        wake(lease, view, fx);
}

/* The node that is watched afterwards knows best. */
void rl_wait_note_taken(struct rl_lease *lease, const struct rl_ballot *ballot,
                        const struct rl_view *view)
{
    if (lease->taken == 0 || rl_wait_preferred(lease, view) == RL_NODE(ballot->node))
        lease->taken = ballot->key;
}

uint64_t rl_wait_wake_ns(const struct rl_lease *lease, const struct rl_view *view)
{
    if (rl_permit_is(lease))
        return rl_permit_wake_ns(lease, view);
    uint64_t left = rl_remaining_ns(lease->next, view->now);
    if (lease->wait.free)
        left = rl_min_u64(left, rl_sub_sat(lease->wait.start_ns, view->now.boot_ns));
    return rl_due_ns(view->now, left);
}
