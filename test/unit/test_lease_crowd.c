/* SPDX-License-Identifier: MIT
 * A lease that was woken with many others, and how it hears of that: see also test_lease_contest.c.
 */
#include "contest_rig.h"

static void deny_piped(void)
{
    begin_hot();
    rig_deny(&rig, FIRST);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
}

/* The answer to the question that went with the SET. */
START_TEST(answer_behind_the_denial)
{
    deny_piped();
    tell_ttl(FIRST, 30);
    ck_assert_uint_eq(sleep_until_asked(), 31 * RL_MS);

    setup();
    deny_piped();
    tell_ttl(FIRST, 0);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ASKING);

    setup();
    deny_piped();
    wake(RL_NODE(FIRST));
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ASKING);
}
END_TEST

/* Pushes come on another connection: they may overtake the denial. */
START_TEST(told_before_the_denial_is_here)
{
    begin_hot();
    wake(RL_NODE(4)); /* was not asked */
    ck_assert(!rig.lease.wait.told);
    wake(RL_NODE(FIRST));
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ASKING);
    rig_deny(&rig, FIRST);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_le(sleep_until_asked(), 1); /* ns: the next tick */
    ck_assert_uint_eq(rig.fx.ask, RL_NODE(FIRST));
    rig_deny(&rig, FIRST); /* that was said once */
    ck_assert_uint_ge(sleep_until_asked(), 100 * RL_MS);
}
END_TEST

/* What was asked with a SET that was granted, or that others were asked behind, is old. */
START_TEST(asked_again_if_more_has_happened)
{
    begin_hot();
    rig_grant(&rig, FIRST);
    tell_ttl(FIRST, 10000); /* our own key */
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ASKING);
    ck_assert_uint_eq(rig.lease.round.granted, RL_NODE(FIRST));
    rig_deny(&rig, 0);
    rig_deny(&rig, 1);
    rig_deny(&rig, 3);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_eq(rig.fx.watch, RL_NODE(FIRST));

    setup();
    begin_hot();
    rig_pass(&rig, 2 * RL_MS);
    rig_tick(&rig);
    ck_assert_uint_eq(rig.fx.ask, ALL & ~RL_NODE(FIRST));
    rig_deny(&rig, FIRST);
    tell_ttl(FIRST, 5000);
    rig_deny(&rig, 0);
    rig_deny(&rig, 1);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_eq(rig.fx.watch, RL_NODE(FIRST));

    setup();
    rig.params.wait_ns = 0; /* who does not wait wants to know nothing */
    begin_hot();
    ck_assert_uint_eq(rig.fx.watch, 0);
}
END_TEST

START_TEST(the_answer_comes_when_it_is_held)
{
    begin_hot();
    rig_grant(&rig, FIRST);
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
    struct rl_lease before = rig.lease;
    tell_ttl(FIRST, 10000);
    tell_ttl(FIRST, 0);
    ck_assert_uint_eq(rig.lease.backing, before.backing);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
    ck_assert_uint_eq(rig.lease.deadline.boot_ns, before.deadline.boot_ns);
}
END_TEST

/* Always the only one to be woken: nobody else waits, as far as it knows. With another random word
 * each time until it is one that goes ahead. */
static void go_ahead(void)
{
    contest.crowd = 8;
    for (unsigned i = 0;; i++) {
        ck_assert_uint_lt(i, 100);
        contest.yield_until_ns = 0;
        rig.view.random = i * UINT64_C(0x9e3779b97f4a7c15);
        deny_piped();
        wake(RL_NODE(FIRST));
        if (rig.lease.state == RL_STATE_ASKING)
            break;
        ck_assert_uint_ge(sleep_until_asked(), RL_MS / 8);
        ck_assert_uint_eq(rig.fx.ask, RL_NODE(FIRST)); /* it looks whether there are others */
    }
    ck_assert_uint_eq(rig.fx.ask, ALL);
}

START_TEST(nobody_else_waits)
{
    go_ahead();
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    rig_grant(&rig, 3);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
    ck_assert_uint_eq(contest.timid, 0);
    rig_event(&rig, RL_EVENT_RELEASE);

    go_ahead();
    rig_deny(&rig, 0);
    rig_deny(&rig, 1);
    rig_deny(&rig, 3);
    ck_assert_uint_eq(contest.timid, 1);  /* it was too late */
    ck_assert_uint_eq(contest.misled, 1); /* on the word of the first node, too */
}
END_TEST

/* Two that went ahead would divide four nodes. And of two nodes both are needed: there is none that
 * another one could have. */
START_TEST(nobody_goes_ahead_where_a_node_is_missing)
{
    contest.crowd = 8;
    if (_i == 1)
        rig.params.terms.quorum = rig.params.terms.nodes;
    for (unsigned i = 0; i < 100; i++) {
        rig.view.random = i * UINT64_C(0x9e3779b97f4a7c15);
        if (_i == 0)
            rig.view.up = ALL & ~RL_NODE(3);
        deny_piped();
        wake(RL_NODE(FIRST));
        ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
        (void)sleep_until_asked();
        ck_assert_uint_eq(rig.fx.ask, RL_NODE(FIRST));
    }
}
END_TEST

START_TEST(many_wait_and_it_lags)
{
    contest.crowd = 8 * 1000; /* one of a thousand: not us */
    deny_piped();
    wake(RL_NODE(FIRST));
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    uint64_t slept_ns = sleep_until_asked();
    ck_assert_uint_ge(slept_ns, RL_MS / 2); /* it was woken for the first time */
    ck_assert_uint_lt(slept_ns, 5 * RL_MS / 8);
    ck_assert_uint_eq(rig.fx.ask, RL_NODE(FIRST));

    setup();
    contest.crowd = 8 * 1000;
    deny_piped();
    contest.wakes = 5000; /* others have won so often */
    wake(RL_NODE(FIRST));
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_lt(sleep_until_asked(), RL_MS / 7);
}
END_TEST

/* From the second split on: longer than any lag, now and then, and never much longer than that
 * pause may be. */
START_TEST(splits_keep_apart)
{
    for (unsigned splits = 1; splits <= 8; splits++) {
        uint64_t most_ns = 0;
        for (uint64_t salt = 0; salt < 100; salt++) {
            setup();
            rig.lease.salt = salt;
            deny_piped();
            for (unsigned i = 0; i < splits; i++)
                rl_contest_denied(&contest, true, 0, rig.view.now.boot_ns);
            wake(RL_NODE(FIRST));
            most_ns = rl_max_u64(most_ns, sleep_until_asked());
        }
        if (splits < 2)
            ck_assert_uint_lt(most_ns, 5 * RL_MS / 8);
        else
            ck_assert_uint_gt(most_ns, 2 * RL_MS);
        ck_assert_uint_lt(most_ns, 17 * RL_MS);
    }
}
END_TEST

/* The denial that shows others may come before the majority, or after. */
START_TEST(a_denial_shows_others_whenever_it_comes)
{
    for (int late = 0; late < 2; late++) {
        setup();
        begin(RL_EVENT_START);
        if (!late)
            rig_deny(&rig, FIRST);
        rig_grant(&rig, 0);
        rig_grant(&rig, 1);
        rig_grant(&rig, 3);
        ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
        ck_assert_uint_eq(contest.met, !late);
        if (late)
            rig_deny(&rig, FIRST);
        ck_assert(contest.met);
        rig_event(&rig, RL_EVENT_RELEASE);
        ck_assert_uint_gt(contest.yield_until_ns, rig.view.now.boot_ns);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lease_crowd");
    TCase *tcase = tcase_create("crowd");
    tcase_add_checked_fixture(tcase, setup, NULL);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, answer_behind_the_denial);
    tcase_add_test(tcase, told_before_the_denial_is_here);
    tcase_add_test(tcase, asked_again_if_more_has_happened);
    tcase_add_test(tcase, the_answer_comes_when_it_is_held);
    tcase_add_test(tcase, nobody_else_waits);
    tcase_add_loop_test(tcase, nobody_goes_ahead_where_a_node_is_missing, 0, 2);
    tcase_add_test(tcase, many_wait_and_it_lags);
    tcase_add_test(tcase, splits_keep_apart);
    tcase_add_test(tcase, a_denial_shows_others_whenever_it_comes);
    return suite_run(suite);
}
