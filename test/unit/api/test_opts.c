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

/* A newer program sets a field that this library does not know: each of its bytes must be zero. */
START_TEST(unknown_fields_must_be_zero)
{
    enum { MORE = 16 };
    union {
        redlock_opts_t opts;
        unsigned char bytes[sizeof(redlock_opts_t) + MORE];
    } theirs;
    redlock_config_t *config = NULL;
    redlock_t *client = NULL;
    redlock_lock_t *lock = NULL;

    ck_assert_int_eq(redlock_config_new(&config, NULL), REDLOCK_OK);
    ck_assert_int_eq(redlock_config_add_nodes(config, "unix:///nowhere/at/all"), REDLOCK_OK);
    ck_assert_int_eq(redlock_new(&client, config), REDLOCK_OK);
    redlock_config_free(config);
    ck_assert_int_eq(redlock_opts_init(&theirs.opts, sizeof theirs, 5000), REDLOCK_OK);
    ck_assert_int_eq(redlock_acquire(client, "a", &theirs.opts, &lock, NULL), REDLOCK_ENOQUORUM);
    for (size_t at = sizeof(redlock_opts_t); at < sizeof theirs; at++) {
        theirs.bytes[at] = 1;
        ck_assert_msg(redlock_acquire(client, "a", &theirs.opts, &lock, NULL) == REDLOCK_EINVAL,
                      "byte %zu", at);
        theirs.bytes[at] = 0;
    }
    ck_assert_int_eq(redlock_free(client), REDLOCK_OK);
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
    tcase_add_test(tcase, unknown_fields_must_be_zero);
    return suite_run(suite);
}
