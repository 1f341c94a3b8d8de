/* SPDX-License-Identifier: MIT
 * When fence records count as those of a first start: an engine with three servers that the test
 * plays. */
#include "record_rig.h"

/* True: all are told to take theirs into use. */
static bool starts(const char *record)
{
    look();
    hear_all(record, record, record);
    if (read_it[0])
        hear_all(record, record, record);
    return seeded[0] && seeded[1] && seeded[2];
}

static void lose(unsigned node)
{
    rl_node_closed(&engine.nodes[node], REDLOCK_CAUSE_DISCONNECT, "cut", now_ns);
    rl_engine_drain(&engine);
}

/* The node's connection is made anew; others that are away stay away. */
static void come_back(unsigned node)
{
    engine.records->due_ns = RL_NEVER; /* no look by chance */
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

/* The first start breaks off: only the first node hears of it. */
static void break_off(void)
{
    ck_assert(starts(EMPTY));
    opened[1] = opened[2] = false;
    lose(1);
    lose(2);
    hear(0, "A ");
    ck_assert(!rl_records_may_vote(&engine));
}

static void check_text(const char *words)
{
    char text[256];

    rl_records_text(&engine, 0, text, sizeof text);
    ck_assert_msg(strstr(text, words) != NULL, "%s", text);
}

/* Once is not enough: they were not all read at the same time. */
START_TEST(all_empty_is_the_first_start)
{
    look();
    hear_all(EMPTY, EMPTY, EMPTY);
    check_seeded(false, false, false);
    hear_all(EMPTY, EMPTY, EMPTY);
    check_seeded(true, true, true);
    for (unsigned i = 0; i < NODES; i++) {
        ck_assert_int_eq(rl_records_may_vote(&engine), i == 2);
        hear(i, "A ");
    }
    ck_assert(rl_records_may_vote(&engine));
}
END_TEST

/* Something happened to a node between the looks: there is a third one, not at once. */
START_TEST(a_node_that_forgets_between_the_looks)
{
    look();
    hear_all(EMPTY, EMPTY, EMPTY);
    if (_i == 0) {
        hear_all(EMPTY, OTHER, EMPTY);
    } else { /* its run is another one, and has the old mark */
        opened[1] = false;
        lose(1);
        snprintf(run_of[1], sizeof run_of[1], "later");
        for (unsigned i = 0; i < NODES; i += 2)
            hear(i, EMPTY);
        come_back(1);
        ck_assert(!seeded[0]);
        look();
        hear_all(EMPTY, EMPTY, EMPTY);
        check_seeded(false, false, false);
    }
    if (_i == 0) {
        check_seeded(false, false, false);
        ck_assert(!read_it[0]);
        look();
        hear_all(EMPTY, OTHER, EMPTY);
    } else {
        hear_all(EMPTY, EMPTY, EMPTY);
    }
    check_seeded(true, true, true);
}
END_TEST

/* What was read on one run of a server is not written to the next one. */
START_TEST(a_restart_before_it_is_told)
{
    look();
    hear_all(EMPTY, EMPTY, EMPTY);
    opened[1] = false;
    hear(1, EMPTY); /* it has answered the second question, too, and is restarted */
    lose(1);
    snprintf(run_of[1], sizeof run_of[1], "later");
    come_back(1);
    hear(0, EMPTY);
    hear(2, EMPTY);
    rl_engine_flush(&engine);
    check_seeded(true, false, true);
    hear(0, "A ");
    hear(2, "A ");
    ck_assert(rl_records_may_vote(&engine));
}
END_TEST

/* The same client goes on as soon as it reaches a node, if nothing has happened to it. */
START_TEST(a_first_start_that_broke_off_goes_on)
{
    break_off();
    check_text("too few of the others"); /* the one that is in use */
    come_back(1);
    hear(0, NEW);
    hear(1, EMPTY);
    rl_engine_flush(&engine);
    check_seeded(false, true, false);
    hear(1, "A ");
    ck_assert(rl_records_may_vote(&engine));
    /* The last one, much later, when the others are in use. */
    now_ns += 3600 * RL_SECOND;
    come_back(2);
    hear_all(USED, USED, EMPTY);
    check_seeded(false, false, true);
}
END_TEST

/* But not on a node that was emptied, or restarted, since: somebody else may have used it. */
START_TEST(it_does_not_go_on_where_something_happened)
{
    break_off();
    if (_i == 1)
        snprintf(run_of[1], sizeof run_of[1], "later");
    come_back(1);
    hear(0, NEW);
    hear(1, _i == 0 ? OTHER : (_i == 1 ? EMPTY : "\n" MARK "\n1:7"));
    rl_engine_flush(&engine);
    check_seeded(false, false, false);
    come_back(2);
    hear_all(NEW, _i == 0 ? OTHER : EMPTY, EMPTY);
    check_seeded(false, _i == 2, true); /* that one came with a number: nobody's, as it seems */
}
END_TEST

/* Another client that finds some in use and some new waits a little: it may be a first start. */
START_TEST(somebody_elses_first_start)
{
    unsigned soon = 0;

    ck_assert(rl_records_start(&engine));
    for (;;) {
        rl_engine_flush(&engine);
        hear_all(NEW, EMPTY, EMPTY);
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
    hear_all(NEW, NEW, EMPTY);
    ck_assert(rl_records_may_vote(&engine));
}
END_TEST

/* It has seen them in use: read, taken into use by itself, or told by a vote. */
START_TEST(all_empty_after_something_was_there)
{
    if (_i == 0) {
        ck_assert(!starts(USED));
    } else if (_i == 1) {
        ck_assert(starts(EMPTY));
        for (unsigned i = 0; i < NODES; i++)
            hear(i, "A ");
    } else {
        const struct rl_ballot ballot = {.node = 2, .record = RL_RECORD_ADMITTED};
        look();
        for (unsigned i = 0; i < NODES; i++)
            hear(i, "\n" MARK "\n1:7"); /* numbers, so it is no first start either */
        rl_records_note(&engine, &ballot);
    }
    for (unsigned i = 0; i < 3; i++) { /* it does not wear off */
        ck_assert(!starts(EMPTY));
        check_text("fence_majority_lost");
    }
    /* An operator may say so. */
    ck_assert(rl_records_init(&engine, 5 * RL_SECOND));
    rl_engine_flush(&engine);
    rl_engine_flush(&engine);
    hear_all(EMPTY, EMPTY, EMPTY);
    check_seeded(true, true, true);
}
END_TEST

/* Two of three do not answer in time: that is no matter of their records. */
START_TEST(records_that_were_not_read)
{
    look();
    hear(0, USED);
    lose(1);
    if (_i == 0)
        lose(2);
    else
        hear(2, _i == 1 ? EMPTY : "v1 other;\n\n1:5");
    ck_assert(!rl_records_may_vote(&engine));
    ck_assert(rl_records_are_unread(&engine)); /* one more would do */
    come_back(1);
    if (_i == 0)
        come_back(2);
    look();
    hear_all(USED, _i == 0 ? USED : EMPTY, EMPTY);
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
    tcase_add_test(tcase, all_empty_is_the_first_start);
    tcase_add_loop_test(tcase, a_node_that_forgets_between_the_looks, 0, 2);
    tcase_add_test(tcase, a_restart_before_it_is_told);
    tcase_add_test(tcase, a_first_start_that_broke_off_goes_on);
    tcase_add_loop_test(tcase, it_does_not_go_on_where_something_happened, 0, 3);
    tcase_add_test(tcase, somebody_elses_first_start);
    tcase_add_loop_test(tcase, records_that_were_not_read, 0, 3);
    tcase_add_loop_test(tcase, all_empty_after_something_was_there, 0, 3);
    return suite_run(suite);
}
