/* SPDX-License-Identifier: MIT
 * The table of models: those that must hold, and those with a broken rule, in which a search must
 * find a violation. A violation is a broken order of the fencing tokens. Names are those of
 * model.h: p, f, F and q. */
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
    const char *name;                       /* on the command line of the program */
    const char *what;                       /* one line for --list */
    uint32_t broken;                        /* set of BROKEN_* and VARIANT_* */
    uint8_t expected;                       /* enum expected */
    uint8_t attempts;                       /* number of attempts */
    uint8_t nodes;                          /* number of nodes; 0: 3 */
    uint8_t initial[3];                     /* F of the first three nodes at the beginning */
    uint8_t forgets, readmitters, starters; /* as in struct model, like all fields below */
    uint8_t proposals;                      /* 0: 3 */
    bool p_is_time, apart, heals, residencies, library;
    bool unreduced; /* the opposite of `reduced` */
    bool is_long;   /* not part of ./dev test */
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
