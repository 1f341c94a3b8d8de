/* SPDX-License-Identifier: MIT
 * The measurements of one side of a comparison.
 *
 * A pair is one acquisition with its release, the unit of all closed loops. */
#ifndef BENCH_RESULT_H
#define BENCH_RESULT_H

#include "histogram.h"

#include <stdint.h>
#include <time.h>

/* Sums over all slices. Zero bytes are an empty result. */
struct result {
    struct histogram acquire; /* ns from the call of acquire to the lock */
    struct histogram pair;    /* ns from the call of acquire to the end of the release */
    uint64_t pairs;           /* finished pairs, with those that failed */
    uint64_t failed;          /* pairs whose acquisition or release failed */
    int last_error;           /* status of the last failure; 0: none */
    uint64_t violations;      /* acquisitions while another caller held the lock */
    uint64_t elapsed_ns;      /* wall time */
    uint64_t one_round;       /* locks with a fence that took one round of requests */
    uint64_t two_rounds;      /* locks with a fence that took two rounds */
    uint64_t servers_us;      /* processor time of all servers; 0: not measured */
    uint64_t attempts;        /* attempts that began */
    uint64_t user_us, sys_us; /* processor time of this process */
};

/* Returns CLOCK_MONOTONIC in nanoseconds. */
static inline uint64_t result_now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * UINT64_C(1000000000) + (uint64_t)ts.tv_nsec;
}

/* Adds all measurements of `part` to `sum`. */
static inline void result_add(struct result *sum, const struct result *part)
{
    histogram_add(&sum->acquire, &part->acquire);
    histogram_add(&sum->pair, &part->pair);
    sum->pairs += part->pairs;
    sum->failed += part->failed;
    if (part->last_error != 0)
        sum->last_error = part->last_error;
    sum->violations += part->violations;
    sum->elapsed_ns += part->elapsed_ns;
    sum->one_round += part->one_round;
    sum->two_rounds += part->two_rounds;
    sum->servers_us += part->servers_us;
    sum->attempts += part->attempts;
    sum->user_us += part->user_us;
    sum->sys_us += part->sys_us;
}

/* Returns a / b, or 0 if b is not positive. */
static inline double result_divide(double a, double b)
{
    return b > 0.0 ? a / b : 0.0;
}

/* Returns the attempts per lock that was acquired. */
static inline double result_attempts_per_grant(const struct result *result)
{
    return result_divide((double)result->attempts, (double)result->acquire.count);
}

/* Returns the processor time of this process per pair. */
static inline double result_client_us_per_pair(const struct result *result)
{
    return result_divide((double)(result->user_us + result->sys_us), (double)result->pairs);
}

/* Returns finished pairs per second, with those that failed. */
static inline double result_pairs_per_second(const struct result *result)
{
    return result->elapsed_ns == 0 ? 0.0 : (double)result->pairs * 1e9 / (double)result->elapsed_ns;
}

#endif
