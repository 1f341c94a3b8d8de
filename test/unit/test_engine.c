/* SPDX-License-Identifier: MIT
 * What an engine itself decides: servers that have two names, clocks that are set, how long an undo
 * is kept. */
#include "engine_rig.h"

static void setup(void)
{
    rig_begin(NULL);
}

static void connect_all(void)
{
    rig_pass(20 * RL_MS);
    ck_assert(rl_engine_is_ready(rig_engine(0)));
}

/* The second and the third address lead to the first one's server: both are named after it. */
START_TEST(duplicates_name_the_first)
{
    struct rl_engine *engine = rig_engine(0);

    for (unsigned i = 1; i < NODES; i++)
        memcpy(world.nodes[i].run_id, world.nodes[0].run_id, sizeof world.nodes[0].run_id);
    rig_pass(20 * RL_MS);
    ck_assert(!engine->nodes[0].duplicate);
    for (unsigned i = 1; i < NODES; i++) {
        ck_assert(engine->nodes[i].duplicate);
        ck_assert_uint_eq(engine->nodes[i].duplicate_of, 0);
        ck_assert_int_eq(engine->view.cause[i], REDLOCK_CAUSE_DUPLICATE);
    }
    ck_assert(engine->view.duplicate);
    ck_assert(!rl_engine_is_ready(engine));
}
END_TEST

/* The wall clock is set back by an hour, a lock is taken, and the clock is set right: for this lock
 * that is an hour ahead, and it is lost in the turn that sees it. */
START_TEST(a_wall_clock_is_set_back_and_ahead)
{
    const uint64_t hour_us = 3600 * UINT64_C(1000000);
    struct rl_lease_params params = rig_params();

    connect_all();
    params.terms.wall_slack_us = 500000;
    world.clients[0].wall_us -= hour_us;
    rig_pass(RIG_STEP);
    struct rig_lock *it = rig_hold(0, &params, "a");
    world.clients[0].wall_us += hour_us;
    rig_pass(RIG_STEP);
    ck_assert((it->flags & RL_FX_LOST) != 0);
}
END_TEST

/* A lock of a second is kept for a minute after its release. One server executes that
 * late, and its answer is lost: the engine keeps the undo for the whole minute, and sends it when
 * the server can be reached again. */
START_TEST(release_after_for_longer_than_the_ttl)
{
    struct rl_lease_params params = rig_params();

    connect_all();
    struct rig_lock *it = rig_hold(0, &params, "a");
    uint64_t end_ns = world.now_ns + 60 * RL_SECOND;
    rig_call(it, RL_EVENT_SHORTEN, 60 * RL_SECOND);
    world.now_ns += 500 * RL_MS;
    rig_reach(2, false, true);
    uint64_t late_ms = rig_ttl_ms(2, "a");
    ck_assert_uint_gt(late_ms, 59990);
    rig_pass(30 * RL_SECOND);
    ck_assert_uint_eq(rl_engine_undos_pending(rig_engine(0)), 1);
    rig_reach(2, true, false);
    rig_pass(10 * RL_SECOND);
    ck_assert_uint_eq(rl_engine_undos_pending(rig_engine(0)), 0);
    ck_assert_uint_gt(rig_ttl_ms(2, "a"), 0);
    ck_assert_uint_le(world.now_ns + rig_ttl_ms(2, "a") * RL_MS, end_ns + RIG_STEP);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("engine");
    TCase *tcase = tcase_create("engine");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, rig_end);
    tcase_add_test(tcase, duplicates_name_the_first);
    tcase_add_test(tcase, a_wall_clock_is_set_back_and_ahead);
    tcase_add_test(tcase, release_after_for_longer_than_the_ttl);
    return suite_run(suite);
}
