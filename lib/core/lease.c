/* SPDX-License-Identifier: MIT
 * Taking a lock: attempts, their undo, and the wait between them. */
#include "core/lease.h"

#include "core/lease_hold.h"
#include "core/rule.h"
#include "redlock/redlock.h"

#include <string.h>

/* Allowed moves, as data: bit `to` of row `from`. */
static const uint8_t moves[] = {
    [RL_STATE_NEW] = 1u << RL_STATE_ASKING | 1u << RL_STATE_RELEASING | 1u << RL_STATE_ENDED,
    [RL_STATE_ASKING] = 1u << RL_STATE_WAITING | 1u << RL_STATE_HELD | 1u << RL_STATE_ENDED,
    [RL_STATE_WAITING] = 1u << RL_STATE_ASKING | 1u << RL_STATE_ENDED,
    [RL_STATE_HELD] = 1u << RL_STATE_EXTENDING | 1u << RL_STATE_RELEASING | 1u << RL_STATE_WAITING |
                      1u << RL_STATE_ENDED,
    [RL_STATE_EXTENDING] = 1u << RL_STATE_HELD | 1u << RL_STATE_RELEASING | 1u << RL_STATE_ENDED,
    [RL_STATE_RELEASING] = 1u << RL_STATE_ENDED,
    [RL_STATE_ENDED] = 0,
};

void rl_lease_move(struct rl_lease *lease, enum rl_lease_state state)
{
    RL_ASSERT((moves[lease->state] & (1u << state)) != 0);
    lease->state = (uint8_t)state;
}

void rl_lease_init(struct rl_lease *lease, const struct rl_lease_params *params)
{
    memset(lease, 0, sizeof *lease);
    lease->params = *params;
    lease->round.nodes = params->nodes;
    lease->round.quorum = params->quorum;
    lease->fence.number = params->fence_number;
    lease->wake_ns = RL_NEVER;
}

uint64_t rl_lease_remaining_ns(const struct rl_lease *lease, struct rl_now now)
{
    if (lease->state != RL_STATE_HELD && lease->state != RL_STATE_EXTENDING)
        return 0;
    return rl_remaining_ns(lease->deadline, now);
}

static void end(struct rl_lease *lease, int status, struct rl_effects *fx)
{
    rl_lease_move(lease, RL_STATE_ENDED);
    lease->status = status;
    fx->status = status;
    fx->flags |= RL_FX_DONE | RL_FX_ENDED;
}

/* Errors that another attempt cannot mend: the configuration is wrong, not the moment. */
static bool is_final(int status)
{
    return status == REDLOCK_EAUTH || status == REDLOCK_EDUPLICATE || status == REDLOCK_ECANCELED ||
           status == REDLOCK_ECLOSED || status == REDLOCK_ELOST;
}

/* How long to sleep before the next attempt, or 0 if the budget does not allow another one. The
 * last attempt starts just before the budget ends, so that no time of it is given away. */
static uint64_t retry_delay_ns(const struct rl_lease *lease, const struct rl_view *view)
{
    const struct rl_lease_params *params = &lease->params;

    if (params->wait_ns == 0)
        return 0;
    uint64_t delay = rl_backoff_ns(&params->backoff, lease->failures, view->round_trip_ns,
                                   rl_jitter(view->random, params->salt, lease->attempts));
    delay = rl_max_u64(delay, 1); /* 0 means the end */
    if (params->wait_ns == RL_NEVER)
        return delay;
    uint64_t left = rl_remaining_ns(lease->wait_until, view->now);
    uint64_t reserve = rl_max_u64(2 * view->round_trip_ns, RL_MS);
    if (left <= reserve)
        return 0;
    return rl_min_u64(delay, left - reserve);
}

/* Ends an attempt: what it may have set anywhere is undone at once, then the caller is told or the
 * next attempt is scheduled. A node that answered nil has provably not executed our SET. */
static void fail_attempt(struct rl_lease *lease, int status, const struct rl_view *view,
                         struct rl_effects *fx)
{
    rl_nodes asked = RL_RULE(UNDO_UNANSWERED) ? lease->ours : lease->round.granted;
    if (lease->params.kind == RL_LEASE_ACQUIRE && RL_RULE(UNDO))
        fx->undo |= asked;
    lease->ours = 0;
    lease->fresh = lease->confirmed = lease->probation = 0;
    lease->round.outcome = RL_OUTCOME_FAILED;
    lease->failures++;
    uint64_t delay_ns = is_final(status) ? 0 : retry_delay_ns(lease, view);
    if (delay_ns == 0) {
        end(lease, status, fx);
        return;
    }
    rl_lease_move(lease, RL_STATE_WAITING);
    lease->status = status;
    lease->next = rl_later(view->now, delay_ns);
    fx->status = status;
    fx->flags |= RL_FX_WAITING;
}

static struct rl_now attempt_deadline(const struct rl_lease *lease)
{
    return rl_deadline(lease->round.t1, lease->params.ttl_ns, &lease->params.drift);
}

static int adoption_status(const struct rl_lease *lease)
{
    const struct rl_round *round = &lease->round;
    unsigned spare = (unsigned)(round->nodes - round->quorum);

    if (rl_nodes_count(round->denied) > spare)
        return REDLOCK_ELOST;
    int status = rl_round_status(round);
    return status == REDLOCK_ECONTENDED ? REDLOCK_ENOQUORUM : status;
}

/* What the votes so far mean for an attempt. */
static void judge_attempt(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    switch (rl_round_judge(&lease->round)) {
    case RL_OUTCOME_OPEN:
        return;
    case RL_OUTCOME_WON:
        break;
    default:
        fail_attempt(lease,
                     lease->params.kind == RL_LEASE_ADOPT ? adoption_status(lease)
                                                          : rl_round_status(&lease->round),
                     view, fx);
        return;
    }
    if (rl_lease_is_fenced(lease)) {
        enum rl_fence_outcome outcome = rl_lease_fence_judge(lease, view, fx);
        if (outcome == RL_FENCE_FAILED)
            fail_attempt(lease, rl_lease_fence_status(lease), view, fx);
        if (outcome != RL_FENCE_AGREED)
            return;
    }
    struct rl_now deadline = attempt_deadline(lease);
    if (!RL_RULE(T1_FIRST))
        deadline = rl_deadline(view->now, lease->params.ttl_ns, &lease->params.drift);
    if (RL_RULE(VALIDITY_MIN) && rl_lease_left_ns(lease, deadline, lease->round.t1_wall_us, view) <
                                     lease->params.validity_min_ns) {
        fail_attempt(lease, REDLOCK_ETOOSLOW, view, fx);
        return;
    }
    lease->failures = 0;
    rl_hold_begin(lease, deadline, view, fx);
    fx->status = REDLOCK_OK;
    fx->flags |= RL_FX_DONE | RL_FX_HELD;
}

static void begin_attempt(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    bool adopt = lease->params.kind == RL_LEASE_ADOPT;
    rl_nodes all = rl_nodes_all(lease->params.nodes);

    lease->attempts++;
    if (!adopt)
        memset(&lease->fence, 0, sizeof lease->fence);
    rl_round_open(&lease->round, adopt ? RL_VERB_EXTEND : RL_VERB_ACQUIRE, all,
                  adopt ? view->unfit : ~view->voters, view);
    if (view->duplicate && !adopt) {
        lease->round.asked = 0;
        fail_attempt(lease, REDLOCK_EDUPLICATE, view, fx);
        return;
    }
    lease->ttl_max_ns = adopt ? RL_NEVER : lease->params.ttl_ns;
    lease->extend_ttl_ns = lease->params.ttl_ns;
    /* Without a possible majority nothing is sent: no key needs to be taken back. */
    if (rl_round_judge(&lease->round) == RL_OUTCOME_FAILED) {
        lease->round.asked = 0;
        judge_attempt(lease, view, fx);
        return;
    }
    lease->ours = adopt ? all : lease->round.asked;
    fx->ask = lease->round.asked;
    fx->flags |= adopt ? 0 : RL_FX_ATTEMPT;
}

static void on_start(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    rl_nodes all = rl_nodes_all(lease->params.nodes);

    lease->begun = view->now;
    lease->wait_until = rl_later(view->now, lease->params.wait_ns);
    switch (lease->params.kind) {
    case RL_LEASE_RELEASE:
        lease->ours = all;
        rl_hold_release(lease, RL_VERB_RELEASE, view, fx);
        return;
    case RL_LEASE_INSPECT:
        rl_lease_move(lease, RL_STATE_ASKING);
        lease->attempts = 1;
        rl_round_open(&lease->round, RL_VERB_GET, all, 0, view);
        fx->ask = lease->round.asked;
        break;
    default:
        rl_lease_move(lease, RL_STATE_ASKING);
        begin_attempt(lease, view, fx);
        return;
    }
    if (rl_round_judge(&lease->round) != RL_OUTCOME_OPEN)
        end(lease, rl_round_status(&lease->round), fx);
}

static void on_attempt_vote(struct rl_lease *lease, const struct rl_ballot *ballot,
                            const struct rl_view *view, struct rl_effects *fx)
{
    if (ballot->verb == RL_VERB_RAISE) {
        rl_lease_fence_raised(lease, ballot);
        judge_attempt(lease, view, fx);
        return;
    }
    if (!rl_round_count(&lease->round, ballot))
        return;
    if (lease->params.kind == RL_LEASE_INSPECT) {
        enum rl_outcome outcome = rl_round_judge(&lease->round);
        if (outcome != RL_OUTCOME_OPEN)
            end(lease, outcome == RL_OUTCOME_WON ? REDLOCK_OK : rl_round_status(&lease->round), fx);
        return;
    }
    /* A node that was asked while it was connecting has told since then who it is. */
    bool adopt = lease->params.kind == RL_LEASE_ADOPT;
    rl_round_bar(&lease->round, adopt ? view->unfit : ~view->voters, view);
    if (!adopt)
        rl_lease_note_set(lease, ballot);
    else if (ballot->vote == RL_VOTE_DENIED) /* else what is adopted is there, asked or not */
        lease->ours &= ~RL_NODE(ballot->node);
    if (rl_lease_is_fenced(lease))
        rl_lease_fence_vote(lease, ballot, view, fx);
    judge_attempt(lease, view, fx);
}

static void on_attempt_tick(struct rl_lease *lease, const struct rl_view *view,
                            struct rl_effects *fx)
{
    if (lease->params.kind == RL_LEASE_INSPECT)
        return;
    uint64_t left = rl_remaining_ns(attempt_deadline(lease), view->now);
    bool too_slow = left < lease->params.validity_min_ns;
    bool budget_used = lease->params.wait_ns != 0 && lease->params.wait_ns != RL_NEVER &&
                       rl_remaining_ns(lease->wait_until, view->now) == 0;
    if (!too_slow && !budget_used)
        return;
    rl_round_expire(&lease->round, REDLOCK_CAUSE_TIMEOUT);
    /* An attempt that the end of the budget cuts short has learned nothing: the one before it is
     * the last that has a cause. */
    int status = too_slow              ? REDLOCK_ETOOSLOW
                 : lease->attempts > 1 ? lease->status
                                       : rl_round_status(&lease->round);
    fail_attempt(lease, status, view, fx);
}

static void on_waiting_tick(struct rl_lease *lease, const struct rl_view *view,
                            struct rl_effects *fx)
{
    if (rl_remaining_ns(lease->next, view->now) != 0)
        return;
    rl_lease_move(lease, RL_STATE_ASKING);
    begin_attempt(lease, view, fx);
}

static void on_cancel(struct rl_lease *lease, int status, const struct rl_view *view,
                      struct rl_effects *fx)
{
    switch (lease->state) {
    case RL_STATE_NEW: /* was not begun yet */
        end(lease, status, fx);
        break;
    case RL_STATE_ASKING:
        rl_round_expire(&lease->round, REDLOCK_CAUSE_NONE);
        if (lease->params.kind == RL_LEASE_INSPECT)
            end(lease, status, fx);
        else
            fail_attempt(lease, status, view, fx);
        break;
    case RL_STATE_WAITING:
        end(lease, status, fx);
        break;
    case RL_STATE_RELEASING: /* the deletes are on their way; only the caller stops waiting */
        end(lease, status, fx);
        break;
    default:
        break;
    }
}

/* The caller is about to be told that it holds the lock: is that still true? */
static void on_confirm(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    if ((lease->state != RL_STATE_HELD && lease->state != RL_STATE_EXTENDING) || !RL_RULE(RECHECK))
        return;
    if (rl_lease_left_ns(lease, lease->deadline, lease->wall_us, view) >=
        lease->params.validity_min_ns)
        return;
    if (lease->state == RL_STATE_EXTENDING)
        rl_lease_move(lease, RL_STATE_HELD);
    fail_attempt(lease, REDLOCK_ETOOSLOW, view, fx);
}

static void update_wake(struct rl_lease *lease, struct rl_now now)
{
    uint64_t left;

    switch (lease->state) {
    case RL_STATE_ASKING:
        if (lease->params.kind == RL_LEASE_INSPECT) {
            lease->wake_ns = RL_NEVER;
            return;
        }
        left = rl_sub_sat(rl_remaining_ns(attempt_deadline(lease), now),
                          lease->params.validity_min_ns) +
               1;
        if (lease->params.wait_ns != 0 && lease->params.wait_ns != RL_NEVER)
            left = rl_min_u64(left, rl_remaining_ns(lease->wait_until, now));
        lease->wake_ns = rl_due_ns(now, left);
        break;
    case RL_STATE_WAITING:
        lease->wake_ns = rl_due_ns(now, rl_remaining_ns(lease->next, now));
        break;
    case RL_STATE_HELD:
    case RL_STATE_EXTENDING:
        lease->wake_ns = rl_hold_wake_ns(lease, now);
        break;
    default:
        lease->wake_ns = RL_NEVER;
        break;
    }
}

static void on_vote(struct rl_lease *lease, const struct rl_ballot *ballot,
                    const struct rl_view *view, struct rl_effects *fx)
{
    switch (lease->state) {
    case RL_STATE_ASKING:
        on_attempt_vote(lease, ballot, view, fx);
        break;
    case RL_STATE_HELD:
    case RL_STATE_EXTENDING:
        rl_hold_vote(lease, ballot, view, fx);
        break;
    case RL_STATE_RELEASING:
        rl_release_vote(lease, ballot, fx);
        break;
    default:
        break;
    }
}

void rl_lease_step(struct rl_lease *lease, const struct rl_event *event, const struct rl_view *view,
                   struct rl_effects *fx)
{
    uint8_t state = lease->state;

    memset(fx, 0, sizeof *fx);
    switch (event->kind) {
    case RL_EVENT_START:
        on_start(lease, view, fx);
        break;
    case RL_EVENT_VOTE:
        on_vote(lease, &event->ballot, view, fx);
        break;
    case RL_EVENT_TICK:
        if (state == RL_STATE_ASKING)
            on_attempt_tick(lease, view, fx);
        else if (state == RL_STATE_WAITING)
            on_waiting_tick(lease, view, fx);
        else if (state == RL_STATE_HELD || state == RL_STATE_EXTENDING)
            rl_hold_tick(lease, view, fx);
        break;
    case RL_EVENT_CANCEL:
        on_cancel(lease, event->status, view, fx);
        break;
    case RL_EVENT_CONFIRM:
        on_confirm(lease, view, fx);
        break;
    case RL_EVENT_EXTEND:
        rl_hold_extend(lease, event->ttl_ns, view, fx);
        break;
    case RL_EVENT_RELEASE:
        rl_hold_release(lease, RL_VERB_RELEASE, view, fx);
        break;
    case RL_EVENT_SHORTEN:
        rl_hold_release(lease, RL_VERB_SHORTEN, view, fx);
        break;
    case RL_EVENT_DOUBT:
        if (state == RL_STATE_ASKING && lease->params.kind != RL_LEASE_INSPECT) {
            rl_round_bar(&lease->round, event->nodes, view);
            judge_attempt(lease, view, fx);
        } else if (state == RL_STATE_HELD || state == RL_STATE_EXTENDING) {
            rl_hold_doubt(lease, event->nodes, view, fx);
        }
        break;
    default:
        RL_ASSERT(event->kind == RL_EVENT_DETACH);
        rl_hold_detach(lease, view, fx);
        break;
    }
    if (lease->state != RL_STATE_ASKING)
        fx->raise = 0; /* the same step has ended the attempt */
    RL_ASSERT((fx->ask & ~(view->up | view->silent)) == 0);
    RL_ASSERT((fx->raise & ~view->up) == 0);
    if (event->kind != RL_EVENT_VOTE || fx->flags != 0)
        update_wake(lease, view->now);
}
