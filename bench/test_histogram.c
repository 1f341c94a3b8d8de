/* SPDX-License-Identifier: MIT
 * Compares the histogram with a sorted array: a percentile is never below the exact one and at most
 * one bucket (1/128) above it. */
#include "histogram.h"

#include "suite.h"

#include <stdlib.h>

/* Histograms that the cases fill; static because they are large. */
static struct histogram histogram, other;

/* Orders numbers, the smallest first, for qsort(). */
static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Proves that every percentile of an empty histogram is 0. */
START_TEST(empty_is_zero)
{
    histogram_reset(&histogram);
    ck_assert_uint_eq(histogram_percentile(&histogram, 0), 0);
    ck_assert_uint_eq(histogram_percentile(&histogram, 5000), 0);
    ck_assert_uint_eq(histogram_percentile(&histogram, 10000), 0);
}
END_TEST

/* Proves that values up to 200 have exact percentiles: the p-th percentile of 1 to 200 is 2 p. */
START_TEST(small_values_are_exact)
{
    histogram_reset(&histogram);
    for (uint64_t v = 1; v <= 200; v++)
        histogram_record(&histogram, v);
    ck_assert_uint_eq(histogram.min, 1);
    ck_assert_uint_eq(histogram.max, 200);
    for (unsigned p = 1; p <= 100; p++)
        ck_assert_uint_eq(histogram_percentile(&histogram, p * 100), 2 * p);
}
END_TEST

/* Each power of two and its neighbours, up to the largest value, has an error of at most a bucket.
 */
START_TEST(edges_of_buckets_are_nearly_exact)
{
    for (unsigned bit = 0; bit < 64; bit++) {
        for (int delta = -1; delta <= 1; delta++) {
            uint64_t v = (UINT64_C(1) << bit) + (uint64_t)(int64_t)delta;
            histogram_reset(&histogram);
            histogram_record(&histogram, v);
            histogram_record(&histogram, UINT64_MAX);
            uint64_t p50 = histogram_percentile(&histogram, 5000);
            ck_assert_uint_ge(p50, v);
            ck_assert_uint_le(p50 - v, v / HISTOGRAM_STEPS);
            ck_assert_uint_eq(histogram_percentile(&histogram, 10000), UINT64_MAX);
        }
    }
}
END_TEST

/* Proves that each percentile of 20001 random values is at most a bucket too high. _i, 0 to 7,
 * changes the seed. */
START_TEST(random_values_agree_with_a_sorted_array)
{
    enum { COUNT = 20001 };
    static uint64_t values[COUNT];
    uint64_t state = 88172645463325252u + (uint64_t)_i;
    histogram_reset(&histogram);
    histogram_reset(&other);
    for (size_t i = 0; i < COUNT; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        values[i] = state >> (state % 50);
        histogram_record(i % 3 == 0 ? &histogram : &other, values[i]);
    }
    histogram_add(&histogram, &other);
    qsort(values, COUNT, sizeof values[0], compare_u64);
    ck_assert_uint_eq(histogram.count, COUNT);
    ck_assert_uint_eq(histogram.min, values[0]);
    ck_assert_uint_eq(histogram.max, values[COUNT - 1]);
    const unsigned points[] = {1, 100, 5000, 9000, 9900, 9990, 9999, 10000};
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        uint64_t rank = ((uint64_t)COUNT * points[i] + 9999) / 10000;
        uint64_t exact = values[rank - 1];
        uint64_t shown = histogram_percentile(&histogram, points[i]);
        ck_assert_uint_ge(shown, exact);
        ck_assert_uint_le(shown - exact, exact / HISTOGRAM_STEPS);
    }
}
END_TEST

/* The percentiles of reports, of 1000 values: each number from 1 to 200 five times. */
START_TEST(percentiles_of_reports_are_exact)
{
    const uint64_t exact[HISTOGRAM_POINTS] = {100, 180, 190, 198, 200, 200};
    histogram_reset(&histogram);
    for (unsigned i = 0; i < 1000; i++)
        histogram_record(&histogram, i % 200 + 1);
    for (size_t i = 0; i < HISTOGRAM_POINTS; i++)
        ck_assert_uint_eq(histogram_percentile(&histogram, histogram_points[i]), exact[i]);
    histogram_record(&histogram, 1000000);
    ck_assert_uint_eq(histogram_percentile(&histogram, histogram_points[4]), 200);
    histogram_record(&histogram, 1000000);
    ck_assert_uint_eq(histogram_percentile(&histogram, histogram_points[4]), 1000000);
}
END_TEST

/* Runs all cases. Returns 0 if they pass. */
int main(void)
{
    TCase *tc = tcase_create("histogram");
    tcase_add_test(tc, empty_is_zero);
    tcase_add_test(tc, small_values_are_exact);
    tcase_add_test(tc, edges_of_buckets_are_nearly_exact);
    tcase_add_test(tc, percentiles_of_reports_are_exact);
    tcase_add_loop_test(tc, random_values_agree_with_a_sorted_array, 0, 8);
    Suite *suite = suite_create("bench_histogram");
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
