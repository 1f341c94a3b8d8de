/* SPDX-License-Identifier: MIT
 * A log-linear histogram of durations with 128 steps for each power of two, so that a percentile is
 * at most 0.8 % too high and never too low. Recording allocates nothing. */
#ifndef BENCH_HISTOGRAM_H
#define BENCH_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

#define HISTOGRAM_STEP_BITS 7                           /* 2^7 = 128 steps for each power of two */
#define HISTOGRAM_STEPS     (1u << HISTOGRAM_STEP_BITS) /* steps for each power of two */
#define HISTOGRAM_BUCKETS                                                                          \
    ((64u - HISTOGRAM_STEP_BITS + 1u) * HISTOGRAM_STEPS) /* enough for every uint64_t */

/* Counts of values, in any unit; the benchmark uses nanoseconds. Zero bytes are an empty one. */
struct histogram {
    uint64_t count;    /* of all values */
    uint64_t min, max; /* exact; 0 if there is no value */
    uint64_t buckets[HISTOGRAM_BUCKETS];
};

/* Removes all values. */
void histogram_reset(struct histogram *histogram);
/* Adds one value. */
void histogram_record(struct histogram *histogram, uint64_t value);
/* Adds all values of `histogram` to `sum`. */
void histogram_add(struct histogram *sum, const struct histogram *histogram);

/* Returns the smallest recorded value that at least `basis_points` / 10000 of all values do not
 * exceed, rounded up to the end of its bucket: 5000 is the median, 9990 is p99.9, 10000 the
 * maximum. Returns 0 if there is no value. */
uint64_t histogram_percentile(const struct histogram *histogram, unsigned basis_points);

/* The percentiles that reports show, in basis points, and their names in tables and in CSV or
 * JSON. */
#define HISTOGRAM_POINTS 6
extern const unsigned histogram_points[HISTOGRAM_POINTS];
extern const char *const histogram_point_names[HISTOGRAM_POINTS];   /* "p99.9" */
extern const char *const histogram_point_columns[HISTOGRAM_POINTS]; /* "p99_9" */

#endif
