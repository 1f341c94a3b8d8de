/* SPDX-License-Identifier: MIT
 * Fence records of servers that reply late: how a first start and an operator's decision treat
 * them.
 *
 * Uses record_rig.h: an engine with three durable servers that the test plays, in virtual time.
 * read_records() makes the engine send READ, reply_to_all() replies with three records,
 * check_seeded() checks which nodes got a SEED, and pass() and tick() advance time. */
#include "record_rig.h"

/* Sets measured round trips of 1 ms, from which the time limits follow, as by default. */
static void measure_limits(void)
{
    engine.common.node_timeout_ns = 0;
    for (unsigned i = 0; i < NODES; i++)
        engine.nodes[i].detector.srtt_ns = RL_MS;
}

/* Starts an operator's initialization that may take `wait_ns`. */
static void begin_init(uint64_t wait_ns)
{
    measure_limits();
    ck_assert(rl_records_init(&engine, wait_ns));
    rl_engine_flush(&engine);
}

/* Starts to read the records. */
static void start_reading(void)
{
    measure_limits();
    ck_assert(rl_records_start(&engine));
    rl_engine_flush(&engine);
}

/* Replies to a PING. */
static void reply_pong(unsigned node)
{
    receive(node, "+PONG\r\n", 7);
}

/* Returns the status of the initialization, which must be done. */
static int init_status(void)
{
    int status;

    ck_assert(rl_records_init_is_done(&engine, &status));
    return status;
}

/* On a busy machine all replies are late. Nodes that are still suspect take part all the same. */
START_TEST(late_replies_count_for_records)
{
    unsigned looks = _i == 0 ? 1 : 2;

    if (_i == 0)
        begin_init(5 * RL_SECOND);
    else
        start_reading();
    for (unsigned i = 0; i < looks * NODES; i++) {
        if (i % NODES == 0) {
            ck_assert(read_sent[0] && read_sent[1] && read_sent[2]);
            pass((i == 0 ? 20 : 100) * RL_MS);
        }
        ck_assert(engine.nodes[i % NODES].detector.suspect);
        reply(i % NODES, EMPTY);
        if (i % NODES < NODES - 1)
            continue;
        rl_engine_flush(&engine);
        for (unsigned j = 0; j < NODES; j++)
            reply_pong(j);
        rl_engine_flush(&engine);
    }
    check_seeded(true, true, true);
    for (unsigned i = 0; i < NODES; i++)
        reply(i, "A ");
    ck_assert(rl_records_may_vote(&engine));
    if (_i == 0)
        ck_assert_int_eq(init_status(), REDLOCK_OK);
}
END_TEST

/* A reply that is too late for a vote still counts for an operator, for READ and for SEED. The
 * request is not repeated, because a slow server would get more and more of them. */
START_TEST(replies_after_the_time_limit_count_for_an_operator)
{
    begin_init(5 * RL_SECOND);
    reply(0, EMPTY);
    reply(1, EMPTY);
    pass(20 * RL_MS);
    ck_assert(!read_sent[2]);
    pass(780 * RL_MS);
    ck_assert(!read_sent[2]);
    reply(2, EMPTY);
    rl_engine_flush(&engine);
    check_seeded(true, true, true);
    reply_pong(2);
    reply(0, "A ");
    reply(1, "A ");
    pass(800 * RL_MS);
    check_seeded(false, false, false);
    ck_assert(!engine.records->init_done);
    reply(2, "A ");
    ck_assert_int_eq(init_status(), REDLOCK_OK);
    ck_assert_uint_eq(engine.records->used, rl_nodes_all(NODES));
}
END_TEST

/* After a disconnect the reply will not come any more, so the request is repeated on the next
 * connection. */
START_TEST(a_connection_ends_while_an_operator_waits)
{
    begin_init(5 * RL_SECOND);
    reply(0, EMPTY);
    reply(1, EMPTY);
    opened[2] = false;
    rl_node_closed(&engine.nodes[2], REDLOCK_CAUSE_DISCONNECT, "cut", now_ns);
    rl_engine_drain(&engine);
    for (unsigned i = 0; i < 10 && !opened[2]; i++)
        pass(50 * RL_MS);
    ck_assert(!seeded[0]);
    greet(2);
    rl_engine_flush(&engine);
    ck_assert(read_sent[2]);
    reply(2, EMPTY);
    rl_engine_flush(&engine);
    check_seeded(true, true, true);
}
END_TEST

/* A server without a reply is waited for until it is known to be down, or for half of the
 * operator's time. After the end of that time nothing is changed. */
START_TEST(an_operator_waits_for_missing_replies_for_half_of_the_time)
{
    static const uint64_t wait_ms[] = {60000, 1000, 100}, most_ms[] = {2400, 800, 300};
    uint64_t begun_ns = now_ns;

    begin_init(wait_ms[_i] * RL_MS);
    reply(0, EMPTY);
    reply(1, EMPTY);
    while (!seeded[0] && !engine.records->init_done) {
        pass(50 * RL_MS);
        ck_assert_uint_le(now_ns - begun_ns, most_ms[_i] * RL_MS);
    }
    check_seeded(_i < 2, _i < 2, false);
    for (unsigned i = 0; i < 2 && _i < 2; i++)
        reply(i, "A ");
    ck_assert_int_eq(init_status(), _i < 2 ? REDLOCK_OK : REDLOCK_ENOQUORUM);
}
END_TEST

/* No stripe may begin below a fencing token that was granted before the records were lost. */
START_TEST(an_operators_start_fills_each_stripe)
{
    begin_init(5 * RL_SECOND);
    for (unsigned i = 0; i < NODES; i++)
        reply(i, EMPTY);
    rl_engine_flush(&engine);
    check_seeded(true, true, true);
    ck_assert_uint_eq(rl_records_wake_ns(&engine), RL_NEVER); /* waits for replies only */
    for (unsigned i = 0; i < NODES; i++)
        ck_assert(seed_is_full[i]);
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
    tcase_add_loop_test(tcase, late_replies_count_for_records, 0, 2);
    tcase_add_test(tcase, replies_after_the_time_limit_count_for_an_operator);
    tcase_add_test(tcase, a_connection_ends_while_an_operator_waits);
    tcase_add_loop_test(tcase, an_operator_waits_for_missing_replies_for_half_of_the_time, 0, 3);
    tcase_add_test(tcase, an_operators_start_fills_each_stripe);
    return suite_run(suite);
}
