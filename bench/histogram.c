/* SPDX-License-Identifier: MIT
 * The log-linear histogram: values below 128 are counted exactly. Above, 128 buckets share each
 * power of two. */
#include "histogram.h"

#include <string.h>

/* The percentiles that reports show, in basis points (5000: median, 10000: maximum). */
const unsigned histogram_points[HISTOGRAM_POINTS] = {5000, 9000, 9500, 9900, 9990, 10000};
/* Names of these percentiles in tables. */
const char *const histogram_point_names[HISTOGRAM_POINTS] = {"p50", "p90",   "p95",
                                                             "p99", "p99.9", "max"};
/* Names of these percentiles in CSV and JSON. */
const char *const histogram_point_columns[HISTOGRAM_POINTS] = {"p50", "p90",   "p95",
                                                               "p99", "p99_9", "max"};

/* Removes all values. */
void histogram_reset(struct histogram *histogram)
{
    memset(histogram, 0, sizeof *histogram);
}

/* Returns the bucket of a value. */
static size_t bucket_of(uint64_t value)
{
    if (value < HISTOGRAM_STEPS)
        return (size_t)value;
    unsigned shift = 63u - (unsigned)__builtin_clzll(value) - HISTOGRAM_STEP_BITS;
    return (size_t)shift * HISTOGRAM_STEPS + (size_t)(value >> shift);
}

/* Returns the largest value that falls into the bucket. */
static uint64_t bucket_end(size_t bucket)
{
    if (bucket < 2 * HISTOGRAM_STEPS)
        return bucket;
    size_t shift = bucket / HISTOGRAM_STEPS - 1;
    uint64_t step = bucket - shift * HISTOGRAM_STEPS;
    return (step << shift) + ((UINT64_C(1) << shift) - 1);
}

/* Adds one value. */
void histogram_record(struct histogram *histogram, uint64_t value)
{
    if (histogram->count == 0 || value < histogram->min)
        histogram->min = value;
    if (value > histogram->max)
        histogram->max = value;
    histogram->count++;
    histogram->buckets[bucket_of(value)]++;
}

/* Adds all values of `histogram` to `sum`. */
void histogram_add(struct histogram *sum, const struct histogram *histogram)
{
    if (histogram->count == 0)
        return;
    if (sum->count == 0 || histogram->min < sum->min)
        sum->min = histogram->min;
    if (histogram->max > sum->max)
        sum->max = histogram->max;
    sum->count += histogram->count;
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
        sum->buckets[i] += histogram->buckets[i];
}

/* Returns the value at a percentile in basis points, 0 for an empty histogram. */
uint64_t histogram_percentile(const struct histogram *histogram, unsigned basis_points)
{
    /* The rank is ceil(count * share), computed so that no realistic count overflows. */
    uint64_t whole = histogram->count / 10000 * basis_points;
    uint64_t rest = (histogram->count % 10000 * basis_points + 9999) / 10000;
    uint64_t rank = whole + rest;
    if (histogram->count == 0)
        return 0;
    if (rank == 0)
        return histogram->min;
    uint64_t seen = 0;
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += histogram->buckets[i];
        if (seen >= rank)
            return bucket_end(i) < histogram->max ? bucket_end(i) : histogram->max;
    }
    return histogram->max;
}
