/* SPDX-License-Identifier: MIT
 * The models that must hold, and the broken ones in which a violation must be found. */
#ifndef TEST_MODEL_MUTATIONS_H
#define TEST_MODEL_MUTATIONS_H

#include "search.h"

/* The expected result of a row. */
enum expected {
    EXPECT_HOLDS,
    EXPECT_FOUND, /* the rule is needed: without it the order of the fencing tokens breaks */
};

/* One model of the table: its size, the broken rules, and the expected result. */
struct row {
    const char *name; /* for the command line and output */
    const char *what; /* what is special about the model, for people */
    uint32_t broken;
    uint8_t expected; /* an enum expected */
    uint8_t attempts;
    uint8_t nodes; /* 0: 3 */
    uint8_t initial[3];
    uint8_t forgets, readmitters, starters;
    uint8_t proposals; /* 0: 3 */
    bool p_is_time, apart, heals, residencies;
    bool library;   /* see struct model, like the fields above */
    bool unreduced; /* search without the reductions */
    bool is_long;   /* not part of ./dev test */
};

/* A search with more states has failed: they take 2 GB of memory. */
#define ROWS_STATES_MAX 50000000

/* The table of all models. */
extern const struct row ROWS[];
extern const unsigned ROWS_COUNT; /* number of rows */

/* Returns the row of that name, or NULL. */
const struct row *row_find(const char *name);
/* Returns the model of a row, with the defaults for fields that are 0. */
struct model row_model(const struct row *row);
/* Returns true if the result of a search is the one that the row expects. */
bool row_is_as_expected(const struct row *row, const struct search *found);

#endif
