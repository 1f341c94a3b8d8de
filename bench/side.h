/* SPDX-License-Identifier: MIT
 * One of the two things that are compared. Both run the same closed loop; a comparison runs slices
 * of them in turn, so that a busy moment of the machine hits both. */
#ifndef BENCH_SIDE_H
#define BENCH_SIDE_H

#include "result.h"

#include <stdint.h>

struct side {
    const char *name;
    void *state;
    /* Adds `pairs` acquisitions with their releases to `result`; 0, or -1 if it cannot go on. */
    int (*run)(void *state, uint64_t pairs, struct result *result);
    /* Before and after each slice of this side, not measured; 0 or -1. May be NULL. */
    int (*enter)(void *state);
    int (*leave)(void *state);
};

struct comparison {
    uint64_t pairs;     /* per side, in all slices */
    uint64_t warm;      /* per side, before: not counted */
    unsigned slices;    /* per side */
    unsigned depth;     /* a slice has at least 20 turns of each resource */
    uint64_t budget_ns; /* no further slices after so long; 0: all */
};

/* Runs both sides slice by slice; `seed` decides who is first each time. `b` may be NULL. The
 * processor time of this process is added while a side runs: whoever waits meanwhile does nothing
 * but answer a heartbeat now and then. */
int side_compare(const struct comparison *comparison, const struct side *a, struct result *ret_a,
                 const struct side *b, struct result *ret_b, uint64_t *seed);

#endif
