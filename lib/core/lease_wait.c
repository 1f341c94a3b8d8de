/* SPDX-License-Identifier: MIT
 * Waits between two attempts for a resource that another client holds. If the lease can wait in a
 * line (lease_line.c), it does. Else one node that has denied the attempt is sent a probe and
 * tracks the key: it replies whether the key exists, and sends a notification when the key changes.
 * A timer (lease->next) begins the next attempt in any case, because that node may be wrong or
 * fail.
 *
 * rl_wait_start() begins the first attempt. rl_wait_begin() begins to wait after a failed one.
 * While the lease waits, it processes three inputs: the reply to the probe (rl_wait_vote), a
 * wake-up (rl_wait_wake) and a timer (rl_wait_tick). A reply or wake-up which says that the key is
 * gone plans an attempt: lease->wait says when it begins. It asks the preferred node first. An
 * attempt that begins because lease->next has come asks all nodes at once.
 *
 * `view` is what the engine knows in this tick, and `fx` takes what the engine must do after it. A
 * lease for a permit is passed on to lease_permit.c. A lease without contention memory
 * (lease->contention is NULL) has no preferred node and waits for its timer only. */
#include "core/lease_head.h"
#include "core/lease_hold.h"
#include "core/lease_line.h"

#include "redlock/redlock.h"

#include <string.h>

/* Returns the nodes that can be asked first without delay: those that can be asked now, are
 * eligible and are not slow. */
static rl_nodes prompt_nodes(const struct rl_view *view)
{
    return view->up & view->eligible & ~view->slow;
}

/* Returns the preferred node of the resource, as a set of one node: the first of the ranking that
 * can be asked first without delay. 0: there is none, or no contention memory. */
rl_nodes rl_wait_preferred(const struct rl_lease *lease, const struct rl_view *view)
{
    return lease->contention != NULL
               ? rl_contention_preferred(lease->contention, prompt_nodes(view))
               : 0;
}

/* Returns the node of the ranking that comes first among those that can be asked, are eligible and
 * are not in `requested`. A slow node is returned only if there is no other. 0: there is none. */
rl_nodes rl_wait_next_node(const struct rl_lease *lease, rl_nodes requested,
                           const struct rl_view *view)
{
    rl_nodes left = view->up & view->eligible & ~requested;

    if ((left & prompt_nodes(view)) != 0)
        left &= prompt_nodes(view);
    return lease->contention != NULL ? rl_contention_preferred(lease->contention, left) : 0;
}

/* Returns the node that should track the key, as a set: the most preferred one that can send
 * notifications. It must have denied the last attempt, because a node without the key notices no
 * change. For a permit, only the preferred node will do, which is asked for the slots. 0: there is
 * none. */
static rl_nodes notifier_of(const struct rl_lease *lease, const struct rl_view *view)
{
    rl_nodes notifying = prompt_nodes(view) & view->notifying;

    if (lease->contention == NULL)
        return 0;
    if (rl_permit_is(lease))
        return notifying & rl_wait_preferred(lease, view);
    return rl_contention_preferred(lease->contention, notifying & lease->round.denied);
}

/* Returns whether some node can track the key and send a notification when the key changes. */
bool rl_wait_is_notified(const struct rl_lease *lease, const struct rl_view *view)
{
    return notifier_of(lease, view) != 0;
}

/* Begins the first attempt of the call. If contention is recent, the attempt asks the preferred
 * node first, else all nodes at once. */
static void begin_first(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    bool recent =
        lease->contention != NULL && rl_contention_is_recent(lease->contention, view->now.boot_ns);

    if (rl_permit_is(lease))
        rl_permit_begin(lease, view, fx);
    else
        rl_attempt_begin(lease, recent ? rl_wait_preferred(lease, view) : 0, view, fx);
    if (lease->contention != NULL && rl_contention_counts_waiters(lease->contention))
        rl_line_count_waiters(lease, view, fx);
}

/* Starts an acquisition: forgets what an earlier wait knew, and begins the first attempt. If
 * contention is recent, enters the line instead, if one can be used. If this client yields to other
 * contenders, the lease waits until the end of the yield instead, at most as long as its wait
 * budget allows. */
void rl_wait_start(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    struct rl_contention *contention = lease->contention;
    uint64_t now_ns = view->now.boot_ns;

    memset(&lease->wait, 0, sizeof lease->wait);
    if (rl_permit_is(lease))
        rl_permit_start(lease, view);
    if (contention != NULL)
        rl_contention_note_start(contention, view->round_trip_ns, now_ns);
    if (contention != NULL && rl_contention_is_recent(contention, now_ns) &&
        rl_line_enter(lease, view, fx))
        return;
    uint64_t yield_ns = contention != NULL ? rl_sub_sat(contention->yield_until_ns, now_ns) : 0;
    yield_ns = rl_min_u64(yield_ns, rl_attempt_spare_ns(lease, view));
    if (yield_ns == 0) {
        begin_first(lease, view, fx);
        return;
    }
    rl_lease_move(lease, RL_STATE_WAITING);
    lease->status = REDLOCK_ECONTENDED;
    lease->next = rl_later(view->now, yield_ns);
}

/* Returns the boot time before which no notification begins an attempt, after one that was denied:
 * the end of a random pause if it has split the votes, else 0. A contender that prefers another
 * node, or requests another one of several resources, can split the votes with this client. Both
 * then notify each other with their undos, again and again if both retry at once. */
uint64_t rl_wait_pause_until_ns(const struct rl_lease *lease, const struct rl_view *view)
{
    uint64_t random = rl_jitter(view->random, lease->salt, lease->attempts + 2);

    if (lease->contention == NULL || lease->round.granted == 0)
        return 0;
    return rl_add_sat(view->now.boot_ns,
                      rl_contention_pause_ns(lease->contention, view->round_trip_ns, random));
}

/* Begins to wait after an attempt that failed with `status`: forgets the previous wait. If the
 * attempt was denied (ECONTENDED), enters the line, or, if none can be used, chooses the node that
 * tracks the key. fx->track gets the nodes to be prepared for notifications, fx->probe the node to
 * be sent a probe now. The next attempt begins at lease->next at the latest, which the caller has
 * set. */
void rl_wait_begin(struct rl_lease *lease, int status, const struct rl_view *view,
                   struct rl_effects *fx)
{
    struct rl_contention *contention = lease->contention;
    struct rl_wait *wait = &lease->wait;
    rl_nodes denied = prompt_nodes(view) & lease->round.denied;

    bool denies = contention != NULL && status == REDLOCK_ECONTENDED;

    /* A client that fails for another reason than a denial must not keep the others waiting. */
    if (!denies)
        rl_line_leave(lease, fx);
    if (rl_permit_is(lease)) {
        rl_permit_pause(lease, status, view);
        if (denies)
            (void)rl_line_enter(lease, view, fx);
        return;
    }
    if (denies && rl_line_is_in(lease) && lease->taken != 0 && wait->key != lease->taken - 1) {
        rl_line_move(lease, view, fx);
        return;
    }
    /* A lock of several keys stays in its line unless the attempt shows that another key exists. */
    uint8_t key = rl_line_is_in(lease) ? wait->key : 0;
    memset(wait, 0, sizeof *wait);
    /* `taken` counts the keys from 1 on, `key` from 0 on; unknown (0): the first key is probed. */
    wait->key = lease->taken != 0 ? (uint8_t)(lease->taken - 1) : key;
    if (lease->memories != NULL)
        lease->contention = contention = lease->memories[wait->key];
    if (!denies || rl_line_enter(lease, view, fx))
        return;
    wait->start_ns = rl_wait_pause_until_ns(lease, view);
    /* The second node of those that have denied, too: the first may not be able to notify. */
    fx->track = rl_contention_preferred(contention, denied);
    if ((fx->track & view->notifying) == 0)
        fx->track |= rl_contention_preferred(contention, denied & ~fx->track);
    wait->tracked = fx->probe = notifier_of(lease, view);
}

/* Begins the planned attempt, if there is one and lease->wait.start_ns has come. Else does nothing.
 */
static void begin_planned(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    if (!lease->wait.free || lease->wait.start_ns > view->now.boot_ns)
        return;
    rl_attempt_begin(lease, rl_wait_preferred(lease, view), view, fx);
}

/* Plans an attempt in lease->wait, if none is planned, after a reply or notification that the key
 * is gone or has changed. All waiters get the notification, so each begins after a random delay.
 * Begins the attempt if it is due. */
static void plan_attempt(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    uint64_t random = rl_jitter(view->random, lease->salt, lease->attempts + 1);
    uint64_t delay_ns = rl_contention_delay_ns(view->round_trip_ns, random);
    struct rl_wait *wait = &lease->wait;

    if (!wait->free)
        wait->start_ns = rl_max_u64(wait->start_ns, rl_add_sat(view->now.boot_ns, delay_ns));
    wait->free = true;
    begin_planned(lease, view, fx);
}

/* Processes a TICK while waiting. Before lease->next, begins the planned attempt if it is due. At
 * lease->next, does what the line needs, if the lease is in one. Else begins the first attempt if
 * there was none yet (this client has yielded), or an attempt that asks all nodes at once. */
void rl_wait_tick(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    bool due = rl_remaining_ns(lease->next, view->now) == 0;

    if (rl_line_is_in(lease) && (rl_line_blocks(lease) || !rl_permit_is(lease))) {
        if (due)
            rl_line_tick(lease, view, fx);
    } else if (rl_permit_is(lease))
        rl_permit_tick(lease, view, fx);
    else if (!due)
        begin_planned(lease, view, fx);
    else if (lease->attempts == 0)
        begin_first(lease, view, fx);
    else
        rl_attempt_begin(lease, 0, view, fx);
}

/* Plans an attempt for 1 ms after the key expires, in `pttl_ms` milliseconds, because a server may
 * send the notification of an expiry late. Does nothing if the key does not expire (0). */
void rl_wait_note_expiry(struct rl_lease *lease, uint64_t pttl_ms, const struct rl_view *view)
{
    if (pttl_ms == 0 || pttl_ms >= RL_NEVER / RL_MS)
        return;
    struct rl_now expired = rl_later(view->now, pttl_ms * RL_MS + RL_MS);
    if (expired.boot_ns < lease->next.boot_ns)
        lease->next = expired;
}

/* Processes the reply to the probe of this wait, a ballot of PTTL from the node that tracks the
 * key; ignores other ballots. If the key does not exist, plans an attempt and begins it if it is
 * due; if it expires, plans an attempt for that time. */
void rl_wait_vote(struct rl_lease *lease, const struct rl_ballot *ballot,
                  const struct rl_view *view, struct rl_effects *fx)
{
    if (rl_permit_is(lease)) {
        rl_permit_vote(lease, ballot, view, fx);
        return;
    }
    if (ballot->verb == RL_VERB_PTTL && rl_line_is_in(lease)) {
        rl_head_probed(lease, ballot, view, fx);
        return;
    }
    if (ballot->verb != RL_VERB_PTTL || ballot->round != lease->round.number ||
        (lease->wait.tracked & RL_NODE(ballot->node)) == 0)
        return;
    if (ballot->vote == RL_VOTE_DENIED) {
        plan_attempt(lease, view, fx);
        return;
    }
    if (ballot->vote == RL_VOTE_GRANTED)
        rl_wait_note_expiry(lease, ballot->pttl_ms, view);
}

/* Processes a WAKE. `nodes` is 0 if another lock of this client has released the resource: then the
 * attempt begins at once, unless the lease is in a line and no head; then it looks. Else `nodes` is
 * the node that has sent a notification or can send them from now on, so that it may also keep a
 * line. Without a line: if that node tracks the key already, the WAKE is a notification, and an
 * attempt is planned. If no node tracks the key yet, and that node has denied the last attempt, a
 * probe is sent to it, and it tracks the key. event->slot is used for permits only. */
void rl_wait_wake(struct rl_lease *lease, const struct rl_event *event, const struct rl_view *view,
                  struct rl_effects *fx)
{
    rl_nodes nodes = event->nodes;

    if (rl_permit_is(lease) && !event->turn &&
        (lease->state != RL_STATE_WAITING || !rl_line_blocks(lease))) {
        rl_permit_wake(lease, nodes, event->slot, view, fx);
        return;
    }
    if (rl_line_is_in(lease)) {
        /* Only heads search for a slot, so only they need to know which one has changed. */
        bool for_heads = rl_permit_is(lease) && !event->turn && event->slot != RL_SLOT_ANY;
        if (lease->state == RL_STATE_WAITING && !for_heads)
            rl_line_wake(lease, nodes, event->turn, view, fx);
        return;
    }
    if (rl_permit_is(lease) || lease->state != RL_STATE_WAITING)
        return; /* a turn that this lease does not wait for any more */
    if (nodes == 0) {
        lease->next = view->now;
        rl_wait_tick(lease, view, fx);
        return;
    }
    /* Only a lease whose last attempt was denied waits for a change of the key. */
    bool denied = lease->attempts > 0 && lease->status == REDLOCK_ECONTENDED;
    if (!denied || rl_line_enter(lease, view, fx))
        return;
    if (lease->wait.tracked == 0) { /* the node could not send notifications before */
        lease->wait.tracked = fx->probe = nodes & notifier_of(lease, view);
    } else if ((nodes & lease->wait.tracked) != 0) {
        rl_contention_note(lease->contention, view->now.boot_ns);
        plan_attempt(lease, view, fx);
    }
}

/* Notes in lease->taken, from a denial that says so, which key of a lock of several keys exists
 * (ballot->key, counted from 1). The first denial counts, unless the node that will track the key
 * sends a later one, because that node will be sent the probe. */
void rl_wait_note_taken(struct rl_lease *lease, const struct rl_ballot *ballot,
                        const struct rl_view *view)
{
    if (lease->taken == 0 || notifier_of(lease, view) == RL_NODE(ballot->node))
        lease->taken = ballot->key;
}

/* Returns the boot time of the next TICK that a waiting lease needs: for the planned attempt or for
 * lease->next, whichever is earlier. */
uint64_t rl_wait_wake_ns(const struct rl_lease *lease, const struct rl_view *view)
{
    if (rl_permit_is(lease) && !rl_line_blocks(lease))
        return rl_permit_wake_ns(lease, view);
    uint64_t left = rl_remaining_ns(lease->next, view->now);
    if (lease->wait.free)
        left = rl_min_u64(left, rl_sub_sat(lease->wait.start_ns, view->now.boot_ns));
    return rl_due_ns(view->now, left);
}
