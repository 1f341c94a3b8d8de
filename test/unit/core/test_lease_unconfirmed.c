/* SPDX-License-Identifier: MIT
 * Locks that expire between the deciding vote and the confirmation: the caller never gets them.
 *
 * Uses lease_rig.h: one lease in virtual time. The test passes events to it: rig_grant(),
 * rig_deny() and rig_fail() are votes in the running round, rig_tick() is a timer that is due.
 * rig_pass() only advances the clocks. rig.fx holds the effects of the last step. */
#include "lease_rig.h"
#include "suite.h"

/* Makes the lease held; the caller has not got the lock yet. */
static void hold_unconfirmed(struct rig *rig, uint64_t wait_ns)
{
    rig->params.wait_ns = wait_ns;
    rig->params.confirms = true;
    rig_start(rig);
    rig_grant(rig, 0);
    rig_grant(rig, 2);
    ck_assert_uint_eq(rig->fx.flags, RL_FX_DONE | RL_FX_HELD | RL_FX_DEADLINE);
}

/* A lock that the caller never got is not reported as lost. With a wait budget the lease makes
 * another attempt, without one it ends with ETOOSLOW. */
START_TEST(a_lock_that_expires_unconfirmed_is_retried_or_too_slow)
{
    struct rig rig;

    rig_init(&rig, 3);
    hold_unconfirmed(&rig, 30 * RL_SECOND);
    rig_pass(&rig, RIG_USABLE_NS);
    rig_tick(&rig);
    ck_assert_uint_eq(rig.fx.flags, RL_FX_WAITING);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ETOOSLOW);
    ck_assert_uint_eq(rig.fx.undo, 0x7);
    rig.view.now = rig.lease.next;
    rig_tick(&rig);
    ck_assert_uint_eq(rig.fx.request, 0x7);
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    ck_assert_uint_eq(rig_remaining_ns(&rig), RIG_USABLE_NS);
    rig_event(&rig, RL_EVENT_CONFIRM);
    ck_assert_uint_eq(rig.fx.flags, 0);
    rig_pass(&rig, RIG_USABLE_NS);
    rig_tick(&rig); /* after the confirmation the caller is told of the loss */
    ck_assert_uint_eq(rig.fx.flags, RL_FX_LOST | RL_FX_DEADLINE | RL_FX_ENDED);

    hold_unconfirmed(&rig, 0);
    rig_pass(&rig, RIG_USABLE_NS);
    rig_tick(&rig);
    ck_assert_uint_eq(rig.fx.flags, RL_FX_DONE | RL_FX_ENDED);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ETOOSLOW);
    ck_assert_uint_eq(rig.fx.undo, 0x7);
}
END_TEST

/* A grant that waits for its callback is not extended. Once it is confirmed, it is, and the time of
 * the first extension follows from the validity that is left. */
START_TEST(an_unconfirmed_lock_is_not_extended)
{
    struct rig rig;

    rig_init(&rig, 3);
    rig.params.terms.auto_extend = true;
    hold_unconfirmed(&rig, 30 * RL_SECOND);
    rig_pass(&rig, RIG_USABLE_NS / 2);
    rig_tick(&rig);
    ck_assert_uint_eq(rig.fx.request, 0);
    rig_event(&rig, RL_EVENT_CONFIRM);
    ck_assert_uint_eq(rig.fx.request, 0);
    rig_pass(&rig, RIG_USABLE_NS / 6);
    rig_tick(&rig);
    ck_assert_uint_eq(rig.fx.request, 0x7);
    ck_assert_int_eq(rig.lease.state, RL_STATE_EXTENDING);
}
END_TEST

/* The lock expires during its first extension, before a second confirmation: event callbacks have
 * run in between. Keys that may exist are undone. */
START_TEST(a_second_confirmation_fails_in_an_extension)
{
    struct rig rig;

    rig_init(&rig, 3);
    rig.params.terms.auto_extend = true;
    hold_unconfirmed(&rig, 30 * RL_SECOND);
    rig_event(&rig, RL_EVENT_CONFIRM);
    rig_pass(&rig, RIG_USABLE_NS / 2);
    rig_tick(&rig);
    ck_assert_uint_eq(rig.fx.request, 0x7);
    rig_pass(&rig, RIG_USABLE_NS / 2 + 1);
    rig_event(&rig, RL_EVENT_CONFIRM);
    ck_assert_uint_eq(rig.fx.flags & (RL_FX_WAITING | RL_FX_LOST | RL_FX_ENDED), RL_FX_WAITING);
    ck_assert_uint_eq(rig.fx.undo, 0x7);
    ck_assert_uint_eq(rig.fx.request | rig.fx.heal, 0);
    ck_assert_uint_eq(rig_remaining_ns(&rig), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("core_lease_unconfirmed");
    TCase *tcase = tcase_create("unconfirmed");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, a_lock_that_expires_unconfirmed_is_retried_or_too_slow);
    tcase_add_test(tcase, an_unconfirmed_lock_is_not_extended);
    tcase_add_test(tcase, a_second_confirmation_fails_in_an_extension);
    return suite_run(suite);
}
