/* SPDX-License-Identifier: MIT
 * Votes that do not count, or count no more: nodes in quarantine, clocks that step ahead during a
 * lock, and the client's own wall clock being set ahead.
 *
 * Uses lease_rig.h: one lease in virtual time. The test passes events to it: rig_grant(),
 * rig_deny() and rig_fail() are votes in the running round, rig_tick() is a timer that is due.
 * rig_pass() only advances the clocks. rig.fx holds the effects of the last step. */
#include "lease_rig.h"

#include "suite.h"

static struct rig rig;

/* Takes the votes of these nodes away, for `cause`. */
static void exclude(rl_nodes nodes, uint8_t cause)
{
    for (unsigned i = 0; i < RL_NODES_MAX; i++)
        if (nodes & RL_NODE(i))
            rig.view.cause[i] = cause;
    rig.view.eligible &= ~nodes;
}

/* Excludes the nodes for a clock step and invalidates their keys in the lease. */
static void exclude_with_clock_step(rl_nodes nodes)
{
    const struct rl_event event = {.kind = RL_EVENT_INVALIDATE, .nodes = nodes};

    exclude(nodes, REDLOCK_CAUSE_CLOCK_STEP);
    rig_step(&rig, &event);
}

/* Makes the lease held by the grants of these nodes. */
static void hold(unsigned nodes, rl_nodes grants)
{
    rig_init(&rig, nodes);
    rig_start(&rig);
    for (unsigned i = 0; i < nodes; i++)
        if (grants & RL_NODE(i))
            rig_grant(&rig, i);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
}

/* Two of five nodes are in quarantine. All are asked, and the three others must grant. */
START_TEST(nodes_in_quarantine_are_asked_and_do_not_count)
{
    rig_init(&rig, 5);
    exclude(0x3, REDLOCK_CAUSE_RESTARTED);
    rig_start(&rig);
    ck_assert_uint_eq(rig.fx.request, 0x1f);
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    rig_grant(&rig, 2);
    rig_grant(&rig, 3);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    rig_grant(&rig, 4);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
    /* In an extension they count, because they still have the key. */
    rig_extend(&rig, 0);
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    rig_grant(&rig, 4);
    ck_assert_uint_ne(rig.fx.flags & RL_FX_EXTENDED, 0);
}
END_TEST

/* If the quarantined nodes would complete a majority, the status is EEXCLUDED. If another client
 * holds the lock, it is ECONTENDED. */
START_TEST(the_status_tells_exclusion_from_contention)
{
    static const struct {
        rl_nodes quarantined, denied, failed;
        bool backwards; /* node 4 replies first */
        int status;
    } table[] = {
        {0x7, 0, 0, false, REDLOCK_EEXCLUDED},      {0x1, 0, 0x6, false, REDLOCK_EEXCLUDED},
        {0x1, 0, 0x6, true, REDLOCK_EEXCLUDED},     {0x4, 0x3, 0, true, REDLOCK_EEXCLUDED},
        {0x4, 0x3, 0, false, REDLOCK_ECONTENDED},   {0x1, 0x6, 0, false, REDLOCK_ECONTENDED},
        {0x1, 0x2, 0x4, false, REDLOCK_ECONTENDED},
    };

    rig_init(&rig, 5);
    exclude(table[_i].quarantined, REDLOCK_CAUSE_RESTARTED);
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

/* The node turns out to be restarted before its grant (1), or after its grant and before the
 * other replies (0). */
START_TEST(a_node_excluded_during_an_attempt_does_not_count)
{
    rig_init(&rig, 3);
    rig_start(&rig);
    if (_i == 0)
        rig_grant(&rig, 0);
    exclude(0x1, REDLOCK_CAUSE_RESTARTED);
    if (_i == 1)
        rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    rig_deny(&rig, 2);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ENDED);
    ck_assert_int_eq(rig.fx.status, REDLOCK_EEXCLUDED);
}
END_TEST

/* An adoption counts votes as an acquisition does, because the token may never have had a majority:
 * node 0, which was restarted, may have lost the key of a holder before it got this token. The
 * client learns of the restart before the adoption (0), before the grant (1) or after it (2). */
START_TEST(an_adoption_does_not_count_nodes_in_quarantine)
{
    rig_init(&rig, 3);
    rig.params.terms.kind = RL_LEASE_ADOPT;
    if (_i == 0)
        exclude(0x1, REDLOCK_CAUSE_RESTARTED);
    rig_start(&rig);
    ck_assert_uint_eq(rig.fx.request, 0x7);
    if (_i == 1)
        exclude(0x1, REDLOCK_CAUSE_RESTARTED);
    rig_grant(&rig, 0);
    if (_i == 2)
        exclude(0x1, REDLOCK_CAUSE_RESTARTED);
    rig_grant(&rig, 2);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    rig_deny(&rig, 1); /* this is the holder's server */
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ENDED);
    ck_assert_int_eq(rig.fx.status, REDLOCK_EEXCLUDED);
    ck_assert_uint_eq(rig.fx.undo, 0);
    ck_assert(!rl_lease_is_held(&rig.lease));
}
END_TEST

/* If a majority is in quarantine, an adoption waits without a request, as an acquisition does, and
 * goes on when the quarantine has ended. In the extensions of an adopted lock, a node in quarantine
 * that has shown its key counts. */
START_TEST(an_adoption_waits_for_the_end_of_a_quarantine)
{
    rig_init(&rig, 3);
    rig.params.terms.kind = RL_LEASE_ADOPT;
    rig.params.wait_ns = RL_NEVER;
    exclude(0x3, REDLOCK_CAUSE_RESTARTED);
    rig_start(&rig);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_int_eq(rig.fx.status, REDLOCK_EEXCLUDED);
    ck_assert_uint_eq(rig.fx.request, 0);
    rig.view.eligible |= 0x2;
    rig.view.now = rig.lease.next;
    rig_tick(&rig);
    ck_assert_uint_eq(rig.fx.request, 0x7);
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    rig_grant(&rig, 2);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
    rig_extend(&rig, 0);
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    ck_assert_uint_ne(rig.fx.flags & RL_FX_EXTENDED, 0);
}
END_TEST

/* Two addresses of one server would count its vote twice. */
START_TEST(an_adoption_needs_different_servers)
{
    rig_init(&rig, 3);
    rig.params.terms.kind = RL_LEASE_ADOPT;
    rig.params.wait_ns = RL_NEVER;
    rig.view.duplicate = true;
    rig_start(&rig);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ENDED);
    ck_assert_int_eq(rig.fx.status, REDLOCK_EDUPLICATE);
    ck_assert_uint_eq(rig.fx.request | rig.fx.undo, 0);
}
END_TEST

START_TEST(a_clock_step_during_an_attempt_removes_the_vote)
{
    rig_init(&rig, 3);
    rig_start(&rig);
    rig_grant(&rig, 0);
    rig_deny(&rig, 1);
    exclude_with_clock_step(0x1);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ENDED);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ECONTENDED);
    ck_assert_uint_eq(rig.fx.undo, 0x5);
}
END_TEST

/* The remaining grants must be a majority. Late grants count, too. */
START_TEST(a_clock_step_ends_a_lock_without_a_majority)
{
    hold(5, 0x7);
    rig_grant(&rig, 3);
    exclude_with_clock_step(0x1);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
    ck_assert_uint_eq(rig.fx.flags, 0);
    exclude_with_clock_step(0x1); /* a second event for the same node changes nothing */
    ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
    exclude_with_clock_step(0x2);
    ck_assert_uint_eq(rig.fx.flags, RL_FX_LOST | RL_FX_ENDED | RL_FX_DEADLINE);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ELOST);
    ck_assert_uint_eq(rig.fx.undo, 0x1f);
}
END_TEST

/* The key of the excluded node counts again once it was seen and a round has succeeded without it.
 */
START_TEST(a_doubted_key_counts_after_a_round_without_it)
{
    hold(5, 0x1f);
    exclude_with_clock_step(0x1);
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

START_TEST(a_clock_step_during_an_extension_removes_the_vote)
{
    hold(3, 0x7);
    rig_extend(&rig, 0);
    rig_grant(&rig, 0);
    exclude_with_clock_step(0x1);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_EXTENDING);
    rig_grant(&rig, 1);
    ck_assert_uint_eq(rig.fx.flags & RL_FX_EXTENDED, 0);
    rig_grant(&rig, 2);
    ck_assert_uint_ne(rig.fx.flags & RL_FX_EXTENDED, 0);
    exclude_with_clock_step(0x2);
    ck_assert_uint_ne(rig.fx.flags & RL_FX_LOST, 0);
}
END_TEST

/* The vote of a node that evicts keys does not count, but its key is released all the same. */
START_TEST(evicting_nodes_do_not_extend_but_release)
{
    hold(3, 0x7);
    exclude(0x1, REDLOCK_CAUSE_EVICTING);
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

/* ---- the client's wall clock ---- */

/* Makes the lease held, with a wall clock slack of 100 ms. */
static void hold_with_slack(void)
{
    rig_init(&rig, 3);
    rig.params.terms.wall_slack_us = 100000;
    rig.view.wall_us = 5000000;
    rig_start(&rig);
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
}

START_TEST(a_wall_clock_set_ahead_ends_the_lock)
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

/* A step back does not show lost time, and a slack of 0 switches the check off. */
START_TEST(a_wall_clock_set_back_or_unwatched_is_ignored)
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

/* The machine is suspended between the SETs and their replies (0), before the confirmation (1), or
 * during an extension (2). */
START_TEST(a_wall_clock_jump_during_a_round_fails_it)
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

/* Each extension measures jumps from its own T1. */
START_TEST(each_extension_restarts_the_wall_clock_slack)
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

static Suite *eligibility_suite(void)
{
    Suite *suite = suite_create("core_lease_eligibility");
    TCase *tcase = tcase_create("eligibility");
    tcase_add_test(tcase, nodes_in_quarantine_are_asked_and_do_not_count);
    tcase_add_loop_test(tcase, the_status_tells_exclusion_from_contention, 0, 7);
    tcase_add_loop_test(tcase, a_node_excluded_during_an_attempt_does_not_count, 0, 2);
    tcase_add_loop_test(tcase, an_adoption_does_not_count_nodes_in_quarantine, 0, 3);
    tcase_add_test(tcase, an_adoption_waits_for_the_end_of_a_quarantine);
    tcase_add_test(tcase, an_adoption_needs_different_servers);
    tcase_add_test(tcase, a_clock_step_during_an_attempt_removes_the_vote);
    tcase_add_test(tcase, a_clock_step_ends_a_lock_without_a_majority);
    tcase_add_test(tcase, a_doubted_key_counts_after_a_round_without_it);
    tcase_add_test(tcase, a_clock_step_during_an_extension_removes_the_vote);
    tcase_add_test(tcase, evicting_nodes_do_not_extend_but_release);
    tcase_add_loop_test(tcase, a_wall_clock_set_ahead_ends_the_lock, 0, 2);
    tcase_add_test(tcase, a_wall_clock_set_back_or_unwatched_is_ignored);
    tcase_add_loop_test(tcase, a_wall_clock_jump_during_a_round_fails_it, 0, 3);
    tcase_add_test(tcase, each_extension_restarts_the_wall_clock_slack);
    suite_add_tcase(suite, tcase);
    return suite;
}

int main(void)
{
    return suite_run(eligibility_suite());
}
