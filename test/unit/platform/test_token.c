/* SPDX-License-Identifier: MIT
 * Tokens: their form, that they are unique, and that no copy of a token is kept. */
/* Saves the time of Check's note about each assertion; see suite.h. */
#define SUITE_MANY_ASSERTIONS
#include "platform/token.h"

#include <stdlib.h>
#include <string.h>

#include "suite.h"

/* Returns a seeded generator. */
static struct rl_random seeded_random(void)
{
    struct rl_random random;
    ck_assert_int_eq(rl_random_init(), 0);
    ck_assert_int_eq(rl_random_init(), 0); /* may be called again */
    rl_random_seed(&random, rl_entropy_kernel());
    return random;
}

START_TEST(a_token_without_owner_is_40_hex_digits)
{
    struct rl_random random = seeded_random();
    char token[RL_TOKEN_MAX + 1];
    memset(token, 'z', sizeof token);
    ck_assert_uint_eq(rl_token_make(&random, "ignored", 0, token), 40);
    ck_assert_uint_eq(strlen(token), 40);
    ck_assert_uint_eq(strspn(token, "0123456789abcdef"), 40);
}
END_TEST

START_TEST(a_token_with_owner_ends_with_it)
{
    struct rl_random random = seeded_random();
    char token[RL_TOKEN_MAX + 1];
    char owner[RL_OWNER_MAX];

    ck_assert_uint_eq(rl_token_make(&random, "ada@web3/4711", 13, token), 54);
    ck_assert_uint_eq(strspn(token, "0123456789abcdef"), 40);
    ck_assert_str_eq(token + 40, "@ada@web3/4711");

    ck_assert_uint_eq(rl_token_make(&random, "web3 and more", 4, token), 45);
    ck_assert_str_eq(token + 40, "@web3"); /* the length counts, not a terminator */

    memset(owner, 'o', sizeof owner);
    ck_assert_uint_eq(rl_token_make(&random, owner, sizeof owner, token), RL_TOKEN_MAX);
    ck_assert_uint_eq(strlen(token), RL_TOKEN_MAX);
}
END_TEST

/* All byte values, written as hex in order: 13 tokens hold 260 bytes. */
START_TEST(a_token_is_taken_from_the_pool_and_wiped_there)
{
    struct rl_random random = seeded_random();
    char token[RL_TOKEN_MAX + 1];
    char expected[3];
    static const uint8_t zeroes[RL_TOKEN_HEX / 2];

    for (size_t i = 0; i < RL_RANDOM_POOL; i++)
        random.pool[i] = (uint8_t)i;
    random.used = 0;
    for (unsigned t = 0; t < 13; t++) {
        rl_token_make(&random, NULL, 0, token);
        for (unsigned i = 0; i < 20; i++) {
            snprintf(expected, sizeof expected, "%02x", (t * 20 + i) & 0xffu);
            ck_assert_mem_eq(token + 2 * (size_t)i, expected, 2);
        }
        ck_assert_mem_eq(random.pool + (size_t)t * 20, zeroes, sizeof zeroes);
        ck_assert_uint_eq(random.pool[t * 20 + 20], (t * 20 + 20) & 0xff); /* the rest stays */
    }
}
END_TEST

/* Compares the random parts of two tokens, for qsort(). */
static int compare(const void *a, const void *b)
{
    return memcmp(a, b, RL_TOKEN_HEX);
}

START_TEST(no_token_comes_twice)
{
    enum { COUNT = 50000 };
    struct rl_random random = seeded_random();
    struct rl_random other = seeded_random();
    char token[RL_TOKEN_MAX + 1];
    char *all = malloc((size_t)COUNT * RL_TOKEN_HEX);
    unsigned digits[16] = {0};

    ck_assert_ptr_nonnull(all);
    for (size_t i = 0; i < COUNT; i++) { /* two generators at once, many refills of each pool */
        rl_token_make(i % 2 == 0 ? &random : &other, NULL, 0, token);
        memcpy(all + i * RL_TOKEN_HEX, token, RL_TOKEN_HEX);
        for (unsigned d = 0; d < RL_TOKEN_HEX; d++)
            digits[strchr("0123456789abcdef", token[d]) - "0123456789abcdef"]++;
    }
    qsort(all, COUNT, RL_TOKEN_HEX, compare);
    for (size_t i = 1; i < COUNT; i++)
        ck_assert_int_lt(compare(all + (i - 1) * RL_TOKEN_HEX, all + i * RL_TOKEN_HEX), 0);
    free(all);

    /* 2 000 000 digits, 125 000 of each expected, standard deviation 342: 15 of them either way. */
    for (unsigned d = 0; d < 16; d++) {
        ck_assert_uint_ge(digits[d], 120000);
        ck_assert_uint_le(digits[d], 130000);
    }
}
END_TEST

START_TEST(random_words_use_all_bits)
{
    struct rl_random random = seeded_random();
    struct rl_random other = seeded_random();
    unsigned ones[64] = {0};
    uint64_t previous = rl_random_u64(&random);

    ck_assert_uint_ne(rl_random_u64(&random), rl_random_u64(&other));
    for (unsigned i = 0; i < 10000; i++) {
        uint64_t word = rl_random_u64(&random);
        ck_assert_uint_ne(word, previous);
        previous = word;
        for (unsigned bit = 0; bit < 64; bit++)
            ones[bit] += (unsigned)(word >> bit & 1);
    }
    for (unsigned bit = 0; bit < 64; bit++) { /* 5000 expected, standard deviation 50 */
        ck_assert_uint_ge(ones[bit], 4500);
        ck_assert_uint_le(ones[bit], 5500);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("platform_token");
    TCase *tcase = tcase_create("token");
    suite_add_tcase(suite, tcase);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, a_token_without_owner_is_40_hex_digits);
    tcase_add_test(tcase, a_token_with_owner_ends_with_it);
    tcase_add_test(tcase, a_token_is_taken_from_the_pool_and_wiped_there);
    tcase_add_test(tcase, no_token_comes_twice);
    tcase_add_test(tcase, random_words_use_all_bits);
    return suite_run(suite);
}
