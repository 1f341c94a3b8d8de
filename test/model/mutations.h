/* SPDX-License-Identifier: MIT
 * The table of models of the fencing algorithm: those that must hold, and those with a broken rule,
 * in which a search must find a violation. A violation is a broken order of the fencing tokens.
 * Each attempt proposes a number p to the nodes; each node keeps the largest number that it has
 * seen in its register F. model.h explains the algorithm and the sizes of a model. */
#ifndef TEST_MODEL_MUTATIONS_H
#define TEST_MODEL_MUTATIONS_H

#include "search.h"

/* The expected result of a row. */
enum expected {
    EXPECT_HOLDS, /* no violation in any state */
    EXPECT_FOUND, /* the rule is needed: without it the order of the fencing tokens breaks */
};

/* One model of the table: its size, the broken rules, and the expected result. */
struct row {
    const char *name;    /* on the command line of the program */
    const char *what;    /* one line for --list */
    uint32_t broken;     /* the rules that are switched off: set of BROKEN_* and VARIANT_* */
    uint8_t expected;    /* enum expected */
    uint8_t attempts;    /* number of attempts to acquire the lock */
    uint8_t nodes;       /* number of nodes; 0: 3 */
    uint8_t initial[3];  /* register F of each of the first three nodes at the beginning */
    uint8_t forgets;     /* how often nodes may lose their fence record, all nodes together */
    uint8_t readmitters; /* number of clients that take such nodes into use again */
    uint8_t starters;  /* number of clients that take all nodes into use for the first time; 0: the
                        * nodes are in use at the beginning */
    uint8_t proposals; /* largest number that an attempt may propose; 0: 3 */
    bool p_is_time;    /* proposals follow a clock on which all clients agree, instead of being any
                        * number */
    bool apart;        /* tokens of attempts that overlapped in time are not compared */
    bool heals;        /* a holder sets its key again on a node that has lost it */
    bool residencies;  /* tokens are also compared with the order in which keys were held on each
                        * node */
    bool library;      /* clients decide with the library's own code, instead of the model's */
    bool unreduced;    /* searches all states; otherwise states with the same outcomes count once */
    bool is_long;      /* takes long, so it is not part of ./dev test */
};

/* The limit of a search: with more states the result is not complete. They take 2 GB of memory. */
#define ROWS_STATES_MAX 50000000

extern const struct row ROWS[];
extern const unsigned ROWS_COUNT;

/* Returns the row of that name, or NULL. */
const struct row *row_find(const char *name);
/* Returns the model that the row describes, with the defaults for 0. */
struct model row_model(const struct row *row);
/* Returns whether the result of a search of the row's model is the expected one. */
bool row_is_as_expected(const struct row *row, const struct search *found);

#endif
