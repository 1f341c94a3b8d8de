/* SPDX-License-Identifier: MIT
 * Random walks through models with too many states for a search. Every message under way is part of
 * the state. The seed of each walk decides the number of nodes, attempts and resources, and how
 * often records are lost, keys are healed, and keys vanish. */
#ifndef TEST_MODEL_WALK_H
#define TEST_MODEL_WALK_H

#include <stdio.h>

#include "model.h"

/* Sums over walks. */
struct walks {
    uint64_t walks, events;    /* number of walks, and of events in them */
    uint64_t fast, slow;       /* fencing tokens returned after one round and after two */
    uint64_t forgot, returned; /* nodes that lost their record, and nodes that were readmitted */
    uint64_t started;          /* nodes that came into use at a first start */
    bool violated;             /* the last walk broke the order of the fencing tokens */
    uint64_t seed; /* of the walk with the violation: walk_all(broken, seed, 1, trace) repeats it */
};

/* Walks `count` times, with seed, seed + 1, …, and stops at a violation. `broken`: rules that are
 * switched off. Writes the events of each walk to `trace`, unless it is NULL. */
struct walks walk_all(uint32_t broken, uint64_t seed, uint64_t count, FILE *trace);

#endif
