/* SPDX-License-Identifier: MIT
 * After an extension, a deadline is never later than the keys on its servers last: the deadline,
 * the nodes it rests on and the reference of the wall clock change together. Virtual time.
 *
 * Uses lease_rig.h: one lease in virtual time. The test passes events to it: rig_grant(),
 * rig_deny() and rig_fail() are votes in the running round, rig_tick() is a timer that is due.
 * rig_pass() only advances the clocks. rig.fx holds the effects of the last step. */
#include "core/lease.h"

#include "lease_rig.h"
#include "suite.h"

/* Makes a lease of five nodes held, with this TTL. */
static void hold(struct rig *rig, uint64_t ttl_ns)
{
    rig_init(rig, 5);
    rig->params.terms.ttl_ns = ttl_ns;
    rig_start(rig);
    for (unsigned i = 0; i < 5; i++)
        rig_grant(rig, i);
    ck_assert_uint_eq(rig->lease.state, RL_STATE_HELD);
}

/* Passes a grant of each of these nodes to the lease. */
static void grant_on(struct rig *rig, rl_nodes nodes)
{
    for (; nodes != 0; nodes &= nodes - 1)
        rig_grant(rig, (unsigned)__builtin_ctz(nodes));
}

/* Passes a failure of each of these nodes to the lease. */
static void fail_on(struct rig *rig, rl_nodes nodes)
{
    for (; nodes != 0; nodes &= nodes - 1)
        rig_fail(rig, (unsigned)__builtin_ctz(nodes));
}

/* Excludes the nodes and invalidates their keys in the lease. */
static void invalidate(struct rig *rig, rl_nodes nodes)
{
    const struct rl_event event = {.kind = RL_EVENT_INVALIDATE, .nodes = nodes};

    rig->view.excluded |= nodes;
    rig_step(rig, &event);
}

/* Returns the validity, from T1 on, that the TTL of the running extension gives. */
static uint64_t usable_ns(const struct rig *rig)
{
    return rl_usable_ns(rig->lease.extend_ttl_ns, &rig->params.terms.drift);
}

/* Another client may have shortened the keys since the last extension, so the extension asks for
 * all the validity that the holder relies on. */
START_TEST(a_shorter_extension_asks_for_the_remaining_validity)
{
    struct rig rig;

    hold(&rig, RL_SECOND);
    rig_extend(&rig, 6 * RL_SECOND);
    grant_on(&rig, 0x1f);
    uint64_t validity_ns = rig_remaining_ns(&rig);
    rig_pass(&rig, RL_SECOND);
    validity_ns -= RL_SECOND;
    rig_extend(&rig, 0);
    ck_assert_uint_ge(usable_ns(&rig), validity_ns);
    ck_assert_uint_le(rig.lease.extend_ttl_ns, 6 * RL_SECOND);
    ck_assert_uint_eq(rig.lease.extend_ttl_ns % RL_MS, 0);
    grant_on(&rig, 0x07);
    ck_assert_uint_eq(rig.fx.flags, RL_FX_EXTENDED | RL_FX_DONE | RL_FX_DEADLINE);
    ck_assert_uint_ge(rig_remaining_ns(&rig), validity_ns);
    ck_assert_uint_eq(rig_remaining_ns(&rig), usable_ns(&rig));
}
END_TEST

/* The deadline never moves to an earlier time. */
START_TEST(an_extension_never_shortens)
{
    struct rig rig;

    hold(&rig, 10 * RL_SECOND);
    rig_pass(&rig, RL_SECOND);
    rig_extend(&rig, 5 * RL_SECOND); /* the remaining validity needs a TTL of 9 s */
    ck_assert_uint_le(rig.lease.extend_ttl_ns, 9 * RL_SECOND);
    grant_on(&rig, 0x07);
    ck_assert_uint_ge(rig_remaining_ns(&rig), RIG_USABLE_NS - RL_SECOND);
    ck_assert_uint_le(rig_remaining_ns(&rig), RIG_USABLE_NS - RL_SECOND + RL_MS);
    rig_extend(&rig, 20 * RL_SECOND);
    grant_on(&rig, 0x07);
    ck_assert_uint_eq(rig_remaining_ns(&rig), 20 * RL_SECOND - (202 + 20) * RL_MS);
    ck_assert_uint_eq(rig.lease.extend_ttl_ns, 20 * RL_SECOND);
}
END_TEST

/* A heal sets the key with a TTL that reaches the deadline. */
START_TEST(a_heal_reaches_the_deadline)
{
    struct rig rig;

    hold(&rig, RL_SECOND);
    rig_extend(&rig, 20 * RL_SECOND);
    grant_on(&rig, 0x1f);
    rig_extend(&rig, 3 * RL_SECOND);
    rig_deny(&rig, 4);
    grant_on(&rig, 0x07);
    ck_assert_uint_eq(rig.fx.heal, 0x10);
    ck_assert_uint_ge(usable_ns(&rig), rig_remaining_ns(&rig));
}
END_TEST

/* The automatic extension uses the lock's own TTL, which may be shorter than the remaining
 * validity.
 */
START_TEST(an_automatic_extension_asks_for_the_remaining_validity)
{
    struct rig rig;

    hold(&rig, RL_SECOND);
    rig.params.terms.auto_extend = true;
    rig_extend(&rig, 10 * RL_SECOND);
    grant_on(&rig, 0x1f);
    for (unsigned round = 0; round < 20; round++) {
        while (rig.lease.state == RL_STATE_HELD) {
            rig_pass(&rig, rig.lease.wake_ns - rig.view.now.boot_ns);
            rig_tick(&rig);
        }
        ck_assert_uint_eq(rig.lease.state, RL_STATE_EXTENDING);
        uint64_t validity_ns = rig_remaining_ns(&rig);
        ck_assert_uint_ge(usable_ns(&rig), validity_ns);
        ck_assert_uint_ge(rig.lease.extend_ttl_ns, RL_SECOND);
        grant_on(&rig, 0x07);
        ck_assert_uint_ge(rig_remaining_ns(&rig), validity_ns);
    }
    ck_assert_uint_eq(rig.lease.extend_ttl_ns, RL_SECOND); /* the lock's own TTL is longer now */
}
END_TEST

/* A to E hold the key for 3 s. D and E miss an extension to 20 s, A and B miss one to 3 s. C, D and
 * E then carry the deadline, so a doubt about A does not end the lease. */
START_TEST(the_nodes_of_the_last_round_back_the_deadline)
{
    struct rig rig;

    hold(&rig, 3 * RL_SECOND);
    rig_extend(&rig, 20 * RL_SECOND);
    grant_on(&rig, 0x07);
    fail_on(&rig, 0x18);
    ck_assert_uint_eq(rig.lease.backing, 0x07);
    uint64_t validity_ns = rig_remaining_ns(&rig);
    rig_extend(&rig, 3 * RL_SECOND);
    fail_on(&rig, 0x03);
    grant_on(&rig, 0x1c);
    ck_assert_uint_eq(rig.lease.backing, 0x1c);
    ck_assert_uint_ge(usable_ns(&rig), validity_ns);
    ck_assert_uint_ge(rig_remaining_ns(&rig), validity_ns);
    invalidate(&rig, 0x01);
    ck_assert(!rig.lease.lost);
    invalidate(&rig, 0x08);
    ck_assert(rig.lease.lost);
}
END_TEST

/* A failed round keeps the deadline; a node that denied in it no longer carries it. */
START_TEST(a_node_that_denies_does_not_back_the_deadline)
{
    struct rig rig;

    hold(&rig, 3 * RL_SECOND);
    rig_extend(&rig, 20 * RL_SECOND);
    grant_on(&rig, 0x0f);
    fail_on(&rig, 0x10);
    struct rl_now deadline = rig.lease.deadline;
    rig_extend(&rig, 20 * RL_SECOND);
    rig_deny(&rig, 0);
    fail_on(&rig, 0x1e);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
    ck_assert_uint_eq(rig.lease.deadline.boot_ns, deadline.boot_ns);
    ck_assert_uint_eq(rig.lease.backing, 0x0e);
    invalidate(&rig, 0x02); /* only C and D are left */
    ck_assert(rig.lease.lost);
}
END_TEST

/* The reference of the wall clock and the deadline come from the same round: the last one won. */
START_TEST(the_wall_clock_reference_belongs_to_the_deadline)
{
    struct rig rig;

    hold(&rig, RL_SECOND);
    int64_t begun_us = rig.lease.wall_us;
    rig.view.wall_us += 700;
    rig_extend(&rig, 0);
    fail_on(&rig, 0x1f);
    ck_assert_int_eq(rig.lease.wall_us, begun_us);
    rig_extend(&rig, 0);
    grant_on(&rig, 0x07);
    ck_assert_int_eq(rig.lease.wall_us, begun_us + 700);
    ck_assert_uint_eq(rig.lease.deadline.boot_ns - rig.lease.round.t1.boot_ns, usable_ns(&rig));
    ck_assert_uint_eq(rig.lease.deadline.raw_ns - rig.lease.round.t1.raw_ns, usable_ns(&rig));
}
END_TEST

/* After a suspend the two clocks differ. The validity ends on the one that reaches it first. */
START_TEST(the_remaining_validity_is_that_of_the_earlier_clock)
{
    struct rig rig;

    hold(&rig, 10 * RL_SECOND);
    rig.view.now.boot_ns += 9 * RL_SECOND;
    uint64_t validity_ns = rig_remaining_ns(&rig);
    rig_extend(&rig, RL_SECOND);
    ck_assert_uint_lt(rig.lease.extend_ttl_ns, 2 * RL_SECOND);
    grant_on(&rig, 0x07);
    ck_assert_uint_ge(rig_remaining_ns(&rig), validity_ns);
    ck_assert_uint_eq(rig.lease.deadline.raw_ns - rig.view.now.raw_ns, usable_ns(&rig));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("core_lease_deadline");
    TCase *tcase = tcase_create("deadline");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, a_shorter_extension_asks_for_the_remaining_validity);
    tcase_add_test(tcase, an_extension_never_shortens);
    tcase_add_test(tcase, a_heal_reaches_the_deadline);
    tcase_add_test(tcase, an_automatic_extension_asks_for_the_remaining_validity);
    tcase_add_test(tcase, the_nodes_of_the_last_round_back_the_deadline);
    tcase_add_test(tcase, a_node_that_denies_does_not_back_the_deadline);
    tcase_add_test(tcase, the_wall_clock_reference_belongs_to_the_deadline);
    tcase_add_test(tcase, the_remaining_validity_is_that_of_the_earlier_clock);
    return suite_run(suite);
}
