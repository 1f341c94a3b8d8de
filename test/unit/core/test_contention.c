/* SPDX-License-Identifier: MIT
 * What a client remembers about a contended resource: the node to ask first, and when to let other
 * contenders have the lock. */
#include "core/contention.h"

#include "suite.h"

#define NOW_NS    (77 * RL_SECOND)
#define TRIP_NS   (2 * RL_MS)
#define RANDOM_NS 12345

static struct rl_contention contention;
static uint8_t ranks[5];

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

/* Clients that list other nodes besides agree on the order of those that they share. */
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
    /* (Simulator, seed 600000030547: attempts that split the votes and such that got none, by
     * turns, for ever.) */
    rl_contention_note_denial(&contention, false, 0, NOW_NS);
    ck_assert_uint_eq(rl_contention_pause_ns(&contention, TRIP_NS, 16 * RL_MS - 1), 16 * RL_MS - 1);
    rl_contention_note_start(&contention, TRIP_NS, NOW_NS + RL_CONTENTION_RECENT_NS);
    ck_assert_uint_eq(rl_contention_pause_ns(&contention, TRIP_NS, UINT64_MAX), 0);
    rl_contention_note_denial(&contention, true, 0, NOW_NS);
    rl_contention_note_grant(&contention);
    ck_assert_uint_eq(rl_contention_pause_ns(&contention, TRIP_NS, UINT64_MAX), 0);
}
END_TEST

/* Simulator, case slow-work: who had met split votes and paused came too late for every hand-over,
 * and was denied, and so did not win for the whole run. See also old_splits_keep_nobody_away in
 * test_lease_contenders.c. */
START_TEST(who_is_only_denied_stays_away_less_and_less)
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
    /* By turns it still becomes more. */
    for (unsigned i = 0; i < 10; i++) {
        rl_contention_note_denial(&contention, true, 0, NOW_NS);
        rl_contention_note_denial(&contention, false, 0, NOW_NS);
        rl_contention_note_denial(&contention, false, 0, NOW_NS);
    }
    ck_assert_uint_gt(rl_contention_splits(&contention), 3);
}
END_TEST

START_TEST(others_go_first_where_they_were_met)
{
    rl_contention_note_release(&contention, TRIP_NS, RANDOM_NS, NOW_NS);
    ck_assert_uint_eq(contention.yield_until_ns, 0); /* nobody was met */
    rl_contention_note_denial(&contention, false, 0, NOW_NS);
    rl_contention_note_release(&contention, TRIP_NS, RANDOM_NS, NOW_NS);
    ck_assert_uint_eq(contention.yield_until_ns, NOW_NS + 2 * TRIP_NS + RANDOM_NS);
}
END_TEST

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

/* Found by measuring with a network of 5 ms: who won against others never knew, and they never
 * won. */
START_TEST(a_denial_on_the_way_shows_others)
{
    uint64_t now_ns = NOW_NS;

    ck_assert(yields(&now_ns));
    /* They reach the others, too, before our next attempt, which would ask all at once. */
    ck_assert_uint_eq(contention.yield_until_ns, NOW_NS + 3 * TRIP_NS + RANDOM_NS);
    ck_assert(!rl_contention_is_recent(&contention, now_ns));
    rl_contention_note_start(&contention, TRIP_NS, now_ns + 10 * TRIP_NS);
    rl_contention_note_grant(&contention);
    contention.yield_until_ns = 0;
    rl_contention_note_release(&contention, TRIP_NS, RANDOM_NS, now_ns);
    ck_assert_uint_eq(contention.yield_until_ns, 0); /* that was once */
}
END_TEST

/* A key that a dead client has left on one node denies as well, and nobody comes. */
START_TEST(what_denies_and_never_comes_is_believed_less_and_less)
{
    uint64_t now_ns = NOW_NS;
    unsigned pauses = 0;

    for (unsigned i = 0; i < 2000; i++)
        pauses += yields(&now_ns);
    ck_assert_uint_gt(pauses, 10);
    ck_assert_uint_lt(pauses, 30);
    while (yields(&now_ns))
        continue;
    rl_contention_note_denial(&contention, false, 0, now_ns); /* somebody did come */
    now_ns += 2 * RL_SECOND;
    ck_assert(yields(&now_ns));
}
END_TEST

/* Wins once in so many wakes, until that is known. */
static void learn(unsigned contenders)
{
    for (unsigned i = 0; i < 100 * contenders; i++) {
        rl_contention_note_notification(&contention, NOW_NS);
        if (i % contenders == 0)
            rl_contention_note_grant(&contention);
    }
}

static uint64_t scramble(uint64_t word)
{
    word = (word ^ (word >> 31)) * UINT64_C(0x7fb5d329728ea185);
    word = (word ^ (word >> 27)) * UINT64_C(0x81dadef4bc2dd44d);
    return word ^ (word >> 33);
}

/* In so many of a thousand wakes. */
static unsigned goes_ahead(void)
{
    unsigned count = 0;

    for (uint64_t i = 1; i <= 1000; i++)
        count += rl_contention_requests_all(&contention, scramble(i));
    return count;
}

START_TEST(about_one_of_many_contenders_tries_first)
{
    unsigned last = 1000;

    rl_contention_note_notification(&contention, NOW_NS);
    ck_assert_uint_eq(goes_ahead(), 0); /* how many there are is not known yet */
    learn(1);
    ck_assert_uint_gt(goes_ahead(), 700);  /* nobody else waits, */
    ck_assert_uint_lt(goes_ahead(), 800);  /* as far as it has seen: and it keeps looking */
    rl_contention_note_grant(&contention); /* nobody had to be woken for that: it tells nothing */
    ck_assert_uint_gt(goes_ahead(), 700);
    last = goes_ahead();
    for (unsigned contenders = 2; contenders <= 128; contenders *= 4) {
        setup();
        learn(contenders);
        while (contention.notifications < contenders) /* as long as on average */
            rl_contention_note_notification(&contention, NOW_NS);
        unsigned count = goes_ahead();
        ck_assert_uint_ge(count * contenders, 300); /* of all of them 0.3 to 3.5: c^(1/4) */
        ck_assert_uint_le(count * contenders, 3500);
        ck_assert_uint_lt(count, last);
        last = count;
        contention.notifications /= 4;
        ck_assert_uint_le(4 * goes_ahead(), count); /* who just had it does so less */
    }
    rl_contention_note_denial(&contention, true, 0, NOW_NS);
    ck_assert_uint_eq(goes_ahead(), 0);
    rl_contention_note_grant(&contention);
    contention.notifications = 128;
    ck_assert_uint_gt(goes_ahead(), 0);
    rl_contention_note_denial(&contention, false, RL_NODE(1), NOW_NS); /* misled by that one */
    ck_assert_uint_eq(goes_ahead(), 0);
}
END_TEST

/* 1 in c^(3/4) where it was waited for c wakes, of 16: one in eight. */
START_TEST(the_share_of_one_of_many_contenders)
{
    contention.contenders = 16 * 8;
    contention.notifications = 16;
    ck_assert_uint_gt(goes_ahead(), 83);
    ck_assert_uint_lt(goes_ahead(), 166);
    contention.notifications = 4; /* a quarter of the time: a sixteenth */
    ck_assert_uint_lt(goes_ahead(), 18);
    contention.notifications = 1000; /* four times the share, and no more */
    ck_assert_uint_gt(goes_ahead(), 420);
    ck_assert_uint_lt(goes_ahead(), 585);
    rl_contention_note_request_all(&contention, false);
    rl_contention_note_request_all(&contention, false);
    ck_assert_uint_gt(goes_ahead(), 90); /* a quarter of that */
    ck_assert_uint_lt(goes_ahead(), 166);
    contention.skipped = RL_NODE(1);
    ck_assert_uint_eq(goes_ahead(), 0);
}
END_TEST

/* One grant after many wakes is no crowd yet. */
START_TEST(the_number_of_contenders_is_learnt_by_and_by)
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

START_TEST(going_ahead_is_left_to_those_who_win_by_it)
{
    learn(1);
    for (unsigned i = 0; i < 3; i++)
        rl_contention_note_request_all(&contention, false);
    unsigned count = goes_ahead();
    ck_assert_uint_gt(count, 50);
    ck_assert_uint_lt(count, 150);
    for (unsigned i = 0; i < 1000; i++)
        rl_contention_note_request_all(&contention, false);
    ck_assert_uint_gt(goes_ahead(), 0); /* never quite */
    for (unsigned i = 0; i < 10; i++)
        rl_contention_note_request_all(&contention, true);
    ck_assert_uint_gt(goes_ahead(), 700);
}
END_TEST

/* Who paid for old splits for ever would be last each time, and so never forget them. */
START_TEST(splits_are_forgotten_by_denials)
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
    /* By turns they grow all the same: these are two that meet half-way again and again. */
    for (unsigned i = 0; i < 8; i++) {
        rl_contention_note_denial(&contention, true, 0, NOW_NS);
        rl_contention_note_denial(&contention, false, 0, NOW_NS);
    }
    ck_assert(rl_contention_splits(&contention) > 1);
}
END_TEST

START_TEST(denies_what_all_others_grant)
{
    const rl_nodes all = rl_nodes_all(5);
    const rl_nodes first = rl_contention_preferred(&contention, all);

    for (unsigned i = 0; i < 2; i++)
        rl_contention_note_preferred(&contention, first, false);
    rl_contention_note_preferred(&contention, first, true); /* that was somebody who gave it back */
    for (unsigned i = 0; i < 2; i++) {
        rl_contention_note_preferred(&contention, first, false);
        rl_contention_note_denial(&contention, false, 0,
                                  NOW_NS); /* somebody holds it, that says nothing */
    }
    ck_assert_uint_eq(rl_contention_preferred(&contention, all), first);
    rl_contention_note_preferred(&contention, first, false);
    ck_assert_uint_ne(rl_contention_preferred(&contention, all), first);
    rl_contention_note_start(&contention, TRIP_NS, NOW_NS + 2 * RL_CONTENTION_RECENT_NS);
    ck_assert_uint_eq(rl_contention_preferred(&contention, all),
                      first); /* a key that has expired since */
}
END_TEST

START_TEST(misled_by_what_is_known_only)
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

START_TEST(who_was_woken_more_often_lags_less)
{
    uint64_t last_ns = RL_NEVER;

    ck_assert_uint_eq(rl_contention_delay_ns(&contention, TRIP_NS, UINT64_MAX), 0);
    rl_contention_note_notification(&contention, NOW_NS);
    ck_assert_uint_eq(rl_contention_delay_ns(&contention, TRIP_NS, UINT64_MAX), 0);
    /* The second time others were sooner, also for who had it never. */
    for (unsigned i = 1; i <= UINT16_MAX; i++) {
        rl_contention_note_notification(&contention, NOW_NS);
        uint64_t least_ns = rl_contention_delay_ns(&contention, TRIP_NS, 0);
        uint64_t most_ns = rl_contention_delay_ns(&contention, TRIP_NS, TRIP_NS / 16 - 1);
        ck_assert_uint_ge(least_ns, TRIP_NS / 16); /* behind who goes ahead */
        ck_assert_uint_lt(most_ns, 5 * TRIP_NS / 8);
        ck_assert_uint_le(least_ns, last_ns);
        ck_assert_uint_eq(most_ns - least_ns, TRIP_NS / 16 - 1); /* a lottery, however long ago */
        last_ns = least_ns;
    }
    ck_assert_uint_lt(last_ns, TRIP_NS / 16 + TRIP_NS / 1000);
    rl_contention_note_grant(&contention);
    ck_assert_uint_gt(rl_contention_delay_ns(&contention, TRIP_NS, 0), TRIP_NS / 2);
}
END_TEST

/* Whoever never lets anybody in never meets anybody. */
START_TEST(a_pause_after_many_without_one)
{
    uint64_t now_ns = NOW_NS;
    unsigned turns = 0;

    while (contention.yield_until_ns == 0) {
        rl_contention_note_start(&contention, TRIP_NS, now_ns);
        rl_contention_note_release(&contention, TRIP_NS, RANDOM_NS, now_ns);
        now_ns += TRIP_NS;
        ck_assert_uint_lt(++turns, 1000);
    }
    ck_assert_uint_gt(turns, 100); /* the ninety-ninth percentile does not know of it */
    contention.yield_until_ns = 0;
    for (turns = 0; turns < 1000; turns++) { /* with pauses, nothing is owed to anybody */
        now_ns += 3 * TRIP_NS;
        rl_contention_note_start(&contention, TRIP_NS, now_ns);
        rl_contention_note_release(&contention, TRIP_NS, RANDOM_NS, now_ns);
    }
    ck_assert_uint_eq(contention.yield_until_ns, 0);
}
END_TEST

/* Long ones are over sooner: nobody waits for the end of 128 of them. */
START_TEST(a_pause_after_a_long_row)
{
    rl_contention_note_start(&contention, TRIP_NS, NOW_NS);
    rl_contention_note_release(&contention, TRIP_NS, RANDOM_NS, NOW_NS + 5 * RL_SECOND);
    ck_assert_uint_eq(contention.yield_until_ns, 0); /* one is no row */
    rl_contention_note_start(&contention, TRIP_NS, NOW_NS + 5 * RL_SECOND);
    rl_contention_note_release(&contention, TRIP_NS, RANDOM_NS, NOW_NS + 6 * RL_SECOND);
    ck_assert_uint_eq(contention.yield_until_ns, NOW_NS + 6 * RL_SECOND + 3 * TRIP_NS + RANDOM_NS);
    contention.yield_until_ns = 0;
    rl_contention_note_start(&contention, TRIP_NS, NOW_NS + 6 * RL_SECOND);
    rl_contention_note_release(&contention, TRIP_NS, RANDOM_NS, NOW_NS + 7 * RL_SECOND - 1);
    ck_assert_uint_eq(contention.yield_until_ns, 0); /* that begins again */
}
END_TEST

/* A pause is three or four round trips: far from the servers, one each second would be much. */
START_TEST(a_row_is_longer_far_away)
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

/* A node that has lost the holder's key, or cannot store any, says "go" for ever. */
START_TEST(a_first_node_that_misleads_is_passed_over)
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
    rl_contention_note_start(&contention, TRIP_NS, NOW_NS + 2 * RL_SECOND); /* not for ever */
    ck_assert_uint_eq(rl_contention_preferred(&contention, 0x1f), RL_NODE(1));
}
END_TEST

START_TEST(they_cannot_all_be_wrong)
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

START_TEST(misled_now_and_then)
{
    for (unsigned i = 0; i < 20; i++) {
        rl_contention_note_denial(&contention, true, RL_NODE(1), NOW_NS);
        rl_contention_note_denial(&contention, true, RL_NODE(1), NOW_NS);
        rl_contention_note_denial(&contention, false, i % 2 == 0 ? 0 : RL_NODE(3), NOW_NS);
    }
    ck_assert_uint_eq(rl_contention_preferred(&contention, 0x1f), RL_NODE(1));
    ck_assert_uint_eq(rl_contention_preferred(&contention, 0x1d),
                      RL_NODE(3)); /* one after the other is no row */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("core_contest");
    TCase *tcase = tcase_create("contest");
    tcase_add_checked_fixture(tcase, setup, NULL);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, nodes_are_ranked_by_their_scores);
    tcase_add_test(tcase, the_order_of_shared_nodes_is_the_same);
    tcase_add_test(tcase, others_are_remembered_for_a_second);
    tcase_add_test(tcase, pauses_grow_with_split_votes);
    tcase_add_test(tcase, who_is_only_denied_stays_away_less_and_less);
    tcase_add_test(tcase, others_go_first_where_they_were_met);
    tcase_add_test(tcase, a_denial_on_the_way_shows_others);
    tcase_add_test(tcase, what_denies_and_never_comes_is_believed_less_and_less);
    tcase_add_test(tcase, about_one_of_many_contenders_tries_first);
    tcase_add_test(tcase, the_share_of_one_of_many_contenders);
    tcase_add_test(tcase, the_number_of_contenders_is_learnt_by_and_by);
    tcase_add_test(tcase, going_ahead_is_left_to_those_who_win_by_it);
    tcase_add_test(tcase, splits_are_forgotten_by_denials);
    tcase_add_test(tcase, denies_what_all_others_grant);
    tcase_add_test(tcase, misled_by_what_is_known_only);
    tcase_add_test(tcase, who_was_woken_more_often_lags_less);
    tcase_add_test(tcase, a_pause_after_many_without_one);
    tcase_add_test(tcase, a_pause_after_a_long_row);
    tcase_add_test(tcase, a_row_is_longer_far_away);
    tcase_add_test(tcase, a_first_node_that_misleads_is_passed_over);
    tcase_add_test(tcase, they_cannot_all_be_wrong);
    tcase_add_test(tcase, misled_now_and_then);
    return suite_run(suite);
}
