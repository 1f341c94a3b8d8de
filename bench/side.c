/* SPDX-License-Identifier: MIT
 * Runs two sides in interleaved slices. */
#include "side.h"

#include "progress.h"
#include "usage.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define TURNS_MIN  20 /* pairs of a slice, for each operation in flight */
#define SLICES_MIN 4  /* slices that should fit into the time limit */

/* Returns the next random number (splitmix64). */
static uint64_t next_random(uint64_t *seed)
{
    *seed += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = *seed;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Runs one slice of a side. Returns 0 or -1. */
static int run_slice(const struct side *side, uint64_t pairs, struct result *result)
{
    if (side->enter != NULL && side->enter(side->state) != 0)
        return -1;
    usage_add(result, -1);
    int status = side->run(side->state, pairs, result);
    usage_add(result, 1);
    if (status != 0)
        return -1;
    return side->leave == NULL ? 0 : side->leave(side->state);
}

/* Runs pairs of a side before the measurement. Keeps nothing of their result except violations.
 * Returns 0 or -1. */
static int warm(const struct side *side, uint64_t pairs, struct result *result)
{
    if (side == NULL || pairs == 0)
        return 0;
    struct result *scratch = calloc(1, sizeof *scratch);
    int status = scratch == NULL ? -1 : run_slice(side, pairs, scratch);
    if (status == 0)
        result->violations += scratch->violations;
    free(scratch);
    return status;
}

/* Returns the number of pairs in a slice. If the warm-up, which took warm_ns, shows that servers
 * are slow, slices have fewer pairs. */
static uint64_t slice_size(const struct comparison *comparison, uint64_t warm_ns)
{
    uint64_t slice = comparison->pairs / comparison->slices;
    uint64_t slice_min = (uint64_t)comparison->depth * TURNS_MIN;
    if (comparison->budget_ns != 0 && comparison->warm != 0) {
        uint64_t pair_ns = warm_ns / comparison->warm + 1;
        uint64_t affordable = comparison->budget_ns / SLICES_MIN / pair_ns;
        slice = affordable < slice ? affordable : slice;
    }
    slice = slice < slice_min ? slice_min : slice;
    return slice > comparison->pairs ? comparison->pairs : slice;
}

/* Warms both sides up, then runs their slices in turn. Returns 0, or -1 if a side cannot
 * continue. */
int side_compare(const struct comparison *comparison, const struct side *a, struct result *ret_a,
                 const struct side *b, struct result *ret_b, uint64_t *seed)
{
    memset(ret_a, 0, sizeof *ret_a);
    if (b != NULL)
        memset(ret_b, 0, sizeof *ret_b);
    uint64_t warm_ns = result_now_ns();
    if (warm(a, comparison->warm, ret_a) != 0 || warm(b, comparison->warm, ret_b) != 0)
        return -1;
    uint64_t start_ns = result_now_ns();
    uint64_t slice = slice_size(comparison, start_ns - warm_ns);
    for (uint64_t done = 0; done < comparison->pairs; done += slice) {
        if (done > 0 && comparison->budget_ns != 0 &&
            result_now_ns() - start_ns > comparison->budget_ns)
            break;
        uint64_t now = comparison->pairs - done < slice ? comparison->pairs - done : slice;
        bool b_first = b != NULL && (next_random(seed) & 1) != 0;
        if (b_first && run_slice(b, now, ret_b) != 0)
            return -1;
        if (run_slice(a, now, ret_a) != 0)
            return -1;
        if (b != NULL && !b_first && run_slice(b, now, ret_b) != 0)
            return -1;
        progress_show(done + now, comparison->pairs);
    }
    return 0;
}
