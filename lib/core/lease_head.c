/* SPDX-License-Identifier: MIT
 * What the head of a line does: it watches the lock, and asks all nodes when the lock is free. For
 * a permit, it searches for a free slot (lease_permit.c). lease_line.h explains the line. */
#include "core/lease_head.h"

#include "core/contention.h"
#include "core/lease_hold.h"
#include "core/lease_line.h"

/* Bound of the pause after an attempt that others have denied. */
#define PAUSE_MAX_NS (200 * RL_MS)

/* Returns a node beside that of the line that shows whether the lock is held: the most preferred
 * one of those that denied the last attempt, or of all if there was none. 0: there is none. */
static rl_nodes second_node(const struct rl_lease *lease, const struct rl_view *view)
{
    rl_nodes fit = view->up & view->eligible & ~view->slow & ~lease->line.node;

    if (lease->round.denied != 0)
        fit &= lease->round.denied;
    return rl_contention_preferred(lease->contention, fit);
}

/* Asks all nodes for the lock. For a permit, searches for a free slot instead. */
void rl_head_attempt(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    lease->line.pauses = lease->line.expires = false;
    if (rl_permit_is(lease))
        rl_permit_search(lease, view, fx);
    else
        rl_attempt_begin(lease, 0, view, fx);
}

/* Asks all nodes for the lock, because the key has changed. */
void rl_head_attempt_after_change(struct rl_lease *lease, const struct rl_view *view,
                                  struct rl_effects *fx)
{
    lease->line.absent_tries = 0;
    rl_head_attempt(lease, view, fx);
}

/* Has a head ask all nodes because a node does not have the key, or pause before that: if the last
 * attempt has split the votes (`split`), or began for the same reason and was denied. The pause is
 * random, about one round trip, and doubles with each further attempt. */
static void attempt_if_absent(struct rl_lease *lease, bool split, const struct rl_view *view,
                              struct rl_effects *fx)
{
    struct rl_line *line = &lease->line;
    unsigned before = line->absent_tries;
    uint64_t trip_ns = rl_max_u64(view->round_trip_ns, 50 * RL_US);

    line->absent_tries = (uint8_t)rl_min_u64(before + 1, UINT8_MAX);
    if (before == 0 && !split) {
        rl_head_attempt(lease, view, fx);
        return;
    }
    trip_ns <<= before == 0 ? 0 : rl_min_u64(before - 1, 8);
    trip_ns = rl_min_u64(trip_ns, PAUSE_MAX_NS * 2 / 3);
    rl_line_plan(lease, trip_ns / 2, trip_ns + trip_ns / 2, view);
    line->pauses = true;
}

/* Has a head begin an attempt when the key expires, if that is before its timer. */
static void watch_expiry(struct rl_lease *lease, uint64_t pttl_ms, const struct rl_view *view)
{
    uint64_t timer_ns = lease->next.boot_ns;

    rl_wait_note_expiry(lease, pttl_ms, view);
    lease->line.expires = lease->next.boot_ns < timer_ns;
}

/* Processes the look of a head: begins an attempt if the lock is free or has changed meanwhile,
 * else waits for a change, until the key expires or the timer of heads. If an attempt has split the
 * votes (`split`), a change is no reason for that: it may be our own undo. The search for a permit
 * has its own timers.
 */
void rl_head_look(struct rl_lease *lease, const struct rl_line_reply *reply, bool split,
                  const struct rl_view *view, struct rl_effects *fx)
{
    struct rl_line *line = &lease->line;

    if (rl_permit_is(lease)) {
        rl_head_attempt(lease, view, fx);
        return;
    }
    if (line->changed && !split) {
        rl_head_attempt_after_change(lease, view, fx);
        return;
    }
    /* The node of the line may have the key of a client that has ended, or lack that of the holder:
     * another node says whether the lock is held. */
    line->second = rl_line_is_stale(lease) ? second_node(lease, view) : 0;
    if (line->second == 0 && !reply->exists) {
        attempt_if_absent(lease, split, view, fx);
        return;
    }
    rl_line_plan(lease, RL_HEAD_MIN_NS, RL_HEAD_MAX_NS, view);
    if (line->second != 0) {
        fx->track = fx->probe = line->second;
        return;
    }
    line->absent_tries = 0;
    watch_expiry(lease, reply->pttl_ms, view);
}

/* Processes the reply to a probe of a head, from a node beside that of the line: a head
 * begins an attempt if there is no key. */
void rl_head_probed(struct rl_lease *lease, const struct rl_ballot *ballot,
                    const struct rl_view *view, struct rl_effects *fx)
{
    struct rl_line *line = &lease->line;

    if ((line->second & RL_NODE(ballot->node)) == 0 || !line->head || line->asking || line->pauses)
        return;
    if (ballot->vote == RL_VOTE_DENIED) {
        attempt_if_absent(lease, false, view, fx);
    } else if (ballot->vote == RL_VOTE_GRANTED) {
        line->absent_tries = 0;
        watch_expiry(lease, ballot->pttl_ms, view);
    }
}
