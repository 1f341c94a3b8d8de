/* SPDX-License-Identifier: MIT
 * What a client remembers about a contended resource: the node to ask first, and when to let other
 * contenders have the lock. */
#include "core/contention.h"

#include "suite.h"

#define NOW_NS    (77 * RL_SECOND)
#define TRIP_NS   (2 * RL_MS)
#define RANDOM_NS 12345

static struct rl_contention contention;
static uint8_t ranks[5]; /* memory of contention.order */

/* Fixture: prepares the state of a resource on five nodes, whose scores rank them 1, 3, 0, 4,
 * 2. */
static void setup(void)
{
    static const uint64_t scores[] = {30, 50, 10, 40, 20};

    rl_contention_init(&contention, ranks, 5, scores);
}

START_TEST(nodes_are_ranked_by_their_scores)
{
    static const uint8_t order[] = {1, 3, 0, 4, 2};

    for (unsigned i = 0; i < 5; i++)
        ck_assert_uint_eq(contention.order[i], order[i]);
    ck_assert_uint_eq(rl_contention_preferred(&contention, 0x1f), RL_NODE(1));
    ck_assert_uint_eq(rl_contention_preferred(&contention, 0x1d), RL_NODE(3));
    ck_assert_uint_eq(rl_contention_preferred(&contention, 0x04), RL_NODE(2));
    ck_assert_uint_eq(rl_contention_preferred(&contention, 0), 0);
}
END_TEST

/* Clients whose lists of nodes differ rank the nodes that they share in the same order. */
START_TEST(the_order_of_shared_nodes_is_the_same)
{
    static const uint64_t scores[] = {50, 99, 30, 40};
    static const uint8_t order[] = {1, 0, 3, 2};
    struct rl_contention other;
    uint8_t others[4];

    rl_contention_init(&other, others, 4, scores);
    for (unsigned i = 0; i < 4; i++)
        ck_assert_uint_eq(other.order[i], order[i]);
}
END_TEST

START_TEST(others_are_remembered_for_a_second)
{
    ck_assert(!rl_contention_is_recent(&contention, NOW_NS));
    rl_contention_note_denial(&contention, false, NOW_NS);
    ck_assert(rl_contention_is_recent(&contention, NOW_NS));
    ck_assert(rl_contention_is_recent(&contention, NOW_NS + RL_SECOND - 1));
    ck_assert(!rl_contention_is_recent(&contention, NOW_NS + RL_SECOND));
    rl_contention_note(&contention, NOW_NS + 5 * RL_SECOND);
    ck_assert(rl_contention_is_recent(&contention, NOW_NS + 6 * RL_SECOND - 1));
}
END_TEST

/* The bound is two round trips after the first split vote, and doubles with each further one. */
START_TEST(pauses_grow_with_split_votes)
{
    ck_assert_uint_eq(rl_contention_pause_ns(&contention, TRIP_NS, UINT64_MAX), 0);
    rl_contention_note_denial(&contention, false, NOW_NS); /* no node has granted */
    ck_assert_uint_eq(rl_contention_pause_ns(&contention, TRIP_NS, UINT64_MAX), 0);
    rl_contention_note_denial(&contention, true, NOW_NS);
    for (uint64_t most = 2 * TRIP_NS; most < 16 * RL_MS; most *= 2) {
        ck_assert_uint_eq(rl_contention_pause_ns(&contention, TRIP_NS, most - 1), most - 1);
        ck_assert_uint_eq(rl_contention_pause_ns(&contention, TRIP_NS, most), 0);
        rl_contention_note_denial(&contention, true, NOW_NS);
    }
    for (unsigned i = 0; i < 1000; i++) {
        ck_assert_uint_eq(rl_contention_pause_ns(&contention, TRIP_NS, 16 * RL_MS - 1),
                          16 * RL_MS - 1);
        ck_assert_uint_eq(rl_contention_pause_ns(&contention, TRIP_NS, 16 * RL_MS), 0);
        rl_contention_note_denial(&contention, true, NOW_NS);
    }
}
END_TEST

/* With the shortest round trip, five split votes are the most that counts. */
START_TEST(split_votes_are_counted_up_to_five)
{
    const uint64_t trip_ns = 50 * RL_US;

    for (unsigned i = 0; i < 300; i++)
        rl_contention_note_denial(&contention, true, NOW_NS);
    ck_assert_uint_eq(rl_contention_pause_ns(&contention, 0, 32 * trip_ns - 1), 32 * trip_ns - 1);
    ck_assert_uint_eq(rl_contention_pause_ns(&contention, 0, 32 * trip_ns), 0);
}
END_TEST

/* Split votes count until a grant, or until contention is no longer recent. */
START_TEST(old_split_votes_are_forgotten)
{
    rl_contention_note_denial(&contention, true, NOW_NS);
    rl_contention_note_start(&contention, TRIP_NS, NOW_NS + RL_CONTENTION_RECENT_NS - 1);
    ck_assert_uint_ne(rl_contention_pause_ns(&contention, TRIP_NS, TRIP_NS), 0);
    rl_contention_note_start(&contention, TRIP_NS, NOW_NS + RL_CONTENTION_RECENT_NS);
    ck_assert_uint_eq(rl_contention_pause_ns(&contention, TRIP_NS, TRIP_NS), 0);
    rl_contention_note_denial(&contention, true, NOW_NS);
    rl_contention_note_grant(&contention);
    ck_assert_uint_eq(rl_contention_pause_ns(&contention, TRIP_NS, TRIP_NS), 0);
}
END_TEST

/* All waiters get the same notification, so each begins after a random delay. */
START_TEST(delays_take_up_to_one_round_trip)
{
    ck_assert_uint_eq(rl_contention_delay_ns(TRIP_NS, 0), 0);
    ck_assert_uint_eq(rl_contention_delay_ns(TRIP_NS, TRIP_NS - 1), TRIP_NS - 1);
    ck_assert_uint_eq(rl_contention_delay_ns(TRIP_NS, TRIP_NS), 0);
    ck_assert_uint_eq(rl_contention_delay_ns(0, 50 * RL_US - 1), 50 * RL_US - 1); /* unknown */
    ck_assert_uint_eq(rl_contention_delay_ns(0, 50 * RL_US), 0);
}
END_TEST

START_TEST(a_release_yields_if_others_were_met)
{
    rl_contention_note_release(&contention, TRIP_NS, RANDOM_NS, NOW_NS);
    ck_assert_uint_eq(contention.yield_until_ns, 0); /* no other client was met */
    rl_contention_note_denial(&contention, false, NOW_NS);
    rl_contention_note_release(&contention, TRIP_NS, RANDOM_NS, NOW_NS);
    ck_assert_uint_eq(contention.yield_until_ns, NOW_NS + 2 * TRIP_NS + RANDOM_NS);
}
END_TEST

/* A client that takes the resource many times without a pause would never notice contenders. */
START_TEST(yields_after_many_holds_in_a_row)
{
    uint64_t now_ns = NOW_NS;
    unsigned turns = 0;

    while (contention.yield_until_ns == 0) {
        rl_contention_note_start(&contention, TRIP_NS, now_ns);
        rl_contention_note_release(&contention, TRIP_NS, RANDOM_NS, now_ns);
        now_ns += TRIP_NS;
        ck_assert_uint_lt(++turns, 1000);
    }
    ck_assert_uint_eq(turns, 129); /* the first one, and 128 right after a release */
    contention.yield_until_ns = 0;
    for (turns = 0; turns < 1000; turns++) { /* after each pause of its own the count restarts */
        now_ns += 3 * TRIP_NS;
        rl_contention_note_start(&contention, TRIP_NS, now_ns);
        rl_contention_note_release(&contention, TRIP_NS, RANDOM_NS, now_ns);
    }
    ck_assert_uint_eq(contention.yield_until_ns, 0);
}
END_TEST

/* If each hold is long, one second of holds is enough, not 128 holds. */
START_TEST(yields_after_one_second_of_holds_in_a_row)
{
    rl_contention_note_start(&contention, TRIP_NS, NOW_NS);
    rl_contention_note_release(&contention, TRIP_NS, RANDOM_NS, NOW_NS + 5 * RL_SECOND);
    ck_assert_uint_eq(contention.yield_until_ns, 0); /* one hold is not several in a row */
    rl_contention_note_start(&contention, TRIP_NS, NOW_NS + 5 * RL_SECOND);
    rl_contention_note_release(&contention, TRIP_NS, RANDOM_NS, NOW_NS + 6 * RL_SECOND);
    ck_assert_uint_eq(contention.yield_until_ns, NOW_NS + 6 * RL_SECOND + 3 * TRIP_NS + RANDOM_NS);
    contention.yield_until_ns = 0;
    rl_contention_note_start(&contention, TRIP_NS, NOW_NS + 6 * RL_SECOND);
    rl_contention_note_release(&contention, TRIP_NS, RANDOM_NS, NOW_NS + 7 * RL_SECOND - 1);
    ck_assert_uint_eq(contention.yield_until_ns, 0); /* the second starts again after a yield */
}
END_TEST

/* A pause takes three or four round trips. With a long round trip, one pause per second would be
 * too much, so the row lasts 128 round trips. */
START_TEST(the_time_in_a_row_grows_with_the_round_trip)
{
    const uint64_t far_ns = 30 * RL_MS, row_ns = 128 * far_ns;

    rl_contention_note_start(&contention, far_ns, NOW_NS);
    rl_contention_note_release(&contention, far_ns, RANDOM_NS, NOW_NS + RL_SECOND);
    rl_contention_note_start(&contention, far_ns, NOW_NS + RL_SECOND);
    rl_contention_note_release(&contention, far_ns, RANDOM_NS, NOW_NS + row_ns - 1);
    ck_assert_uint_eq(contention.yield_until_ns, 0);
    rl_contention_note_start(&contention, far_ns, NOW_NS + row_ns - 1);
    rl_contention_note_release(&contention, far_ns, RANDOM_NS, NOW_NS + row_ns);
    ck_assert_uint_eq(contention.yield_until_ns, NOW_NS + row_ns + 3 * far_ns + RANDOM_NS);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("core_contention");
    TCase *tcase = tcase_create("contention");
    tcase_add_checked_fixture(tcase, setup, NULL);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, nodes_are_ranked_by_their_scores);
    tcase_add_test(tcase, the_order_of_shared_nodes_is_the_same);
    tcase_add_test(tcase, others_are_remembered_for_a_second);
    tcase_add_test(tcase, pauses_grow_with_split_votes);
    tcase_add_test(tcase, split_votes_are_counted_up_to_five);
    tcase_add_test(tcase, old_split_votes_are_forgotten);
    tcase_add_test(tcase, delays_take_up_to_one_round_trip);
    tcase_add_test(tcase, a_release_yields_if_others_were_met);
    tcase_add_test(tcase, yields_after_many_holds_in_a_row);
    tcase_add_test(tcase, yields_after_one_second_of_holds_in_a_row);
    tcase_add_test(tcase, the_time_in_a_row_grows_with_the_round_trip);
    return suite_run(suite);
}
