/* SPDX-License-Identifier: MIT
 * All states of a model, the nearest first, until one is found that breaks the order of the fences,
 * or none is left. */
#ifndef TEST_MODEL_SEARCH_H
#define TEST_MODEL_SEARCH_H

#include <stdio.h>

#include "reduce.h"

/* Two fences as an attempt returned: its own, that of another (or none), and whether that one had
 * returned before this one began. What a reduced model may reach must be the same set. */
struct outcomes {
    uint64_t word[8];
};

struct search {
    uint64_t states;
    uint64_t steps;
    uint64_t grants; /* steps that returned a fence */
    bool complete;   /* all states were seen */
    bool violated;
    unsigned length; /* events up to the violation */
    struct outcomes outcomes;
};

/* Stops at the first violation and after states_max states (40 bytes each). The events that led to
 * a violation are written to `trace`, unless NULL. Runs out of memory with a line on stderr and
 * exit(2): this is a program for tests. */
struct search search_all(const struct model *model, bool symmetric, uint64_t states_max,
                         FILE *trace);

/* words.c: an event in words, and what it changed. */
void words_action(FILE *out, const struct model *model, const struct model_state *before,
                  const struct model_state *after, struct model_action action);

#endif
