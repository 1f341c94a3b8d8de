/* SPDX-License-Identifier: MIT
 * When fence records count as those of a first start: an engine with three servers that the test
 * simulates.
 *
 * Uses record_rig.h: an engine with three durable servers that the test plays, in virtual time.
 * read_records() makes the engine send READ, reply_to_all() replies with three records,
 * check_seeded() checks which nodes got a SEED, and pass() and tick() advance time. */
#include "record_rig.h"

/* Replies with this record for all nodes. Returns true if all then get a SEED. */
static bool seeds_all_for(const char *record)
{
    read_records();
    reply_to_all(record, record, record);
    if (read_sent[0])
        reply_to_all(record, record, record);
    return seeded[0] && seeded[1] && seeded[2];
}

/* Ends the node's connection. */
static void lose(unsigned node)
{
    rl_node_closed(&engine.nodes[node], REDLOCK_CAUSE_DISCONNECT, "cut", now_ns);
    rl_engine_drain(&engine);
}

/* Connects the node again; other disconnected nodes stay so. */
static void reconnect(unsigned node)
{
    engine.records->due_ns = RL_NEVER; /* the records are not read meanwhile */
    for (unsigned i = 0; i < 10 && !opened[node]; i++)
        tick();
    for (unsigned i = 0; i < NODES; i++) {
        if (i == node || engine.nodes[i].conn.state == RL_NODE_READY || !opened[i])
            continue;
        opened[i] = false;
        rl_node_opened(&engine.nodes[i], false, REDLOCK_CAUSE_CONNECT, "refused", now_ns);
        rl_engine_drain(&engine);
    }
    greet(node);
    tick();
}

/* Interrupts a first start after the first node has got its SEED. */
static void interrupt_first_start(void)
{
    ck_assert(seeds_all_for(EMPTY));
    opened[1] = opened[2] = false;
    lose(1);
    lose(2);
    reply(0, "A ");
    ck_assert(!rl_records_may_vote(&engine));
}

/* Checks that the text about the records contains these words. */
static void check_text(const char *words)
{
    char text[256];

    rl_records_text(&engine, 0, text, sizeof text);
    ck_assert_msg(strstr(text, words) != NULL, "%s", text);
}

/* One reading is not enough, because the records are not read at the same time. */
START_TEST(two_readings_of_empty_records_are_a_first_start)
{
    read_records();
    reply_to_all(EMPTY, EMPTY, EMPTY);
    check_seeded(false, false, false);
    reply_to_all(EMPTY, EMPTY, EMPTY);
    check_seeded(true, true, true);
    for (unsigned i = 0; i < NODES; i++) {
        ck_assert_int_eq(rl_records_may_vote(&engine), i == 2);
        reply(i, "A ");
    }
    ck_assert(rl_records_may_vote(&engine));
}
END_TEST

/* A node's record is emptied (0) or its server restarted (1) between the readings. A third reading
 * follows, but not at once. */
START_TEST(a_record_that_changes_between_the_readings_needs_a_third)
{
    read_records();
    reply_to_all(EMPTY, EMPTY, EMPTY);
    if (_i == 0) {
        reply_to_all(EMPTY, OTHER, EMPTY);
    } else { /* another run of the server, with the old mark */
        opened[1] = false;
        lose(1);
        snprintf(run_ids[1], sizeof run_ids[1], "later");
        for (unsigned i = 0; i < NODES; i += 2)
            reply(i, EMPTY);
        reconnect(1);
        ck_assert(!seeded[0]);
        read_records();
        reply_to_all(EMPTY, EMPTY, EMPTY);
        check_seeded(false, false, false);
    }
    if (_i == 0) {
        check_seeded(false, false, false);
        ck_assert(!read_sent[0]);
        read_records();
        reply_to_all(EMPTY, OTHER, EMPTY);
    } else {
        reply_to_all(EMPTY, EMPTY, EMPTY);
    }
    check_seeded(true, true, true);
}
END_TEST

/* A record that was read on one run of a server is not written to the next run. */
START_TEST(a_record_of_an_earlier_run_is_not_seeded)
{
    read_records();
    reply_to_all(EMPTY, EMPTY, EMPTY);
    opened[1] = false;
    reply(1, EMPTY); /* replies to the second reading, too, and is then restarted */
    lose(1);
    snprintf(run_ids[1], sizeof run_ids[1], "later");
    reconnect(1);
    reply(0, EMPTY);
    reply(2, EMPTY);
    rl_engine_flush(&engine);
    check_seeded(true, false, true);
    reply(0, "A ");
    reply(2, "A ");
    ck_assert(rl_records_may_vote(&engine));
}
END_TEST

/* The same client seeds a node's unchanged record as soon as the node is connected again. */
START_TEST(an_interrupted_first_start_is_continued)
{
    interrupt_first_start();
    check_text("too few of the others"); /* only one is in use */
    reconnect(1);
    reply(0, NEW);
    reply(1, EMPTY);
    rl_engine_flush(&engine);
    check_seeded(false, true, false);
    reply(1, "A ");
    ck_assert(rl_records_may_vote(&engine));
    /* The last node follows much later, when the others are in use. */
    now_ns += 3600 * RL_SECOND;
    reconnect(2);
    reply_to_all(USED, USED, EMPTY);
    check_seeded(false, false, true);
}
END_TEST

/* Another client may have used the record of a node that was emptied or restarted since. */
START_TEST(a_first_start_is_not_continued_on_a_changed_record)
{
    interrupt_first_start();
    if (_i == 1)
        snprintf(run_ids[1], sizeof run_ids[1], "later");
    reconnect(1);
    reply(0, NEW);
    reply(1, _i == 0 ? OTHER : (_i == 1 ? EMPTY : "\n" MARK "\n1:7"));
    rl_engine_flush(&engine);
    check_seeded(false, false, false);
    reconnect(2);
    reply_to_all(NEW, _i == 0 ? OTHER : EMPTY, EMPTY);
    check_seeded(false, _i == 2, true); /* an unused record with a number is seeded */
}
END_TEST

/* Another client that finds some records in use and some new ones waits, because they may belong to
 * a first start. */
START_TEST(a_first_start_of_another_client_is_waited_for)
{
    unsigned soon = 0;

    ck_assert(rl_records_start(&engine));
    for (;;) {
        rl_engine_flush(&engine);
        reply_to_all(NEW, EMPTY, EMPTY);
        check_seeded(false, false, false);
        const uint64_t left_ns = rl_records_wake_ns(&engine) - now_ns;
        ck_assert_uint_le(left_ns, 64 * RL_SECOND);
        if (engine.records->known)
            break;
        ck_assert_uint_le(left_ns, 200 * RL_MS);
        soon++;
        tick();
    }
    ck_assert_uint_eq(soon, 4);
    tick();
    reply_to_all(NEW, NEW, EMPTY);
    ck_assert(rl_records_may_vote(&engine));
}
END_TEST

/* The client knows that records were in use: it has read them, seeded them, or seen it in a vote.
 */
START_TEST(empty_records_after_used_ones_are_no_first_start)
{
    if (_i == 0) {
        ck_assert(!seeds_all_for(USED));
    } else if (_i == 1) {
        ck_assert(seeds_all_for(EMPTY));
        for (unsigned i = 0; i < NODES; i++)
            reply(i, "A ");
    } else {
        const struct rl_ballot ballot = {.node = 2, .record = RL_RECORD_ADMITTED};
        read_records();
        for (unsigned i = 0; i < NODES; i++)
            reply(i, "\n" MARK "\n1:7"); /* with numbers it is no first start either */
        rl_records_note(&engine, &ballot);
    }
    for (unsigned i = 0; i < 3; i++) { /* the knowledge does not expire */
        ck_assert(!seeds_all_for(EMPTY));
        check_text("fence_majority_lost");
    }
    /* An operator may order it. */
    ck_assert(rl_records_init(&engine, 5 * RL_SECOND));
    rl_engine_flush(&engine);
    rl_engine_flush(&engine);
    reply_to_all(EMPTY, EMPTY, EMPTY);
    check_seeded(true, true, true);
}
END_TEST

/* Two of three nodes do not reply, which says nothing about their records. */
START_TEST(unread_records_are_told_from_unused_ones)
{
    read_records();
    reply(0, USED);
    lose(1);
    if (_i == 0)
        lose(2);
    else
        reply(2, _i == 1 ? EMPTY : "v1 other;\n\n1:5");
    ck_assert(!rl_records_may_vote(&engine));
    ck_assert(rl_records_are_unread(&engine)); /* one more would be a majority */
    reconnect(1);
    if (_i == 0)
        reconnect(2);
    read_records();
    reply_to_all(USED, _i == 0 ? USED : EMPTY, EMPTY);
    ck_assert_int_eq(rl_records_may_vote(&engine), _i == 0);
    ck_assert_int_eq(rl_records_are_unread(&engine), _i == 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("engine_first_start");
    TCase *tcase = tcase_create("first start");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, two_readings_of_empty_records_are_a_first_start);
    tcase_add_loop_test(tcase, a_record_that_changes_between_the_readings_needs_a_third, 0, 2);
    tcase_add_test(tcase, a_record_of_an_earlier_run_is_not_seeded);
    tcase_add_test(tcase, an_interrupted_first_start_is_continued);
    tcase_add_loop_test(tcase, a_first_start_is_not_continued_on_a_changed_record, 0, 3);
    tcase_add_test(tcase, a_first_start_of_another_client_is_waited_for);
    tcase_add_loop_test(tcase, unread_records_are_told_from_unused_ones, 0, 3);
    tcase_add_loop_test(tcase, empty_records_after_used_ones_are_no_first_start, 0, 3);
    return suite_run(suite);
}
