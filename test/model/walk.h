/* SPDX-License-Identifier: MIT
 * Random walks: too long or too large to try all of them. Every message on its way is a state, and
 * what may happen (nodes, attempts, resources that share a register, forgetting, healing, how often
 * keys vanish) is drawn from the seed anew for each walk. */
#ifndef TEST_MODEL_WALK_H
#define TEST_MODEL_WALK_H

#include <stdio.h>

#include "model.h"

struct walks {
    uint64_t walks, events;
    uint64_t fast, slow;       /* fences given after one round and after two */
    uint64_t forgot, returned; /* nodes that forgot, and that were brought back */
    uint64_t started;          /* nodes that came into use at a first start */
    bool violated;
    uint64_t seed; /* of the walk that violated: walk_all(broken, seed, 1, trace) repeats it */
};

/* Walks from seed, seed + 1, …, and stops at a violation. `broken`: rules switched off. The events
 * of each walk are written to `trace`, unless NULL. */
struct walks walk_all(uint32_t broken, uint64_t seed, uint64_t count, FILE *trace);

#endif
