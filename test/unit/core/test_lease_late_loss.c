/* SPDX-License-Identifier: MIT
 * Calls on a lock that is lost already: their error is ELOST, not that of a majority that is
 * missing, if the votes that are under way prove the loss, or the deadline has passed.
 *
 * Uses lease_rig.h: one lease in virtual time. The test passes events to it: rig_grant(),
 * rig_deny() and rig_fail() are votes in the running round, rig_tick() is a timer that is due.
 * rig_pass() only advances the clocks. rig.fx holds the effects of the last step. */
#include "core/lease.h"

#include "lease_rig.h"
#include "suite.h"

static struct rig rig;

/* Makes a lease on that many nodes held: all nodes grant. */
static void hold(unsigned nodes)
{
    rig_init(&rig, nodes);
    rig_start(&rig);
    for (unsigned i = 0; i < nodes; i++)
        rig_grant(&rig, i);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
    rig_pass(&rig, RL_SECOND);
}

/* Checks that the call goes on. */
static void check_open(void)
{
    ck_assert_uint_eq(rig.fx.flags, 0);
}

/* Checks that the lock is lost and that the call has ended with that. */
static void check_lost(void)
{
    ck_assert_uint_eq(rig.fx.flags & (RL_FX_DONE | RL_FX_LOST | RL_FX_ENDED),
                      RL_FX_DONE | RL_FX_LOST | RL_FX_ENDED);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ELOST);
}

/* Checks that the call has ended with ENOQUORUM, and that the lock is held. */
static void check_no_quorum(void)
{
    ck_assert_uint_eq(rig.fx.flags, RL_FX_EXTEND_FAILED | RL_FX_DONE);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ENOQUORUM);
    ck_assert_uint_gt(rig_remaining_ns(&rig), 0);
}

/* One node has failed and one has denied, so no quorum can grant. The third reply decides whether
 * the lock is lost. */
START_TEST(an_extension_waits_for_the_proof_of_a_loss)
{
    const enum rl_vote last[] = {RL_VOTE_DENIED, RL_VOTE_GRANTED, RL_VOTE_FAILED, RL_VOTE_SUSPECT};

    hold(3);
    rig_extend(&rig, 0);
    rig_fail(&rig, 2);
    check_open();
    rig_deny(&rig, 0);
    check_open();
    rig_vote(&rig, 1, last[_i]);
    if (last[_i] == RL_VOTE_DENIED)
        check_lost();
    else
        check_no_quorum();
}
END_TEST

/* The key of node 2 was set at an unknown time, so its grant does not count. */
START_TEST(an_extension_with_a_fresh_key_waits_as_well)
{
    rig_init(&rig, 3);
    rig_start(&rig);
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    rig_extend(&rig, 0);
    rig_deny(&rig, 0);
    check_open();
    rig_deny(&rig, 1);
    check_lost();
}
END_TEST

/* A suspect node is not waited for, nor are replies that cannot prove a loss. */
START_TEST(an_extension_waits_for_nothing_else)
{
    hold(3);
    rig_extend(&rig, 0);
    rig_vote(&rig, 1, RL_VOTE_SUSPECT);
    rig_fail(&rig, 2);
    rig_deny(&rig, 0);
    check_no_quorum();

    hold(5);
    rig_extend(&rig, 0);
    rig_fail(&rig, 0);
    rig_fail(&rig, 1);
    rig_fail(&rig, 2);
    check_no_quorum();
}
END_TEST

/* The deadline ends the wait. */
START_TEST(a_wait_for_the_proof_ends_at_the_deadline)
{
    hold(3);
    rig_extend(&rig, 0);
    rig_fail(&rig, 2);
    rig_deny(&rig, 0);
    check_open();
    rig_pass(&rig, RIG_USABLE_NS);
    rig_tick(&rig);
    check_lost();
}
END_TEST

/* The failures are processed after the deadline, before the timer. */
START_TEST(an_extension_that_fails_after_the_deadline_is_a_loss)
{
    hold(3);
    rig_extend(&rig, 0);
    rig_pass(&rig, RIG_USABLE_NS);
    rig_fail(&rig, 0);
    rig_fail(&rig, 1);
    check_lost();
}
END_TEST

/* An adoption after one failure and one denial: the third reply proves that no quorum has the lock,
 * or not. */
START_TEST(an_adoption_waits_for_the_proof_of_a_loss)
{
    const enum rl_vote last[] = {RL_VOTE_DENIED, RL_VOTE_GRANTED, RL_VOTE_FAILED, RL_VOTE_SUSPECT};

    rig_init(&rig, 3);
    rig.params.terms.kind = RL_LEASE_ADOPT;
    rig_start(&rig);
    rig_fail(&rig, 2);
    check_open();
    rig_deny(&rig, 0);
    check_open();
    rig_vote(&rig, 1, last[_i]);
    ck_assert_uint_eq(rig.fx.flags, RL_FX_DONE | RL_FX_ENDED);
    ck_assert_int_eq(rig.fx.status, last[_i] == RL_VOTE_DENIED ? REDLOCK_ELOST : REDLOCK_ENOQUORUM);
    ck_assert_uint_eq(rig.fx.undo, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("core_lease_late_loss");
    TCase *tcase = tcase_create("late_loss");
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, an_extension_waits_for_the_proof_of_a_loss, 0, 4);
    tcase_add_test(tcase, an_extension_with_a_fresh_key_waits_as_well);
    tcase_add_test(tcase, an_extension_waits_for_nothing_else);
    tcase_add_test(tcase, a_wait_for_the_proof_ends_at_the_deadline);
    tcase_add_test(tcase, an_extension_that_fails_after_the_deadline_is_a_loss);
    tcase_add_loop_test(tcase, an_adoption_waits_for_the_proof_of_a_loss, 0, 4);
    return suite_run(suite);
}
