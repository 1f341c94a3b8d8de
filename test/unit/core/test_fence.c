/* SPDX-License-Identifier: MIT
 * Choosing a fence: proposals, the fast and the slow way, votes that come after the choice, limits,
 * fingerprints. */
#include "core/fence.h"

#include "platform/hash.h"

#include <stdio.h>
#include <string.h>

#include "suite.h"

START_TEST(proposals_grow_with_hint_and_clock)
{
    ck_assert_uint_eq(rl_fence_propose(0, 1787500000123456), 1787500000123456);
    ck_assert_uint_eq(rl_fence_propose(1787500000123455, 1787500000123456), 1787500000123456);
    ck_assert_uint_eq(rl_fence_propose(1787500000123456, 1787500000123456), 1787500000123457);
    ck_assert_uint_eq(rl_fence_propose(0, 0), 1);
    /* With an absurd clock or hint, the proposal is still a number that a script can compare. */
    ck_assert_uint_eq(rl_fence_propose(0, UINT64_MAX), RL_FENCE_CORRUPT - 1);
    ck_assert_uint_eq(rl_fence_propose(UINT64_MAX, 5), RL_FENCE_CORRUPT - 1);
}
END_TEST

START_TEST(all_accept_is_one_round)
{
    struct rl_fence fence;

    rl_fence_begin(&fence, 100);
    for (unsigned i = 0; i < 3; i++)
        ck_assert(!rl_fence_grant(&fence, i, 10 + i, true));
    ck_assert_int_eq(rl_fence_judge(&fence, 7, 0, 3), RL_FENCE_OPEN);
    ck_assert_uint_eq(rl_fence_choose(&fence, 7, 3), 0);
    ck_assert_uint_eq(fence.chosen, 100);
    ck_assert_int_eq(rl_fence_judge(&fence, 7, 0, 3), RL_FENCE_AGREED);
    /* A later vote changes nothing. */
    ck_assert(!rl_fence_grant(&fence, 3, 5000, false));
    ck_assert_uint_eq(fence.chosen, 100);
}
END_TEST

START_TEST(one_refusal_takes_a_second_round)
{
    struct rl_fence fence;

    rl_fence_begin(&fence, 100);
    rl_fence_grant(&fence, 0, 10, true);
    rl_fence_grant(&fence, 1, 170, false);
    rl_fence_grant(&fence, 4, 20, true);
    ck_assert_uint_eq(rl_fence_choose(&fence, 0x13, 3), 0x13);
    ck_assert_uint_eq(fence.chosen, 171);
    ck_assert_int_eq(rl_fence_judge(&fence, 0x13, 0, 3), RL_FENCE_OPEN);
    rl_fence_raised(&fence, 0, true);
    rl_fence_raised(&fence, 0, true); /* a second acknowledgement does not count */
    rl_fence_raised(&fence, 4, true);
    ck_assert_int_eq(rl_fence_judge(&fence, 0x13, 0, 3), RL_FENCE_OPEN);
    rl_fence_raised(&fence, 1, true);
    ck_assert_int_eq(rl_fence_judge(&fence, 0x13, 0, 3), RL_FENCE_AGREED);
    ck_assert_uint_eq(fence.chosen, 171);
}
END_TEST

/* Two attempts may propose the same number; a node that holds it already has not accepted it. */
START_TEST(an_equal_number_is_not_accepted)
{
    struct rl_fence fence;

    rl_fence_begin(&fence, 100);
    rl_fence_grant(&fence, 0, 100, true); /* although the reply says "accepted" */
    ck_assert_uint_eq(fence.accepted, 0);
    ck_assert_uint_eq(rl_fence_choose(&fence, 1, 1), 1);
    ck_assert_uint_eq(fence.chosen, 101);
}
END_TEST

START_TEST(the_choice_is_above_an_accepted_proposal)
{
    struct rl_fence fence;

    rl_fence_begin(&fence, 100);
    rl_fence_grant(&fence, 0, 5, true);
    rl_fence_grant(&fence, 1, 100, false);
    ck_assert_uint_ne(rl_fence_choose(&fence, 3, 2), 0);
    ck_assert_uint_eq(fence.chosen, 101);
}
END_TEST

START_TEST(a_lost_key_fails_the_choice)
{
    struct rl_fence fence;

    rl_fence_begin(&fence, 100);
    for (unsigned i = 0; i < 3; i++)
        rl_fence_grant(&fence, i, 200, false);
    rl_fence_choose(&fence, 7, 3);
    rl_fence_raised(&fence, 0, true);
    rl_fence_raised(&fence, 1, false);
    ck_assert_int_eq(rl_fence_judge(&fence, 7, 0x18, 3), RL_FENCE_OPEN); /* two are pending */
    ck_assert_int_eq(rl_fence_judge(&fence, 7, 0, 3), RL_FENCE_FAILED);
    rl_fence_raised(&fence, 1, true); /* the first reply counts */
    rl_fence_raised(&fence, 2, true);
    ck_assert_int_eq(rl_fence_judge(&fence, 7, 0, 3), RL_FENCE_FAILED);
}
END_TEST

/* A grant after the choice counts only if its register is smaller than the chosen number.
 * Otherwise the number would not be larger than the register of each node that counts. */
START_TEST(late_grants_join_below_the_number)
{
    struct rl_fence fence;

    rl_fence_begin(&fence, 100);
    for (unsigned i = 0; i < 3; i++)
        rl_fence_grant(&fence, i, 200, false);
    rl_fence_choose(&fence, 7, 3);
    ck_assert(!rl_fence_grant(&fence, 3, 201, false));
    ck_assert(rl_fence_grant(&fence, 4, 200, false));
    ck_assert_uint_eq(fence.chosen, 201);
    rl_fence_raised(&fence, 3, true); /* node 3 does not take part */
    rl_fence_raised(&fence, 0, true);
    rl_fence_raised(&fence, 1, true);
    rl_fence_raised(&fence, 2, false);
    ck_assert_int_eq(rl_fence_judge(&fence, 0x1f, 0, 3), RL_FENCE_OPEN);
    rl_fence_raised(&fence, 4, true);
    ck_assert_int_eq(rl_fence_judge(&fence, 0x1f, 0, 3), RL_FENCE_AGREED);
}
END_TEST

START_TEST(excluded_nodes_raise_the_choice_but_do_not_count)
{
    struct rl_fence fence;

    rl_fence_begin(&fence, 100);
    for (unsigned i = 0; i < 4; i++)
        rl_fence_grant(&fence, i, i == 0 ? 500 : 10, i != 0);
    /* Node 0 is excluded: its acceptance does not count, but a larger number of it is respected. */
    ck_assert_uint_eq(rl_fence_choose(&fence, 0xe, 3), 0);
    ck_assert_uint_eq(fence.chosen, 100);
    rl_fence_begin(&fence, 100);
    for (unsigned i = 0; i < 4; i++)
        rl_fence_grant(&fence, i, i < 2 ? 500 : 10, i >= 2);
    ck_assert_uint_eq(rl_fence_choose(&fence, 0xe, 3), 0xf);
    ck_assert_uint_eq(fence.chosen, 501);
    for (unsigned i = 0; i < 3; i++)
        rl_fence_raised(&fence, i, true);
    ck_assert_int_eq(rl_fence_judge(&fence, 0xe, 0, 3), RL_FENCE_OPEN);
}
END_TEST

/* Parses the whole text as a fencing token. */
static bool parses(const char *text, uint64_t *ret)
{
    return rl_fence_parse(text, strlen(text), ret);
}

START_TEST(numbers_in_replies_are_parsed_strictly)
{
    static const char *const wrong[] = {"",
                                        "-1",
                                        "+1",
                                        " 1",
                                        "1 ",
                                        "1.5",
                                        "1e3",
                                        "0x10",
                                        "nan",
                                        "1.7875000001235e+15",
                                        "9007199254740990",
                                        "9007199254740991",
                                        "9007199254740992",
                                        "9999999999999999",
                                        "10000000000000000",
                                        "18446744073709551617"};
    uint64_t number = 7;

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_msg(!parses(wrong[i], &number), "%s", wrong[i]);
    ck_assert(parses("0", &number) && number == 0);
    ck_assert(parses("1787500000123456", &number) && number == 1787500000123456);
    ck_assert(parses("9007199254740989", &number) && number == RL_FENCE_CORRUPT - 1);
    ck_assert(rl_fence_parse("12345", 3, &number) && number == 123);
}
END_TEST

START_TEST(fingerprints_differ_in_each_setting)
{
    static const struct rl_fence_config base = {5, 30000, true, "aa", "bb"};
    struct rl_fence_config others[] = {base, base, base, base, base};
    char text[RL_FENCE_TEXT_MAX + 1], other[RL_FENCE_TEXT_MAX + 1];

    ck_assert_uint_eq(rl_fence_fingerprint(text, &base), strlen(text));
    ck_assert_str_eq(text, "v1 k=1024 nodes=5 max_ttl=30000 durable=1 set=aa prefix=bb;");
    others[0].nodes = 7;
    others[1].max_ttl_ms = 3000;
    others[2].durable = false;
    others[3].shard = "ab";
    others[4].prefix = "b";
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        rl_fence_fingerprint(other, &others[i]);
        ck_assert_str_ne(text, other);
        ck_assert(strncmp(text, other, strlen(text)) != 0);
        ck_assert(strncmp(other, text, strlen(other)) != 0);
    }
    char hash[RL_HASH_TEXT_LEN + 1];
    rl_hash_text("x", 1, hash);
    const struct rl_fence_config largest = {31, 86400000, true, hash, hash};
    ck_assert_uint_le(rl_fence_fingerprint(text, &largest), RL_FENCE_TEXT_MAX);
}
END_TEST

/* Other clients, and later versions, must use the same register for a name. */
START_TEST(hashes_and_stripes_are_stable)
{
    char text[RL_HASH_TEXT_LEN + 1];

    rl_hash_text("", 0, text);
    ck_assert_str_eq(text, "cae66941d9efbd404e4d88758ea67670");
    ck_assert_uint_eq(rl_hash_bytes("orders:42", 9), rl_hash_bytes("orders:42", 9));
    ck_assert_uint_eq(rl_fence_stripe(rl_hash_bytes("orders:42", 9)), 246);
    ck_assert_uint_eq(rl_fence_stripe(RL_FENCE_STRIPES), 0);
    ck_assert_uint_eq(rl_fence_stripe(UINT64_MAX), RL_FENCE_STRIPES - 1);
    unsigned used[RL_FENCE_STRIPES] = {0}, most = 0;
    for (unsigned i = 0; i < 64 * RL_FENCE_STRIPES; i++) {
        char name[32];
        int len = snprintf(name, sizeof name, "resource-%u", i);
        unsigned count = ++used[rl_fence_stripe(rl_hash_bytes(name, (size_t)len))];
        most = count > most ? count : most;
    }
    ck_assert_uint_le(most, 128); /* the average is 64 */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("core_fence");
    TCase *tcase = tcase_create("fence");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, proposals_grow_with_hint_and_clock);
    tcase_add_test(tcase, all_accept_is_one_round);
    tcase_add_test(tcase, one_refusal_takes_a_second_round);
    tcase_add_test(tcase, an_equal_number_is_not_accepted);
    tcase_add_test(tcase, the_choice_is_above_an_accepted_proposal);
    tcase_add_test(tcase, a_lost_key_fails_the_choice);
    tcase_add_test(tcase, late_grants_join_below_the_number);
    tcase_add_test(tcase, excluded_nodes_raise_the_choice_but_do_not_count);
    tcase_add_test(tcase, numbers_in_replies_are_parsed_strictly);
    tcase_add_test(tcase, fingerprints_differ_in_each_setting);
    tcase_add_test(tcase, hashes_and_stripes_are_stable);
    return suite_run(suite);
}
