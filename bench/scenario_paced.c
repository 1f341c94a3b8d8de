/* SPDX-License-Identifier: MIT
 * Runs open loops. A fault begins after a quarter of the run and ends after five eighths. */
#include "paced.h"
#include "scenario_parts.h"

#include <stdio.h>
#include <stdlib.h>

#define RATE_OPEN     1000  /* operations per second of SCENARIO_OPEN, by default */
#define RATE_FAULT    500   /* operations per second of SCENARIO_FAULT, by default */
#define TIME_LIMIT_MS 10000 /* longest wait of an acquisition while a majority is stopped */

/* Returns the settings of the client for a scenario. */
static struct client_settings client_of(const struct scenario *scenario,
                                        const struct scenario_settings *settings,
                                        const char *servers, const char *prefix)
{
    return (struct client_settings){
        .servers = servers,
        .prefix = prefix,
        .depth = scenario->depth,
        .resources = scenario->resources,
        .ttl_ms = settings->ttl_ms,
        .wait_ms = TIME_LIMIT_MS,
        .node_timeout_ms = settings->node_timeout_ms,
        .verbose = settings->verbose,
    };
}

/* Returns the plan of a scenario. With a number of pairs it ends after these, otherwise after the
 * time limit. */
static struct paced_plan plan_of(const struct scenario *scenario,
                                 const struct scenario_settings *settings)
{
    struct paced_plan plan = {.rate_per_s = settings->rate_per_s, .count_max = settings->pairs};
    if (plan.rate_per_s == 0)
        plan.rate_per_s = scenario->kind == SCENARIO_OPEN ? RATE_OPEN : RATE_FAULT;
    plan.duration_ns = settings->budget_ms * UINT64_C(1000000);
    if (plan.count_max != 0)
        plan.duration_ns = paced_due_ns(0, plan.rate_per_s, plan.count_max) + 1000000;
    return plan;
}

/* Runs one side with the fault `kind`, which may be FAULT_NONE. The results are those of
 * paced_run(). Returns 0, or -1 and a text in `error`. */
static int run_side(const struct scenario *scenario, struct scenario_settings *settings,
                    enum fault_kind kind, struct paced_plan *plan, struct result *intended,
                    struct result *sent, struct timeline **ret_timeline, char *error,
                    size_t error_size)
{
    char prefix[64];
    const struct fault_plan fault_plan = {.kind = kind,
                                          .nodes = kind == FAULT_NONE ? 0 : scenario->nodes,
                                          .from_ns = plan->duration_ns / 4,
                                          .to_ns = plan->duration_ns * 5 / 8};
    struct fault *fault = fault_open(&settings->servers, &fault_plan, error, error_size);
    if (fault == NULL)
        return -1;
    snprintf(prefix, sizeof prefix, "%slibrary:", settings->prefix);
    struct client_settings client = client_of(scenario, settings, fault_servers(fault), prefix);
    plan->step = fault_step;
    plan->step_state = fault;
    int failed = paced_run(&client, plan, intended, sent, ret_timeline, error, error_size);
    return fault_close(fault, error, error_size) != 0 ? -1 : failed;
}

/* Runs the open loop, and for a fault the second side after it: a closed loop with the same fault,
 * or a healthy run of half the length. Returns 0, or -1 and a text in `error`. */
int scenario_run_paced(const struct scenario *scenario, struct scenario_settings *settings,
                       struct scenario_result *result, char *error, size_t error_size)
{
    struct paced_plan plan = plan_of(scenario, settings);
    bool open = scenario->kind == SCENARIO_OPEN;
    struct timeline *other = NULL;
    result->name_a = open ? "intended" : "fault";
    result->name_b = open ? "sent" : scenario->against_closed ? "closed" : "healthy";
    scenario_figure(result, "rate_per_s", (double)plan.rate_per_s);
    int failed = run_side(scenario, settings, scenario->fault, &plan, &result->a,
                          open ? &result->b : NULL, &result->timeline, error, error_size);
    if (failed != 0 || open)
        return failed;
    if (scenario->against_closed)
        plan.rate_per_s = 0;
    else if (plan.count_max == 0)
        plan.duration_ns /= 2;
    failed = run_side(scenario, settings, scenario->against_closed ? scenario->fault : FAULT_NONE,
                      &plan, &result->b, NULL, &other, error, error_size);
    free(other);
    return failed;
}
