/* SPDX-License-Identifier: MIT
 * Locks that expire between the deciding vote and the confirmation: the caller never gets them. */
#include "lease_rig.h"
#include "suite.h"

static void hold_untold(struct rig *rig, uint64_t wait_ns)
{
    rig->params.wait_ns = wait_ns;
    rig->params.confirms = true;
    rig_start(rig);
    rig_grant(rig, 0);
    rig_grant(rig, 2);
    ck_assert_uint_eq(rig->fx.flags, RL_FX_DONE | RL_FX_HELD | RL_FX_DEADLINE);
}

/* Nobody can lose what he was not told of: who has the time goes on trying. */
START_TEST(a_grant_that_ends_untold)
{
    struct rig rig;

    rig_init(&rig, 3);
    hold_untold(&rig, 30 * RL_SECOND);
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
    rig_tick(&rig); /* now it is somebody's */
    ck_assert_uint_eq(rig.fx.flags, RL_FX_LOST | RL_FX_DEADLINE | RL_FX_ENDED);

    hold_untold(&rig, 0);
    rig_pass(&rig, RIG_USABLE_NS);
    rig_tick(&rig);
    ck_assert_uint_eq(rig.fx.flags, RL_FX_DONE | RL_FX_ENDED);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ETOOSLOW);
    ck_assert_uint_eq(rig.fx.undo, 0x7);
}
END_TEST

/* It was being extended, on its way or about to be: where the key is, it is taken back. */
START_TEST(an_untold_grant_that_was_being_extended)
{
    struct rig rig;

    rig_init(&rig, 3);
    rig.params.terms.auto_extend = true;
    hold_untold(&rig, 30 * RL_SECOND);
    rig_pass(&rig, RIG_USABLE_NS / 2);
    rig_tick(&rig);
    ck_assert_uint_eq(rig.fx.request, 0x7);
    if (_i == 0) {
        rig_pass(&rig, RIG_USABLE_NS / 2 + 1);
        rig_tick(&rig);
    } else {
        rig_deny(&rig, 0);
        rig_deny(&rig, 2); /* others may have it by now */
    }
    ck_assert_uint_eq(rig.fx.flags & (RL_FX_WAITING | RL_FX_LOST | RL_FX_ENDED), RL_FX_WAITING);
    ck_assert_uint_eq(rig.fx.undo, _i == 0 ? 0x7 : 0x2);
    ck_assert_uint_eq(rig.fx.request | rig.fx.heal, 0);
    ck_assert_uint_eq(rig_remaining_ns(&rig), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("core_lease_unconfirmed");
    TCase *tcase = tcase_create("untold");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, a_grant_that_ends_untold);
    tcase_add_loop_test(tcase, an_untold_grant_that_was_being_extended, 0, 2);
    return suite_run(suite);
}
