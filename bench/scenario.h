/* SPDX-License-Identifier: MIT
 * Scenarios: the measurements of redlock-bench. Most of them compare two sides. */
#ifndef BENCH_SCENARIO_H
#define BENCH_SCENARIO_H

#include "fault.h"
#include "result.h"
#include "servers.h"
#include "timeline.h"

#include <stdbool.h>

/* The kinds of scenarios. */
enum scenario_kind {
    SCENARIO_EMBEDDED = 1,  /* the library in a poll loop against the baseline */
    SCENARIO_THREADED = 2,  /* the library with blocked threads against the baseline */
    SCENARIO_CONTENDED = 3, /* blocked threads that contend for resources; one side */
    SCENARIO_STOPPED = 4,   /* the library with two servers stopped against all running */
    SCENARIO_VARIANT = 5,   /* another kind of lock against plain locks */
    SCENARIO_OPEN = 6,      /* an open loop */
    SCENARIO_FAULT = 7,     /* an open loop while servers have a fault */
    SCENARIO_RENEWALS = 8,  /* locks that are held */
    SCENARIO_LIMITS = 9     /* the limits with which other scenarios are compared; no locks */
};

/* One entry of the list of scenarios, which is constant. */
struct scenario {
    const char *name;
    enum scenario_kind kind;
    unsigned depth;      /* operations in flight, or blocked callers */
    unsigned resources;  /* number of locks or semaphores */
    uint64_t pairs;      /* pairs for each side, by default; 0: by time */
    const char *summary; /* for the help */
    bool extra;          /* not in the default run */
    bool ping_only;      /* SCENARIO_LIMITS: without the limit of the servers */
    /* SCENARIO_VARIANT: how its locks differ from plain ones. */
    const char *variant;      /* name of the side; NULL: not a variant */
    bool fenced;              /* with a fencing token */
    bool tls;                 /* with TLS, and the plain side without */
    bool separate;            /* a client with a blocked thread for each caller */
    unsigned permits;         /* semaphores with this many permits; 0: locks */
    unsigned also;            /* further resources locked together with each */
    unsigned plain_resources; /* resources of the plain side; 0: as many as above */
    /* SCENARIO_FAULT. */
    enum fault_kind fault;
    unsigned nodes;      /* servers with the fault */
    bool against_closed; /* second side: a closed loop with the same fault; false: no fault */
};

/* scenario_list.c */
extern const struct scenario scenarios[];
extern const size_t scenarios_count; /* entries of scenarios[] */
/* Returns the scenario whose name is the `len` characters at `name`, or NULL. */
const struct scenario *scenario_find(const char *name, size_t len);
/* Returns true if the scenario stops or kills servers, which requires a sandbox. */
bool scenario_needs_processes(const struct scenario *scenario);

/* Why a scenario cannot compare TLS with plain connections. */
#define SCENARIO_NO_TLS                                                                            \
    "REDLOCK_TLS_SERVERS has no addresses with TLS of the same servers: run it as\n"               \
    "  redlock sandbox -- python3 bench/with_tls.py redlock-bench"

/* Which sides run. SCENARIO_BASELINE of a variant is the side with plain locks. */
enum scenario_sides { SCENARIO_BOTH = 0, SCENARIO_LIBRARY = 1, SCENARIO_BASELINE = 2 };

/* The same for all scenarios of a run. */
struct scenario_settings {
    struct servers servers;
    const char *prefix; /* of the names of all resources, by which leftover keys are found */
    uint64_t ttl_ms;
    uint32_t node_timeout_ms; /* 0: derived from the round trips */
    bool verbose;             /* print the library's log on stderr */
    uint64_t pairs;           /* for each side; 0: the scenario's default */
    uint64_t warm;            /* pairs before that do not count; UINT64_MAX: the default */
    uint64_t budget_ms;       /* time limit of one scenario; 0: none */
    uint64_t rate_per_s;      /* of open loops; 0: the scenario's default */
    uint64_t seed;            /* of the order of the slices; each scenario advances it */
    enum scenario_sides sides;
};

#define FIGURES_MAX 12 /* figures of one result */

/* A number that only some scenarios have. Its name ends in the unit. The name is not owned. */
struct figure {
    const char *name;
    double value;
};

/* Name of the figure of "limits" with which the rates of other scenarios are compared. */
#define SCENARIO_SERVERS_LIMIT "servers_pairs_per_s"

/* The result of one scenario in one run. scenario_clear() frees what it owns. */
struct scenario_result {
    const struct scenario *scenario;
    unsigned run;                /* repetition, from 1 */
    const char *name_a, *name_b; /* of the sides; name_b NULL: there is only one side */
    struct result a, b;
    long leftover_keys; /* keys with the prefix after the run; -1: could not be counted */
    size_t figures_count;
    struct figure figures[FIGURES_MAX];
    struct timeline *timeline; /* of the first side, owned; NULL: none */
};

/* Runs one scenario. Returns 0, or -1 and a text in `error`. The caller must call scenario_clear()
 * in both cases. */
int scenario_run(const struct scenario *scenario, struct scenario_settings *settings,
                 struct scenario_result *ret_result, char *error, size_t error_size);
/* Frees what the result owns. */
void scenario_clear(struct scenario_result *result);

/* Returns true without violations and leftover keys, if at most one pair in a hundred failed on
 * each side. */
bool scenario_passed(const struct scenario_result *result);

#endif
