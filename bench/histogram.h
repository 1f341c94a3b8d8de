/* SPDX-License-Identifier: MIT
 * A log-linear histogram of durations: 128 steps per power of two, so a percentile is at most 0.8 %
 * too high and never too low. Recording is a shift and an increment, no allocation. */
#ifndef BENCH_HISTOGRAM_H
#define BENCH_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

#define HISTOGRAM_STEP_BITS 7
#define HISTOGRAM_STEPS     (1u << HISTOGRAM_STEP_BITS)
#define HISTOGRAM_BUCKETS   ((64u - HISTOGRAM_STEP_BITS + 1u) * HISTOGRAM_STEPS)

struct histogram {
    uint64_t count;
    uint64_t min, max;
    uint64_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_reset(struct histogram *histogram);
void histogram_record(struct histogram *histogram, uint64_t value);
void histogram_add(struct histogram *sum, const struct histogram *histogram);

/* The smallest recorded value that at least `basis_points` / 10000 of all values do not exceed,
 * rounded up to the end of its bucket: 5000 is the median, 9990 is p99.9, 10000 the maximum.
 * 0 if nothing was recorded. */
uint64_t histogram_percentile(const struct histogram *histogram, unsigned basis_points);

/* What reports show, in basis points, and what they call it. */
#define HISTOGRAM_POINTS 6
extern const unsigned histogram_points[HISTOGRAM_POINTS];
extern const char *const histogram_point_names[HISTOGRAM_POINTS];   /* "p99.9" */
extern const char *const histogram_point_columns[HISTOGRAM_POINTS]; /* "p99_9" */

#endif
