/* SPDX-License-Identifier: MIT
 * Votes that do not count, or count no more: nodes in quarantine, clocks that step ahead during a
 * lock, and the client's own wall clock being set ahead. */
#include "lease_rig.h"

#include "suite.h"

static struct rig rig;

static void bar(rl_nodes nodes, uint8_t cause)
{
    for (unsigned i = 0; i < RL_NODES_MAX; i++)
        if (nodes & RL_NODE(i))
            rig.view.cause[i] = cause;
    rig.view.eligible &= ~nodes;
}

static void doubt(rl_nodes nodes)
{
    const struct rl_event event = {.kind = RL_EVENT_INVALIDATE, .nodes = nodes};

    bar(nodes, REDLOCK_CAUSE_CLOCK_STEP);
    rig_step(&rig, &event);
}

static void hold(unsigned nodes, rl_nodes grants)
{
    rig_init(&rig, nodes);
    rig_start(&rig);
    for (unsigned i = 0; i < nodes; i++)
        if (grants & RL_NODE(i))
            rig_grant(&rig, i);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
}

/* Two of five are guarded: all are asked, three must agree, and who says no decides. */
START_TEST(guarded_nodes_are_asked_and_not_counted)
{
    rig_init(&rig, 5);
    bar(0x3, REDLOCK_CAUSE_RESTARTED);
    rig_start(&rig);
    ck_assert_uint_eq(rig.fx.request, 0x1f);
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    rig_grant(&rig, 2);
    rig_grant(&rig, 3);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    rig_grant(&rig, 4);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
    /* In an extension they count: their key is there. */
    rig_extend(&rig, 0);
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    rig_grant(&rig, 4);
    ck_assert_uint_ne(rig.fx.flags & RL_FX_EXTENDED, 0);
}
END_TEST

/* With the guarded ones there would be a majority: that is worth waiting for. But where another
 * client holds the lock, that is the reason, guarded nodes or not. */
START_TEST(only_guarded_nodes_could_help)
{
    static const struct {
        rl_nodes guarded, denied, failed;
        bool backwards; /* node 4 answers first */
        int status;
    } table[] = {
        {0x7, 0, 0, false, REDLOCK_EEXCLUDED},      {0x1, 0, 0x6, false, REDLOCK_EEXCLUDED},
        {0x1, 0, 0x6, true, REDLOCK_EEXCLUDED},     {0x4, 0x3, 0, true, REDLOCK_EEXCLUDED},
        {0x4, 0x3, 0, false, REDLOCK_ECONTENDED},   {0x1, 0x6, 0, false, REDLOCK_ECONTENDED},
        {0x1, 0x2, 0x4, false, REDLOCK_ECONTENDED},
    };

    rig_init(&rig, 5);
    bar(table[_i].guarded, REDLOCK_CAUSE_RESTARTED);
    rig_start(&rig);
    for (unsigned k = 0; k < 5 && rig.lease.state == RL_STATE_ACQUIRING; k++) {
        const unsigned i = table[_i].backwards ? 4 - k : k;
        if (table[_i].denied & RL_NODE(i))
            rig_deny(&rig, i);
        else if (table[_i].failed & RL_NODE(i))
            rig_fail(&rig, i);
        else
            rig_grant(&rig, i);
    }
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ENDED);
    ck_assert_int_eq(rig.fx.status, table[_i].status);
    ck_assert(redlock_error_is_retriable(table[_i].status));
}
END_TEST

/* It was asked while it was connecting; its greeting showed that it was restarted. Or it granted,
 * was restarted, and greets again before the others have answered. */
START_TEST(a_bar_in_the_middle_of_an_attempt)
{
    rig_init(&rig, 3);
    rig_start(&rig);
    if (_i == 0)
        rig_grant(&rig, 0);
    bar(0x1, REDLOCK_CAUSE_RESTARTED);
    if (_i == 1)
        rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    rig_deny(&rig, 2);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ENDED);
    ck_assert_int_eq(rig.fx.status, REDLOCK_EEXCLUDED);
}
END_TEST

START_TEST(a_step_under_an_attempt)
{
    rig_init(&rig, 3);
    rig_start(&rig);
    rig_grant(&rig, 0);
    rig_deny(&rig, 1);
    doubt(0x1);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ENDED);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ECONTENDED);
    ck_assert_uint_eq(rig.fx.undo, 0x5);
}
END_TEST

/* What is left must be a majority by itself. Grants that came late count, too. */
START_TEST(a_step_under_a_lock)
{
    hold(5, 0x7);
    rig_grant(&rig, 3);
    doubt(0x1);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
    ck_assert_uint_eq(rig.fx.flags, 0);
    doubt(0x1); /* no more than once */
    ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
    doubt(0x2);
    ck_assert_uint_eq(rig.fx.flags, RL_FX_LOST | RL_FX_ENDED | RL_FX_DEADLINE);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ELOST);
    ck_assert_uint_eq(rig.fx.undo, 0x1f);
}
END_TEST

/* Its key counts again when it was seen and a round has succeeded without it. */
START_TEST(a_doubted_key_comes_back)
{
    hold(5, 0x1f);
    doubt(0x1);
    for (unsigned round = 0; round < 2; round++) {
        rig_extend(&rig, 0);
        rig_grant(&rig, 0);
        rig_grant(&rig, 1);
        rig_grant(&rig, 2);
        ck_assert_uint_eq(rig.fx.flags & RL_FX_EXTENDED, 0);
        rig_grant(&rig, 3);
        ck_assert_uint_ne(rig.fx.flags & RL_FX_EXTENDED, 0);
    }
    rig_extend(&rig, 0);
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    rig_grant(&rig, 2);
    ck_assert_uint_ne(rig.fx.flags & RL_FX_EXTENDED, 0);
}
END_TEST

START_TEST(a_step_under_an_extension)
{
    hold(3, 0x7);
    rig_extend(&rig, 0);
    rig_grant(&rig, 0);
    doubt(0x1);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_EXTENDING);
    rig_grant(&rig, 1);
    ck_assert_uint_eq(rig.fx.flags & RL_FX_EXTENDED, 0);
    rig_grant(&rig, 2);
    ck_assert_uint_ne(rig.fx.flags & RL_FX_EXTENDED, 0);
    doubt(0x2);
    ck_assert_uint_ne(rig.fx.flags & RL_FX_LOST, 0);
}
END_TEST

/* A node that evicts is no witness either; its key is given back all the same. */
START_TEST(unfit_nodes_do_not_extend)
{
    hold(3, 0x7);
    bar(0x1, REDLOCK_CAUSE_EVICTING);
    rig.view.excluded = 0x1;
    rig_extend(&rig, 0);
    ck_assert_uint_eq(rig.fx.request, 0x7);
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    ck_assert_uint_eq(rig.fx.flags & RL_FX_EXTENDED, 0);
    rig_grant(&rig, 2);
    ck_assert_uint_ne(rig.fx.flags & RL_FX_EXTENDED, 0);
    rig_event(&rig, RL_EVENT_RELEASE);
    ck_assert_uint_eq(rig.fx.request, 0x7);
}
END_TEST

/* ---- our own wall clock ---- */

static void hold_with_slack(void)
{
    rig_init(&rig, 3);
    rig.params.terms.wall_slack_us = 100000;
    rig.view.wall_us = 5000000;
    rig_start(&rig);
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
}

START_TEST(the_wall_clock_is_set_ahead)
{
    hold_with_slack();
    rig.view.wall_us += 100000;
    rig_tick(&rig);
    rig_event(&rig, RL_EVENT_CONFIRM);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
    rig.view.wall_us++;
    if (_i == 0)
        rig_tick(&rig);
    else
        rig_extend(&rig, 0);
    ck_assert_uint_ne(rig.fx.flags & RL_FX_LOST, 0);
}
END_TEST

/* Back is no trace of time that was lost; and who does not want it looked at has a slack of 0. */
START_TEST(the_wall_clock_is_set_otherwise)
{
    hold_with_slack();
    rig.view.wall_us -= 3600000000;
    rig_tick(&rig);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
    rig.params.terms.wall_slack_us = 0;
    rig.view.wall_us += 7200000000;
    rig_tick(&rig);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
}
END_TEST

/* The machine stood still between the SETs and their answers, or before the caller was told, or
 * in the middle of an extension. */
START_TEST(standing_still_in_between)
{
    rig_init(&rig, 3);
    rig.params.terms.wall_slack_us = 100000;
    rig_start(&rig);
    rig_grant(&rig, 0);
    rig.view.wall_us += _i == 0 ? 100001 : 0;
    rig_grant(&rig, 1);
    if (_i == 1) {
        rig.view.wall_us += 100001;
        rig_event(&rig, RL_EVENT_CONFIRM);
    }
    if (_i == 2) {
        rig_extend(&rig, 0);
        rig_grant(&rig, 0);
        rig.view.wall_us += 100001;
        rig_grant(&rig, 1);
        ck_assert_uint_ne(rig.fx.flags & RL_FX_LOST, 0);
        return;
    }
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ENDED);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ETOOSLOW);
}
END_TEST

/* Each extension begins anew: its T1 came after the jump. */
START_TEST(an_extension_after_small_jumps)
{
    hold_with_slack();
    for (unsigned i = 0; i < 5; i++) {
        rig.view.wall_us += 90000;
        rig_extend(&rig, 0);
        rig_grant(&rig, 0);
        rig_grant(&rig, 1);
        ck_assert_uint_ne(rig.fx.flags & RL_FX_EXTENDED, 0);
    }
}
END_TEST

static Suite *doubt_suite(void)
{
    Suite *suite = suite_create("core_lease_eligibility");
    TCase *tcase = tcase_create("doubt");
    tcase_add_test(tcase, guarded_nodes_are_asked_and_not_counted);
    tcase_add_loop_test(tcase, only_guarded_nodes_could_help, 0, 7);
    tcase_add_loop_test(tcase, a_bar_in_the_middle_of_an_attempt, 0, 2);
    tcase_add_test(tcase, a_step_under_an_attempt);
    tcase_add_test(tcase, a_step_under_a_lock);
    tcase_add_test(tcase, a_doubted_key_comes_back);
    tcase_add_test(tcase, a_step_under_an_extension);
    tcase_add_test(tcase, unfit_nodes_do_not_extend);
    tcase_add_loop_test(tcase, the_wall_clock_is_set_ahead, 0, 2);
    tcase_add_test(tcase, the_wall_clock_is_set_otherwise);
    tcase_add_loop_test(tcase, standing_still_in_between, 0, 3);
    tcase_add_test(tcase, an_extension_after_small_jumps);
    suite_add_tcase(suite, tcase);
    return suite;
}

int main(void)
{
    return suite_run(doubt_suite());
}
