/* SPDX-License-Identifier: MIT
 * Checks the start times of an open loop, and the parts of a timeline. */
#include "paced.h"

#include "suite.h"

/* Proves the intended start of operations at several rates. */
START_TEST(start_times_are_evenly_spaced)
{
    ck_assert_uint_eq(paced_due_ns(7, 1, 0), 7);
    ck_assert_uint_eq(paced_due_ns(7, 1, 3), UINT64_C(3000000007));
    ck_assert_uint_eq(paced_due_ns(0, 500, 1), 2000000);
    /* Rounding errors do not add up: after a day at an odd rate exactly a day has passed. */
    ck_assert_uint_eq(paced_due_ns(0, 999983, UINT64_C(86400) * 999983),
                      UINT64_C(86400) * 1000000000);
    for (uint64_t i = 1; i < 3000; i++) {
        uint64_t gap = paced_due_ns(0, 999, i) - paced_due_ns(0, 999, i - 1);
        ck_assert_uint_ge(gap, 1001001);
        ck_assert_uint_le(gap, 1001002);
    }
}
END_TEST

/* Proves that a bin counts its samples and that failed operations do not change its percentiles. */
START_TEST(bins_have_the_percentiles_of_their_samples)
{
    struct timeline *timeline = timeline_new(250);
    struct timeline_bin bin;
    size_t at = 0;
    /* Samples arrive in the order of their ends, the last start first: one per microsecond, which
     * take 100 to 1 ns. */
    for (uint64_t i = 100; i >= 1; i--)
        timeline_add(timeline, i * 1000, i, false);
    for (uint64_t i = 0; i < 100; i++)
        timeline_add(timeline, 200000 + i, 1000000, i < 98);
    timeline_mark(timeline, 150000, "here");
    timeline_sort(timeline);
    timeline_bin(timeline, &at, 50001, &bin);
    ck_assert_uint_eq(bin.count, 50);
    ck_assert_uint_eq(bin.failed, 0);
    ck_assert_uint_eq(bin.p50_ns, 25);
    ck_assert_uint_eq(bin.p99_ns, 50);
    ck_assert_uint_eq(bin.max_ns, 50);
    timeline_bin(timeline, &at, 200000, &bin);
    ck_assert_uint_eq(bin.count, 50);
    ck_assert_uint_eq(bin.p50_ns, 75);
    /* A failed operation has no time. */
    timeline_bin(timeline, &at, UINT64_MAX, &bin);
    ck_assert_uint_eq(bin.count, 100);
    ck_assert_uint_eq(bin.failed, 98);
    ck_assert_uint_eq(bin.p50_ns, 1000000);
    ck_assert_uint_eq(at, 200);
    timeline_bin(timeline, &at, UINT64_MAX, &bin);
    ck_assert_uint_eq(bin.count, 0);
    ck_assert_uint_eq(bin.max_ns, 0);
    ck_assert_uint_eq(timeline->marks_count, 1);
    free(timeline);
}
END_TEST

/* Proves that a full timeline ignores samples and marks. */
START_TEST(samples_and_marks_beyond_the_room_are_ignored)
{
    struct timeline *timeline = timeline_new(2);
    for (uint64_t i = 0; i < 5; i++) {
        timeline_add(timeline, i, i, false);
        timeline_mark(timeline, i, "a text that is much longer than a mark can hold, so it is cut");
    }
    ck_assert_uint_eq(timeline->count, 2);
    ck_assert_uint_eq(timeline->marks_count, MARKS_MAX);
    free(timeline);
}
END_TEST

/* Runs all cases. Returns 0 if they pass. */
int main(void)
{
    TCase *tc = tcase_create("timeline");
    tcase_add_test(tc, start_times_are_evenly_spaced);
    tcase_add_test(tc, bins_have_the_percentiles_of_their_samples);
    tcase_add_test(tc, samples_and_marks_beyond_the_room_are_ignored);
    Suite *suite = suite_create("bench_timeline");
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
