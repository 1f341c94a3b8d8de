/* SPDX-License-Identifier: MIT
 * Fence records of servers that reply late: how a first start and an operator's decision treat
 * them. */
#include "record_rig.h"

/* Time limits are measured, as they are by default: answers took a millisecond so far. */
static void measure_limits(void)
{
    engine.common.node_timeout_ns = 0;
    for (unsigned i = 0; i < NODES; i++)
        engine.nodes[i].detector.srtt_ns = RL_MS;
}

static void begin_init(uint64_t wait_ns)
{
    measure_limits();
    ck_assert(rl_records_init(&engine, wait_ns));
    rl_engine_flush(&engine);
}

static void begin_to_look(void)
{
    measure_limits();
    ck_assert(rl_records_start(&engine));
    rl_engine_flush(&engine);
}

static void hear_pong(unsigned node)
{
    receive(node, "+PONG\r\n", 7);
}

static int init_status(void)
{
    int status;

    ck_assert(rl_records_init_is_done(&engine, &status));
    return status;
}

/* On a busy machine all answers are late, but come. (Those that were still suspect when the last
 * one came were passed by: an operator was told that too few took their record into use, or some
 * were left without one; and a first start waited for another look.) */
START_TEST(servers_that_are_late)
{
    unsigned looks = _i == 0 ? 1 : 2;

    if (_i == 0)
        begin_init(5 * RL_SECOND);
    else
        begin_to_look();
    for (unsigned i = 0; i < looks * NODES; i++) {
        if (i % NODES == 0) {
            ck_assert(read_it[0] && read_it[1] && read_it[2]);
            pass((i == 0 ? 20 : 100) * RL_MS);
        }
        ck_assert(engine.nodes[i % NODES].detector.suspect);
        hear(i % NODES, EMPTY);
        if (i % NODES < NODES - 1)
            continue;
        rl_engine_flush(&engine);
        for (unsigned j = 0; j < NODES; j++)
            hear_pong(j);
        rl_engine_flush(&engine);
    }
    check_seeded(true, true, true);
    for (unsigned i = 0; i < NODES; i++)
        hear(i, "A ");
    ck_assert(rl_records_may_vote(&engine));
    if (_i == 0)
        ck_assert_int_eq(init_status(), REDLOCK_OK);
}
END_TEST

/* Too late for a vote, but not for an operator who waits, for reading and for writing. It is not
 * asked again: a server that needs longer than the limit for each question would be asked more and
 * more (simulator, seed 2055 of its generator of then). Where the connection ends, it is. */
START_TEST(who_is_too_late_for_an_operator)
{
    begin_init(5 * RL_SECOND);
    hear(0, EMPTY);
    hear(1, EMPTY);
    pass(20 * RL_MS);
    ck_assert(!read_it[2]);
    pass(780 * RL_MS);
    ck_assert(!read_it[2]);
    hear(2, EMPTY);
    rl_engine_flush(&engine);
    check_seeded(true, true, true);
    hear_pong(2);
    hear(0, "A ");
    hear(1, "A ");
    pass(800 * RL_MS);
    check_seeded(false, false, false);
    ck_assert(!engine.records->init_done);
    hear(2, "A ");
    ck_assert_int_eq(init_status(), REDLOCK_OK);
    ck_assert_uint_eq(engine.records->used, rl_nodes_all(NODES));
}
END_TEST

/* Its answer will not come any more, in time or late: it is asked on the next connection. */
START_TEST(a_connection_ends_while_an_operator_waits)
{
    begin_init(5 * RL_SECOND);
    hear(0, EMPTY);
    hear(1, EMPTY);
    opened[2] = false;
    rl_node_closed(&engine.nodes[2], REDLOCK_CAUSE_DISCONNECT, "cut", now_ns);
    rl_engine_drain(&engine);
    for (unsigned i = 0; i < 10 && !opened[2]; i++)
        pass(50 * RL_MS);
    ck_assert(!seeded[0]);
    greet(2);
    rl_engine_flush(&engine);
    ck_assert(read_it[2]);
    hear(2, EMPTY);
    rl_engine_flush(&engine);
    check_seeded(true, true, true);
}
END_TEST

/* One that does not answer at all is waited for until it is known to be down, or for half of the
 * time; and nothing is changed when nobody waits any more. */
START_TEST(who_never_answers_an_operator)
{
    static const uint64_t wait_ms[] = {60000, 1000, 100}, most_ms[] = {2400, 800, 300};
    uint64_t begun_ns = now_ns;

    begin_init(wait_ms[_i] * RL_MS);
    hear(0, EMPTY);
    hear(1, EMPTY);
    while (!seeded[0] && !engine.records->init_done) {
        pass(50 * RL_MS);
        ck_assert_uint_le(now_ns - begun_ns, most_ms[_i] * RL_MS);
    }
    check_seeded(_i < 2, _i < 2, false);
    for (unsigned i = 0; i < 2 && _i < 2; i++)
        hear(i, "A ");
    ck_assert_int_eq(init_status(), _i < 2 ? REDLOCK_OK : REDLOCK_ENOQUORUM);
}
END_TEST

/* A lock's fence comes from the stripe of its name: no stripe may begin below what was granted
 * before the records were lost. */
START_TEST(an_operators_start_fills_each_stripe)
{
    begin_init(5 * RL_SECOND);
    for (unsigned i = 0; i < NODES; i++)
        hear(i, EMPTY);
    rl_engine_flush(&engine);
    check_seeded(true, true, true);
    ck_assert_uint_eq(rl_records_wake_ns(&engine), RL_NEVER); /* answers come by themselves */
    for (unsigned i = 0; i < NODES; i++)
        ck_assert(seeded_all[i]);
    for (unsigned i = 0; i < RL_FENCE_STRIPES; i++)
        ck_assert_uint_ge(engine.records->fences[i], rl_fence_propose(0, wall_us(NULL)));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("engine_record_late_servers");
    TCase *tcase = tcase_create("late");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, servers_that_are_late, 0, 2);
    tcase_add_test(tcase, who_is_too_late_for_an_operator);
    tcase_add_test(tcase, a_connection_ends_while_an_operator_waits);
    tcase_add_loop_test(tcase, who_never_answers_an_operator, 0, 3);
    tcase_add_test(tcase, an_operators_start_fills_each_stripe);
    return suite_run(suite);
}
