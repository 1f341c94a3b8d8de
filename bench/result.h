/* SPDX-License-Identifier: MIT
 * What one side of a comparison has measured. */
#ifndef BENCH_RESULT_H
#define BENCH_RESULT_H

#include "histogram.h"

#include <stdint.h>
#include <time.h>

struct result {
    struct histogram acquire; /* first byte of the request to "you have it", ns */
    struct histogram pair;    /* first byte of the acquire to "it is given back", ns */
    uint64_t pairs, failed;   /* finished closed-loop turns; those of them without the lock */
    int last_error;           /* of the last one that failed; 0: none has */
    uint64_t violations;      /* somebody else held what we were just given */
    uint64_t elapsed_ns;      /* wall time of all slices */
    uint64_t one_round;       /* locks with a fence that took one round, ... */
    uint64_t two_rounds;      /* ... and two */
    uint64_t servers_us;      /* processor time of all servers; 0: not looked at */
    uint64_t attempts;        /* rounds of asking that began, for all of `pairs` */
    uint64_t user_us, sys_us; /* processor time of this process */
};

static inline uint64_t result_now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * UINT64_C(1000000000) + (uint64_t)ts.tv_nsec;
}

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

static inline double result_divide(double a, double b)
{
    return b > 0.0 ? a / b : 0.0;
}

/* acquire.count is the number of grants. */
static inline double result_attempts_per_grant(const struct result *result)
{
    return result_divide((double)result->attempts, (double)result->acquire.count);
}

static inline double result_client_us_per_pair(const struct result *result)
{
    return result_divide((double)(result->user_us + result->sys_us), (double)result->pairs);
}

static inline double result_pairs_per_second(const struct result *result)
{
    return result->elapsed_ns == 0 ? 0.0 : (double)result->pairs * 1e9 / (double)result->elapsed_ns;
}

#endif
