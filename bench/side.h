/* SPDX-License-Identifier: MIT
 * One side of a comparison. Both sides run the same closed loop. A comparison runs slices of them
 * in turn, so that a busy moment of the machine affects both. */
#ifndef BENCH_SIDE_H
#define BENCH_SIDE_H

#include "result.h"

#include <stdint.h>

/* One side: functions that run it, and their state. */
struct side {
    const char *name; /* for the report; NULL: there is no such side */
    void *state;      /* first argument of the functions; borrowed */
    /* Runs `pairs` pairs and adds the measurements to `result`. Returns 0, or -1 if the side cannot
     * continue. */
    int (*run)(void *state, uint64_t pairs, struct result *result);
    /* Prepares a slice of this side, unmeasured. Returns 0 or -1. May be NULL. */
    int (*enter)(void *state);
    /* Cleans up after a slice of this side, unmeasured. Returns 0 or -1. May be NULL. */
    int (*leave)(void *state);
};

/* How much both sides run. */
struct comparison {
    uint64_t pairs;     /* for each side, in all slices */
    uint64_t warm;      /* for each side, before the first slice; not counted */
    unsigned slices;    /* for each side, unless slices become too short */
    unsigned depth;     /* operations in flight */
    uint64_t budget_ns; /* no slice begins later; 0: no limit */
};

/* Runs both sides slice by slice. `seed` decides which side runs first each time, and advances. `b`
 * may be NULL. The processor time of this process counts for the side that runs; meanwhile the
 * other side only sends heartbeats. Returns 0 or -1. */
int side_compare(const struct comparison *comparison, const struct side *a, struct result *ret_a,
                 const struct side *b, struct result *ret_b, uint64_t *seed);

#endif
