/* SPDX-License-Identifier: MIT
 * Holding a lock: when it is extended and retried, whether a key counts again after it was lost,
 * when the lock is lost and when it is released. Virtual time.
 *
 * Uses lease_rig.h: one lease in virtual time. The test passes events to it: rig_grant(),
 * rig_deny() and rig_fail() are votes in the running round, rig_tick() is a timer that is due.
 * rig_pass() only advances the clocks. rig.fx holds the effects of the last step. */
#include "core/lease.h"

#include "lease_rig.h"
#include "suite.h"

#define THIRD_NS (RIG_USABLE_NS / 3)

/* Makes the lease held: all nodes grant at once. */
static void hold(struct rig *rig)
{
    rig_start(rig);
    for (unsigned i = 0; i < rig->params.terms.nodes; i++)
        rig_grant(rig, i);
    ck_assert_uint_eq(rig->lease.state, RL_STATE_HELD);
}

/* Sets up a lease that is extended automatically. */
static void init(struct rig *rig, unsigned nodes)
{
    rig_init(rig, nodes);
    rig->params.terms.auto_extend = true;
}

/* Advances time to the lease's next due time and runs its timer. */
static void wake(struct rig *rig)
{
    ck_assert_uint_ne(rig->lease.wake_ns, RL_NEVER);
    ck_assert_uint_gt(rig->lease.wake_ns, rig->view.now.boot_ns);
    rig_pass(rig, rig->lease.wake_ns - rig->view.now.boot_ns);
    rig_tick(rig);
}

/* Runs the timer until the lease is in this state. */
static void wake_until(struct rig *rig, enum rl_lease_state state)
{
    for (unsigned i = 0; rig->lease.state != state; i++) {
        ck_assert_uint_lt(i, 1000);
        wake(rig);
    }
}

/* Checks that the last step has lost the lock and undoes the keys on these nodes. */
static void check_lost(const struct rig *rig, rl_nodes undo)
{
    ck_assert_uint_eq(rig->fx.flags & (RL_FX_LOST | RL_FX_ENDED | RL_FX_DEADLINE),
                      RL_FX_LOST | RL_FX_ENDED | RL_FX_DEADLINE);
    ck_assert_int_eq(rig->fx.status, REDLOCK_ELOST);
    ck_assert_uint_eq(rig->fx.undo, undo);
    ck_assert(rig->lease.lost);
    ck_assert_uint_eq(rig_remaining_ns(rig), 0);
}

START_TEST(extension_starts_when_a_third_is_used)
{
    struct rig rig;

    init(&rig, 3);
    hold(&rig);
    struct rl_now begun = rig.view.now;
    wake_until(&rig, RL_STATE_EXTENDING);
    ck_assert_uint_le(rl_elapsed_ns(begun, rig.view.now), THIRD_NS);
    ck_assert_uint_ge(rl_elapsed_ns(begun, rig.view.now), THIRD_NS * 11 / 16);
    ck_assert_uint_eq(rig.fx.request, 0x7);
    ck_assert_uint_eq(rig.fx.flags, 0);
    rig_pass(&rig, 2 * RL_MS);
    rig_grant(&rig, 2);
    rig_grant(&rig, 0);
    ck_assert_uint_eq(rig.fx.flags, RL_FX_EXTENDED | RL_FX_DEADLINE);
    ck_assert_uint_eq(rig_remaining_ns(&rig), RIG_USABLE_NS - 2 * RL_MS);
    struct rl_now extended = rig.view.now;
    wake_until(&rig, RL_STATE_EXTENDING);
    ck_assert_uint_le(rl_elapsed_ns(extended, rig.view.now), THIRD_NS);
}
END_TEST

START_TEST(extension_starts_at_the_configured_time)
{
    struct rig rig;

    init(&rig, 3);
    rig.params.terms.extend_at_ns = 2 * RL_SECOND;
    hold(&rig);
    wake_until(&rig, RL_STATE_EXTENDING);
    ck_assert_uint_eq(rig_remaining_ns(&rig), 2 * RL_SECOND);
}
END_TEST

START_TEST(without_automatic_extension_the_lock_expires)
{
    struct rig rig;

    init(&rig, 3);
    rig.params.terms.auto_extend = false;
    hold(&rig);
    struct rl_now begun = rig.view.now;
    wake_until(&rig, RL_STATE_ENDED);
    check_lost(&rig, 0x7);
    ck_assert_uint_eq(rl_elapsed_ns(begun, rig.view.now), RIG_USABLE_NS);
    ck_assert_uint_eq(rig.fx.request, 0);
}
END_TEST

/* A failed extension does not end a valid lock. It is retried until the deadline, and only then is
 * the lock lost. */
START_TEST(a_failed_extension_is_retried)
{
    struct rig rig;

    init(&rig, 3);
    hold(&rig);
    struct rl_now deadline = rig.lease.deadline;
    unsigned rounds = 0;
    while (rig.lease.state != RL_STATE_ENDED) {
        wake(&rig);
        if (rig.lease.state != RL_STATE_EXTENDING)
            continue;
        rounds++;
        ck_assert_uint_eq(rig.fx.request, 0x7);
        rig_fail(&rig, 0);
        rig_fail(&rig, 1);
        ck_assert_uint_eq(rig.fx.flags, RL_FX_EXTEND_FAILED);
        ck_assert_int_eq(rig.fx.status, REDLOCK_ENOQUORUM);
        ck_assert_uint_eq(rig.fx.undo | rig.fx.heal, 0);
        ck_assert_uint_gt(rig_remaining_ns(&rig), 0);
        ck_assert_uint_le(rig.lease.wake_ns, deadline.boot_ns);
    }
    ck_assert_uint_gt(rounds, 20);
    ck_assert_uint_lt(rounds, 800);
    check_lost(&rig, 0x7);
    ck_assert_uint_eq(rig.view.now.boot_ns, deadline.boot_ns);
}
END_TEST

START_TEST(a_retried_extension_succeeds)
{
    struct rig rig;

    init(&rig, 3);
    hold(&rig);
    wake_until(&rig, RL_STATE_EXTENDING);
    rig_fail(&rig, 0);
    rig_fail(&rig, 1);
    uint32_t failed = rig.lease.round.number;
    wake_until(&rig, RL_STATE_EXTENDING);
    ck_assert_uint_eq(rig.lease.round.number, failed + 1);
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    ck_assert_uint_eq(rig.fx.flags, RL_FX_EXTENDED | RL_FX_DEADLINE);
    ck_assert_uint_eq(rig_remaining_ns(&rig), RIG_USABLE_NS);
}
END_TEST

/* Grants after the deadline do not count, because another client may have held the lock between. */
START_TEST(the_deciding_vote_must_come_in_time)
{
    struct rig rig;

    for (int late = 0; late <= 1; late++) {
        init(&rig, 3);
        hold(&rig);
        struct rl_now deadline = rig.lease.deadline;
        wake_until(&rig, RL_STATE_EXTENDING);
        rig_grant(&rig, 0);
        rig.view.now.raw_ns = deadline.raw_ns - (late ? 0 : 1);
        rig_grant(&rig, 1);
        if (late)
            check_lost(&rig, 0x7);
        else
            ck_assert_uint_eq(rig.fx.flags, RL_FX_EXTENDED | RL_FX_DEADLINE);
    }
}
END_TEST

START_TEST(proven_loss_is_reported_at_once)
{
    struct rig rig;

    init(&rig, 5);
    hold(&rig);
    wake_until(&rig, RL_STATE_EXTENDING);
    rig_deny(&rig, 0);
    rig_deny(&rig, 1);
    ck_assert_uint_eq(rig.fx.flags, 0);
    rig_deny(&rig, 2);
    check_lost(&rig, 0x18);
    ck_assert((rig.fx.flags & RL_FX_EXTEND_FAILED) != 0);

    /* Here the third denial comes after the round has failed. */
    init(&rig, 5);
    hold(&rig);
    wake_until(&rig, RL_STATE_EXTENDING);
    rig_fail(&rig, 3);
    rig_deny(&rig, 0);
    rig_deny(&rig, 1);
    ck_assert_uint_eq(rig.fx.flags, RL_FX_EXTEND_FAILED);
    rig_deny(&rig, 2);
    check_lost(&rig, 0x18);
    ck_assert_uint_eq(rig.fx.flags & RL_FX_DONE, 0);
}
END_TEST

START_TEST(endangered_once_for_each_deadline)
{
    struct rig rig;

    init(&rig, 3);
    rig.params.terms.extend_at_ns = 500 * RL_MS; /* after the margin of one second */
    hold(&rig);
    for (unsigned round = 0; round < 3; round++) {
        unsigned endangered_count = 0;
        while (rig.lease.state != RL_STATE_EXTENDING) {
            wake(&rig);
            if ((rig.fx.flags & RL_FX_ENDANGERED) != 0) {
                endangered_count++;
                ck_assert_uint_eq(rig_remaining_ns(&rig), RL_SECOND);
            }
        }
        ck_assert_uint_eq(endangered_count, 1);
        rig_tick(&rig);
        ck_assert_uint_eq(rig.fx.flags, 0);
        rig_grant(&rig, 0);
        rig_grant(&rig, 1);
    }
}
END_TEST

START_TEST(the_time_of_a_hold_is_limited)
{
    struct rig rig;

    init(&rig, 3);
    rig.params.terms.hold_max_ns = 15 * RL_SECOND;
    hold(&rig);
    struct rl_now begun = rig.view.now;
    unsigned extensions = 0;
    while (rig.lease.state != RL_STATE_ENDED) {
        wake(&rig);
        if (rig.lease.state != RL_STATE_EXTENDING)
            continue;
        extensions++;
        rig_grant(&rig, 0);
        rig_grant(&rig, 1);
    }
    check_lost(&rig, 0x7);
    ck_assert_uint_eq(rl_elapsed_ns(begun, rig.view.now), 15 * RL_SECOND);
    ck_assert_uint_eq(extensions, 2); /* at 3.3 s and 6.6 s; the second one reaches the limit */

    rig.params.terms.hold_max_ns = 2 * RL_SECOND; /* shorter than the validity */
    hold(&rig);
    ck_assert_uint_eq(rig_remaining_ns(&rig), 2 * RL_SECOND);
    wake_until(&rig, RL_STATE_ENDED);
    check_lost(&rig, 0x7);
}
END_TEST

START_TEST(the_number_of_automatic_extensions_is_limited)
{
    struct rig rig;

    init(&rig, 3);
    rig.params.terms.extends_max = 2;
    hold(&rig);
    unsigned extensions = 0;
    while (rig.lease.state != RL_STATE_ENDED) {
        wake(&rig);
        if (rig.lease.state != RL_STATE_EXTENDING)
            continue;
        extensions++;
        rig_grant(&rig, 0);
        rig_grant(&rig, 1);
        if (extensions == 1) { /* extensions by the caller do not count */
            rig_extend(&rig, 0);
            rig_grant(&rig, 0);
            rig_grant(&rig, 1);
        }
    }
    ck_assert_uint_eq(extensions, 2);
    check_lost(&rig, 0x7);
}
END_TEST

START_TEST(the_caller_can_extend)
{
    struct rig rig;

    init(&rig, 3);
    rig.params.terms.auto_extend = false;
    hold(&rig);
    rig_pass(&rig, RL_SECOND);
    rig_extend(&rig, 0);
    ck_assert_uint_eq(rig.fx.request, 0x7);
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    ck_assert_uint_eq(rig.fx.flags, RL_FX_EXTENDED | RL_FX_DEADLINE | RL_FX_DONE);
    ck_assert_int_eq(rig.fx.status, REDLOCK_OK);
    ck_assert_uint_eq(rig_remaining_ns(&rig), RIG_USABLE_NS);

    rig_extend(&rig, 0);
    rig_fail(&rig, 0);
    rig_fail(&rig, 2);
    ck_assert_uint_eq(rig.fx.flags, RL_FX_EXTEND_FAILED | RL_FX_DONE);
    ck_assert_uint_eq(rig_remaining_ns(&rig), RIG_USABLE_NS); /* still valid, still held */
    wake_until(&rig, RL_STATE_ENDED);                         /* without a retry */
    check_lost(&rig, 0x7);
    ck_assert_uint_eq(rig.fx.flags & RL_FX_DONE, 0);

    hold(&rig);
    rig_pass(&rig, RIG_USABLE_NS); /* the call comes after the deadline, before the timer */
    rig_extend(&rig, 0);
    check_lost(&rig, 0x7);
    ck_assert((rig.fx.flags & RL_FX_DONE) != 0);
    ck_assert_uint_eq(rig.fx.request, 0);
}
END_TEST

/* The caller extends while an automatic extension is in flight: a new round replaces the old one.
 */
START_TEST(an_extension_by_the_caller_replaces_an_automatic_one)
{
    struct rig rig;

    init(&rig, 3);
    hold(&rig);
    wake_until(&rig, RL_STATE_EXTENDING);
    struct rl_ballot old = {
        .vote = RL_VOTE_GRANTED, .verb = RL_VERB_EXTEND, .round = rig.lease.round.number};
    rig_extend(&rig, 0);
    rig_ballot(&rig, old);
    old.node = 1;
    rig_ballot(&rig, old);
    ck_assert_uint_eq(rig.fx.flags, 0);
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    ck_assert_uint_eq(rig.fx.flags, RL_FX_EXTENDED | RL_FX_DEADLINE | RL_FX_DONE);
}
END_TEST

START_TEST(loss_ends_the_extension_that_the_caller_waits_for)
{
    struct rig rig;

    init(&rig, 3);
    hold(&rig);
    rig_extend(&rig, 0);
    rig_pass(&rig, RIG_USABLE_NS);
    rig_tick(&rig);
    check_lost(&rig, 0x7);
    ck_assert((rig.fx.flags & RL_FX_DONE) != 0);
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    ck_assert_uint_eq(rig.fx.flags, 0);
}
END_TEST

START_TEST(a_majority_of_confirmations_ends_a_release)
{
    struct rig rig;

    init(&rig, 5);
    hold(&rig);
    rig.view.up = 0x1b; /* node 2 is not connected */
    rig_event(&rig, RL_EVENT_RELEASE);
    ck_assert_uint_eq(rig.fx.flags, RL_FX_DEADLINE);
    ck_assert_uint_eq(rig.fx.request, 0x1b);
    ck_assert_uint_eq(rig.fx.undo, 0x04);
    ck_assert_uint_eq(rig_remaining_ns(&rig), 0);
    ck_assert_uint_eq(rig.lease.round.verb, RL_VERB_RELEASE);
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    ck_assert_uint_eq(rig.fx.flags, 0);
    rig_deny(&rig, 4);
    ck_assert_uint_eq(rig.fx.flags, RL_FX_DONE | RL_FX_ENDED);
    ck_assert_int_eq(rig.fx.status, REDLOCK_OK);

    hold(&rig); /* a delayed release (SHORTEN) during an extension */
    rig_extend(&rig, 0);
    rig_event(&rig, RL_EVENT_SHORTEN);
    ck_assert_uint_eq(rig.lease.round.verb, RL_VERB_SHORTEN);
    for (unsigned i = 2; i < 5; i++)
        rig_deny(&rig, i);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ELOST);
    ck_assert_uint_eq(rig.fx.flags, RL_FX_DONE | RL_FX_ENDED);
}
END_TEST

/* Two of five nodes denied the lock (0), so they have no key, and the first confirmation completes
 * a majority without it. If their replies are missing (1), three confirmations are needed. */
START_TEST(a_release_counts_nodes_that_denied_the_lock)
{
    struct rig rig;

    init(&rig, 5);
    rig_start(&rig);
    for (unsigned i = 0; i < 5; i++) {
        if (i % 3 == 1 && _i == 0)
            rig_deny(&rig, i);
        else if (i % 3 != 1)
            rig_grant(&rig, i);
    }
    ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
    rig_event(&rig, RL_EVENT_RELEASE);
    ck_assert_uint_eq(rig.fx.request, _i == 0 ? 0x0d : 0x1f);
    rig_grant(&rig, 0);
    if (_i == 1) {
        rig_grant(&rig, 2);
        ck_assert_uint_eq(rig.lease.state, RL_STATE_RELEASING);
        rig_grant(&rig, 3);
    }
    ck_assert_uint_eq(rig.fx.flags, RL_FX_DONE | RL_FX_ENDED);
    ck_assert_int_eq(rig.fx.status, REDLOCK_OK);
}
END_TEST

START_TEST(detaching_sends_nothing_and_ends_the_lease)
{
    struct rig rig;

    init(&rig, 3);
    hold(&rig);
    rig_event(&rig, RL_EVENT_DETACH);
    ck_assert_uint_eq(rig.fx.flags, RL_FX_DEADLINE | RL_FX_ENDED);
    ck_assert_uint_eq(rig.fx.request | rig.fx.undo, 0); /* another client may adopt the key */
    ck_assert_uint_eq(rig_remaining_ns(&rig), 0);
    ck_assert_uint_eq(rig.lease.wake_ns, RL_NEVER);

    hold(&rig);
    rig_extend(&rig, 0);
    rig_event(&rig, RL_EVENT_DETACH);
    ck_assert_uint_eq(rig.fx.flags, RL_FX_DEADLINE | RL_FX_ENDED | RL_FX_DONE);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ECANCELED);
}
END_TEST

/* A node that is not connected is not healed. */
START_TEST(only_connected_nodes_are_healed)
{
    struct rig rig;

    init(&rig, 5);
    hold(&rig);
    wake_until(&rig, RL_STATE_EXTENDING);
    rig_deny(&rig, 0);
    rig_deny(&rig, 1);
    rig.view.up = 0x1d;
    for (unsigned i = 2; i < 5; i++)
        rig_grant(&rig, i);
    ck_assert_uint_eq(rig.fx.heal, 0x01);
    rig_heal_vote(&rig, 0, RL_VOTE_GRANTED);
    rig_event(&rig, RL_EVENT_RELEASE);
    ck_assert_uint_eq(rig.fx.request | rig.fx.undo, 0x1d); /* the healed key is deleted, too */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("core_lease_hold");
    TCase *tcase = tcase_create("hold");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, extension_starts_when_a_third_is_used);
    tcase_add_test(tcase, extension_starts_at_the_configured_time);
    tcase_add_test(tcase, without_automatic_extension_the_lock_expires);
    tcase_add_test(tcase, a_failed_extension_is_retried);
    tcase_add_test(tcase, a_retried_extension_succeeds);
    tcase_add_test(tcase, the_deciding_vote_must_come_in_time);
    tcase_add_test(tcase, proven_loss_is_reported_at_once);
    tcase_add_test(tcase, endangered_once_for_each_deadline);
    tcase_add_test(tcase, the_time_of_a_hold_is_limited);
    tcase_add_test(tcase, the_number_of_automatic_extensions_is_limited);
    tcase_add_test(tcase, the_caller_can_extend);
    tcase_add_test(tcase, an_extension_by_the_caller_replaces_an_automatic_one);
    tcase_add_test(tcase, loss_ends_the_extension_that_the_caller_waits_for);
    tcase_add_test(tcase, a_majority_of_confirmations_ends_a_release);
    tcase_add_loop_test(tcase, a_release_counts_nodes_that_denied_the_lock, 0, 2);
    tcase_add_test(tcase, detaching_sends_nothing_and_ends_the_lease);
    tcase_add_test(tcase, only_connected_nodes_are_healed);
    return suite_run(suite);
}
