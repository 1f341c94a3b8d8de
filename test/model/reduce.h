/* SPDX-License-Identifier: MIT
 * Reduces the number of states with the same outcomes, and packs a state into two words. */
#ifndef TEST_MODEL_REDUCE_H
#define TEST_MODEL_REDUCE_H

#include "model.h"

/* A state in 128 bits, the highest word first. */
struct packed {
    uint64_t word[2];
};

/* Removes from a state of a reduced model what can no longer matter. */
void reduce_state(const struct model *model, struct model_state *state);

/* Returns false if a state of this model does not fit. */
bool pack_fits(const struct model *model);

/* Packs and unpacks a state. With `symmetric`, states that differ only in the names of nodes and of
 * attempts become one. */
struct packed pack_state(const struct model *model, const struct model_state *state,
                         bool symmetric);
void unpack_state(const struct model *model, struct packed packed, struct model_state *state);

#endif
