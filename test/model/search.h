/* SPDX-License-Identifier: MIT
 * Searches all states of a model, the nearest first, until one breaks the order of the fencing
 * tokens or none is left. */
#ifndef TEST_MODEL_SEARCH_H
#define TEST_MODEL_SEARCH_H

#include <stdio.h>

#include "reduce.h"

/* A set of pairs of fencing tokens as an attempt returned: its own, that of another (or none), and
 * whether that one had returned before this one began. A reduced model must reach the same set. */
struct outcomes {
    uint64_t word[8]; /* one bit per pair: 1 bit returned before, 4 bits own, 4 bits other (0) */
};

/* The result of a search. */
struct search {
    uint64_t states; /* number of states */
    uint64_t steps;  /* number of events that were tried */
    uint64_t grants; /* steps that returned a fencing token */
    bool complete;   /* all states were seen */
    bool violated;   /* an event broke the order of the fencing tokens */
    unsigned length; /* number of events up to the violation */
    struct outcomes outcomes;
};

/* Searches until the first violation or until `states_max` states were seen (40 bytes each). Writes
 * the events that led to a violation to `trace`, unless it is NULL. Lack of memory ends the program
 * with a line on stderr and exit status 2. `symmetric`: states that differ only in the names of
 * nodes and attempts count as one. */
struct search search_all(const struct model *model, bool symmetric, uint64_t states_max,
                         FILE *trace);

/* Writes an event in words, and what it changed (words.c). */
void words_action(FILE *out, const struct model *model, const struct model_state *before,
                  const struct model_state *after, struct model_action action);

#endif
