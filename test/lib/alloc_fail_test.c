/* SPDX-License-Identifier: MIT
 * The allocation failures reach the test's own code, libc and hiredis, and only where they should.
 */
#include <dlfcn.h>
#include <errno.h>
#include <hiredis/hiredis.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "alloc_fail.h"
#include "suite.h"

/* Kept from the optimiser, which may drop a malloc() whose result is only freed. */
static void *volatile sink;

/* Returns whether an allocation of 10 bytes succeeds; the block is freed. */
static bool allocates(void)
{
    sink = malloc(10);
    const bool got = sink != NULL;
    free(sink);
    return got;
}

START_TEST(once_fails_once)
{
    bool got[4];
    alloc_fail_once(2, ALLOC_FAIL_ALL_THREADS);
    for (int i = 0; i < 4; i++)
        got[i] = allocates();
    ck_assert(alloc_fail_stop());
    ck_assert(got[0] && got[1] && !got[2] && got[3]);
    ck_assert_uint_eq(alloc_fail_seen(), 4);
    ck_assert(allocates());
}
END_TEST

START_TEST(from_fails_for_good)
{
    bool got[4];
    alloc_fail_from(1, ALLOC_FAIL_ALL_THREADS);
    for (int i = 0; i < 4; i++)
        got[i] = allocates();
    const int error = errno;
    ck_assert(alloc_fail_stop());
    ck_assert(got[0] && !got[1] && !got[2] && !got[3]);
    ck_assert_int_eq(error, ENOMEM);
}
END_TEST

START_TEST(counting_fails_nothing)
{
    alloc_fail_count(ALLOC_FAIL_ALL_THREADS);
    const bool got = allocates() && allocates();
    ck_assert(!alloc_fail_stop());
    ck_assert(got);
    ck_assert_uint_eq(alloc_fail_seen(), 2);
}
END_TEST

START_TEST(every_entry_point_counts)
{
    void *aligned = NULL;
    alloc_fail_from(0, ALLOC_FAIL_ALL_THREADS);
    char *copy = strdup("libc allocates too");
    void *zeroed = calloc(3, 3);
    void *moved = realloc(NULL, 5);
    const int error = posix_memalign(&aligned, 64, 64);
    void *aligned_too = aligned_alloc(64, 64);
    ck_assert(alloc_fail_stop());
    ck_assert_uint_eq(alloc_fail_seen(), 5);
    ck_assert_ptr_null(copy);
    ck_assert_ptr_null(zeroed);
    ck_assert_ptr_null(moved);
    ck_assert_ptr_null(aligned_too);
    ck_assert_int_eq(error, ENOMEM);
    ck_assert_ptr_null(aligned);
}
END_TEST

START_TEST(a_failed_realloc_keeps_the_block)
{
    char *block = malloc(4);
    ck_assert_ptr_nonnull(block);
    memcpy(block, "abc", 4);
    alloc_fail_once(0, ALLOC_FAIL_ALL_THREADS);
    void *moved = realloc(block, 400);
    ck_assert(alloc_fail_stop());
    ck_assert_ptr_null(moved);
    ck_assert_str_eq(block, "abc");
    free(block);
}
END_TEST

START_TEST(hiredis_allocations_fail)
{
    uint64_t k = 0;
    for (;; k++) {
        alloc_fail_once(k, ALLOC_FAIL_ALL_THREADS);
        redisReader *reader = redisReaderCreate();
        const bool hit = alloc_fail_stop();
        ck_assert_int_eq(reader == NULL, hit);
        if (reader != NULL)
            redisReaderFree(reader);
        if (!hit)
            break;
    }
    ck_assert_uint_ge(k, 2);
}
END_TEST

/* Returns whether hiredis is a library of its own, not a part of this program. */
static bool is_hiredis_shared(void)
{
    Dl_info object;

    return dladdr((void *)(uintptr_t)redisReaderCreate, &object) != 0 &&
           strstr(object.dli_fname, "/libhiredis.") != NULL;
}

/* The allocations of a library that is exempted succeed and are not counted; others fail. */
START_TEST(libraries_can_be_left_alone)
{
    alloc_fail_exempt_libraries("/libhiredis.", "/no such library");
    alloc_fail_from(0, ALLOC_FAIL_ALL_THREADS);
    redisReader *reader = redisReaderCreate();
    const uint64_t of_hiredis = alloc_fail_seen();
    const bool got = allocates();
    ck_assert(alloc_fail_stop());
    ck_assert(reader != NULL && !got);
    ck_assert_uint_eq(of_hiredis, 0);
    redisReaderFree(reader);
}
END_TEST

/* Stores in *userdata whether an allocation succeeds; the main function of a thread. */
static void *allocate_in_thread(void *userdata)
{
    bool *got = userdata;
    *got = allocates();
    return NULL;
}

START_TEST(other_threads_can_be_left_alone)
{
    bool got = false;
    pthread_t thread;
    alloc_fail_exempt(true);
    alloc_fail_from(0, ALLOC_FAIL_THIS_THREAD);
    ck_assert_int_eq(pthread_create(&thread, NULL, allocate_in_thread, &got), 0);
    pthread_join(thread, NULL);
    alloc_fail_exempt(false);
    const bool own = allocates();
    alloc_fail_stop();
    ck_assert(got);
    ck_assert(!own);
}
END_TEST

START_TEST(all_threads_are_reached)
{
    bool got = true;
    pthread_t thread;
    alloc_fail_exempt(true);
    alloc_fail_from(0, ALLOC_FAIL_ALL_THREADS);
    ck_assert_int_eq(pthread_create(&thread, NULL, allocate_in_thread, &got), 0);
    pthread_join(thread, NULL);
    const bool exempt = allocates();
    alloc_fail_exempt(false);
    alloc_fail_stop();
    ck_assert(!got);
    ck_assert(exempt);
}
END_TEST

START_TEST(live_blocks_balance)
{
    const int64_t before = alloc_fail_live();
    sink = malloc(10);
    const int64_t during = alloc_fail_live();
    sink = realloc(sink, 1000);
    const int64_t moved = alloc_fail_live();
    free(sink);
    sink = strdup("a copy");
    free(sink);
    sink = strndup("half a copy", 4);
    free(sink);
    const int64_t after = alloc_fail_live();
    ck_assert_int_eq(during - before, 1);
    ck_assert_int_eq(moved - before, 1);
    ck_assert_int_eq(after - before, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("alloc_fail");
    TCase *cases = tcase_create("all");
    tcase_add_test(cases, once_fails_once);
    tcase_add_test(cases, from_fails_for_good);
    tcase_add_test(cases, counting_fails_nothing);
    tcase_add_test(cases, every_entry_point_counts);
    tcase_add_test(cases, a_failed_realloc_keeps_the_block);
    tcase_add_test(cases, hiredis_allocations_fail);
    if (is_hiredis_shared())
        tcase_add_test(cases, libraries_can_be_left_alone);
    tcase_add_test(cases, other_threads_can_be_left_alone);
    tcase_add_test(cases, all_threads_are_reached);
    tcase_add_test(cases, live_blocks_balance);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
