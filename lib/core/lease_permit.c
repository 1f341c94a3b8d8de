/* SPDX-License-Identifier: MIT
 * The search for a permit of a semaphore. Each slot is an ordinary lock with its own key, and each
 * attempt is an ordinary attempt for one slot. This file chooses the slots.
 *
 * The first attempt is for any slot. If that slot is denied, the preferred node is probed for all
 * slots together. It replies which of them are free, and tracks the others. A free slot gets an
 * attempt that asks the preferred node first; if that fails, another free slot does. When no free
 * slot is left, the lease waits for a notification, for a key to expire, or for its timer. The
 * timer tries slot after slot on all nodes, because the preferred node may be wrong. If there is no
 * preferred node, or it does not reply, each slot gets one attempt before the lease waits.
 *
 * With more than 64 slots, the first search goes through all of them, window by window, without a
 * pause. A call that would end without a permit probes further nodes for all slots, until a quorum
 * has replied: the preferred node may have keys that their holders have released elsewhere. */
#include "core/lease_hold.h"

#include "redlock/redlock.h"

#include <string.h>

#define WINDOW_MAX 64u /* slots of a window: bits of a slot set */

bool rl_permit_is(const struct rl_lease *lease)
{
    return lease->terms->permits != 0;
}

/* Returns the number of permits, which is the number of slots. */
static unsigned count_of(const struct rl_lease *lease)
{
    return lease->terms->permits;
}

/* Returns the number of slots in a window. */
static unsigned window(const struct rl_lease *lease)
{
    unsigned permits = count_of(lease);

    return permits < WINDOW_MAX ? permits : WINDOW_MAX;
}

/* Returns the number of windows that cover all slots. */
static unsigned windows_of(const struct rl_lease *lease)
{
    return (count_of(lease) + WINDOW_MAX - 1) / WINDOW_MAX;
}

/* Returns the set of all slots of the window. */
static uint64_t all_of(const struct rl_lease *lease)
{
    return UINT64_MAX >> (WINDOW_MAX - window(lease));
}

uint16_t rl_permit_slot(const struct rl_lease *lease, unsigned bit)
{
    return (uint16_t)((lease->permit->start + bit) % count_of(lease));
}

/* Returns the set that contains `slot` alone; 0: the slot is not in the window. */
static uint64_t bit_of(const struct rl_lease *lease, unsigned slot)
{
    unsigned permits = count_of(lease);
    unsigned at = (slot + permits - lease->permit->start) % permits;

    return slot < permits && at < window(lease) ? UINT64_C(1) << at : 0;
}

/* Moves the window to begin at slot `start`, and forgets all about its slots. */
static void open_window(struct rl_lease *lease, unsigned start)
{
    struct rl_permit *permit = lease->permit;

    permit->start = (uint16_t)start;
    permit->tried = permit->open = permit->probed = permit->tracked = 0;
    permit->expires_ns = RL_NEVER;
}

void rl_permit_start(struct rl_lease *lease, const struct rl_view *view)
{
    struct rl_permit *permit = lease->permit;
    unsigned permits = count_of(lease);
    uint64_t random = rl_jitter(view->random, lease->salt, lease->attempts);
    unsigned slot = lease->contention != NULL
                        ? rl_contention_slot(lease->contention, permits, random, view->now.boot_ns)
                        : (unsigned)(random % permits);

    memset(permit, 0, sizeof *permit);
    permit->turns = windows_of(lease) - 1;
    permit->slot = permit->origin = (uint16_t)slot;
    open_window(lease, slot);
}

/* Begins an attempt for `slot`; the node of `first` is asked before the others, 0: none is. */
static void start_now(struct rl_lease *lease, unsigned slot, rl_nodes first,
                      const struct rl_view *view, struct rl_effects *fx)
{
    struct rl_permit *permit = lease->permit;
    uint64_t bit = bit_of(lease, slot);

    permit->slot = (uint16_t)slot;
    permit->searching = false;
    permit->tried |= bit;
    permit->open &= ~bit;
    /* Our own SET uses up the tracking of this key, and replies to older probes are ignored. */
    permit->tracked &= ~(bit | permit->probed);
    permit->probed = 0;
    rl_attempt_begin(lease, first, view, fx);
}

void rl_permit_begin(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    bool recent =
        lease->contention != NULL && rl_contention_is_recent(lease->contention, view->now.boot_ns);

    start_now(lease, lease->permit->slot, recent ? rl_wait_preferred(lease, view) : 0, view, fx);
}

/* Returns a random slot of the open ones; there must be one. */
static unsigned pick(const struct rl_lease *lease, const struct rl_view *view)
{
    uint64_t open = lease->permit->open;
    uint64_t n = rl_jitter(view->random, lease->salt, lease->attempts) %
                 (unsigned)__builtin_popcountll(open);

    for (; n > 0; n--)
        open &= open - 1;
    return rl_permit_slot(lease, (unsigned)__builtin_ctzll(open));
}

/* Begins an attempt for an open slot, if there is one and start_ns has come. A slot whose key
 * should have expired by now becomes open first. */
static void consider(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    struct rl_permit *permit = lease->permit;

    if (permit->expires_ns <= view->now.boot_ns) {
        permit->expires_ns = RL_NEVER;
        permit->open |= bit_of(lease, permit->expires);
    }
    if (permit->open != 0 && lease->wait.start_ns <= view->now.boot_ns)
        start_now(lease, pick(lease, view),
                  permit->other_node != 0 ? 0 : rl_wait_preferred(lease, view), view, fx);
}

/* Returns when the search goes on without the missing replies of the probed node. */
static struct rl_now probe_until(const struct rl_lease *lease, const struct rl_view *view)
{
    uint64_t left = RL_NEVER;

    if (lease->wait_ns != 0 && lease->wait_ns != RL_NEVER)
        left = rl_remaining_ns(rl_lease_wait_until(lease), view->now);
    return rl_later(view->now, rl_min_u64(rl_attempt_hedge_ns(view), left));
}

/* Probes the slots of the window whose state is unknown. If no node can be asked, all untried slots
 * become open. */
static void probe_window(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    struct rl_permit *permit = lease->permit;
    rl_nodes node =
        permit->other_node != 0 ? permit->other_node & view->up : rl_wait_preferred(lease, view);

    if (node != lease->wait.tracked)
        permit->tracked = permit->probed = 0;
    lease->wait.tracked = node;
    if (permit->other_node == 0)
        fx->track = node;
    if (node == 0) {
        permit->open |= permit->other_node == 0 ? all_of(lease) & ~permit->tried : 0;
        return;
    }
    permit->requested |= node;
    permit->probed = all_of(lease) & ~permit->tracked & ~permit->open;
    permit->tracked |= permit->probed;
    permit->probe_until = probe_until(lease, view);
    fx->slots = permit->probed;
    fx->probe = permit->probed != 0 ? node : 0;
}

/* Opens the next window and returns a slot of it. When all windows had their turn, the slot is the
 * next one of its window, so that each slot is returned some time. */
static unsigned next_window(struct rl_lease *lease)
{
    struct rl_permit *permit = lease->permit;
    unsigned permits = count_of(lease), windows = windows_of(lease);

    permit->turn++;
    unsigned place = permit->turn / windows % window(lease);
    open_window(lease, (permit->origin + permit->turn % windows * WINDOW_MAX) % permits);
    return rl_permit_slot(lease, place);
}

/* Begins another search of all slots, with another node, if the call is about to end: only denials
 * by a quorum prove that all slots are held. Returns false if the call is not about to end, a
 * quorum has replied, or no other node can be asked. */
static bool request_another(struct rl_lease *lease, const struct rl_view *view)
{
    struct rl_permit *permit = lease->permit;

    if (rl_attempt_spare_ns(lease, view) != 0 ||
        rl_nodes_count(permit->replied) >= lease->terms->quorum)
        return false;
    rl_nodes other = rl_wait_next_node(lease, permit->requested, view);
    if (other == 0)
        return false;
    permit->other_node = other;
    permit->turns = permit->turn + windows_of(lease);
    /* The report of the last attempt also has what this node says about that slot. */
    lease->round.requested |= other;
    lease->round.deferred &= ~other;
    return true;
}

/* Opens and probes the next window of the search. Returns false if all windows were searched, or
 * the budget is used up. */
static bool continue_search(struct rl_lease *lease, const struct rl_view *view,
                            struct rl_effects *fx)
{
    if (rl_attempt_is_expired(lease, view) ||
        (lease->permit->turn >= lease->permit->turns && !request_another(lease, view)))
        return false;
    (void)next_window(lease);
    probe_window(lease, view, fx);
    return true;
}

/* Ends a search that has found no permit: begins a pause, or ends the call. */
static void pause(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    rl_nodes requested = lease->permit->replied | lease->round.requested;
    bool few = rl_nodes_count(requested) < lease->terms->quorum;

    lease->permit->searching = false;
    if (lease->contention != NULL)
        rl_contention_note_notification(lease->contention,
                                        view->now.boot_ns); /* more contenders than permits */
    rl_attempt_pause(
        lease, few && rl_attempt_spare_ns(lease, view) == 0 ? REDLOCK_ENOQUORUM : lease->status,
        view, fx);
}

/* Continues the search once all replies to the probes have come, or are late. Slots for which the
 * preferred node has not replied become open. If another node than the preferred one has not
 * replied, the search asks a third one. */
static void search(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    struct rl_permit *permit = lease->permit;

    if (permit->probed != 0 && rl_remaining_ns(permit->probe_until, view->now) != 0)
        return;
    permit->open |= permit->other_node == 0 ? permit->probed & ~permit->tried : 0;
    permit->tracked &= ~permit->probed;
    permit->probed = 0;
    while (permit->open == 0 && continue_search(lease, view, fx)) {
        if (permit->probed != 0)
            return;
    }
    if (permit->open != 0 && !rl_attempt_is_expired(lease, view))
        consider(lease, view, fx);
    else
        pause(lease, view, fx);
}

bool rl_permit_is_contended(const struct rl_lease *lease)
{
    return !rl_permit_is(lease) || lease->round.granted != 0 || lease->wait.preferred != 0;
}

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
    permit->searching = true;
    lease->wait.start_ns = 0;
    if (lease->contention != NULL && lease->round.granted != 0)
        lease->wait.start_ns = rl_add_sat(
            view->now.boot_ns,
            rl_contention_pause_ns(lease->contention, view->round_trip_ns,
                                   rl_jitter(view->random, lease->salt, lease->attempts + 1)));
    /* The last search of a call probes each slot once. */
    if (permit->open == 0 && (permit->requested == 0 || rl_attempt_spare_ns(lease, view) != 0))
        probe_window(lease, view, fx);
    search(lease, view, fx);
    return true;
}

/* After a denial, what the search has learned about the slots stays valid. */
void rl_permit_pause(struct rl_lease *lease, int status)
{
    struct rl_permit *permit = lease->permit;

    permit->searching = false;
    permit->other_node = 0;
    if (status != REDLOCK_ECONTENDED)
        open_window(lease, permit->start);
}

void rl_permit_tick(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    struct rl_permit *permit = lease->permit;

    if (permit->searching)
        search(lease, view, fx);
    else if (rl_remaining_ns(lease->next, view->now) != 0)
        consider(lease, view, fx);
    else if (lease->attempts == 0)
        rl_permit_begin(lease, view, fx);
    else
        start_now(lease, next_window(lease), 0, view, fx);
}

/* Notes that a node has replied to a probe. If it has the key of the slot that was tried last, that
 * is a denial in the report. */
static void note_replied(struct rl_lease *lease, const struct rl_ballot *ballot)
{
    struct rl_round *round = &lease->round;
    rl_nodes bit = RL_NODE(ballot->node);

    if (ballot->vote == RL_VOTE_FAILED || ballot->vote == RL_VOTE_SUSPECT)
        return;
    lease->permit->replied |= bit;
    if (ballot->slot == lease->permit->slot && ballot->vote == RL_VOTE_GRANTED)
        round->denied |= bit & lease->permit->other_node & ~(round->granted | round->failed);
}

void rl_permit_vote(struct rl_lease *lease, const struct rl_ballot *ballot,
                    const struct rl_view *view, struct rl_effects *fx)
{
    struct rl_permit *permit = lease->permit;
    uint64_t bit = bit_of(lease, ballot->slot);
    bool once = lease->wait_ns == 0;

    if (ballot->verb != RL_VERB_PTTL || ballot->round != lease->round.number ||
        lease->wait.tracked != RL_NODE(ballot->node) || (permit->probed & bit) == 0)
        return;
    permit->probed &= ~bit;
    note_replied(lease, ballot);
    if (ballot->vote == RL_VOTE_FAILED || ballot->vote == RL_VOTE_SUSPECT) {
        permit->tracked &= ~bit;
        permit->open |= permit->other_node == 0 ? bit & ~permit->tried : 0;
    } else if (ballot->vote == RL_VOTE_DENIED) {
        permit->open |= once ? bit & ~permit->tried : bit;
    } else if (ballot->pttl_ms != 0 && ballot->pttl_ms < RL_NEVER / RL_MS) {
        uint64_t expires_ns =
            rl_add_sat(view->now.boot_ns, rl_add_sat(ballot->pttl_ms * RL_MS, RL_MS));
        if (expires_ns < permit->expires_ns) { /* servers notify of expiry late, or never */
            permit->expires_ns = expires_ns;
            permit->expires = ballot->slot;
        }
    }
    if (permit->searching && permit->probed == 0)
        search(lease, view, fx);
}

/* Notes a notification about `slot`: the slot becomes open. RL_SLOT_ANY: tracking was lost. During
 * an attempt for the same slot it says nothing, because our own SET causes it. */
static void note(struct rl_lease *lease, uint64_t bit, uint16_t slot)
{
    struct rl_permit *permit = lease->permit;

    if (slot == RL_SLOT_ANY) {
        permit->tracked = 0;
        return;
    }
    if (slot == permit->slot && lease->state == RL_STATE_ACQUIRING)
        return;
    permit->tracked &= ~bit;
    permit->probed &= ~bit;
    permit->open |= lease->wait_ns == 0 ? bit & ~permit->tried : bit;
}

void rl_permit_wake(struct rl_lease *lease, rl_nodes nodes, uint16_t slot,
                    const struct rl_view *view, struct rl_effects *fx)
{
    struct rl_permit *permit = lease->permit;
    bool by_us = nodes == 0;

    if ((lease->state != RL_STATE_ACQUIRING && lease->state != RL_STATE_WAITING) ||
        (!by_us && (nodes & lease->wait.tracked) == 0))
        return;
    note(lease, bit_of(lease, slot), slot);
    if (!by_us)
        rl_contention_note_notification(lease->contention, view->now.boot_ns);
    if (lease->state == RL_STATE_ACQUIRING)
        return;
    if (by_us) /* other clients get the permit first */
        lease->wait.start_ns = rl_max_u64(lease->wait.start_ns, lease->contention->yield_until_ns);
    if (slot == RL_SLOT_ANY && lease->attempts != 0 && !permit->searching) {
        permit->searching = true;
        probe_window(lease, view, fx);
        search(lease, view, fx);
        return;
    }
    consider(lease, view, fx);
}

uint64_t rl_permit_wake_ns(const struct rl_lease *lease, const struct rl_view *view)
{
    const struct rl_permit *permit = lease->permit;
    uint64_t now_ns = view->now.boot_ns;
    uint64_t go_ns = rl_sub_sat(lease->wait.start_ns, now_ns);

    if (permit->searching)
        return rl_due_ns(view->now, permit->probed != 0
                                        ? rl_remaining_ns(permit->probe_until, view->now)
                                        : go_ns);
    uint64_t left = rl_remaining_ns(lease->next, view->now);
    if (permit->open != 0)
        left = rl_min_u64(left, go_ns);
    left = rl_min_u64(left, rl_max_u64(go_ns, rl_sub_sat(permit->expires_ns, now_ns)));
    return rl_due_ns(view->now, left);
}
