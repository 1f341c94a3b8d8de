/* SPDX-License-Identifier: MIT
 * Waits between two attempts for a resource that another client holds. One node is sent a probe and
 * tracks the key: it replies whether the key exists, and sends a notification when the key changes.
 * That is the preferred node, if it can send notifications. A timer begins the next attempt in any
 * case, because that node may be wrong or fail. */
#include "core/lease_hold.h"

#include "redlock/redlock.h"

#include <string.h>

/* Returns the nodes that can be asked first without delay: connected, eligible and not slow. */
static rl_nodes prompt_nodes(const struct rl_view *view)
{
    return view->up & view->eligible & ~view->slow;
}

rl_nodes rl_wait_preferred(const struct rl_lease *lease, const struct rl_view *view)
{
    return lease->contention != NULL
               ? rl_contention_preferred(lease->contention, prompt_nodes(view))
               : 0;
}

rl_nodes rl_wait_next_node(const struct rl_lease *lease, rl_nodes requested,
                           const struct rl_view *view)
{
    rl_nodes left = view->up & view->eligible & ~requested;

    if ((left & prompt_nodes(view)) != 0)
        left &= prompt_nodes(view);
    return lease->contention != NULL ? rl_contention_preferred(lease->contention, left) : 0;
}

/* Returns whether the holder has probably won without the preferred node. Then the nodes that have
 * denied the last attempt have its key, and one of them should track it. */
static bool is_held_elsewhere(const struct rl_lease *lease, const struct rl_view *view)
{
    return lease->keys <= 1 && (rl_wait_preferred(lease, view) & lease->round.granted) != 0 &&
           rl_contention_doubts_preferred(lease->contention);
}

/* Returns the node that should track the key: the most preferred one that can send notifications.
 * Any node will do, because a release changes the key on all of them. 0: there is none. */
static rl_nodes notifier_of(const struct rl_lease *lease, const struct rl_view *view)
{
    rl_nodes notifying = prompt_nodes(view) & view->notifying;

    if (rl_permit_is(lease)) /* slots are tracked by the node that is asked for them */
        notifying &= rl_wait_preferred(lease, view);
    else if (is_held_elsewhere(lease, view))
        notifying &= lease->round.denied;
    return lease->contention != NULL ? rl_contention_preferred(lease->contention, notifying) : 0;
}

bool rl_wait_is_notified(const struct rl_lease *lease, const struct rl_view *view)
{
    return notifier_of(lease, view) != 0;
}

/* Begins the first attempt, with the preferred node first if contention is recent. */
static void begin_contended(struct rl_lease *lease, const struct rl_view *view,
                            struct rl_effects *fx)
{
    bool recent =
        lease->contention != NULL && rl_contention_is_recent(lease->contention, view->now.boot_ns);

    if (rl_permit_is(lease))
        rl_permit_begin(lease, view, fx);
    else
        rl_attempt_begin(lease, recent ? rl_wait_preferred(lease, view) : 0, view, fx);
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

/* Returns whether an attempt may ask all nodes at once after a notification. Another contender may
 * get the vote of the preferred node, so all other nodes must be able to grant and make a quorum.
 */
static bool may_request_all(const struct rl_lease *lease, const struct rl_view *view)
{
    rl_nodes fit = view->up & view->eligible & ~lease->round.failed;

    return fit == rl_nodes_all(lease->terms->nodes) && lease->terms->nodes > lease->terms->quorum;
}

/* Returns the boot time before which no notification begins an attempt; 0: there is no such time. A
 * contender that prefers another node, or requests another one of several resources, can split the
 * votes with this client. Both then notify each other with their undos, again and again if both
 * retry at once. So an attempt that has split the votes is followed by a random pause. */
static uint64_t pause_until_ns(const struct rl_lease *lease, const struct rl_view *view)
{
    bool split = lease->round.granted != 0;
    unsigned spare = lease->keys > 1 ? 0 : 1; /* the first split needs no pause */

    if (!split || rl_contention_splits(lease->contention) <= spare)
        return 0;
    uint64_t random = rl_jitter(view->random, lease->salt, lease->attempts + 2);
    return rl_add_sat(view->now.boot_ns,
                      rl_contention_pause_ns(lease->contention, view->round_trip_ns, random));
}

/* Plans an attempt after a reply or notification that the key is gone or has changed, which other
 * waiters get as well: either one that asks all nodes at once, or a delayed one that asks the
 * preferred node. */
static void plan_attempt(struct rl_lease *lease, const struct rl_view *view)
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
    /* The node was sent a probe right after the denied request, so it already tracks the key. */
    rl_nodes tracking = lease->round.deferred != 0 ? wait->probed & lease->round.denied : 0;
    bool notified = wait->notified, tried = wait->is_guess;

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
        fx->track |= rl_contention_preferred(contention, prompt_nodes(view) & ~fx->track);
    if (is_held_elsewhere(lease, view))
        fx->track |= rl_contention_preferred(contention, prompt_nodes(view) & lease->round.denied);
    wait->start_ns = pause_until_ns(lease, view);
    wait->tracked = notifier_of(lease, view);
    if (tracking != wait->tracked)
        fx->probe = wait->tracked;
    if (notified && tracking != 0) /* also if another node tracks the key from now on */
        plan_attempt(lease, view);
}

/* Begins the planned attempt, if there is one and its time has come. */
static void begin_planned(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    if (!lease->wait.free || lease->wait.start_ns > view->now.boot_ns)
        return;
    rl_nodes first = rl_wait_preferred(lease, view);
    rl_attempt_begin(lease, lease->wait.request_all ? 0 : first, view, fx);
    lease->wait.preferred = first & lease->round.requested; /* also if all nodes were asked */
}

void rl_wait_tick(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    if (rl_permit_is(lease))
        rl_permit_tick(lease, view, fx);
    else if (rl_remaining_ns(lease->next, view->now) != 0)
        begin_planned(lease, view, fx);
    else if (lease->attempts == 0)
        begin_contended(lease, view, fx);
    else {
        lease->wait.is_guess = false;
        rl_attempt_begin(lease, 0, view, fx);
    }
}

/* Returns whether a reply of `node` that the key does not exist should begin an attempt. The holder
 * may never have had the key on a node that is not the preferred one. But the key may also have
 * been deleted before the probe arrived, and then no notification follows. So such a reply begins
 * one attempt, and no other one before a notification or the timer. */
static bool is_worth_attempt(struct rl_lease *lease, rl_nodes node, const struct rl_view *view)
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
        if (!is_worth_attempt(lease, RL_NODE(ballot->node), view))
            return;
        if (!lease->wait.free)
            plan_attempt(lease, view);
        begin_planned(lease, view, fx);
        return;
    }
    /* A server may send the notification of an expiry late, so the attempt is planned here. */
    if (ballot->vote == RL_VOTE_GRANTED && ballot->pttl_ms != 0 &&
        ballot->pttl_ms < RL_NEVER / RL_MS) {
        struct rl_now expired = rl_later(view->now, ballot->pttl_ms * RL_MS + RL_MS);
        if (expired.boot_ns < lease->next.boot_ns)
            lease->next = expired;
    }
}

/* Processes a notification of the node that tracks the key. */
static void wake(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    rl_contention_note_notification(lease->contention, view->now.boot_ns);
    lease->wait.is_guess = false;
    if (!lease->wait.free)
        plan_attempt(lease, view);
    begin_planned(lease, view, fx);
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
    /* Only a lease that was denied waits for the key; other failures have other causes. */
    bool denied = lease->attempts > 0 && lease->status == REDLOCK_ECONTENDED;
    if (denied && lease->wait.tracked == 0) /* the node could not send notifications before */
        lease->wait.tracked = fx->probe = nodes & view->notifying & view->up & view->eligible;
    else if (denied && lease->wait.tracked != nodes && nodes == rl_wait_preferred(lease, view) &&
             (nodes & view->notifying) != 0 &&
             !is_held_elsewhere(lease, view)) /* the preferred node tracks instead of another */
        lease->wait.tracked = fx->probe = nodes;
    else if ((nodes & lease->wait.tracked) != 0)
        wake(lease, view, fx);
}

/* Prefers what the preferred node says, because that node will be sent the probe. */
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
