/* SPDX-License-Identifier: MIT
 * What a client remembers of a resource that others want, too: whom to ask first, and when to let
 * them have it. */
#include "core/contest.h"

#include "suite.h"

#define NOW_NS    (77 * RL_SECOND)
#define TRIP_NS   (2 * RL_MS)
#define RANDOM_NS 12345

static struct rl_contest contest;

static void setup(void)
{
    static const uint64_t scores[] = {30, 50, 10, 40, 20};

    rl_contest_init(&contest, 5, scores);
}

START_TEST(nodes_are_ranked_by_their_scores)
{
    static const uint8_t order[] = {1, 3, 0, 4, 2};

    for (unsigned i = 0; i < 5; i++)
        ck_assert_uint_eq(contest.order[i], order[i]);
    ck_assert_uint_eq(rl_contest_first(&contest, 0x1f), RL_NODE(1));
    ck_assert_uint_eq(rl_contest_first(&contest, 0x1d), RL_NODE(3));
    ck_assert_uint_eq(rl_contest_first(&contest, 0x04), RL_NODE(2));
    ck_assert_uint_eq(rl_contest_first(&contest, 0), 0);
}
END_TEST

/* Clients that list other nodes besides agree on the order of those that they share. */
START_TEST(the_order_of_shared_nodes_is_the_same)
{
    static const uint64_t scores[] = {50, 99, 30, 40};
    static const uint8_t order[] = {1, 0, 3, 2};
    struct rl_contest other;

    rl_contest_init(&other, 4, scores);
    for (unsigned i = 0; i < 4; i++)
        ck_assert_uint_eq(other.order[i], order[i]);
}
END_TEST

START_TEST(others_are_remembered_for_a_second)
{
    ck_assert(!rl_contest_is_hot(&contest, NOW_NS));
    rl_contest_denied(&contest, false, 0, NOW_NS);
    ck_assert(rl_contest_is_hot(&contest, NOW_NS));
    ck_assert(rl_contest_is_hot(&contest, NOW_NS + RL_SECOND - 1));
    ck_assert(!rl_contest_is_hot(&contest, NOW_NS + RL_SECOND));
    rl_contest_woken(&contest, NOW_NS + 5 * RL_SECOND);
    ck_assert(rl_contest_is_hot(&contest, NOW_NS + 6 * RL_SECOND - 1));
}
END_TEST

START_TEST(pauses_grow_with_split_votes)
{
    ck_assert_uint_eq(rl_contest_pause_ns(&contest, TRIP_NS, UINT64_MAX), 0);
    rl_contest_denied(&contest, true, 0, NOW_NS);
    for (uint64_t most = 2 * TRIP_NS; most < 16 * RL_MS; most *= 2) {
        ck_assert_uint_eq(rl_contest_pause_ns(&contest, TRIP_NS, most - 1), most - 1);
        ck_assert_uint_eq(rl_contest_pause_ns(&contest, TRIP_NS, most), 0);
        rl_contest_denied(&contest, true, 0, NOW_NS);
    }
    for (unsigned i = 0; i < 100; i++) {
        ck_assert_uint_eq(rl_contest_pause_ns(&contest, TRIP_NS, 16 * RL_MS - 1), 16 * RL_MS - 1);
        ck_assert_uint_eq(rl_contest_pause_ns(&contest, TRIP_NS, 16 * RL_MS), 0);
        rl_contest_denied(&contest, true, 0, NOW_NS);
    }
    rl_contest_denied(&contest, false, 0, NOW_NS);
    ck_assert_uint_eq(rl_contest_pause_ns(&contest, TRIP_NS, UINT64_MAX), 0);
    rl_contest_denied(&contest, true, 0, NOW_NS);
    rl_contest_won(&contest);
    ck_assert_uint_eq(rl_contest_pause_ns(&contest, TRIP_NS, UINT64_MAX), 0);
}
END_TEST

START_TEST(others_go_first_where_they_were_met)
{
    rl_contest_released(&contest, TRIP_NS, RANDOM_NS, NOW_NS);
    ck_assert_uint_eq(contest.yield_until_ns, 0); /* nobody was met */
    rl_contest_denied(&contest, false, 0, NOW_NS);
    rl_contest_released(&contest, TRIP_NS, RANDOM_NS, NOW_NS);
    ck_assert_uint_eq(contest.yield_until_ns, NOW_NS + 3 * TRIP_NS + RANDOM_NS);
}
END_TEST

/* Whoever never lets anybody in never meets anybody. */
START_TEST(a_pause_after_many_without_one)
{
    uint64_t now_ns = NOW_NS;
    unsigned turns = 0;

    while (contest.yield_until_ns == 0) {
        rl_contest_begun(&contest, TRIP_NS, now_ns);
        rl_contest_released(&contest, TRIP_NS, RANDOM_NS, now_ns);
        now_ns += TRIP_NS;
        ck_assert_uint_lt(++turns, 1000);
    }
    ck_assert_uint_gt(turns, 100); /* the ninety-ninth percentile does not know of it */
    contest.yield_until_ns = 0;
    for (turns = 0; turns < 1000; turns++) { /* with pauses, nothing is owed to anybody */
        now_ns += 3 * TRIP_NS;
        rl_contest_begun(&contest, TRIP_NS, now_ns);
        rl_contest_released(&contest, TRIP_NS, RANDOM_NS, now_ns);
    }
    ck_assert_uint_eq(contest.yield_until_ns, 0);
}
END_TEST

/* Long ones are over sooner: nobody waits for the end of 128 of them. */
START_TEST(a_pause_after_a_long_row)
{
    rl_contest_begun(&contest, TRIP_NS, NOW_NS);
    rl_contest_released(&contest, TRIP_NS, RANDOM_NS, NOW_NS + 5 * RL_SECOND);
    ck_assert_uint_eq(contest.yield_until_ns, 0); /* one is no row */
    rl_contest_begun(&contest, TRIP_NS, NOW_NS + 5 * RL_SECOND);
    rl_contest_released(&contest, TRIP_NS, RANDOM_NS, NOW_NS + 6 * RL_SECOND);
    ck_assert_uint_eq(contest.yield_until_ns, NOW_NS + 6 * RL_SECOND + 3 * TRIP_NS + RANDOM_NS);
    contest.yield_until_ns = 0;
    rl_contest_begun(&contest, TRIP_NS, NOW_NS + 6 * RL_SECOND);
    rl_contest_released(&contest, TRIP_NS, RANDOM_NS, NOW_NS + 7 * RL_SECOND - 1);
    ck_assert_uint_eq(contest.yield_until_ns, 0); /* that begins again */
}
END_TEST

/* A node that has lost the holder's key, or cannot store any, says "go" for ever. */
START_TEST(a_first_node_that_misleads_is_passed_over)
{
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_uint_eq(rl_contest_first(&contest, 0x1f), RL_NODE(1));
        rl_contest_denied(&contest, true, RL_NODE(1), NOW_NS);
    }
    ck_assert_uint_eq(rl_contest_first(&contest, 0x1f), RL_NODE(3));
    ck_assert_uint_eq(rl_contest_first(&contest, RL_NODE(1)),
                      RL_NODE(1)); /* if there is no other */
    rl_contest_begun(&contest, TRIP_NS, NOW_NS + RL_SECOND / 2);
    ck_assert_uint_eq(rl_contest_first(&contest, 0x1f), RL_NODE(3));
    rl_contest_begun(&contest, TRIP_NS, NOW_NS + 2 * RL_SECOND); /* not for ever */
    ck_assert_uint_eq(rl_contest_first(&contest, 0x1f), RL_NODE(1));
}
END_TEST

START_TEST(they_cannot_all_be_wrong)
{
    static const uint8_t order[] = {1, 3, 0, 4, 2, 1, 3};

    for (unsigned i = 0; i < sizeof order; i++) {
        ck_assert_uint_eq(rl_contest_first(&contest, 0x1f), RL_NODE(order[i]));
        for (unsigned times = 0; times < 3; times++)
            rl_contest_denied(&contest, false, RL_NODE(order[i]), NOW_NS);
        ck_assert_uint_ne(rl_contest_first(&contest, 0x1f), RL_NODE(order[i]));
    }
}
END_TEST

START_TEST(misled_now_and_then)
{
    for (unsigned i = 0; i < 20; i++) {
        rl_contest_denied(&contest, true, RL_NODE(1), NOW_NS);
        rl_contest_denied(&contest, true, RL_NODE(1), NOW_NS);
        rl_contest_denied(&contest, false, i % 2 == 0 ? 0 : RL_NODE(3), NOW_NS);
    }
    ck_assert_uint_eq(rl_contest_first(&contest, 0x1f), RL_NODE(1));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("contest");
    TCase *tcase = tcase_create("contest");
    tcase_add_checked_fixture(tcase, setup, NULL);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, nodes_are_ranked_by_their_scores);
    tcase_add_test(tcase, the_order_of_shared_nodes_is_the_same);
    tcase_add_test(tcase, others_are_remembered_for_a_second);
    tcase_add_test(tcase, pauses_grow_with_split_votes);
    tcase_add_test(tcase, others_go_first_where_they_were_met);
    tcase_add_test(tcase, a_pause_after_many_without_one);
    tcase_add_test(tcase, a_pause_after_a_long_row);
    tcase_add_test(tcase, a_first_node_that_misleads_is_passed_over);
    tcase_add_test(tcase, they_cannot_all_be_wrong);
    tcase_add_test(tcase, misled_now_and_then);
    return suite_run(suite);
}
