/* SPDX-License-Identifier: MIT
 * Fence records that are missing while others are in use: when they are read again, when they are
 * seeded, with which fencing tokens, and which texts describe them.
 *
 * Uses record_rig.h: an engine with three durable servers that the test plays, in virtual time.
 * read_records() makes the engine send READ, reply_to_all() replies with three records,
 * check_seeded() checks which nodes got a SEED, and pass() and tick() advance time. */
#include "record_rig.h"

#define GAP    EMPTY                /* a missing record */
#define BROKEN CONFIG "\n\n1:5 7:x" /* the second number is malformed */

/* Returns the time until the records are read again; RL_NEVER: not planned. */
static uint64_t next_reading_ns(void)
{
    const uint64_t due_ns = rl_records_wake_ns(&engine);

    return due_ns == RL_NEVER ? RL_NEVER : due_ns - now_ns;
}

/* Replies with an error. */
static void reply_error(unsigned node)
{
    receive(node, "-ERR no\r\n", 9);
}

/* Ends the node's connection. */
static void lose(unsigned node)
{
    opened[node] = false;
    rl_node_closed(&engine.nodes[node], REDLOCK_CAUSE_DISCONNECT, "cut", now_ns);
    rl_engine_drain(&engine);
}

/* Lets the node's attempt to connect fail. */
static void refuse(unsigned node)
{
    opened[node] = false;
    rl_node_opened(&engine.nodes[node], false, REDLOCK_CAUSE_CONNECT, "refused", now_ns);
    rl_engine_drain(&engine);
}

/* Passes a vote that shows this state of the node's record. */
static void note(unsigned node, uint8_t state)
{
    const struct rl_ballot ballot = {.node = (uint8_t)node, .record = state};

    rl_records_note(&engine, &ballot);
}

/* Checks that the text about the node's record contains these words. */
static void check_text(unsigned node, const char *words)
{
    char text[256];

    rl_records_text(&engine, node, text, sizeof text);
    ck_assert_msg(strstr(text, words) != NULL, "%s", text);
}

/* The record of one node is emptied between the two readings of a first start. */
START_TEST(a_record_lost_between_two_readings_waits)
{
    read_records();
    reply_to_all(EMPTY, EMPTY, EMPTY);
    reply_to_all(_i == 0 ? OTHER : EMPTY, _i == 1 ? OTHER : EMPTY, _i == 2 ? OTHER : EMPTY);
    check_seeded(false, false, false);
}
END_TEST

#define FOREIGN "v1 other;\n\n1:5"

/* The delay between readings of records of another configuration grows up to a limit. */
START_TEST(readings_of_foreign_records_become_rare)
{
    read_records();
    for (unsigned i = 0; i < 70; i++) {
        reply_to_all(FOREIGN, FOREIGN, FOREIGN);
        ck_assert_uint_ge(next_reading_ns(), (i < 5 ? 1u << i : 32) * RL_SECOND);
        ck_assert_uint_le(next_reading_ns(), (i < 5 ? 1u << i : 32) * RL_SECOND * 9 / 8);
        engine.records->due_ns = now_ns;
        pass(0);
    }
    reply_to_all(FOREIGN, FOREIGN, FOREIGN);
}
END_TEST

/* A vote shows a record in use on a node whose records are not attested to survive a restart. */
START_TEST(an_unattested_record_does_not_count)
{
    read_records();
    reply_to_all(USED, GAP, GAP);
    engine.nodes[1].eligibility.admission.durable = false;
    note(1, RL_RECORD_ADMITTED);
    ck_assert_int_eq(engine.records->nodes[1].state, RL_RECORD_UNATTESTED);
    ck_assert(!rl_records_may_vote(&engine));
}
END_TEST

/* Fenced attempts may begin when a majority of records is known to be in use, without waiting for
 * the third node. */
START_TEST(a_majority_is_enough_to_begin)
{
    read_records();
    reply(0, USED);
    ck_assert(!engine.records->known);
    reply(1, USED);
    ck_assert(engine.records->known);
}
END_TEST

START_TEST(no_reading_is_planned_when_all_are_in_use)
{
    read_records();
    reply_to_all(NEW, USED, NEW);
    ck_assert_uint_eq(next_reading_ns(), RL_NEVER);
}
END_TEST

/* With a majority in use, a missing record is read when its wait ends, not every few milliseconds.
 */
START_TEST(a_gap_is_read_when_its_wait_has_ended)
{
    read_records();
    reply_to_all(USED, USED, GAP);
    ck_assert_uint_ge(next_reading_ns(), engine.params.fence_wait_ns);
    ck_assert_uint_le(next_reading_ns(), engine.params.fence_wait_ns * 9 / 8);
}
END_TEST

/* A vote shows that one of two gaps was seeded. The other one is still read. */
START_TEST(the_other_gap_is_not_forgotten)
{
    read_records();
    reply_to_all(USED, GAP, GAP);
    note(1, RL_RECORD_ADMITTED);
    ck_assert(rl_records_may_vote(&engine));
    ck_assert_uint_ne(next_reading_ns(), RL_NEVER);
    note(2, RL_RECORD_ADMITTED);
    ck_assert_uint_eq(next_reading_ns(), RL_NEVER);
}
END_TEST

/* If the wait ends while the others are read, their numbers may be older than the last vote that
 * counted on the gap. The next reading seeds it, with the largest number of each stripe. */
START_TEST(a_gap_is_seeded_if_its_wait_ended_before_the_reading)
{
    read_records();
    reply_to_all(USED, USED, GAP);
    const uint64_t ripe_ns = now_ns + engine.params.fence_wait_ns;
    now_ns = ripe_ns - RL_MS;
    engine.records->due_ns = now_ns;
    pass(0);
    ck_assert(read_sent[0]);
    now_ns = ripe_ns + RL_MS;
    rl_engine_refresh(&engine);
    reply_to_all(USED, USED, GAP);
    check_seeded(false, false, false);
    ck_assert_uint_lt(next_reading_ns(), 2 * RL_SECOND);
    pass(next_reading_ns());
    reply_to_all(CONFIG "\n\n1:5 7:9", CONFIG "\n\n1:8 7:3", GAP);
    check_seeded(false, false, true);
    ck_assert_uint_eq(engine.records->fences[1], 8);
    ck_assert_uint_eq(engine.records->fences[7], 9);
}
END_TEST

/* The wait of a record starts anew when the record is lost again. */
START_TEST(a_record_lost_again_waits_anew)
{
    read_records();
    reply_to_all(USED, USED, GAP);
    pass(next_reading_ns());
    reply_to_all(USED, USED, GAP);
    check_seeded(false, false, true);
    reply(2, "A ");
    now_ns += 60 * RL_SECOND;
    read_records();
    reply_to_all(USED, USED, OTHER);
    read_records();
    ck_assert_uint_eq(rl_records_wait_left_ns(&engine, 2), 0);
    reply_to_all(USED, USED, EMPTY);
    check_seeded(false, false, false);
    ck_assert_uint_eq(rl_records_wait_left_ns(&engine, 2), engine.params.fence_wait_ns);
}
END_TEST

/* A vote shows that a record is in use that was not read this time. Its numbers are unknown, so it
 * does not count for the majority from which a gap is seeded. */
START_TEST(only_records_that_were_read_count_for_a_gap)
{
    read_records();
    reply_to_all(USED, USED, GAP);
    pass(next_reading_ns());
    reply_error(1);
    note(1, RL_RECORD_ADMITTED);
    reply(0, USED);
    reply(2, GAP);
    rl_engine_flush(&engine);
    check_seeded(false, false, false);
}
END_TEST

/* A record with a malformed number is not in use: the numbers behind it are unknown. */
START_TEST(a_record_with_a_malformed_number_does_not_count)
{
    read_records();
    reply_to_all(USED, BROKEN, BROKEN);
    ck_assert_int_eq(rl_records_state(&engine, 1), RL_RECORD_CORRUPT);
    ck_assert(!rl_records_may_vote(&engine));
    ck_assert_uint_ne(next_reading_ns(), RL_NEVER);
    note(1, RL_RECORD_ADMITTED); /* the register of that vote is not the malformed one */
    ck_assert(rl_records_may_vote(&engine));
}
END_TEST

/* A vote shows that a record is in use which has a malformed number in another register. Its other
 * numbers are unknown, so it does not count for the majority from which a gap is seeded. */
START_TEST(a_malformed_record_does_not_count_for_a_gap)
{
    read_records();
    reply_to_all(USED, USED, GAP);
    pass(next_reading_ns());
    reply(1, BROKEN);
    note(1, RL_RECORD_ADMITTED);
    reply(0, USED);
    reply(2, GAP);
    rl_engine_flush(&engine);
    check_seeded(false, false, false);
}
END_TEST

/* A late reply comes during the next reading, which waits for its own reply. */
START_TEST(a_reply_to_an_earlier_reading_does_not_count)
{
    engine.common.node_timeout_ns = 0;
    for (unsigned i = 0; i < NODES; i++)
        engine.nodes[i].detector.srtt_ns = RL_MS;
    ck_assert(rl_records_start(&engine));
    rl_engine_flush(&engine);
    reply(0, USED);
    reply(1, USED);
    for (unsigned i = 0; i < 20 && engine.records->phase != RL_RECORDS_IDLE; i++)
        pass(50 * RL_MS);
    ck_assert_int_eq(engine.records->phase, RL_RECORDS_IDLE);
    engine.records->due_ns = now_ns;
    pass(0);
    ck_assert(read_sent[2]);
    reply(2, USED);
    ck_assert_uint_eq(engine.records->answered, 0);
    receive(2, "+PONG\r\n", 7);
    reply(2, USED);
    ck_assert_uint_eq(engine.records->answered, RL_NODE(2));
}
END_TEST

/* A node is connecting when the reading begins, and fails. The reading ends without it. */
START_TEST(a_reading_does_not_wait_for_a_failed_connection)
{
    lose(2);
    for (unsigned i = 0; i < 10 && !opened[2]; i++)
        pass(50 * RL_MS);
    ck_assert(rl_records_start(&engine));
    rl_engine_flush(&engine);
    ck_assert_uint_eq(engine.records->waiting, RL_NODE(2));
    reply(0, USED);
    reply(1, USED);
    refuse(2);
    ck_assert_uint_eq(engine.records->waiting, 0);
    ck_assert_int_eq(engine.records->phase, RL_RECORDS_IDLE);
}
END_TEST

/* One node has refused the SEED of a first start. The client repeats it soon, without the wait of a
 * gap. */
START_TEST(a_refused_first_start_is_repeated_soon)
{
    engine.params.fence_wait_ns = 60 * RL_SECOND;
    read_records();
    reply_to_all(EMPTY, EMPTY, EMPTY);
    reply_to_all(EMPTY, EMPTY, EMPTY);
    check_seeded(true, true, true);
    reply(0, "A ");
    reply(1, "A ");
    reply_error(2);
    ck_assert_uint_le(next_reading_ns(), 2 * RL_SECOND);
    pass(next_reading_ns());
    reply_to_all(USED, USED, EMPTY);
    check_seeded(false, false, true);
}
END_TEST

/* The nodes refuse an operator's second initialization. The success of the first does not count. */
START_TEST(each_decision_of_an_operator_is_judged_by_itself)
{
    for (unsigned turn = 0; turn < 2; turn++) {
        int status;
        ck_assert(rl_records_init(&engine, 5 * RL_SECOND));
        rl_engine_flush(&engine);
        for (unsigned i = 0; i < NODES; i++)
            reply(i, EMPTY);
        rl_engine_flush(&engine);
        for (unsigned i = 0; i < NODES; i++) {
            if (turn == 0)
                reply(i, "A ");
            else
                reply_error(i);
        }
        ck_assert(rl_records_init_is_done(&engine, &status));
        ck_assert_int_eq(status, turn == 0 ? REDLOCK_OK : REDLOCK_EFENCE);
    }
}
END_TEST

/* Without a run id, a server cannot show that its volatile record is of the current run. */
START_TEST(without_a_run_id_a_volatile_record_does_not_count)
{
    const struct rl_arg config = {CONFIG, sizeof CONFIG - 1};

    ck_assert(rl_records_start(&engine));
    ck_assert_int_eq(rl_record_classify(&engine, 0, config), RL_RECORD_ADMITTED);
    engine.params.fence_run_bound = true;
    ck_assert_int_eq(rl_record_classify(&engine, 0, config), RL_RECORD_OLD_RUN);
    engine.nodes[0].eligibility.run_id[0] = '\0';
    ck_assert_int_eq(rl_record_classify(&engine, 0, config), RL_RECORD_OLD_RUN);
}
END_TEST

/* Nodes without a reply keep the state that is known of their records. */
START_TEST(texts_describe_the_records)
{
    read_records();
    reply_to_all(USED, USED, GAP);
    check_text(2, "counts again in 1000 ms");
    now_ns += engine.params.fence_wait_ns - 1;
    rl_engine_refresh(&engine);
    check_text(2, "counts again in 1 ms");
    for (unsigned i = 0; i < 2; i++) {
        lose(i);
        engine.records->nodes[i].state = RL_RECORD_UNKNOWN;
    }
    check_text(2, "too few of the other servers reply");
    note(0, RL_RECORD_MISSING);
    check_text(2, "fence_majority_lost");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("engine_record_missing");
    TCase *tcase = tcase_create("gaps");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, a_record_lost_between_two_readings_waits, 0, NODES);
    tcase_add_test(tcase, readings_of_foreign_records_become_rare);
    tcase_add_test(tcase, an_unattested_record_does_not_count);
    tcase_add_test(tcase, a_majority_is_enough_to_begin);
    tcase_add_test(tcase, no_reading_is_planned_when_all_are_in_use);
    tcase_add_test(tcase, a_gap_is_read_when_its_wait_has_ended);
    tcase_add_test(tcase, the_other_gap_is_not_forgotten);
    tcase_add_test(tcase, a_gap_is_seeded_if_its_wait_ended_before_the_reading);
    tcase_add_test(tcase, a_record_lost_again_waits_anew);
    tcase_add_test(tcase, only_records_that_were_read_count_for_a_gap);
    tcase_add_test(tcase, a_record_with_a_malformed_number_does_not_count);
    tcase_add_test(tcase, a_malformed_record_does_not_count_for_a_gap);
    tcase_add_test(tcase, a_reply_to_an_earlier_reading_does_not_count);
    tcase_add_test(tcase, a_reading_does_not_wait_for_a_failed_connection);
    tcase_add_test(tcase, a_refused_first_start_is_repeated_soon);
    tcase_add_test(tcase, each_decision_of_an_operator_is_judged_by_itself);
    tcase_add_test(tcase, without_a_run_id_a_volatile_record_does_not_count);
    tcase_add_test(tcase, texts_describe_the_records);
    return suite_run(suite);
}
