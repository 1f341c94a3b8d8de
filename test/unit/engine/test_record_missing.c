/* SPDX-License-Identifier: MIT
 * Fence records that are missing while others are in use: when they are read again, when they are
 * seeded, with which fencing tokens, and which texts describe them. */
#include "record_rig.h"

#define GAP EMPTY

static uint64_t next_look_ns(void)
{
    const uint64_t due_ns = rl_records_wake_ns(&engine);

    return due_ns == RL_NEVER ? RL_NEVER : due_ns - now_ns;
}

static void hear_error(unsigned node)
{
    receive(node, "-ERR no\r\n", 9);
}

static void lose(unsigned node)
{
    opened[node] = false;
    rl_node_closed(&engine.nodes[node], REDLOCK_CAUSE_DISCONNECT, "cut", now_ns);
    rl_engine_drain(&engine);
}

static void refuse(unsigned node)
{
    opened[node] = false;
    rl_node_opened(&engine.nodes[node], false, REDLOCK_CAUSE_CONNECT, "refused", now_ns);
    rl_engine_drain(&engine);
}

static void note(unsigned node, uint8_t state)
{
    const struct rl_ballot ballot = {.node = (uint8_t)node, .record = state};

    rl_records_note(&engine, &ballot);
}

static void check_text(unsigned node, const char *words)
{
    char text[256];

    rl_records_text(&engine, node, text, sizeof text);
    ck_assert_msg(strstr(text, words) != NULL, "%s", text);
}

/* Something has happened to one node between the two looks of a first start, whichever it is. */
START_TEST(each_gap_has_to_stand)
{
    look();
    hear_all(EMPTY, EMPTY, EMPTY);
    hear_all(_i == 0 ? OTHER : EMPTY, _i == 1 ? OTHER : EMPTY, _i == 2 ? OTHER : EMPTY);
    check_seeded(false, false, false);
}
END_TEST

#define FOREIGN "v1 other;\n\n1:5"

/* Records of another configuration: looks come more and more rarely, up to a limit. */
START_TEST(looks_in_vain)
{
    look();
    for (unsigned i = 0; i < 70; i++) {
        hear_all(FOREIGN, FOREIGN, FOREIGN);
        ck_assert_uint_ge(next_look_ns(), (i < 5 ? 1u << i : 32) * RL_SECOND);
        ck_assert_uint_le(next_look_ns(), (i < 5 ? 1u << i : 32) * RL_SECOND * 9 / 8);
        engine.records->due_ns = now_ns;
        pass(0);
    }
    hear_all(FOREIGN, FOREIGN, FOREIGN);
}
END_TEST

/* A vote shows a record in use on a node whose records are not attested to survive a restart. */
START_TEST(an_unattested_record_does_not_count)
{
    look();
    hear_all(USED, GAP, GAP);
    engine.nodes[1].eligibility.admission.durable = false;
    note(1, RL_RECORD_ADMITTED);
    ck_assert_int_eq(engine.records->nodes[1].state, RL_RECORD_UNATTESTED);
    ck_assert(!rl_records_may_vote(&engine));
}
END_TEST

/* Fenced attempts may begin when a majority is known to be in use: the third node is not waited
 * for. */
START_TEST(a_majority_is_enough_to_begin)
{
    look();
    hear(0, USED);
    ck_assert(!engine.records->known);
    hear(1, USED);
    ck_assert(engine.records->known);
}
END_TEST

START_TEST(no_look_is_planned_when_all_are_in_use)
{
    look();
    hear_all(NEW, USED, NEW);
    ck_assert_uint_eq(next_look_ns(), RL_NEVER);
}
END_TEST

/* Beside a majority in use a gap is looked at when its wait ends, not every few milliseconds. */
START_TEST(a_gap_is_looked_at_when_its_wait_is_over)
{
    look();
    hear_all(USED, USED, GAP);
    ck_assert_uint_ge(next_look_ns(), engine.params.fence_wait_ns);
    ck_assert_uint_le(next_look_ns(), engine.params.fence_wait_ns * 9 / 8);
}
END_TEST

/* A vote shows that one of two gaps has been filled: the other one is still looked at. */
START_TEST(the_other_gap_is_not_forgotten)
{
    look();
    hear_all(USED, GAP, GAP);
    note(1, RL_RECORD_ADMITTED);
    ck_assert(rl_records_may_vote(&engine));
    ck_assert_uint_ne(next_look_ns(), RL_NEVER);
    note(2, RL_RECORD_ADMITTED);
    ck_assert_uint_eq(next_look_ns(), RL_NEVER);
}
END_TEST

/* The wait ends while the others are read: what they said may be older than the last vote that
 * counted on the gap. The next look fills it, with the largest number of each stripe. */
START_TEST(a_gap_is_filled_when_it_was_ripe_before_the_look)
{
    look();
    hear_all(USED, USED, GAP);
    const uint64_t ripe_ns = now_ns + engine.params.fence_wait_ns;
    now_ns = ripe_ns - RL_MS;
    engine.records->due_ns = now_ns;
    pass(0);
    ck_assert(read_it[0]);
    now_ns = ripe_ns + RL_MS;
    rl_engine_refresh(&engine);
    hear_all(USED, USED, GAP);
    check_seeded(false, false, false);
    ck_assert_uint_lt(next_look_ns(), 2 * RL_SECOND);
    pass(next_look_ns());
    hear_all(CONFIG "\n\n1:5 7:9", CONFIG "\n\n1:8 7:3", GAP);
    check_seeded(false, false, true);
    ck_assert_uint_eq(engine.records->fences[1], 8);
    ck_assert_uint_eq(engine.records->fences[7], 9);
}
END_TEST

/* A node that lost its record once more has to wait anew. */
START_TEST(each_gap_waits_for_itself)
{
    look();
    hear_all(USED, USED, GAP);
    pass(next_look_ns());
    hear_all(USED, USED, GAP);
    check_seeded(false, false, true);
    hear(2, "A ");
    now_ns += 60 * RL_SECOND;
    look();
    hear_all(USED, USED, OTHER);
    look();
    ck_assert_uint_eq(rl_records_wait_left_ns(&engine, 2), 0);
    hear_all(USED, USED, EMPTY);
    check_seeded(false, false, false);
    ck_assert_uint_eq(rl_records_wait_left_ns(&engine, 2), engine.params.fence_wait_ns);
}
END_TEST

/* A node's record was not read in this look; a vote shows meanwhile that it is in use. Its numbers
 * are not known: the other record in use is no majority. */
START_TEST(only_what_was_read_counts_for_a_gap)
{
    look();
    hear_all(USED, USED, GAP);
    pass(next_look_ns());
    hear_error(1);
    note(1, RL_RECORD_ADMITTED);
    hear(0, USED);
    hear(2, GAP);
    rl_engine_flush(&engine);
    check_seeded(false, false, false);
}
END_TEST

/* The answer to an earlier look comes during the next one: that one waits for its own. */
START_TEST(an_answer_to_an_earlier_look)
{
    engine.common.node_timeout_ns = 0;
    for (unsigned i = 0; i < NODES; i++)
        engine.nodes[i].detector.srtt_ns = RL_MS;
    ck_assert(rl_records_start(&engine));
    rl_engine_flush(&engine);
    hear(0, USED);
    hear(1, USED);
    for (unsigned i = 0; i < 20 && engine.records->phase != RL_RECORDS_IDLE; i++)
        pass(50 * RL_MS);
    ck_assert_int_eq(engine.records->phase, RL_RECORDS_IDLE);
    engine.records->due_ns = now_ns;
    pass(0);
    ck_assert(read_it[2]);
    hear(2, USED);
    ck_assert_uint_eq(engine.records->answered, 0);
    receive(2, "+PONG\r\n", 7);
    hear(2, USED);
    ck_assert_uint_eq(engine.records->answered, RL_NODE(2));
}
END_TEST

/* A node is being connected when a look begins, and cannot be: the look ends without it. */
START_TEST(a_look_does_not_wait_for_a_node_that_is_gone)
{
    lose(2);
    for (unsigned i = 0; i < 10 && !opened[2]; i++)
        pass(50 * RL_MS);
    ck_assert(rl_records_start(&engine));
    rl_engine_flush(&engine);
    ck_assert_uint_eq(engine.records->waiting, RL_NODE(2));
    hear(0, USED);
    hear(1, USED);
    refuse(2);
    ck_assert_uint_eq(engine.records->waiting, 0);
    ck_assert_int_eq(engine.records->phase, RL_RECORDS_IDLE);
}
END_TEST

/* One node has refused the first start: the client repeats it soon, however long gaps have to wait.
 */
START_TEST(a_first_start_goes_on_soon)
{
    engine.params.fence_wait_ns = 60 * RL_SECOND;
    look();
    hear_all(EMPTY, EMPTY, EMPTY);
    hear_all(EMPTY, EMPTY, EMPTY);
    check_seeded(true, true, true);
    hear(0, "A ");
    hear(1, "A ");
    hear_error(2);
    ck_assert_uint_le(next_look_ns(), 2 * RL_SECOND);
    pass(next_look_ns());
    hear_all(USED, USED, EMPTY);
    check_seeded(false, false, true);
}
END_TEST

/* The second time, the nodes refuse: what they did the first time does not count. */
START_TEST(each_decision_of_an_operator_is_judged_by_itself)
{
    for (unsigned turn = 0; turn < 2; turn++) {
        int status;
        ck_assert(rl_records_init(&engine, 5 * RL_SECOND));
        rl_engine_flush(&engine);
        for (unsigned i = 0; i < NODES; i++)
            hear(i, EMPTY);
        rl_engine_flush(&engine);
        for (unsigned i = 0; i < NODES; i++) {
            if (turn == 0)
                hear(i, "A ");
            else
                hear_error(i);
        }
        ck_assert(rl_records_init_is_done(&engine, &status));
        ck_assert_int_eq(status, turn == 0 ? REDLOCK_OK : REDLOCK_EFENCE);
    }
}
END_TEST

/* A server that does not say which run it is cannot show that a volatile record is of this one. */
START_TEST(a_run_without_a_name)
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

/* Nodes that do not answer have not lost what they know. */
START_TEST(what_people_are_told)
{
    look();
    hear_all(USED, USED, GAP);
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
    tcase_add_loop_test(tcase, each_gap_has_to_stand, 0, NODES);
    tcase_add_test(tcase, looks_in_vain);
    tcase_add_test(tcase, an_unattested_record_does_not_count);
    tcase_add_test(tcase, a_majority_is_enough_to_begin);
    tcase_add_test(tcase, no_look_is_planned_when_all_are_in_use);
    tcase_add_test(tcase, a_gap_is_looked_at_when_its_wait_is_over);
    tcase_add_test(tcase, the_other_gap_is_not_forgotten);
    tcase_add_test(tcase, a_gap_is_filled_when_it_was_ripe_before_the_look);
    tcase_add_test(tcase, each_gap_waits_for_itself);
    tcase_add_test(tcase, only_what_was_read_counts_for_a_gap);
    tcase_add_test(tcase, an_answer_to_an_earlier_look);
    tcase_add_test(tcase, a_look_does_not_wait_for_a_node_that_is_gone);
    tcase_add_test(tcase, a_first_start_goes_on_soon);
    tcase_add_test(tcase, each_decision_of_an_operator_is_judged_by_itself);
    tcase_add_test(tcase, a_run_without_a_name);
    tcase_add_test(tcase, what_people_are_told);
    return suite_run(suite);
}
