/* SPDX-License-Identifier: MIT
 * Options that the library initializes equal those that the header initializes, byte for byte. A
 * smaller or larger struct of the caller is filled as far as it goes. */
#include <redlock/redlock.h>
#include <string.h>

#include "suite.h"

#define TTL_MS  UINT64_C(0x1122334455667788)
#define GARBAGE 0xa5

START_TEST(function_and_header_fill_the_same_bytes)
{
    redlock_opts_t filled;
    const redlock_opts_t inlined = redlock_opts(TTL_MS);

    memset(&filled, GARBAGE, sizeof filled);
    ck_assert_int_eq(redlock_opts_init(&filled, sizeof filled, TTL_MS), REDLOCK_OK);
    ck_assert_mem_eq(&filled, &inlined, sizeof filled);
    ck_assert_uint_eq(filled.size, sizeof filled);
    ck_assert_uint_eq(filled.ttl_ms, TTL_MS);
}
END_TEST

/* The caller was compiled with a newer header, or with an older one. */
START_TEST(size_is_the_caller_s)
{
    enum { ROOM = sizeof(redlock_opts_t) + 64 };
    union {
        redlock_opts_t opts;
        unsigned char bytes[ROOM];
    } theirs;
    const size_t sizes[] = {sizeof(redlock_opts_t) + 32, offsetof(redlock_opts_t, fence),
                            offsetof(redlock_opts_t, wait_ms)};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        memset(&theirs, GARBAGE, sizeof theirs);
        ck_assert_int_eq(redlock_opts_init(&theirs.opts, sizes[i], TTL_MS), REDLOCK_OK);
        ck_assert_uint_eq(theirs.opts.size, sizes[i]);
        ck_assert_uint_eq(theirs.opts.ttl_ms, TTL_MS);
        for (size_t at = offsetof(redlock_opts_t, wait_ms); at < ROOM; at++)
            ck_assert_msg(theirs.bytes[at] == (at < sizes[i] ? 0 : GARBAGE), "size %zu, byte %zu",
                          sizes[i], at);
    }
}
END_TEST

START_TEST(null_and_too_small_sizes_are_refused)
{
    redlock_opts_t opts;
    const size_t too_small[] = {0, 1, sizeof(size_t), offsetof(redlock_opts_t, wait_ms) - 1};

    ck_assert_int_eq(redlock_opts_init(NULL, sizeof opts, TTL_MS), REDLOCK_EINVAL);
    for (size_t i = 0; i < sizeof too_small / sizeof too_small[0]; i++) {
        memset(&opts, GARBAGE, sizeof opts);
        ck_assert_int_eq(redlock_opts_init(&opts, too_small[i], TTL_MS), REDLOCK_EINVAL);
        for (size_t at = 0; at < sizeof opts; at++)
            ck_assert_uint_eq(((unsigned char *)&opts)[at], GARBAGE);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api_opts");
    TCase *tcase = tcase_create("opts");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, function_and_header_fill_the_same_bytes);
    tcase_add_test(tcase, size_is_the_caller_s);
    tcase_add_test(tcase, null_and_too_small_sizes_are_refused);
    return suite_run(suite);
}
