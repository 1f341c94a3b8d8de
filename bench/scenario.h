/* SPDX-License-Identifier: MIT
 * What is measured: a list of scenarios, most of which compare two sides. */
#ifndef BENCH_SCENARIO_H
#define BENCH_SCENARIO_H

#include "fault.h"
#include "result.h"
#include "servers.h"
#include "timeline.h"

#include <stdbool.h>

enum scenario_kind {
    SCENARIO_EMBEDDED = 1,  /* library in a poll loop against the baseline */
    SCENARIO_THREADED = 2,  /* library with blocked threads against the baseline */
    SCENARIO_CONTENDED = 3, /* blocked threads that share resources; no baseline */
    SCENARIO_STOPPED = 4,   /* library with two of the servers stopped against itself */
    SCENARIO_VARIANT = 5,   /* another kind of lock against plain ones */
    SCENARIO_OPEN = 6,      /* operations at set times */
    SCENARIO_FAULT = 7,     /* the same, and something happens to servers */
    SCENARIO_RENEWALS = 8,  /* locks that are held */
    SCENARIO_LIMITS = 9     /* what others are measured by; no locks */
};

struct scenario {
    const char *name;
    enum scenario_kind kind;
    unsigned depth;
    unsigned resources;
    uint64_t pairs; /* by default */
    const char *summary;
    bool extra;     /* not part of the default run */
    bool ping_only; /* LIMITS: without the servers' */
    /* Variants: how they differ from plain locks. */
    const char *variant;
    bool fenced, separate; /* separate: blocked clients, as if they were processes */
    unsigned permits, also;
    unsigned plain_resources; /* of the other side; 0: as many */
    /* Faults. */
    enum fault_kind fault;
    unsigned nodes;
    bool against_closed; /* the other side is a closed loop with the same fault */
};

/* scenario_list.c */
extern const struct scenario scenarios[];
extern const size_t scenarios_count;
const struct scenario *scenario_find(const char *name, size_t len);
/* Does it stop or kill servers, so that a sandbox is needed? */
bool scenario_needs_processes(const struct scenario *scenario);

enum scenario_sides { SCENARIO_BOTH = 0, SCENARIO_LIBRARY = 1, SCENARIO_BASELINE = 2 };

struct scenario_settings {
    struct servers servers;
    const char *prefix; /* of all resources; tells leftover keys from other ones */
    uint64_t ttl_ms;
    uint32_t node_timeout_ms; /* 0: measured */
    bool verbose;             /* show what the library logs */
    uint64_t pairs;           /* 0: the scenario's default */
    uint64_t warm;            /* pairs before, not counted; UINT64_MAX: the default */
    uint64_t budget_ms;       /* of one scenario; 0: until all pairs are done */
    uint64_t rate_per_s;      /* of open loops; 0: the scenario's default */
    uint64_t seed;            /* goes on from run to run */
    enum scenario_sides sides;
};

#define FIGURES_MAX 12

/* What only one scenario has to say; the name ends in the unit. */
struct figure {
    const char *name;
    double value;
};

/* The figure of "limits" that others are compared with. */
#define SCENARIO_SERVERS_LIMIT "servers_pairs_per_s"

struct scenario_result {
    const struct scenario *scenario;
    unsigned run;
    const char *name_a, *name_b; /* NULL: this side was not run */
    struct result a, b;
    long leftover_keys; /* -1: could not be counted */
    size_t figures_count;
    struct figure figures[FIGURES_MAX];
    struct timeline *timeline; /* of the first side; NULL: there is none */
};

/* 0, or -1 and a text in `error`. scenario_clear() afterwards in both cases. */
int scenario_run(const struct scenario *scenario, struct scenario_settings *settings,
                 struct scenario_result *ret_result, char *error, size_t error_size);
void scenario_clear(struct scenario_result *result);

/* No violation, no leftover key, and at most one in a hundred attempts failed. */
bool scenario_passed(const struct scenario_result *result);

#endif
