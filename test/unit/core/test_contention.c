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
    rl_contention_note_denial(&contention, false, 0, NOW_NS);
    ck_assert(rl_contention_is_recent(&contention, NOW_NS));
    ck_assert(rl_contention_is_recent(&contention, NOW_NS + RL_SECOND - 1));
    ck_assert(!rl_contention_is_recent(&contention, NOW_NS + RL_SECOND));
    rl_contention_note_notification(&contention, NOW_NS + 5 * RL_SECOND);
    ck_assert(rl_contention_is_recent(&contention, NOW_NS + 6 * RL_SECOND - 1));
}
END_TEST

START_TEST(pauses_grow_with_split_votes)
{
    ck_assert_uint_eq(rl_contention_pause_ns(&contention, TRIP_NS, UINT64_MAX), 0);
    rl_contention_note_denial(&contention, true, 0, NOW_NS);
    for (uint64_t most = 2 * TRIP_NS; most < 16 * RL_MS; most *= 2) {
        ck_assert_uint_eq(rl_contention_pause_ns(&contention, TRIP_NS, most - 1), most - 1);
        ck_assert_uint_eq(rl_contention_pause_ns(&contention, TRIP_NS, most), 0);
        rl_contention_note_denial(&contention, true, 0, NOW_NS);
    }
    for (unsigned i = 0; i < 100; i++) {
        ck_assert_uint_eq(rl_contention_pause_ns(&contention, TRIP_NS, 16 * RL_MS - 1),
                          16 * RL_MS - 1);
        ck_assert_uint_eq(rl_contention_pause_ns(&contention, TRIP_NS, 16 * RL_MS), 0);
        rl_contention_note_denial(&contention, true, 0, NOW_NS);
    }
    /* One plain denial between split votes keeps the longest pause. */
    rl_contention_note_denial(&contention, false, 0, NOW_NS);
    ck_assert_uint_eq(rl_contention_pause_ns(&contention, TRIP_NS, 16 * RL_MS - 1), 16 * RL_MS - 1);
    rl_contention_note_start(&contention, TRIP_NS, NOW_NS + RL_CONTENTION_RECENT_NS);
    ck_assert_uint_eq(rl_contention_pause_ns(&contention, TRIP_NS, UINT64_MAX), 0);
    rl_contention_note_denial(&contention, true, 0, NOW_NS);
    rl_contention_note_grant(&contention);
    ck_assert_uint_eq(rl_contention_pause_ns(&contention, TRIP_NS, UINT64_MAX), 0);
}
END_TEST

/* A client that pauses comes too late for every hand-over and is denied again. Plain denials
 * therefore shorten its pauses, or it would never win. See also old_splits_do_not_delay in
 * test_lease_contenders.c. */
START_TEST(pauses_shrink_with_plain_denials)
{
    uint64_t last = 16 * RL_MS;

    for (unsigned i = 0; i < 1000; i++)
        rl_contention_note_denial(&contention, true, 0, NOW_NS);
    ck_assert_uint_eq(rl_contention_pause_ns(&contention, TRIP_NS, 16 * RL_MS - 1), 16 * RL_MS - 1);
    for (unsigned i = 0; i < 20; i++) {
        rl_contention_note_denial(&contention, false, 0, NOW_NS);
        uint64_t most = 0; /* the longest pause that can be drawn */
        for (uint64_t next = TRIP_NS; next <= 16 * RL_MS; next *= 2)
            most = rl_max_u64(most, rl_contention_pause_ns(&contention, TRIP_NS, next - 1));
        ck_assert_uint_le(most, last);
        last = most;
    }
    ck_assert_uint_eq(rl_contention_splits(&contention), 0);
    ck_assert_uint_eq(last, 0);
    /* One split vote in three attempts still increases the count. */
    for (unsigned i = 0; i < 10; i++) {
        rl_contention_note_denial(&contention, true, 0, NOW_NS);
        rl_contention_note_denial(&contention, false, 0, NOW_NS);
        rl_contention_note_denial(&contention, false, 0, NOW_NS);
    }
    ck_assert_uint_gt(rl_contention_splits(&contention), 3);
}
END_TEST

START_TEST(a_release_yields_if_others_were_met)
{
    rl_contention_note_release(&contention, TRIP_NS, RANDOM_NS, NOW_NS);
    ck_assert_uint_eq(contention.yield_until_ns, 0); /* no other client was met */
    rl_contention_note_denial(&contention, false, 0, NOW_NS);
    rl_contention_note_release(&contention, TRIP_NS, RANDOM_NS, NOW_NS);
    ck_assert_uint_eq(contention.yield_until_ns, NOW_NS + 2 * TRIP_NS + RANDOM_NS);
}
END_TEST

/* Acquires and releases the lock once; one node denies on the way. Returns true if the client then
 * leaves the resource to others for a while. */
static bool yields(uint64_t *now_ns)
{
    contention.yield_until_ns = 0;
    rl_contention_note_start(&contention, TRIP_NS, *now_ns);
    rl_contention_note_grant(&contention);
    rl_contention_note_contender(&contention);
    rl_contention_note_release(&contention, TRIP_NS, RANDOM_NS, *now_ns);
    *now_ns += TRIP_NS;
    return contention.yield_until_ns != 0;
}

/* A client that wins although one node denied has met a contender, and yields after its release.
 * Without this, the contenders might never win. */
START_TEST(a_denial_before_a_win_shows_contenders)
{
    uint64_t now_ns = NOW_NS;

    ck_assert(yields(&now_ns));
    /* The pause is long enough for the contenders to reach all nodes before this client does. */
    ck_assert_uint_eq(contention.yield_until_ns, NOW_NS + 3 * TRIP_NS + RANDOM_NS);
    ck_assert(!rl_contention_is_recent(&contention, now_ns));
    rl_contention_note_start(&contention, TRIP_NS, now_ns + 10 * TRIP_NS);
    rl_contention_note_grant(&contention);
    contention.yield_until_ns = 0;
    rl_contention_note_release(&contention, TRIP_NS, RANDOM_NS, now_ns);
    ck_assert_uint_eq(contention.yield_until_ns, 0); /* one denial counts for one release */
}
END_TEST

/* The key of a dead client on one node denies as well, but no contender exists. The client yields
 * rarely as long as it meets no other client. */
START_TEST(denials_without_contenders_lose_weight)
{
    uint64_t now_ns = NOW_NS;
    unsigned pauses = 0;

    for (unsigned i = 0; i < 2000; i++)
        pauses += yields(&now_ns);
    ck_assert_uint_gt(pauses, 10);
    ck_assert_uint_lt(pauses, 30);
    while (yields(&now_ns))
        continue;
    rl_contention_note_denial(&contention, false, 0, now_ns); /* a contender had the lock */
    now_ns += 2 * RL_SECOND;
    ck_assert(yields(&now_ns));
}
END_TEST

/* Simulates one win in `contenders` notifications until the number of contenders is learnt. */
static void learn(unsigned contenders)
{
    for (unsigned i = 0; i < 100 * contenders; i++) {
        rl_contention_note_notification(&contention, NOW_NS);
        if (i % contenders == 0)
            rl_contention_note_grant(&contention);
    }
}

/* Returns well mixed bits of `word`, as a random number. */
static uint64_t scramble(uint64_t word)
{
    word = (word ^ (word >> 31)) * UINT64_C(0x7fb5d329728ea185);
    word = (word ^ (word >> 27)) * UINT64_C(0x81dadef4bc2dd44d);
    return word ^ (word >> 33);
}

/* Returns in how many of 1000 wake-ups the client would ask all nodes at once. */
static unsigned count_requests_to_all(void)
{
    unsigned count = 0;

    for (uint64_t i = 1; i <= 1000; i++)
        count += rl_contention_requests_all(&contention, scramble(i));
    return count;
}

START_TEST(about_one_of_many_contenders_asks_all)
{
    unsigned last = 1000;

    rl_contention_note_notification(&contention, NOW_NS);
    ck_assert_uint_eq(count_requests_to_all(), 0); /* how many there are is not known yet */
    learn(1);
    ck_assert_uint_gt(count_requests_to_all(), 700); /* no other client was met so far */
    ck_assert_uint_lt(count_requests_to_all(), 800); /* but there may be one */
    rl_contention_note_grant(&contention);           /* a win without a wake-up changes nothing */
    ck_assert_uint_gt(count_requests_to_all(), 700);
    last = count_requests_to_all();
    for (unsigned contenders = 2; contenders <= 128; contenders *= 4) {
        setup();
        learn(contenders);
        while (contention.notifications < contenders) /* as long as on average */
            rl_contention_note_notification(&contention, NOW_NS);
        unsigned count = count_requests_to_all();
        ck_assert_uint_ge(count * contenders, 300); /* of all of them 0.3 to 3.5: c^(1/4) */
        ck_assert_uint_le(count * contenders, 3500);
        ck_assert_uint_lt(count, last);
        last = count;
        contention.notifications /= 4;
        ck_assert_uint_le(4 * count_requests_to_all(), count); /* rarer soon after a win */
    }
    rl_contention_note_denial(&contention, true, 0, NOW_NS);
    ck_assert_uint_eq(count_requests_to_all(), 0);
    rl_contention_note_grant(&contention);
    contention.notifications = 128;
    ck_assert_uint_gt(count_requests_to_all(), 0);
    rl_contention_note_denial(&contention, false, RL_NODE(1), NOW_NS); /* node 1 misleads */
    ck_assert_uint_eq(count_requests_to_all(), 0);
}
END_TEST

/* Of c contenders, a client that has waited for c wake-ups asks all nodes in 1 of c^(3/4) cases:
 * with 16 contenders in one of eight. */
START_TEST(the_share_of_one_of_many_contenders)
{
    contention.contenders = 16 * 8;
    contention.notifications = 16;
    ck_assert_uint_gt(count_requests_to_all(), 83);
    ck_assert_uint_lt(count_requests_to_all(), 166);
    contention.notifications = 4; /* after a quarter of the wake-ups: at most a quarter as often */
    ck_assert_uint_lt(count_requests_to_all(), 18);
    contention.notifications = 1000; /* at most four times as often */
    ck_assert_uint_gt(count_requests_to_all(), 420);
    ck_assert_uint_lt(count_requests_to_all(), 585);
    rl_contention_note_request_all(&contention, false);
    rl_contention_note_request_all(&contention, false);
    ck_assert_uint_gt(count_requests_to_all(), 90); /* a quarter of that after two failures */
    ck_assert_uint_lt(count_requests_to_all(), 166);
    contention.skipped = RL_NODE(1);
    ck_assert_uint_eq(count_requests_to_all(), 0);
}
END_TEST

/* One win after many wake-ups raises the estimate only by a part of the difference. */
START_TEST(the_number_of_contenders_is_learnt_gradually)
{
    contention.contenders = 2 * 8;
    contention.notifications = 34;
    rl_contention_note_grant(&contention);
    ck_assert_uint_eq(contention.contenders, 10 * 8);
    contention.notifications = 2;
    rl_contention_note_grant(&contention);
    ck_assert_uint_eq(contention.contenders, 8 * 8);
}
END_TEST

START_TEST(asking_all_without_success_becomes_rare)
{
    learn(1);
    for (unsigned i = 0; i < 3; i++)
        rl_contention_note_request_all(&contention, false);
    unsigned count = count_requests_to_all();
    ck_assert_uint_gt(count, 50);
    ck_assert_uint_lt(count, 150);
    for (unsigned i = 0; i < 1000; i++)
        rl_contention_note_request_all(&contention, false);
    ck_assert_uint_gt(count_requests_to_all(), 0); /* but not zero */
    for (unsigned i = 0; i < 10; i++)
        rl_contention_note_request_all(&contention, true);
    ck_assert_uint_gt(count_requests_to_all(), 700);
}
END_TEST

/* A client that remembered old split votes for ever would come last each time and never win. */
START_TEST(denials_reduce_the_count_of_split_votes)
{
    for (unsigned i = 0; i < 100; i++)
        rl_contention_note_denial(&contention, true, 0, NOW_NS);
    ck_assert(rl_contention_splits(&contention) > 1);
    unsigned denials = 0;
    for (; rl_contention_splits(&contention) > 1 && denials < 100; denials++)
        rl_contention_note_denial(&contention, false, 0, NOW_NS);
    ck_assert_uint_le(denials, 20);
    for (unsigned i = 0; i < 4; i++)
        rl_contention_note_denial(&contention, false, 0, NOW_NS);
    ck_assert_uint_eq(rl_contention_pause_ns(&contention, TRIP_NS, UINT64_MAX - 1), 0);
    /* With one split vote in two attempts the count still grows. */
    for (unsigned i = 0; i < 8; i++) {
        rl_contention_note_denial(&contention, true, 0, NOW_NS);
        rl_contention_note_denial(&contention, false, 0, NOW_NS);
    }
    ck_assert(rl_contention_splits(&contention) > 1);
}
END_TEST

/* A preferred node that denies what all others grant, several times in a row, has a stale key. */
START_TEST(a_preferred_node_that_alone_denies_is_passed_over)
{
    const rl_nodes all = rl_nodes_all(5);
    const rl_nodes first = rl_contention_preferred(&contention, all);

    for (unsigned i = 0; i < 2; i++)
        rl_contention_note_preferred(&contention, first, false);
    rl_contention_note_preferred(&contention, first, true); /* a grant: its key was not stale */
    for (unsigned i = 0; i < 2; i++) {
        rl_contention_note_preferred(&contention, first, false);
        /* All nodes deny: the lock is held, which proves nothing about the preferred node. */
        rl_contention_note_denial(&contention, false, 0, NOW_NS);
    }
    ck_assert_uint_eq(rl_contention_preferred(&contention, all), first);
    rl_contention_note_preferred(&contention, first, false);
    ck_assert_uint_ne(rl_contention_preferred(&contention, all), first);
    rl_contention_note_start(&contention, TRIP_NS, NOW_NS + 2 * RL_CONTENTION_RECENT_NS);
    /* A stale key may have expired meanwhile: the node is preferred again. */
    ck_assert_uint_eq(rl_contention_preferred(&contention, all), first);
}
END_TEST

/* A denial that does not show which node misled neither counts nor ends a row. */
START_TEST(unknown_denials_do_not_interrupt_the_count)
{
    const rl_nodes all = rl_nodes_all(5);
    const rl_nodes first = rl_contention_preferred(&contention, all);

    for (unsigned i = 0; i < 3; i++) {
        ck_assert_uint_eq(rl_contention_preferred(&contention, all), first);
        rl_contention_note_denial(&contention, false, RL_CONTENTION_UNKNOWN, NOW_NS);
        rl_contention_note_denial(&contention, false, first, NOW_NS);
    }
    ck_assert_uint_ne(rl_contention_preferred(&contention, all), first);
}
END_TEST

START_TEST(delays_shrink_with_the_wake_ups)
{
    uint64_t last_ns = RL_NEVER;

    ck_assert_uint_eq(rl_contention_delay_ns(&contention, TRIP_NS, UINT64_MAX), 0);
    rl_contention_note_notification(&contention, NOW_NS);
    ck_assert_uint_eq(rl_contention_delay_ns(&contention, TRIP_NS, UINT64_MAX), 0);
    /* From the second notification on, another client was faster at least once. */
    for (unsigned i = 1; i <= UINT16_MAX; i++) {
        rl_contention_note_notification(&contention, NOW_NS);
        uint64_t least_ns = rl_contention_delay_ns(&contention, TRIP_NS, 0);
        uint64_t most_ns = rl_contention_delay_ns(&contention, TRIP_NS, TRIP_NS / 16 - 1);
        ck_assert_uint_ge(least_ns, TRIP_NS / 16); /* after a client that asks all nodes */
        ck_assert_uint_lt(most_ns, 5 * TRIP_NS / 8);
        ck_assert_uint_le(least_ns, last_ns);
        ck_assert_uint_eq(most_ns - least_ns, TRIP_NS / 16 - 1); /* the random part is constant */
        last_ns = least_ns;
    }
    ck_assert_uint_lt(last_ns, TRIP_NS / 16 + TRIP_NS / 1000);
    rl_contention_note_grant(&contention);
    ck_assert_uint_gt(rl_contention_delay_ns(&contention, TRIP_NS, 0), TRIP_NS / 2);
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
    ck_assert_uint_gt(turns, 100); /* fewer than 1 % of the acquisitions wait */
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

/* A node that has lost the holder's key, or cannot store any, never denies. After three misleading
 * replies in a row the next node is preferred, for a limited time. */
START_TEST(a_preferred_node_that_misleads_is_passed_over)
{
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_uint_eq(rl_contention_preferred(&contention, 0x1f), RL_NODE(1));
        rl_contention_note_denial(&contention, true, RL_NODE(1), NOW_NS);
    }
    ck_assert_uint_eq(rl_contention_preferred(&contention, 0x1f), RL_NODE(3));
    ck_assert_uint_eq(rl_contention_preferred(&contention, RL_NODE(1)),
                      RL_NODE(1)); /* if there is no other */
    rl_contention_note_start(&contention, TRIP_NS, NOW_NS + RL_SECOND / 2);
    ck_assert_uint_eq(rl_contention_preferred(&contention, 0x1f), RL_NODE(3));
    rl_contention_note_start(&contention, TRIP_NS, NOW_NS + 2 * RL_SECOND); /* the time is up */
    ck_assert_uint_eq(rl_contention_preferred(&contention, 0x1f), RL_NODE(1));
}
END_TEST

/* When every node was passed over once, the first one is preferred again. */
START_TEST(all_nodes_passed_over_start_again)
{
    static const uint8_t order[] = {1, 3, 0, 4, 2, 1, 3};

    for (unsigned i = 0; i < sizeof order; i++) {
        ck_assert_uint_eq(rl_contention_preferred(&contention, 0x1f), RL_NODE(order[i]));
        for (unsigned times = 0; times < 3; times++)
            rl_contention_note_denial(&contention, false, RL_NODE(order[i]), NOW_NS);
        ck_assert_uint_ne(rl_contention_preferred(&contention, 0x1f), RL_NODE(order[i]));
    }
}
END_TEST

START_TEST(occasional_misleading_is_tolerated)
{
    for (unsigned i = 0; i < 20; i++) {
        rl_contention_note_denial(&contention, true, RL_NODE(1), NOW_NS);
        rl_contention_note_denial(&contention, true, RL_NODE(1), NOW_NS);
        rl_contention_note_denial(&contention, false, i % 2 == 0 ? 0 : RL_NODE(3), NOW_NS);
    }
    ck_assert_uint_eq(rl_contention_preferred(&contention, 0x1f), RL_NODE(1));
    ck_assert_uint_eq(rl_contention_preferred(&contention, 0x1d),
                      RL_NODE(3)); /* different nodes in turn do not count as a row */
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
    tcase_add_test(tcase, pauses_shrink_with_plain_denials);
    tcase_add_test(tcase, a_release_yields_if_others_were_met);
    tcase_add_test(tcase, a_denial_before_a_win_shows_contenders);
    tcase_add_test(tcase, denials_without_contenders_lose_weight);
    tcase_add_test(tcase, about_one_of_many_contenders_asks_all);
    tcase_add_test(tcase, the_share_of_one_of_many_contenders);
    tcase_add_test(tcase, the_number_of_contenders_is_learnt_gradually);
    tcase_add_test(tcase, asking_all_without_success_becomes_rare);
    tcase_add_test(tcase, denials_reduce_the_count_of_split_votes);
    tcase_add_test(tcase, a_preferred_node_that_alone_denies_is_passed_over);
    tcase_add_test(tcase, unknown_denials_do_not_interrupt_the_count);
    tcase_add_test(tcase, delays_shrink_with_the_wake_ups);
    tcase_add_test(tcase, yields_after_many_holds_in_a_row);
    tcase_add_test(tcase, yields_after_one_second_of_holds_in_a_row);
    tcase_add_test(tcase, the_time_in_a_row_grows_with_the_round_trip);
    tcase_add_test(tcase, a_preferred_node_that_misleads_is_passed_over);
    tcase_add_test(tcase, all_nodes_passed_over_start_again);
    tcase_add_test(tcase, occasional_misleading_is_tolerated);
    return suite_run(suite);
}
