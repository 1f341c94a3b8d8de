/* SPDX-License-Identifier: MIT
 * Acquires a permit of a semaphore: chooses the slots for which attempts are made. Each slot is an
 * ordinary lock with a key of its own, and each attempt (lease_attempt.c) is for one slot.
 *
 * How one call of the caller, an acquisition, runs:
 *   1. The first attempt is for one slot, which rl_permit_start() chooses.
 *   2. If that attempt is denied, a search begins. It works on the window: up to 64 consecutive
 *      slots, counted cyclically. The preferred node is sent one probe (PTTL) for each slot of the
 *      window, to find the slots whose key does not exist. If the call may wait, the server tracks
 *      the keys from then on, so that it sends a notification when one of them changes.
 *   3. A slot whose key does not exist becomes open, which means: worth an attempt. The search
 *      makes attempts for open slots, one at a time, in random order, until one of them wins or no
 *      slot is open. These attempts ask the preferred node before the others.
 *   4. If the semaphore has more than 64 slots, the first search of a call then moves the window
 *      on, until all slots have been in it. Later searches stay in the present window.
 *   5. Then the lease pauses. A notification about a slot of the window, or the time at which a
 *      probed key expires, opens that slot and so causes an attempt. At lease->next at the latest,
 *      an attempt is made for a slot chosen in turn. That attempt asks all nodes at once, because
 *      the preferred node may have keys that no longer exist on the others.
 *
 * If there is no preferred node, or it does not reply in time, all untried slots of the window
 * become open, so each of them gets one attempt. A call that is about to end without a permit
 * probes other nodes as well, one after the other, until a quorum of nodes has replied to probes.
 * A slot that is free on one of them becomes open.
 *
 * The vote on a probe says whether the key exists: RL_VOTE_GRANTED means that it does, so the slot
 * is taken on that node. RL_VOTE_DENIED means that it does not, so the slot is free there. */
#include "core/lease_hold.h"
#include "core/lease_line.h"

#include "redlock/redlock.h"

#include <string.h>

/* Largest number of slots in a window. A slot set is a 64-bit word: bit i stands for slot i of the
 * window, counted from permit->start. */
#define WINDOW_MAX 64u

/* Longest time for which the last search of a call waits for a node other than the preferred one.
 * Usually the node has a shorter time limit of its own, by which it counts as failed. */
#define OTHER_NODE_NS (1000 * RL_MS)

/* Returns whether the lease is for a permit of a semaphore, not for an ordinary lock. */
bool rl_permit_is(const struct rl_lease *lease)
{
    return lease->terms->permits != 0;
}

/* Returns the number of permits of the semaphore, which is also the number of its slots. */
static unsigned slot_count(const struct rl_lease *lease)
{
    return lease->terms->permits;
}

/* Returns the number of slots in the window: all slots, but at most WINDOW_MAX. */
static unsigned window_size(const struct rl_lease *lease)
{
    unsigned permits = slot_count(lease);

    return permits < WINDOW_MAX ? permits : WINDOW_MAX;
}

/* Returns the number of windows that together contain all slots; the last one may overlap the
 * first. */
static unsigned window_count(const struct rl_lease *lease)
{
    return (slot_count(lease) + WINDOW_MAX - 1) / WINDOW_MAX;
}

/* Returns the slot set that contains all slots of the window. */
static uint64_t window_slots(const struct rl_lease *lease)
{
    return UINT64_MAX >> (WINDOW_MAX - window_size(lease));
}

/* Returns the number of the slot that bit `bit` of a slot set stands for. */
uint16_t rl_permit_slot(const struct rl_lease *lease, unsigned bit)
{
    return (uint16_t)((lease->permit->start + bit) % slot_count(lease));
}

/* Returns the slot set that contains slot number `slot` alone; 0 if the slot is not in the window,
 * or `slot` is RL_SLOT_ANY. */
static uint64_t bit_of(const struct rl_lease *lease, unsigned slot)
{
    unsigned permits = slot_count(lease);
    unsigned at = (slot + permits - lease->permit->start) % permits;

    return slot < permits && at < window_size(lease) ? UINT64_C(1) << at : 0;
}

/* Makes slot `start` the first slot of the window and empties all slot sets, because their bits now
 * stand for other slots. */
static void set_window(struct rl_lease *lease, unsigned start)
{
    struct rl_permit *permit = lease->permit;

    permit->start = (uint16_t)start;
    permit->tried = permit->missed = permit->open = permit->probed = permit->known = 0;
    permit->expires_ns = RL_NEVER;
}

/* Prepares the lease for a new call and chooses the slot of the first attempt, where the window
 * begins. The contention memory prefers a slot that this client has released, and avoids the slots
 * that this client holds. Without that memory the slot is random. */
void rl_permit_start(struct rl_lease *lease, const struct rl_view *view)
{
    struct rl_permit *permit = lease->permit;
    unsigned permits = slot_count(lease);
    uint64_t random = rl_jitter(view->random, lease->salt, lease->attempts);
    unsigned slot = lease->contention != NULL
                        ? rl_contention_slot(lease->contention, permits, random, view->now.boot_ns)
                        : (unsigned)(random % permits);

    memset(permit, 0, sizeof *permit);
    permit->turn_end = window_count(lease) - 1;
    permit->slot = permit->origin = (uint16_t)slot;
    set_window(lease, slot);
}

/* Plans no attempt for a slot chosen in turn, because the lease is in the line and no head. Forgets
 * which slots are taken, because their notifications are ignored until it is the head: its search
 * probes all of them again. */
void rl_permit_stand_by(struct rl_lease *lease)
{
    lease->permit->in_turn_ns = 0;
    lease->permit->known = lease->permit->probed = 0;
}

/* Begins an attempt for slot number `slot`. `first` contains the node that is asked before the
 * others; 0: all nodes are asked at once. */
static void begin_attempt(struct rl_lease *lease, unsigned slot, rl_nodes first,
                          const struct rl_view *view, struct rl_effects *fx)
{
    struct rl_permit *permit = lease->permit;
    uint64_t bit = bit_of(lease, slot);

    permit->slot = (uint16_t)slot;
    permit->searching = false;
    permit->tried |= bit;
    permit->open &= ~bit;
    /* The server stops tracking the key of `slot` once our SET has changed it. Probes without a
     * reply belong to the previous round, so rl_permit_vote() will ignore their replies. All these
     * slots need a new probe. */
    permit->known &= ~(bit | permit->probed);
    permit->probed = 0;
    rl_attempt_begin(lease, first, view, fx);
}

/* Begins the first attempt of a call, for the slot that rl_permit_start() has chosen. If contention
 * for the semaphore was met within the last second, the attempt asks the preferred node first. Else
 * it asks all nodes at once. */
void rl_permit_begin(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    bool recent =
        lease->contention != NULL && rl_contention_is_recent(lease->contention, view->now.boot_ns);

    begin_attempt(lease, lease->permit->slot, recent ? rl_wait_preferred(lease, view) : 0, view,
                  fx);
}

/* Returns the number of a random open slot; at least one slot must be open. */
static unsigned random_open_slot(const struct rl_lease *lease, const struct rl_view *view)
{
    uint64_t open = lease->permit->open;
    uint64_t n = rl_jitter(view->random, lease->salt, lease->attempts) %
                 (unsigned)__builtin_popcountll(open);

    for (; n > 0; n--)
        open &= open - 1;
    return rl_permit_slot(lease, (unsigned)__builtin_ctzll(open));
}

/* Moves the window on, cyclically, and returns the number of a slot in it. In the first cycle
 * through all windows that is the first slot of each window, in the second cycle the second slot,
 * and so on. So each slot is returned at some time. */
static unsigned move_window(struct rl_lease *lease)
{
    struct rl_permit *permit = lease->permit;
    unsigned permits = slot_count(lease), windows = window_count(lease);

    permit->turn++;
    unsigned place = permit->turn / windows % window_size(lease);
    set_window(lease, (permit->origin + permit->turn % windows * WINDOW_MAX) % permits);
    return rl_permit_slot(lease, place);
}

/* Begins an attempt for a slot chosen in turn, on all nodes at once: the preferred node may be
 * wrong about all slots. */
static void begin_in_turn(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    lease->permit->in_turn_ns = 0;
    begin_attempt(lease, move_window(lease), 0, view, fx);
}

/* Begins an attempt for a random open slot, if a slot is open and wait.start_ns has come. Before
 * that, opens the slot whose key expires first, if the key must have expired by now. The attempt
 * asks the preferred node first, or all nodes at once if the search has gone on to other nodes.
 * Once an attempt for a slot chosen in turn is due, begins that instead, unless the call is about
 * to end: waiters whose attempts split the votes notify each other with their undos, and would try
 * the same slots for ever. */
static void try_open_slot(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    struct rl_permit *permit = lease->permit;

    if (permit->expires_ns <= view->now.boot_ns) {
        permit->expires_ns = RL_NEVER;
        permit->open |= bit_of(lease, permit->expires_slot);
    }
    if (permit->open == 0 || lease->wait.start_ns > view->now.boot_ns)
        return;
    if (permit->in_turn_ns != 0 && permit->in_turn_ns <= view->now.boot_ns &&
        permit->other_node == 0)
        begin_in_turn(lease, view, fx);
    else
        begin_attempt(lease, random_open_slot(lease, view),
                      permit->other_node != 0 ? 0 : rl_wait_preferred(lease, view), view, fx);
}

/* Returns the instant until which a search waits for the replies to probes sent now: as long as an
 * attempt waits for the preferred node, but at most until the wait budget of the call ends. Another
 * node is probed because the call is about to end: it may take longer. A probe that could not be
 * sent gets no vote, so that this time must end. */
static struct rl_now probe_time_limit(const struct rl_lease *lease, const struct rl_view *view)
{
    uint64_t left = RL_NEVER;

    if (lease->wait_ns != 0 && lease->wait_ns != RL_NEVER)
        left = rl_remaining_ns(rl_lease_wait_until(lease), view->now);
    uint64_t usual = lease->permit->other_node == 0 ? rl_attempt_hedge_ns(view) : OTHER_NODE_NS;
    return rl_later(view->now, rl_min_u64(left, usual));
}

/* Sends probes for the slots of the window that are neither known nor open. The probed node is
 * permit->other_node, or, if that is 0, the preferred node. The preferred node's server also tracks
 * the keys, if the call may wait. A slot is known only from one node: if another node was probed
 * before, all slots are probed. If there is no preferred node at present, opens all untried slots
 * instead of probing. If the other node is not up, sends nothing. */
static void probe_window(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    struct rl_permit *permit = lease->permit;
    rl_nodes node =
        permit->other_node != 0 ? permit->other_node & view->up : rl_wait_preferred(lease, view);

    if (node != lease->wait.tracked)
        permit->known = permit->probed = 0;
    lease->wait.tracked = node;
    if (permit->other_node == 0)
        fx->track = node;
    if (node == 0) {
        permit->open |= permit->other_node == 0 ? window_slots(lease) & ~permit->tried : 0;
        return;
    }
    permit->requested |= node;
    permit->probed = window_slots(lease) & ~permit->known & ~permit->open;
    permit->known |= permit->probed;
    permit->probe_until = probe_time_limit(lease, view);
    fx->slots = permit->probed;
    fx->probe = permit->probed != 0 ? node : 0;
}

/* If the call is about to end, chooses a node that was not probed yet, and extends the search so
 * that this node is probed for all slots. All slots are proven to be held only if a quorum of nodes
 * has their keys. The call is about to end if it has no time for a pause and another attempt.
 * Returns false, and changes nothing, if the call is not about to end, no other node can be asked,
 * or a quorum of nodes has replied to probes: nodes of the last attempt, because others have
 * replied before it, and may not have known all slots. */
static bool choose_other_node(struct rl_lease *lease, const struct rl_view *view)
{
    struct rl_permit *permit = lease->permit;

    if (rl_attempt_spare_ns(lease, view) != 0 ||
        rl_nodes_count(permit->replied & lease->round.requested) >= lease->terms->quorum)
        return false;
    rl_nodes other = rl_wait_next_node(lease, permit->requested, view);
    if (other == 0)
        return false;
    permit->other_node = other;
    permit->turn_end = permit->turn + window_count(lease);
    /* The last attempt, which the report of the call shows, may not have asked this node. Its reply
     * about the slot of that attempt then completes the report; see note_probe_reply(). */
    lease->round.requested |= other;
    lease->round.deferred &= ~other;
    return true;
}

/* Moves the window on and probes its slots. After the last window of the search, first chooses
 * another node to probe, see choose_other_node(). Returns false, and does nothing, if there is no
 * window and no node left to probe, or if the wait budget of the call is used up. */
static bool probe_next_window(struct rl_lease *lease, const struct rl_view *view,
                              struct rl_effects *fx)
{
    if (rl_attempt_is_expired(lease, view) ||
        (lease->permit->turn >= lease->permit->turn_end && !choose_other_node(lease, view)))
        return false;
    (void)move_window(lease);
    probe_window(lease, view, fx);
    return true;
}

/* Ends a search that has found no permit. rl_attempt_pause() then begins a pause, or ends the call
 * if its wait budget has no time for another attempt. A call that ends here fails with ENOQUORUM if
 * fewer nodes than the quorum were asked, else with the status of the last attempt. */
static void give_up_search(struct rl_lease *lease, const struct rl_view *view,
                           struct rl_effects *fx)
{
    rl_nodes requested = lease->permit->replied | lease->round.requested;
    bool few = rl_nodes_count(requested) < lease->terms->quorum;

    lease->permit->searching = false;
    if (lease->contention != NULL)
        /* All permits are held. The contention memory counts that like a notification: there are
         * more contenders than permits. */
        rl_contention_note(lease->contention, view->now.boot_ns);
    rl_attempt_pause(
        lease, few && rl_attempt_spare_ns(lease, view) == 0 ? REDLOCK_ENOQUORUM : lease->status,
        view, fx);
}

/* Continues a search. Does nothing while replies to probes are missing and not late. Once they are
 * late, opens the untried slots for which the preferred node has not replied; late replies of
 * another node are only ignored. Then, while no slot is open, moves the window on and probes it. If
 * a slot is open, begins an attempt for it, at wait.start_ns at the earliest. If none is left, or
 * the wait budget is used up, ends the search. */
static void continue_search(struct rl_lease *lease, const struct rl_view *view,
                            struct rl_effects *fx)
{
    struct rl_permit *permit = lease->permit;

    if (permit->probed != 0 && rl_remaining_ns(permit->probe_until, view->now) != 0)
        return;
    permit->open |= permit->other_node == 0 ? permit->probed & ~permit->tried : 0;
    permit->known &= ~permit->probed;
    permit->probed = 0;
    while (permit->open == 0 && probe_next_window(lease, view, fx)) {
        if (permit->probed != 0)
            return;
    }
    if (permit->open != 0 && !rl_attempt_is_expired(lease, view))
        try_open_slot(lease, view, fx);
    else
        give_up_search(lease, view, fx);
}

/* Begins a search: probes the slots of the window that are not known. */
void rl_permit_search(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    lease->permit->searching = true;
    probe_window(lease, view, fx);
    continue_search(lease, view, fx);
}

/* Returns whether a denied attempt shows that other clients try to acquire the resource now. For an
 * ordinary lock it always does. For a permit it does if a node granted (the votes were split), or
 * if the preferred node was asked first. Otherwise a slot chosen without knowledge was denied,
 * which may only mean that this permit is held. */
bool rl_permit_is_contended(const struct rl_lease *lease)
{
    return !rl_permit_is(lease) || lease->round.granted != 0 || lease->wait.preferred != 0;
}

/* Begins or continues the search after an attempt that failed with `status`. If that attempt split
 * the votes, the search begins its next attempt only after a random pause (wait.start_ns). If the
 * preferred node has granted, failed or not replied, it may lack the key of the slot, and a probe
 * of it does not open the slot again before a notification. (A node without memory for the key
 * replies with an error to our SET. To each probe it replies that there is no key.) Returns false,
 * and does nothing, if the lease is not for a permit, the attempt was not denied
 * (REDLOCK_ECONTENDED), or the wait budget is used up. */
bool rl_permit_denied(struct rl_lease *lease, int status, const struct rl_view *view,
                      struct rl_effects *fx)
{
    struct rl_permit *permit = lease->permit;

    if (!rl_permit_is(lease) || status != REDLOCK_ECONTENDED || rl_attempt_is_expired(lease, view))
        return false;
    rl_lease_move(lease, RL_STATE_WAITING);
    lease->status = status;
    fx->status = status;
    fx->flags |= RL_FX_SKIPPED;
    if (((lease->round.granted | lease->round.failed) & rl_wait_preferred(lease, view)) != 0)
        permit->missed |= bit_of(lease, permit->slot);
    permit->searching = true;
    if (permit->in_turn_ns == 0)
        permit->in_turn_ns = rl_add_sat(view->now.boot_ns, rl_attempt_poll_ns(lease, view));
    lease->wait.start_ns = rl_wait_pause_until_ns(lease, view);
    /* A call that is about to end and has sent probes does not probe this window again. So its last
     * search probes each slot once on each node, and ends. */
    if (permit->open == 0 && (permit->requested == 0 || rl_attempt_spare_ns(lease, view) != 0))
        probe_window(lease, view, fx);
    continue_search(lease, view, fx);
    return true;
}

/* Ends the search when a pause begins. The next search probes the preferred node again. The pause
 * ends when an attempt for a slot chosen in turn is due: notifications about one slot must not put
 * that off. A waiter that is no head makes no such attempt. Keeps the slot sets if the last attempt
 * was denied, that is, if `status` is REDLOCK_ECONTENDED. Empties them after any other failure,
 * because the replies to probes may be as wrong. */
void rl_permit_pause(struct rl_lease *lease, int status, const struct rl_view *view)
{
    struct rl_permit *permit = lease->permit;

    if (permit->in_turn_ns != 0 && permit->in_turn_ns < lease->next.boot_ns)
        lease->next = rl_later(view->now, rl_sub_sat(permit->in_turn_ns, view->now.boot_ns));
    permit->searching = false;
    permit->other_node = 0;
    if (status != REDLOCK_ECONTENDED)
        set_window(lease, permit->start);
}

/* Processes a TICK of a waiting lease. During a search, continues it. During a pause, begins an
 * attempt for an open slot, if there is one. At the end of the pause (lease->next), begins the
 * first attempt of the call, if there was none yet; else an attempt for a slot chosen in turn, on
 * all nodes at once. */
void rl_permit_tick(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    struct rl_permit *permit = lease->permit;

    if (permit->searching)
        continue_search(lease, view, fx);
    else if (rl_remaining_ns(lease->next, view->now) != 0)
        try_open_slot(lease, view, fx);
    else if (lease->attempts == 0)
        rl_permit_begin(lease, view, fx);
    else
        begin_in_turn(lease, view, fx);
}

/* Notes that the node of `ballot` has replied to a probe; does nothing if the probe failed or the
 * node is suspect. If permit->other_node has the key of the slot that was tried last, also notes
 * that in the last round as a denial by this node, because the report of the call shows that round.
 */
static void note_probe_reply(struct rl_lease *lease, const struct rl_ballot *ballot)
{
    struct rl_round *round = &lease->round;
    rl_nodes bit = RL_NODE(ballot->node);

    if (ballot->vote == RL_VOTE_FAILED || ballot->vote == RL_VOTE_SUSPECT)
        return;
    lease->permit->replied |= bit;
    if (ballot->slot == lease->permit->slot && ballot->vote == RL_VOTE_GRANTED)
        round->denied |= bit & lease->permit->other_node & ~(round->granted | round->failed);
}

/* Processes the vote on the probe of one slot. DENIED: the key does not exist, so the slot becomes
 * open. A call that never waits (wait_ns 0) does not open a slot that it has tried; other calls do
 * not open the slots of permit->missed. GRANTED: the key exists, so remembers the slot if its key
 * is the one that expires first. FAILED or SUSPECT: the slot is not known; if the node is the
 * preferred one, an untried slot becomes open. Once no reply is missing, continues the search.
 * Ignores votes of another round, of a node that is not probed now, and for slots without a probe
 * in flight. */
void rl_permit_vote(struct rl_lease *lease, const struct rl_ballot *ballot,
                    const struct rl_view *view, struct rl_effects *fx)
{
    struct rl_permit *permit = lease->permit;
    uint64_t bit = bit_of(lease, ballot->slot);
    bool never_waits = lease->wait_ns == 0;

    if (ballot->verb != RL_VERB_PTTL || ballot->round != lease->round.number ||
        lease->wait.tracked != RL_NODE(ballot->node) || (permit->probed & bit) == 0)
        return;
    permit->probed &= ~bit;
    note_probe_reply(lease, ballot);
    if (ballot->vote == RL_VOTE_FAILED || ballot->vote == RL_VOTE_SUSPECT) {
        permit->known &= ~bit;
        permit->open |= permit->other_node == 0 ? bit & ~permit->tried : 0;
    } else if (ballot->vote == RL_VOTE_DENIED) {
        permit->open |= bit & ~(never_waits ? permit->tried : permit->missed);
    } else if (ballot->pttl_ms != 0 && ballot->pttl_ms < RL_NEVER / RL_MS) {
        uint64_t expires_ns =
            rl_add_sat(view->now.boot_ns, rl_add_sat(ballot->pttl_ms * RL_MS, RL_MS));
        /* Remembered for a TICK at that time: servers notify of an expiry late, or never. */
        if (expires_ns < permit->expires_ns) {
            permit->expires_ns = expires_ns;
            permit->expires_slot = ballot->slot;
        }
    }
    if (permit->searching && permit->probed == 0)
        continue_search(lease, view, fx);
}

/* Notes that the key of slot number `slot` has changed; `bit` is its slot set, 0 if the slot is not
 * in the window. The slot becomes open, and the reply to its probe is not awaited any more. A call
 * that never waits (wait_ns 0) does not open a slot that it has tried. RL_SLOT_ANY: it is
 * unknown which keys have changed, so no slot counts as known any more. Ignores a change of the
 * slot for which an attempt is running, because our own SET may be that change. */
static void note_change(struct rl_lease *lease, uint64_t bit, uint16_t slot)
{
    struct rl_permit *permit = lease->permit;

    if (slot == RL_SLOT_ANY) {
        permit->known = 0;
        return;
    }
    if (slot == permit->slot && lease->state == RL_STATE_ACQUIRING)
        return;
    permit->known &= ~bit;
    permit->probed &= ~bit;
    permit->missed &= ~bit;
    permit->open |= lease->wait_ns == 0 ? bit & ~permit->tried : bit;
}

/* Processes a WAKE: the key of slot number `slot` has changed, or, with RL_SLOT_ANY, any of the
 * keys may have. `nodes` contains the node that sent the notification. 0: the WAKE comes from this
 * client, because another of its locks has released the permit of that slot. Ignores notifications
 * of nodes that are not probed at present. During an attempt only notes the change. While the lease
 * waits, begins an attempt for an open slot if it may; after RL_SLOT_ANY, begins a search instead.
 * After a release by this client the attempt begins at yield_until_ns, because other clients that
 * wait come first. */
void rl_permit_wake(struct rl_lease *lease, rl_nodes nodes, uint16_t slot,
                    const struct rl_view *view, struct rl_effects *fx)
{
    struct rl_permit *permit = lease->permit;
    bool by_this_client = nodes == 0;

    if ((lease->state != RL_STATE_ACQUIRING && lease->state != RL_STATE_WAITING) ||
        (!by_this_client && (nodes & lease->wait.tracked) == 0))
        return;
    /* A WAKE is sent only for a resource whose state this client keeps, and the lease shares the
     * contention memory that is part of that state. */
    RL_ASSERT(lease->contention != NULL);
    note_change(lease, bit_of(lease, slot), slot);
    if (!by_this_client)
        rl_contention_note(lease->contention, view->now.boot_ns);
    if (lease->state == RL_STATE_ACQUIRING)
        return;
    if (by_this_client)
        lease->wait.start_ns = rl_max_u64(lease->wait.start_ns, lease->contention->yield_until_ns);
    if (slot == RL_SLOT_ANY && lease->attempts != 0 && !permit->searching)
        rl_permit_search(lease, view, fx);
    else
        try_open_slot(lease, view, fx);
}

/* Returns the boot time in nanoseconds at which the waiting lease needs its next TICK. During a
 * search that is when it stops waiting for replies to probes, or when wait.start_ns allows the next
 * attempt. During a pause it is the end of the pause, or, if that is earlier, the time for an
 * attempt on a slot that is open or whose key expires. */
uint64_t rl_permit_wake_ns(const struct rl_lease *lease, const struct rl_view *view)
{
    const struct rl_permit *permit = lease->permit;
    uint64_t now_ns = view->now.boot_ns;
    uint64_t until_start_ns = rl_sub_sat(lease->wait.start_ns, now_ns);

    if (permit->searching)
        return rl_due_ns(view->now, permit->probed != 0
                                        ? rl_remaining_ns(permit->probe_until, view->now)
                                        : until_start_ns);
    uint64_t left = rl_remaining_ns(lease->next, view->now);
    if (permit->open != 0)
        left = rl_min_u64(left, until_start_ns);
    left = rl_min_u64(left, rl_max_u64(until_start_ns, rl_sub_sat(permit->expires_ns, now_ns)));
    return rl_due_ns(view->now, left);
}
