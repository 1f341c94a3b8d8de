/* SPDX-License-Identifier: MIT
 * A lease and its two clocks: they run at different rates, one jumps over a suspend, readings are
 * huge. Its timer must neither miss a deadline nor expire without end.
 *
 * Uses lease_rig.h: one lease in virtual time. The test passes events to it: rig_grant(),
 * rig_deny() and rig_fail() are votes in the running round, rig_tick() is a timer that is due.
 * rig_pass() only advances the clocks. rig.fx holds the effects of the last step. */
/* Saves the time of Check's note about each assertion; see suite.h. */
#define SUITE_MANY_ASSERTIONS
#include "core/lease.h"

#include "lease_rig.h"
#include "suite.h"

/* Makes the lease held: all nodes grant at once. */
static void hold(struct rig *rig)
{
    rig_start(rig);
    for (unsigned i = 0; i < rig->params.terms.nodes; i++)
        rig_grant(rig, i);
    ck_assert_uint_eq(rig->lease.state, RL_STATE_HELD);
}

/* The boot clock is slewed: in each of its seconds the raw clock advances by 1 s + `ppm` µs. */
START_TEST(the_earlier_of_two_drifting_clocks_ends_the_lock)
{
    static const int ppm[] = {0, 100, 500, 5000, 83333, -100, -5000, -83333, -300000};
    struct rig rig;

    rig_init(&rig, 3);
    rig.params.terms.ttl_ns = 30 * RL_SECOND;
    hold(&rig);
    struct rl_now deadline = rig.lease.deadline;
    unsigned wakes = 0;
    while (rig.lease.state != RL_STATE_ENDED) {
        uint64_t sleep_ns = rig.lease.wake_ns - rig.view.now.boot_ns;
        ck_assert_uint_gt(rig.lease.wake_ns, rig.view.now.boot_ns);
        rig.view.now.boot_ns += sleep_ns;
        rig.view.now.raw_ns += sleep_ns + (uint64_t)((int64_t)sleep_ns / 1000000 * ppm[_i]);
        rig_tick(&rig);
        ck_assert_uint_lt(++wakes, 200);
    }
    ck_assert((rig.fx.flags & RL_FX_LOST) != 0);
    /* The lock ends at the first of the two deadlines, and not before. */
    bool boot_first = ppm[_i] <= 0;
    uint64_t late_ns = boot_first ? rig.view.now.boot_ns - deadline.boot_ns
                                  : rig.view.now.raw_ns - deadline.raw_ns;
    ck_assert(rig.view.now.boot_ns >= deadline.boot_ns || rig.view.now.raw_ns >= deadline.raw_ns);
    /* The last sleep lasts at most 20 ms. With the largest slew of chrony, 8.3 %, it ends within
     * 2 ms of the deadline; the smallest loss margin is 5 ms. */
    ck_assert_uint_le(late_ns, 2 * RL_MS);
    if (ppm[_i] >= 0 && ppm[_i] <= 500)
        ck_assert_uint_le(late_ns, 50 * RL_US);
}
END_TEST

START_TEST(a_suspend_is_noticed_at_the_next_step)
{
    struct rig rig;

    rig_init(&rig, 3);
    hold(&rig);
    rig.view.now.boot_ns += 60 * RL_SECOND; /* the raw clock stood still */
    rig.view.now.raw_ns += RL_MS;
    ck_assert_uint_eq(rig_remaining_ns(&rig), 0);
    rig_tick(&rig);
    ck_assert((rig.fx.flags & RL_FX_LOST) != 0);

    rig_start(&rig); /* in the middle of an attempt */
    rig_grant(&rig, 0);
    rig.view.now.boot_ns += 60 * RL_SECOND;
    rig_grant(&rig, 1);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ETOOSLOW);

    rig.params.wait_ns = 10 * RL_SECOND; /* between two attempts: the wait budget ends as well */
    rig_start(&rig);
    rig_deny(&rig, 0);
    rig_deny(&rig, 1);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    rig.view.now.boot_ns += 60 * RL_SECOND;
    rig_tick(&rig);
    while (rig.lease.state != RL_STATE_ENDED) {
        ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
        rig_tick(&rig);
    }
    ck_assert_uint_eq(rig.lease.attempts, 2);
}
END_TEST

/* The timer uses the boot clock, but an extension that is due on the raw clock must not be late. */
START_TEST(an_extension_is_due_on_either_clock)
{
    struct rig rig;

    for (int clock = 0; clock < 2; clock++) {
        rig_init(&rig, 3);
        rig.params.terms.auto_extend = true;
        hold(&rig);
        uint64_t *reading = clock == 0 ? &rig.view.now.boot_ns : &rig.view.now.raw_ns;
        uint64_t wait_ns = rl_remaining_ns(rig.lease.next, rig.view.now);
        ck_assert_uint_ge(wait_ns, RIG_USABLE_NS / 3 * 11 / 16);
        ck_assert_uint_le(wait_ns, RIG_USABLE_NS / 3);
        *reading += wait_ns - 1;
        rig_tick(&rig);
        ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
        ++*reading;
        rig_tick(&rig);
        ck_assert_uint_eq(rig.lease.state, RL_STATE_EXTENDING);
    }
}
END_TEST

/* ---- arithmetic at its ends ---- */

START_TEST(huge_durations_do_not_overflow)
{
    static const uint64_t huge[] = {RL_NEVER, RL_NEVER - 1, RL_NEVER / 2, UINT64_C(1) << 62};
    struct rig rig;

    for (unsigned i = 0; i < sizeof huge / sizeof huge[0]; i++) {
        rig_init(&rig, 3);
        rig.params.terms.ttl_ns = huge[i];
        rig.params.wait_ns = huge[i];
        rig.params.terms.hold_max_ns = huge[i];
        rig.params.terms.margin_ns = huge[i];
        rig.params.terms.backoff = (struct rl_backoff){huge[i], huge[i]};
        rig.params.terms.auto_extend = true;
        rig.view.round_trip_ns = RL_SECOND;
        rig_start(&rig);
        ck_assert_uint_gt(rig.lease.wake_ns, rig.view.now.boot_ns);
        rig_deny(&rig, 0);
        rig_deny(&rig, 1);
        ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
        ck_assert_uint_gt(rig.lease.wake_ns, rig.view.now.boot_ns);
        rig_tick(&rig);
        ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING); /* far from due */
        hold(&rig);
        uint64_t left = rig_remaining_ns(&rig);
        ck_assert_uint_gt(left, UINT64_C(1) << 61);
        ck_assert_uint_lt(left, huge[i]);
        rig_extend(&rig, RL_NEVER);
        rig_grant(&rig, 0);
        rig_grant(&rig, 1);
        ck_assert_uint_ge(rig_remaining_ns(&rig), left);
    }
}
END_TEST

START_TEST(a_clock_near_its_end_does_not_overflow)
{
    struct rig rig;

    rig_init(&rig, 3);
    rig.params.terms.auto_extend = true;
    rig.view.now = (struct rl_now){RL_NEVER - RL_SECOND, 0};
    hold(&rig);
    ck_assert_uint_eq(rig_remaining_ns(&rig), RL_SECOND); /* the deadline saturates */
    rig.view.now.boot_ns = RL_NEVER;
    rig_tick(&rig);
    ck_assert((rig.fx.flags & RL_FX_LOST) != 0);
}
END_TEST

START_TEST(a_ttl_without_usable_time_is_never_held)
{
    struct rig rig;

    rig_init(&rig, 3);
    rig.params.terms.ttl_ns = 7 * RL_MS; /* less than drift and margin */
    rig_start(&rig);
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ETOOSLOW);
    ck_assert_uint_eq(rig.fx.undo, 0x7);
}
END_TEST

/* ---- random events ---- */

static uint64_t word; /* state of the random generator */

/* Returns a random number below `below`. */
static uint64_t draw(uint64_t below)
{
    word ^= word << 13;
    word ^= word >> 7;
    word ^= word << 17;
    return word % below;
}

/* Passes a random vote, sometimes for a heal or for the round before. */
static void random_vote(struct rig *rig)
{
    static const uint8_t votes[] = {RL_VOTE_GRANTED, RL_VOTE_GRANTED, RL_VOTE_GRANTED,
                                    RL_VOTE_GRANTED, RL_VOTE_GRANTED, RL_VOTE_GRANTED,
                                    RL_VOTE_DENIED,  RL_VOTE_FAILED};
    const struct rl_round *round = &rig->lease.round;
    bool heal = draw(8) == 0;
    uint8_t vote = votes[draw(8)];

    rig_ballot(rig, (struct rl_ballot){
                        .node = (uint8_t)draw(rig->params.terms.nodes),
                        .vote = vote,
                        .cause = vote == RL_VOTE_FAILED ? REDLOCK_CAUSE_TIMEOUT : 0,
                        .verb = heal ? RL_VERB_HEAL : round->verb,
                        .unsent = vote == RL_VOTE_FAILED && draw(4) == 0,
                        .round = round->number - (draw(6) == 0 ? 1 : 0),
                    });
}

/* Lets a random event happen: a vote, a call, time that passes, or lost connections. */
static void random_event(struct rig *rig)
{
    bool held = rig->lease.state == RL_STATE_HELD || rig->lease.state == RL_STATE_EXTENDING;
    uint64_t dice = draw(100);

    memset(&rig->fx, 0, sizeof rig->fx); /* some events are no step of the lease */
    if (dice < 60)
        random_vote(rig);
    else if (dice < 64 && held)
        rig_extend(rig, draw(2) * RL_SECOND * draw(20));
    else if (dice < 66 && held)
        rig_event(rig, RL_EVENT_CONFIRM);
    else if (dice < 67)
        rig_event(rig, RL_EVENT_CANCEL);
    else if (dice < 68 && held)
        rig_event(rig, RL_EVENT_RELEASE);
    else if (dice < 69)
        rig->view.now.boot_ns += draw(12) * RL_SECOND;
    else if (dice < 75)
        rig_pass(rig, draw(500 * RL_MS));
    else if (dice < 77)
        rig->view.up = (rl_nodes)draw(rl_nodes_all(rig->params.terms.nodes) + 1);
    else
        rig_tick(rig);
}

/* Returns true if a lease in this state needs its timer. */
static bool is_timed(const struct rig *rig)
{
    uint8_t state = rig->lease.state;

    return state == RL_STATE_ACQUIRING || state == RL_STATE_WAITING || state == RL_STATE_HELD ||
           state == RL_STATE_EXTENDING;
}

/* Sets up a lease with random parameters. */
static void random_params(struct rig *rig)
{
    static const uint64_t waits[] = {0, 300 * RL_MS, 20 * RL_SECOND, RL_NEVER};

    rig_init(rig, 1 + (unsigned)draw(5));
    rig->params.wait_ns = waits[draw(4)];
    rig->params.terms.auto_extend = draw(2) == 0;
    rig->params.terms.hold_max_ns = draw(3) == 0 ? 1 + draw(30 * RL_SECOND) : 0;
    rig->params.terms.extends_max = (uint32_t)draw(4);
    rig->params.terms.extend_at_ns = draw(3) == 0 ? 1 + draw(9 * RL_SECOND) : 0;
    rig->params.terms.margin_ns = draw(2 * RL_SECOND);
    rig->params.terms.validity_min_ns = 1 + draw(RL_SECOND);
    rig->params.salt = draw(1000);
}

/* Checks, on a copy, that the timer has an effect after at most 60 expiries, and that each expiry
 * without an effect sets it to a later time. */
static void check_timer(struct rig *rig)
{
    if (!is_timed(rig)) {
        ck_assert_uint_eq(rig->lease.wake_ns, RL_NEVER);
        return;
    }
    ck_assert_uint_ne(rig->lease.wake_ns, RL_NEVER);
    struct rig copy = *rig;
    for (unsigned expiries = 0; is_timed(&copy); expiries++) {
        ck_assert_msg(expiries < 60, "the timer has no effect in state %u", copy.lease.state);
        uint8_t state = copy.lease.state;
        uint64_t wake_ns = copy.lease.wake_ns, now_ns = copy.view.now.boot_ns;
        if (wake_ns > now_ns)
            rig_pass(&copy, wake_ns - now_ns);
        rig_tick(&copy);
        if (copy.fx.flags != 0 || copy.lease.state != state)
            break;
        ck_assert_uint_gt(copy.lease.wake_ns, copy.view.now.boot_ns);
    }
}

START_TEST(the_timer_is_right_under_random_events)
{
    struct rig rig;
    unsigned held = 0, lost = 0, extended = 0;

    word = 88172645463325252u + (uint64_t)_i;
    for (unsigned run = 0; run < 200; run++) {
        random_params(&rig);
        rig_start(&rig);
        for (unsigned i = 0; i < 200 && rig.lease.state != RL_STATE_ENDED; i++) {
            check_timer(&rig);
            rig.view.random = draw(UINT64_MAX);
            random_event(&rig);
            held += (rig.fx.flags & RL_FX_HELD) != 0;
            lost += (rig.fx.flags & RL_FX_LOST) != 0;
            extended += (rig.fx.flags & RL_FX_EXTENDED) != 0;
            ck_assert_uint_eq(rig.fx.request & ~rig.view.up, 0);
            ck_assert((rig.fx.flags & RL_FX_ENDED) == 0 || rig.lease.state == RL_STATE_ENDED);
        }
    }
    ck_assert_uint_gt(held, 25);
    ck_assert_uint_gt(lost, 10);
    ck_assert_uint_gt(extended, 20);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("core_lease_clocks");
    TCase *tcase = tcase_create("time");
    tcase_set_timeout(tcase, 60);
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, the_earlier_of_two_drifting_clocks_ends_the_lock, 0, 9);
    tcase_add_test(tcase, a_suspend_is_noticed_at_the_next_step);
    tcase_add_test(tcase, an_extension_is_due_on_either_clock);
    tcase_add_test(tcase, huge_durations_do_not_overflow);
    tcase_add_test(tcase, a_clock_near_its_end_does_not_overflow);
    tcase_add_test(tcase, a_ttl_without_usable_time_is_never_held);
    tcase_add_loop_test(tcase, the_timer_is_right_under_random_events, 0, 4);
    return suite_run(suite);
}
