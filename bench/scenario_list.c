/* SPDX-License-Identifier: MIT
 * The list of scenarios. */
#include "scenario.h"

#include <string.h>

/* Embedded mode against the baseline: n locks in flight, `count` pairs by default. */
#define EMBEDDED(n, count)                                                                         \
    {                                                                                              \
        .name = "embedded-" #n, .kind = SCENARIO_EMBEDDED, .depth = n, .resources = n,             \
        .pairs = count, .summary = "poll loop, " #n " pairs in flight"                             \
    }
/* Threaded mode against the baseline: n threads, `count` pairs by default. */
#define THREADED(n, count)                                                                         \
    {                                                                                              \
        .name = "threaded-" #n, .kind = SCENARIO_THREADED, .depth = n, .resources = n,             \
        .pairs = count, .summary = #n " threads with blocking calls"                               \
    }
/* An open loop while `count` servers have the fault `what`, which `word` names. */
#define FAULT(word, what, count)                                                                   \
    {                                                                                              \
        .name = word "-" #count, .kind = SCENARIO_FAULT, .depth = 1024, .resources = 1024,         \
        .summary = "open loop while " #count " of the servers are " word, .fault = what,           \
        .nodes = count                                                                             \
    }

/* All scenarios, in the order of the default run. Fields that an entry does not name are 0. */
const struct scenario scenarios[] = {
    {.name = "limits",
     .kind = SCENARIO_LIMITS,
     .depth = 1,
     .pairs = 10000,
     .summary = "PING to the q-th server; most commands that the servers can execute"},
    EMBEDDED(1, 10000),
    EMBEDDED(8, 30000),
    EMBEDDED(64, 60000),
    EMBEDDED(256, 120000),
    THREADED(1, 10000),
    THREADED(8, 20000),
    THREADED(64, 40000),
    THREADED(256, 40000),
    {.name = "contended",
     .kind = SCENARIO_CONTENDED,
     .depth = 16,
     .resources = 4,
     .pairs = 1000,
     .summary = "16 blocked callers contend for 4 locks; no baseline"},
    {.name = "fenced-1",
     .kind = SCENARIO_VARIANT,
     .depth = 1,
     .resources = 1,
     .pairs = 10000,
     .summary = "poll loop, with fencing tokens against without",
     .variant = "fenced",
     .fenced = true},
    {.name = "fenced-64",
     .kind = SCENARIO_VARIANT,
     .depth = 64,
     .resources = 64,
     .pairs = 40000,
     .summary = "the same, 64 pairs in flight",
     .variant = "fenced",
     .fenced = true},
    {.name = "fenced-contended",
     .kind = SCENARIO_VARIANT,
     .depth = 32,
     .resources = 1,
     .pairs = 1280,
     .summary = "the same, 32 clients contend for 1 lock",
     .variant = "fenced",
     .fenced = true,
     .separate = true},
    {.name = "many-names",
     .kind = SCENARIO_VARIANT,
     .depth = 64,
     .resources = 102400,
     .pairs = 60000,
     .summary = "64 pairs in flight, another name each time, against 64 names",
     .variant = "many",
     .plain_resources = 64},
    {.name = "permits",
     .kind = SCENARIO_VARIANT,
     .depth = 64,
     .resources = 16,
     .pairs = 40000,
     .summary = "64 pairs in flight, 16 semaphores with 8 permits, against 64 locks",
     .variant = "permits",
     .permits = 8,
     .plain_resources = 64},
    {.name = "permits-contended",
     .kind = SCENARIO_VARIANT,
     .depth = 16,
     .resources = 1,
     .pairs = 1000,
     .summary = "16 clients contend for 4 permits, against 4 locks",
     .variant = "permits",
     .permits = 4,
     .plain_resources = 4,
     .separate = true},
    {.name = "multi-key",
     .kind = SCENARIO_VARIANT,
     .depth = 64,
     .resources = 64,
     .pairs = 20000,
     .summary = "64 pairs in flight, 8 resources at once, against 1",
     .variant = "8 at once",
     .also = 7},
    {.name = "tls-1",
     .kind = SCENARIO_VARIANT,
     .depth = 1,
     .resources = 1,
     .pairs = 10000,
     .summary = "poll loop, with TLS against without",
     .variant = "tls",
     .tls = true},
    {.name = "tls-64",
     .kind = SCENARIO_VARIANT,
     .depth = 64,
     .resources = 64,
     .pairs = 40000,
     .summary = "the same, 64 pairs in flight",
     .variant = "tls",
     .tls = true},
    {.name = "stopped",
     .kind = SCENARIO_STOPPED,
     .depth = 1,
     .resources = 1,
     .pairs = 3000,
     .summary = "2 servers stopped, against all running"},
    {.name = "open",
     .kind = SCENARIO_OPEN,
     .depth = 1024,
     .resources = 1024,
     .summary = "open loop at --rate; times from the intended start, and from the call"},
    {.name = "stalled",
     .kind = SCENARIO_FAULT,
     .depth = 1024,
     .resources = 1024,
     .summary = "open loop while 3 servers are stopped, against a closed loop",
     .fault = FAULT_STOPPED,
     .nodes = 3,
     .against_closed = true},
    FAULT("stopped", FAULT_STOPPED, 1),
    FAULT("stopped", FAULT_STOPPED, 2),
    FAULT("killed", FAULT_KILLED, 1),
    FAULT("killed", FAULT_KILLED, 2),
    FAULT("restarted", FAULT_RESTARTED, 1),
    FAULT("restarted", FAULT_RESTARTED, 2),
    FAULT("slow", FAULT_SLOW, 1),
    FAULT("slow", FAULT_SLOW, 2),
    {.name = "renewals",
     .kind = SCENARIO_RENEWALS,
     .depth = 256,
     .resources = 10000,
     .summary = "10000 locks are held and extended"},
    {.name = "ping",
     .kind = SCENARIO_LIMITS,
     .depth = 1,
     .pairs = 10000,
     .summary = "PING to the q-th server only (not in the default run)",
     .extra = true,
     .ping_only = true},
};
const size_t scenarios_count = sizeof scenarios / sizeof scenarios[0];

/* Returns the scenario whose name is the `len` characters at `name`, or NULL. */
const struct scenario *scenario_find(const char *name, size_t len)
{
    for (size_t i = 0; i < scenarios_count; i++) {
        if (strlen(scenarios[i].name) == len && memcmp(scenarios[i].name, name, len) == 0)
            return &scenarios[i];
    }
    return NULL;
}

/* Returns true if the scenario sends signals to servers. */
bool scenario_needs_processes(const struct scenario *scenario)
{
    return scenario->kind == SCENARIO_STOPPED ||
           (scenario->kind == SCENARIO_FAULT && fault_needs_processes(scenario->fault));
}
