/* SPDX-License-Identifier: MIT
 * Fuzzes one lease with a script of events: votes that fit the round or not, time on two clocks,
 * nodes that connect and disconnect, calls of the user in each state. A ledger records only what
 * was requested and answered; effects that it cannot explain are errors. A fenced attempt has a
 * ledger of its own (ledger_fence.h).
 *
 *     10 bytes parameters, then events of 3 bytes; votes of a fenced attempt have 2 more, and so
 *     has time where the wall clock is watched */
#include "fuzz.h"

#include "lease_rig.h"
#include "ledger_fence.h"

#define WALL_SLACK_US 300000

static struct rig rig;
static struct ledger_fence fence;

/* The ledger of requests and answers. */
static struct {
    rl_nodes keys;     /* nodes that have the lease's key, or may get it */
    rl_nodes asked;    /* by the running round */
    rl_nodes answered; /* of those */
    rl_nodes granted;
    rl_nodes excluded_nodes; /* excluded nodes, as far as was known with the last answer */
    uint32_t round;
    bool pending;   /* a caller waits for DONE */
    bool confirmed; /* the user has the lock */
    bool held;
    struct rl_now latest; /* no deadline may be later than this */
    uint64_t ttl_ns;
    int64_t wall_t1_us;   /* wall clock minus boot clock when the running round began */
    int64_t wall_held_us; /* the same when the round began that the held lock rests on */
} ledger;

/* Returns true if the lease is a fenced acquisition. */
static bool is_fenced(void)
{
    return rig.params.terms.fence && rig.params.terms.kind == RL_LEASE_ACQUIRE;
}

/* Returns the nodes whose grants do not count in the running round. A quarantine excludes from new
 * locks only; an extension needs nodes whose reports about themselves can be believed. */
static rl_nodes excluded_now(void)
{
    return rig.lease.round.verb == RL_VERB_ACQUIRE ? ~rig.view.eligible : rig.view.excluded;
}

/* Returns true if the lease is held. */
static bool is_held(void)
{
    return rig.lease.state == RL_STATE_HELD || rig.lease.state == RL_STATE_EXTENDING;
}

/* Draws the parameters of the lease. */
static void draw_params(struct fuzz_input *input)
{
    static const uint64_t waits[] = {0, 5 * RL_MS, RL_SECOND, RL_NEVER};
    unsigned nodes = fuzz_below(input, 7) + 1;
    unsigned flags = fuzz_byte(input);
    struct rl_lease_params *params = &rig.params;

    rig_init(&rig, nodes);
    params->terms.kind = (uint8_t)(fuzz_below(input, 4) + RL_LEASE_ACQUIRE);
    params->terms.auto_extend = (flags & 1) != 0;
    params->wait_ns = waits[flags >> 1 & 3];
    params->terms.hold_max_ns = (flags & 8) != 0 ? 3 * RL_SECOND : 0;
    params->terms.extends_max = (flags & 16) != 0 ? 2 : 0;
    params->terms.extend_at_ns = (flags & 32) != 0 ? RL_SECOND : 0;
    params->terms.fence = (flags & 64) != 0;
    params->fence = params->terms.kind == RL_LEASE_ADOPT && params->terms.fence ? 4711 : 0;
    params->terms.wall_slack_us = (flags & 128) != 0 ? WALL_SLACK_US : 0;
    params->terms.drift.ppm = fuzz_short(input) * 7;
    params->terms.ttl_ns = ((uint64_t)fuzz_short(input) + 20) * RL_MS;
    params->terms.margin_ns = (uint64_t)fuzz_byte(input) * 10 * RL_MS;
    params->salt = fuzz_byte(input);
    rig.view.random = fuzz_byte(input) * UINT64_C(0x9e3779b97f4a7c15);
}

/* Returns t1 + ttl - drift - loss margin, computed without the code under test. */
static uint64_t latest_ns(uint64_t t1, uint64_t ttl)
{
    uint64_t drift = ttl / 1000000 * rig.params.terms.drift.ppm +
                     ttl % 1000000 * rig.params.terms.drift.ppm / 1000000;
    uint64_t margin = ttl / 1000 > 5 * RL_MS ? ttl / 1000 : 5 * RL_MS;
    uint64_t less = drift + rig.params.terms.drift.constant_us * RL_US + margin;

    return less < ttl ? t1 + ttl - less : t1;
}

/* Records the requests of a new round in the ledger. */
static void note_request(const struct rl_effects *fx)
{
    const struct rl_round *round = &rig.lease.round;

    if (fx->flags & RL_FX_ATTEMPT)
        ledger.keys = fx->request;
    if (rig.lease.state == RL_STATE_ENDED || round->number == ledger.round)
        return;
    ledger.round = round->number;
    ledger.asked = fx->request;
    ledger.answered = ledger.granted = 0;
    ledger.wall_t1_us = rig.view.wall_us;
    ledger.excluded_nodes = excluded_now();
    if (round->verb == RL_VERB_EXTEND && rig.lease.terms->kind == RL_LEASE_ADOPT && !ledger.held)
        ledger.keys = rl_nodes_all(rig.params.terms.nodes); /* the key of an adopted lock may be
                                                             * anywhere */
    ledger.ttl_ns =
        round->verb == RL_VERB_EXTEND ? rig.lease.extend_ttl_ns : rig.params.terms.ttl_ns;
}

/* Returns whether the wall clock was set ahead since then: so much time may have passed without the
 * other clocks. */
static bool was_set_ahead(int64_t since_us)
{
    return rig.params.terms.wall_slack_us != 0 && rig.view.wall_us - since_us > WALL_SLACK_US;
}

/* Checks that a grant rests on a majority of the configured nodes and leaves enough time. */
static void check_grant(void)
{
    struct rl_now t1 = rig.lease.round.t1;

    MUST(rl_nodes_count(ledger.granted & ~ledger.excluded_nodes) >=
         rig.params.terms.nodes / 2u + 1);
    MUST(!was_set_ahead(ledger.held ? ledger.wall_held_us : ledger.wall_t1_us));
    ledger.wall_held_us = ledger.wall_t1_us;
    ledger.latest.boot_ns = rl_max_u64(ledger.latest.boot_ns, latest_ns(t1.boot_ns, ledger.ttl_ns));
    ledger.latest.raw_ns = rl_max_u64(ledger.latest.raw_ns, latest_ns(t1.raw_ns, ledger.ttl_ns));
    MUST(rig.lease.deadline.boot_ns <= ledger.latest.boot_ns);
    MUST(rig.lease.deadline.raw_ns <= ledger.latest.raw_ns);
}

/* Checks that each key that may be set is undone, and that no request goes to a node that certainly
 * has no key. */
static void check_undone(const struct rl_effects *fx)
{
    rl_nodes back = fx->undo | (rig.lease.round.verb == RL_VERB_RELEASE ||
                                        rig.lease.round.verb == RL_VERB_SHORTEN
                                    ? fx->request
                                    : 0);

    MUST((ledger.keys & ~back) == 0);
    MUST((fx->undo & ~ledger.keys) == 0);
    ledger.keys = 0;
}

/* Checks that each report fits the ledger and the state before. */
static void check_announcements(const struct rl_effects *fx, uint8_t before, bool was_held)
{
    uint32_t flags = fx->flags;

    if (flags & RL_FX_DONE) {
        MUST(ledger.pending);
        ledger.pending = false;
    }
    if (flags & RL_FX_HELD) {
        MUST((flags & RL_FX_DONE) != 0 && fx->status == REDLOCK_OK && is_held() && !ledger.held);
        check_grant();
        MUST(rig_remaining_ns(&rig) >= rig.params.terms.validity_min_ns);
        if (is_fenced())
            ledger_fence_won(&fence, &rig.lease, ledger.granted & ~ledger.excluded_nodes);
        ledger.held = true;
    }
    if (flags & RL_FX_EXTENDED) {
        MUST(ledger.held && before == RL_STATE_EXTENDING);
        check_grant();
    }
    if (flags & RL_FX_LOST)
        MUST(was_held && (flags & RL_FX_ENDED) != 0);
    if (flags & (RL_FX_EXTEND_FAILED | RL_FX_ENDANGERED))
        MUST(was_held);
    if (flags & RL_FX_WAITING)
        MUST(rig.lease.state == RL_STATE_WAITING && fx->status != REDLOCK_OK);
    MUST(((flags & RL_FX_ENDED) != 0) == (rig.lease.state == RL_STATE_ENDED));
    MUST(is_held() || rig_remaining_ns(&rig) == 0);
    ledger.held = is_held();
}

/* Returns true if a lease in this state may have requests in flight. */
static bool is_asking(uint8_t state)
{
    return state == RL_STATE_ACQUIRING || state == RL_STATE_HELD || state == RL_STATE_EXTENDING;
}

/* Checks the effects of the last step. */
static void check(uint8_t kind, uint8_t before)
{
    const struct rl_effects *fx = &rig.fx;
    rl_nodes all = rl_nodes_all(rig.params.terms.nodes);
    uint8_t after = rig.lease.state;
    bool was_held = ledger.held;

    MUST((fx->request & ~((rig.view.up | rig.view.suspect) & all)) == 0);
    MUST((fx->heal & ~(rig.view.up & all)) == 0 && (fx->undo & ~all) == 0);
    if (before == RL_STATE_ENDED) {
        MUST(fx->flags == 0 && (fx->request | fx->undo | fx->heal | fx->raise) == 0);
        return;
    }
    MUST(is_fenced() || (fx->raise == 0 && rl_lease_fence_chosen(&rig.lease) == rig.params.fence));
    if (rig.params.terms.kind == RL_LEASE_ACQUIRE && is_asking(before) &&
        (after == RL_STATE_WAITING || after == RL_STATE_ENDED) && kind != RL_EVENT_DETACH)
        check_undone(fx);
    else if (after == RL_STATE_RELEASING && before != RL_STATE_RELEASING)
        check_undone(fx);
    note_request(fx);
    ledger.keys |= fx->heal;
    if (is_fenced())
        ledger_fence_step(&fence, &rig.lease, fx, ledger.granted & ~ledger.excluded_nodes);
    check_announcements(fx, before, was_held);
    if (kind == RL_EVENT_TICK && is_held())
        MUST(!was_set_ahead(ledger.wall_held_us));
    bool timed = (is_asking(after) && rig.params.terms.kind != RL_LEASE_INSPECT) ||
                 after == RL_STATE_WAITING;
    if (kind != RL_EVENT_VOTE || fx->flags != 0)
        MUST(timed ? rig.lease.wake_ns > rig.view.now.boot_ns && rig.lease.wake_ns != RL_NEVER
                   : rig.lease.wake_ns == RL_NEVER);
}

/* Passes an event to the lease and checks its effects. */
static void pass_event(const struct rl_event *what)
{
    uint8_t before = rig.lease.state;

    rig_step(&rig, what);
    check(what->kind, before);
    /* Like the engine, sets a fresh token, and with it a proposal, before the first request. */
    if ((rig.fx.flags & RL_FX_ATTEMPT) && is_fenced())
        ledger_fence_begin(&fence, &rig.lease, rig.view.random);
}

/* Records what an answer of the running round says about the key on that node. */
static void note_answer(const struct rl_ballot *ballot)
{
    rl_nodes bit = RL_NODE(ballot->node);
    uint8_t verb = rig.lease.round.verb;
    bool absent = ballot->vote == RL_VOTE_DENIED;

    if (ballot->round != ledger.round || ballot->vote == RL_VOTE_SUSPECT)
        return;
    if (ballot->verb == RL_VERB_RAISE) {
        if (ledger_fence_raised(&fence, ballot) && absent)
            ledger.keys &= ~bit;
        return;
    }
    if (ballot->verb == RL_VERB_HEAL && ledger.held) {
        if (absent || (ballot->unsent && ballot->vote == RL_VOTE_FAILED))
            ledger.keys &= ~bit;
        return;
    }
    if ((ledger.asked & ~ledger.answered & bit) == 0)
        return;
    ledger.answered |= bit;
    ledger.excluded_nodes |= excluded_now();
    if (ballot->vote == RL_VOTE_GRANTED) {
        ledger.granted |= bit;
        if (is_fenced() && verb == RL_VERB_ACQUIRE)
            ledger_fence_granted(&fence, ballot);
        ledger.keys |= verb == RL_VERB_EXTEND ? bit : 0;
    }
    if (absent || (verb == RL_VERB_ACQUIRE && ballot->unsent && ballot->vote == RL_VOTE_FAILED))
        ledger.keys &= ~bit;
}

/* Passes a vote of the input, with `in_turn` one that the round waits for. */
static void pass_vote(struct fuzz_input *input, bool in_turn)
{
    static const uint8_t votes[] = {RL_VOTE_GRANTED, RL_VOTE_DENIED, RL_VOTE_FAILED,
                                    RL_VOTE_SUSPECT};
    unsigned node = fuzz_byte(input), what = fuzz_byte(input);
    uint8_t verb = rig.lease.round.verb;
    struct rl_ballot ballot = {
        .node = (uint8_t)(node % rig.params.terms.nodes),
        .vote = votes[what & 3],
        .verb = (what & 4) != 0 && ledger.held ? RL_VERB_HEAL : verb,
        .round = rig.lease.round.number,
        .rtt_us = what * 9,
    };

    if (ballot.vote == RL_VOTE_SUSPECT)
        ballot.cause = REDLOCK_CAUSE_TIMEOUT;
    if (ballot.vote == RL_VOTE_FAILED) {
        ballot.cause = (uint8_t)(node / 8 % 20 + 1);
        ballot.unsent = (what & 8) != 0;
    }
    if (is_fenced())
        ledger_fence_draw(&fence, input, &rig.lease, &ballot);
    if (!in_turn)
        ballot.round += (what >> 4) - 8u;
    if (rig.lease.state != RL_STATE_ENDED && rig.lease.state != RL_STATE_WAITING)
        note_answer(&ballot);
    pass_event(&(struct rl_event){.kind = RL_EVENT_VOTE, .ballot = ballot});
}

/* Advances the clocks, together or differently. */
static void pass(struct fuzz_input *input)
{
    uint64_t boot = fuzz_byte(input), raw = fuzz_byte(input);

    boot = boot * boot * 100 * RL_US;
    raw = (raw & 1) != 0 ? boot : raw * raw * 100 * RL_US;
    rig.view.now.boot_ns += boot;
    rig.view.now.raw_ns += raw;
    if (rig.params.terms.wall_slack_us != 0)
        rig.view.wall_us += (int64_t)(int16_t)fuzz_short(input) * 100;
    rig.view.random = rl_jitter(rig.view.random, boot, raw);
}

/* Lets the timer expire. */
static void wake(struct fuzz_input *input)
{
    uint64_t wake_ns = rig.lease.wake_ns;

    (void)fuzz_short(input);
    if (wake_ns == RL_NEVER)
        return;
    uint64_t ns = rl_sub_sat(wake_ns, rig.view.now.boot_ns);
    rig.view.now = rl_later(rig.view.now, ns);
    pass_event(&(struct rl_event){.kind = RL_EVENT_TICK});
}

/* Changes which nodes are connected, suspect, excluded or eligible. */
static void change_nodes(struct fuzz_input *input)
{
    rl_nodes all = rl_nodes_all(rig.params.terms.nodes);
    unsigned first = fuzz_byte(input), second = fuzz_byte(input);

    rig.view.up = ~(rl_nodes)first & all;
    rig.view.suspect = (rl_nodes)(first & second) & all;
    rig.view.excluded = (rl_nodes)(second >> 3) & first & all;
    rig.view.eligible = all & ~((rl_nodes)second >> 1) & ~rig.view.excluded;
    rig.view.duplicate = (second & 1) != 0;
    rig.view.round_trip_ns = (uint64_t)(first ^ second) * 100 * RL_US;
    for (unsigned i = 0; i < rig.params.terms.nodes; i++)
        rig.view.cause[i] =
            (rig.view.eligible & rig.view.up & RL_NODE(i)) != 0 ? 0 : (uint8_t)(second % 20 + 1);
}

/* Reports clock steps of these nodes: their earlier answers count no more. */
static void invalidate(struct fuzz_input *input)
{
    rl_nodes nodes = fuzz_byte(input) & rl_nodes_all(rig.params.terms.nodes);

    (void)fuzz_byte(input);
    if (rig.lease.state == RL_STATE_ACQUIRING && rig.params.terms.kind != RL_LEASE_INSPECT)
        ledger.excluded_nodes |= nodes;
    else if (is_held())
        ledger.excluded_nodes |= nodes & ledger.keys;
    pass_event(&(struct rl_event){.kind = RL_EVENT_INVALIDATE, .nodes = nodes});
}

/* Makes one of the calls that a user may make in this state. */
static void call_lease(struct fuzz_input *input)
{
    static const uint8_t kinds[] = {RL_EVENT_EXTEND, RL_EVENT_RELEASE, RL_EVENT_SHORTEN,
                                    RL_EVENT_DETACH, RL_EVENT_CONFIRM, RL_EVENT_CANCEL,
                                    RL_EVENT_EXTEND, RL_EVENT_CANCEL};
    struct rl_event what = {.kind = kinds[fuzz_byte(input) & 7], .status = REDLOCK_ECANCELED};
    unsigned detail = fuzz_byte(input);

    if (what.kind == RL_EVENT_CANCEL) {
        pass_event(&what);
        return;
    }
    if (!is_held())
        return;
    what.ttl_ns = (uint64_t)detail * 50 * RL_MS;
    /* A grant is confirmed right before the user learns of it. Before that, the user has no lock to
     * call with. */
    if (what.kind == RL_EVENT_CONFIRM && ledger.confirmed)
        return;
    ledger.confirmed = what.kind != RL_EVENT_CONFIRM;
    ledger.pending = ledger.pending || what.kind != RL_EVENT_DETACH;
    pass_event(&what);
    if (what.kind == RL_EVENT_CONFIRM && is_held())
        ledger.pending = false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};

    memset(&ledger, 0, sizeof ledger);
    memset(&fence, 0, sizeof fence);
    draw_params(&input);
    rig_new_lease(&rig);
    ledger.pending = true;
    ledger.keys =
        rig.params.terms.kind == RL_LEASE_RELEASE ? rl_nodes_all(rig.params.terms.nodes) : 0;
    if (fuzz_byte(&input) & 1)
        change_nodes(&input);
    pass_event(&(struct rl_event){.kind = RL_EVENT_START});
    while (input.left > 0) {
        unsigned what = fuzz_byte(&input);
        if (what == 255) {
            invalidate(&input);
            continue;
        }
        switch (what % 8) {
        case 0:
            pass(&input);
            break;
        case 1:
            wake(&input);
            break;
        case 2:
            change_nodes(&input);
            break;
        case 3:
            call_lease(&input);
            break;
        case 4:
            pass_vote(&input, false);
            break;
        case 5:
            pass_event(&(struct rl_event){.kind = RL_EVENT_TICK});
            break;
        default:
            pass_vote(&input, true);
            break;
        }
    }
    /* Every pending call must get its answer. */
    if (rig.lease.state != RL_STATE_ENDED && is_held())
        pass_event(&(struct rl_event){.kind = RL_EVENT_DETACH});
    else if (rig.lease.state != RL_STATE_ENDED)
        pass_event(&(struct rl_event){.kind = RL_EVENT_CANCEL, .status = REDLOCK_ECLOSED});
    MUST(rig.lease.state == RL_STATE_ENDED && !ledger.pending);
    return 0;
}
