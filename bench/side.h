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
    uint64_t pairs;  /* per side, in all slices */
    unsigned slices; /* per side */
    unsigned depth;  /* a slice has at least 20 turns of each resource */
};

/* Runs both sides slice by slice; `seed` decides who is first each time. `b` may be NULL. */
int side_compare(const struct comparison *comparison, const struct side *a, struct result *ret_a,
                 const struct side *b, struct result *ret_b, uint64_t *seed);

#endif
