/* SPDX-License-Identifier: MIT
 * What is measured: a list of scenarios, each of which compares two sides. */
#ifndef BENCH_SCENARIO_H
#define BENCH_SCENARIO_H

#include "result.h"
#include "servers.h"

#include <stdbool.h>

enum scenario_kind {
    SCENARIO_EMBEDDED = 1,        /* library in a poll loop against the floor */
    SCENARIO_THREADED = 2,        /* library with blocked threads against the floor */
    SCENARIO_CONTENDED = 3,       /* blocked threads that share resources; no floor */
    SCENARIO_STOPPED = 4,         /* library with two of the servers stopped against itself */
    SCENARIO_FENCED = 5,          /* library in a poll loop, with fences against without */
    SCENARIO_FENCED_CONTENDED = 6 /* blocked clients that share resources, the same */
};

struct scenario {
    const char *name;
    enum scenario_kind kind;
    unsigned depth;
    unsigned resources;
    uint64_t pairs; /* by default */
    const char *summary;
};

extern const struct scenario scenarios[];
extern const size_t scenarios_count;
const struct scenario *scenario_find(const char *name, size_t len);

enum scenario_sides { SCENARIO_BOTH = 0, SCENARIO_LIBRARY = 1, SCENARIO_FLOOR = 2 };

struct scenario_settings {
    struct servers servers;
    const char *prefix; /* of all resources; tells leftover keys from other ones */
    uint64_t ttl_ms;
    uint32_t node_timeout_ms; /* 0: measured */
    bool verbose;             /* show what the library logs */
    uint64_t pairs;           /* 0: the scenario's default */
    uint64_t warm;            /* pairs before, not counted; UINT64_MAX: the default */
    uint64_t budget_ms;       /* of one scenario; 0: until all pairs are done */
    uint64_t seed;            /* goes on from run to run */
    enum scenario_sides sides;
};

struct scenario_result {
    const struct scenario *scenario;
    unsigned run;
    const char *name_a, *name_b; /* NULL: this side was not run */
    struct result a, b;
    long leftover_keys; /* -1: could not be counted */
};

/* 0, or -1 and a text in `error`. */
int scenario_run(const struct scenario *scenario, struct scenario_settings *settings,
                 struct scenario_result *ret_result, char *error, size_t error_size);

/* No violation, no leftover key, and at most one in a hundred attempts failed. */
bool scenario_passed(const struct scenario_result *result);

#endif
