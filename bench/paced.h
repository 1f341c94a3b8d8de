/* SPDX-License-Identifier: MIT
 * An open loop: operations begin at fixed times, whether or not earlier ones have ended, like the
 * requests that reach a service. The time of an operation counts from its intended start. So the
 * delay by a slow server is visible even for operations that could not begin. */
#ifndef BENCH_PACED_H
#define BENCH_PACED_H

#include "client.h"
#include "timeline.h"

/* When operations begin. Constant; borrowed while the plan runs. */
struct paced_plan {
    /* Operations per second. 0: a closed loop with one operation at a time, which does not show the
     * delay of operations that could not begin. */
    uint64_t rate_per_s;
    uint64_t duration_ns; /* no operation begins later */
    uint64_t count_max;   /* largest number of operations; 0: no bound */
    /* Called when it is due, with the time since the start of the run, first at 0. Returns the time
     * of its next call, UINT64_MAX for never. May be NULL. */
    uint64_t (*step)(void *state, uint64_t elapsed_ns, struct timeline *timeline);
    void *step_state;
};

/* Returns the intended start of operation `index`, from 0. The starts are evenly spaced. */
static inline uint64_t paced_due_ns(uint64_t start_ns, uint64_t rate_per_s, uint64_t index)
{
    uint64_t seconds = index / rate_per_s, rest = index % rate_per_s;
    return start_ns + seconds * UINT64_C(1000000000) + rest * UINT64_C(1000000000) / rate_per_s;
}

/* Runs a plan with at most settings->depth operations in flight. An operation that is due while all
 * are in flight begins when one ends; its time counts from the intended start.
 *
 * `intended` gets times from the intended start, `sent` (may be NULL) times from the call of the
 * library. *ret_timeline gets the single operations; the caller frees it with free(). Returns 0, or
 * -1 and a text in `error`. */
int paced_run(const struct client_settings *settings, const struct paced_plan *plan,
              struct result *intended, struct result *sent, struct timeline **ret_timeline,
              char *error, size_t error_size);

#endif
