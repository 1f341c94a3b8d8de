/* SPDX-License-Identifier: MIT
 * Hashes are the same on all processors, because clients on different ones share servers: fixed
 * results, which were computed with other programs (SipHash-2-4 and BLAKE2b). */
#include "platform/hash.h"

#include "core/contention.h"
#include "core/types.h"

#include "suite.h"

static char bytes[255]; /* 0, 1, ..., 254 */

/* Fills `bytes`. */
static void setup(void)
{
    for (unsigned i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)i;
}

START_TEST(numbers)
{
    ck_assert_uint_eq(rl_hash_bytes("", 0), UINT64_C(0xbd3e947c7294635f));
    ck_assert_uint_eq(rl_hash_bytes("orders:42", 9), UINT64_C(0xde941a511096b8f6));
    ck_assert_uint_eq(rl_hash_bytes(bytes, sizeof bytes), UINT64_C(0x51a181799bff898f));
}
END_TEST

START_TEST(texts)
{
    char text[RL_HASH_TEXT_LEN + 1];

    rl_hash_text("", 0, text);
    ck_assert_str_eq(text, "cae66941d9efbd404e4d88758ea67670");
    rl_hash_text("orders:42", 9, text);
    ck_assert_str_eq(text, "ba093985c447316457bb7ec5a22f96f6");
    rl_hash_text(bytes, sizeof bytes, text);
    ck_assert_str_eq(text, "192657d8c2d07da4ee7beb8c6f9951f4");
}
END_TEST

/* The order in which nodes are preferred for a resource follows from the hashes of their ids. */
START_TEST(ranks)
{
    static const char *const ids[] = {"10.0.0.1:6379", "10.0.0.2:6379", "10.0.0.3:6379"};
    static const uint8_t expected[] = {1, 0, 2};
    uint64_t hash = rl_hash_bytes("orders:42", 9);
    uint64_t scores[3];
    uint8_t order[3];
    struct rl_contention contention;

    for (unsigned i = 0; i < 3; i++)
        scores[i] = rl_mix(hash ^ rl_hash_bytes(ids[i], 13));
    ck_assert_uint_eq(scores[0], UINT64_C(0x0ec8cf287a47eafa));
    ck_assert_uint_eq(scores[1], UINT64_C(0x4f038f864a0ccce1));
    ck_assert_uint_eq(scores[2], UINT64_C(0x0cd8196527532cf5));
    rl_contention_init(&contention, order, 3, scores);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_uint_eq(order[i], expected[i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("platform_hash");
    TCase *tcase = tcase_create("hash");

    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, NULL);
    tcase_add_test(tcase, numbers);
    tcase_add_test(tcase, texts);
    tcase_add_test(tcase, ranks);
    return suite_run(suite);
}
