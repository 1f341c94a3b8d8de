/* SPDX-License-Identifier: MIT
 * Waiting for a resource that another client holds. The node that is asked first is asked whether
 * the key is still there; if it can, it tells when that changes. A timer asks all of them again in
 * any case: that node may be wrong, or stop. */
#include "core/lease_hold.h"

#include "core/rule.h"
#include "redlock/redlock.h"

#include <string.h>

/* The node that contenders ask first: one that would hold them up is passed over. */
rl_nodes rl_wait_first(const struct rl_lease *lease, const struct rl_view *view)
{
    if (lease->contest == NULL)
        return 0;
    rl_nodes quick = view->up & view->voters & ~(RL_RULE(TIE_QUICK) ? view->slow : 0);

    return rl_contest_first(lease->contest, quick);
}

bool rl_wait_is_told(const struct rl_lease *lease, const struct rl_view *view)
{
    return (rl_wait_first(lease, view) & view->telling) != 0;
}

static void begin_hot(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    bool hot = lease->contest != NULL && rl_contest_is_hot(lease->contest, view->now.boot_ns);

    if (rl_permit_is(lease))
        rl_permit_begin(lease, view, fx);
    else
        rl_attempt_begin(lease, hot && RL_RULE(TIE_FIRST) ? rl_wait_first(lease, view) : 0, view,
                         fx);
}

void rl_wait_start(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    struct rl_contest *contest = lease->contest;
    uint64_t now_ns = view->now.boot_ns;

    memset(&lease->wait, 0, sizeof lease->wait);
    if (rl_permit_is(lease))
        rl_permit_start(lease, view);
    if (contest != NULL)
        rl_contest_begun(contest, view->round_trip_ns, now_ns);
    if (contest == NULL || contest->yield_until_ns <= now_ns || lease->params.wait_ns == 0) {
        begin_hot(lease, view, fx);
        return;
    }
    rl_lease_move(lease, RL_STATE_WAITING);
    lease->status = REDLOCK_ECONTENDED;
    lease->next = rl_later(view->now, contest->yield_until_ns - now_ns);
}

void rl_wait_begin(struct rl_lease *lease, int status, const struct rl_view *view,
                   struct rl_effects *fx)
{
    struct rl_contest *contest = lease->contest;
    struct rl_wait *wait = &lease->wait;

    if (rl_permit_is(lease)) {
        rl_permit_rest(lease, status);
        return;
    }
    memset(wait, 0, sizeof *wait);
    wait->key = (uint8_t)(lease->taken - (lease->taken != 0));
    if (contest == NULL || status != REDLOCK_ECONTENDED)
        return;
    fx->want = rl_wait_first(lease, view);
    if (!rl_wait_is_told(lease, view))
        return;
    uint64_t random = rl_jitter(view->random, lease->params.salt, lease->attempts + 1);
    wait->go_ns =
        rl_add_sat(view->now.boot_ns, rl_contest_pause_ns(contest, view->round_trip_ns, random));
    wait->watched = fx->watch = fx->want;
}

/* The node that all ask first has said that the key is not there any more. */
static void consider(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    if (lease->wait.free && lease->wait.go_ns <= view->now.boot_ns)
        rl_attempt_begin(lease, RL_RULE(TIE_FIRST) ? rl_wait_first(lease, view) : 0, view, fx);
}

void rl_wait_tick(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    if (rl_permit_is(lease))
        rl_permit_tick(lease, view, fx);
    else if (rl_remaining_ns(lease->next, view->now) != 0)
        consider(lease, view, fx);
    else if (lease->attempts == 0)
        begin_hot(lease, view, fx);
    else
        rl_attempt_begin(lease, 0, view, fx);
}

void rl_wait_vote(struct rl_lease *lease, const struct rl_ballot *ballot,
                  const struct rl_view *view, struct rl_effects *fx)
{
    if (rl_permit_is(lease)) {
        rl_permit_vote(lease, ballot, view, fx);
        return;
    }
    if (ballot->verb != RL_VERB_PTTL || ballot->round != lease->round.number ||
        (lease->wait.watched & RL_NODE(ballot->node)) == 0)
        return;
    if (ballot->vote == RL_VOTE_DENIED) {
        lease->wait.free = true;
        consider(lease, view, fx);
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
    if ((nodes & lease->wait.watched) == 0)
        return;
    rl_contest_woken(lease->contest, view->now.boot_ns);
    lease->wait.free = true;
    consider(lease, view, fx);
}

/* The node that is watched afterwards knows best. */
void rl_wait_note_taken(struct rl_lease *lease, const struct rl_ballot *ballot,
                        const struct rl_view *view)
{
    if (lease->taken == 0 || rl_wait_first(lease, view) == RL_NODE(ballot->node))
        lease->taken = ballot->key;
}

uint64_t rl_wait_wake_ns(const struct rl_lease *lease, const struct rl_view *view)
{
    const struct rl_wait *wait = &lease->wait;
    uint64_t now_ns = view->now.boot_ns;

    if (rl_permit_is(lease))
        return rl_permit_wake_ns(lease, view);
    uint64_t left = rl_remaining_ns(lease->next, view->now);

    if (wait->free)
        left = rl_min_u64(left, rl_sub_sat(wait->go_ns, now_ns));
    return rl_due_ns(view->now, left);
}
