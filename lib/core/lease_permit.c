/* SPDX-License-Identifier: MIT
 * Looking for a permit of a semaphore. Each slot is an ordinary lock with its own key, so an
 * attempt is one for one slot, with all that belongs to it; here it is decided for which one.
 *
 * The first attempt goes for any slot. If that is taken, the node that contenders ask first is
 * asked about all of them together: which are free, and it tells when one of the others changes. A
 * free one is tried, asking that node first; who is too late tries another. When none is left, it
 * waits: for word of a slot, for one to expire, and for the timer, which tries the slots one after
 * the other on all nodes, because that one node may be wrong. If there is no such node, or it does
 * not answer, the slots are simply tried one after the other, each once, before it waits.
 *
 * Of more than 64 slots the first search looks at all of them, window by window, without a pause. A
 * call that would end without a permit asks further nodes about all slots, until a majority was
 * asked: the preferred node may have keys that their owners left there. */
#include "core/lease_hold.h"

#include "redlock/redlock.h"

#include <string.h>

#define WINDOW_MAX 64u /* as many as a set has bits */

bool rl_permit_is(const struct rl_lease *lease)
{
    return lease->terms->permits != 0;
}

static unsigned count_of(const struct rl_lease *lease)
{
    return lease->terms->permits;
}

static unsigned window(const struct rl_lease *lease)
{
    unsigned permits = count_of(lease);

    return permits < WINDOW_MAX ? permits : WINDOW_MAX;
}

static unsigned windows_of(const struct rl_lease *lease)
{
    return (count_of(lease) + WINDOW_MAX - 1) / WINDOW_MAX;
}

static uint64_t all_of(const struct rl_lease *lease)
{
    return UINT64_MAX >> (WINDOW_MAX - window(lease));
}

uint16_t rl_permit_slot(const struct rl_lease *lease, unsigned bit)
{
    return (uint16_t)((lease->permit->start + bit) % count_of(lease));
}

/* 0: it is not in the window. */
static uint64_t bit_of(const struct rl_lease *lease, unsigned slot)
{
    unsigned permits = count_of(lease);
    unsigned at = (slot + permits - lease->permit->start) % permits;

    return slot < permits && at < window(lease) ? UINT64_C(1) << at : 0;
}

/* The window opens at another place, and nothing is known of it. */
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

/* One attempt for one slot; `preferred` is asked before the others. */
static void start_now(struct rl_lease *lease, unsigned slot, rl_nodes first,
                      const struct rl_view *view, struct rl_effects *fx)
{
    struct rl_permit *permit = lease->permit;
    uint64_t bit = bit_of(lease, slot);

    permit->slot = (uint16_t)slot;
    permit->searching = false;
    permit->tried |= bit;
    permit->open &= ~bit;
    /* Our own SET uses up the promise to tell, and answers to older questions are not read. */
    permit->tracked &= ~(bit | permit->probed);
    permit->probed = 0;
    rl_attempt_begin(lease, first, view, fx);
}

void rl_permit_begin(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    bool hot =
        lease->contention != NULL && rl_contention_is_recent(lease->contention, view->now.boot_ns);

    start_now(lease, lease->permit->slot, hot ? rl_wait_preferred(lease, view) : 0, view, fx);
}

static unsigned pick(const struct rl_lease *lease, const struct rl_view *view)
{
    uint64_t open = lease->permit->open;
    uint64_t n = rl_jitter(view->random, lease->salt, lease->attempts) %
                 (unsigned)__builtin_popcountll(open);

    for (; n > 0; n--)
        open &= open - 1;
    return rl_permit_slot(lease, (unsigned)__builtin_ctzll(open));
}

/* Tries one that may be free, unless it is too early. */
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

/* When the search goes on without the answers that are missing. */
static struct rl_now probe_until(const struct rl_lease *lease, const struct rl_view *view)
{
    uint64_t left = RL_NEVER;

    if (lease->wait_ns != 0 && lease->wait_ns != RL_NEVER)
        left = rl_remaining_ns(rl_lease_wait_until(lease), view->now);
    return rl_later(view->now, rl_min_u64(rl_attempt_hedge_ns(view), left));
}

/* Asks which slots of the window are free, as far as that is not known. */
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
    if (node == 0) { /* no node can be asked: one slot after the other */
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

/* The timer of all lays its window further on, and tries another slot of it each time. */
static unsigned next_window(struct rl_lease *lease)
{
    struct rl_permit *permit = lease->permit;
    unsigned permits = count_of(lease), windows = windows_of(lease);

    permit->turn++;
    unsigned place = permit->turn / windows % window(lease);
    open_window(lease, (permit->origin + permit->turn % windows * WINDOW_MAX) % permits);
    return rl_permit_slot(lease, place);
}

/* Begins to search all slots again by asking another node, if the call is about to end: a slot is
 * known to be taken when a majority denies it. Returns false if a majority has answered, or no
 * other node can be asked. */
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
    /* The report of the last attempt also has what this node says of its slot. */
    lease->round.requested |= other;
    lease->round.deferred &= ~other;
    return true;
}

/* Opens the next window of the search. Returns false if all were searched, or time is up. */
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

/* Ends a search that has found nothing: sleeps, or ends the call. */
static void pause(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    rl_nodes asked = lease->permit->replied | lease->round.requested;
    bool few = rl_nodes_count(asked) < lease->terms->quorum;

    lease->permit->searching = false;
    if (lease->contention != NULL)
        rl_contention_note_notification(lease->contention,
                                        view->now.boot_ns); /* there are more than permits */
    rl_attempt_pause(
        lease, few && rl_attempt_spare_ns(lease, view) == 0 ? REDLOCK_ENOQUORUM : lease->status,
        view, fx);
}

/* Goes on when the answers are there, or late. Slots about which the preferred node has not
 * answered are worth a try; if another node has not answered, a third one is asked. */
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
    /* The last search of a call asks about each slot once. */
    if (permit->open == 0 && (permit->requested == 0 || rl_attempt_spare_ns(lease, view) != 0))
        probe_window(lease, view, fx);
    search(lease, view, fx);
    return true;
}

/* What follows is a pause. After denials what was learned in the search holds on. */
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

/* Notes that a node has answered about a slot, and its denial of the slot that was tried last. */
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
        if (expires_ns < permit->expires_ns) { /* told late or not at all */
            permit->expires_ns = expires_ns;
            permit->expires = ballot->slot;
        }
    }
    if (permit->searching && permit->probed == 0)
        search(lease, view, fx);
}

/* Word that came while an attempt was under way is for later. */
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
    if (by_us) /* others go first */
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
