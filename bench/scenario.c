/* SPDX-License-Identifier: MIT
 * Runs a scenario of any kind and counts the keys that it has left on the servers. */
#include "scenario.h"

#include "renewals.h"
#include "scenario_parts.h"
#include "server_limits.h"
#include "usage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LEFTOVER_MS    2000  /* for late undos to delete keys after a run */
#define LIMIT_REQUESTS 20000 /* requests of redis-benchmark for each command */

/* Adds a figure to the result, unless there are FIGURES_MAX. */
void scenario_figure(struct scenario_result *result, const char *name, double value)
{
    if (result->figures_count < FIGURES_MAX)
        result->figures[result->figures_count++] = (struct figure){name, value};
}

/* Runs SCENARIO_RENEWALS. The locks are held for two thirds of their TTL, so each one is extended
 * twice, whatever the TTL. */
static int run_renewals(const struct scenario *scenario, struct scenario_settings *settings,
                        struct scenario_result *result, char *error, size_t error_size)
{
    char prefix[64];
    struct renewals renewals;
    snprintf(prefix, sizeof prefix, "%slibrary:", settings->prefix);
    unsigned locks = scenario->resources;
    if (settings->pairs != 0 && settings->pairs < locks)
        locks = (unsigned)settings->pairs;
    const struct client_settings client = {
        .servers = servers_measured(&settings->servers),
        .prefix = prefix,
        .depth = scenario->depth,
        .resources = locks,
        .ttl_ms = settings->ttl_ms,
        .wait_ms = UNCONTENDED_MS,
        .node_timeout_ms = settings->node_timeout_ms,
        .verbose = settings->verbose,
    };
    result->name_a = "renewal";
    if (renewals_run(&client, &settings->servers, settings->ttl_ms * 2 / 3, &result->a, &renewals,
                     error, error_size) != 0)
        return -1;
    scenario_figure(result, "locks", (double)locks);
    scenario_figure(result, "acquired_per_s", (double)renewals.fill_per_s);
    scenario_figure(result, "commands_per_renewal", renewals.commands_per_renewal);
    scenario_figure(result, "failed_rounds", (double)renewals.failed_rounds);
    scenario_figure(result, "lost", (double)renewals.lost);
    scenario_figure(result, "timeouts", (double)renewals.timeouts);
    scenario_figure(result, "reconnects", (double)renewals.reconnects);
    scenario_figure(result, "least_left_ms", (double)renewals.least_left_ms);
    result->a.failed += renewals.lost;
    return 0;
}

/* Runs SCENARIO_LIMITS. */
static int run_limits(const struct scenario *scenario, const struct scenario_settings *settings,
                      struct scenario_result *result, char *error, size_t error_size)
{
    struct server_limits limits;
    uint64_t pairs = settings->pairs != 0 ? settings->pairs : scenario->pairs;
    result->name_a = "PING";
    usage_add(&result->a, -1);
    int failed = ping_run(&settings->servers, pairs, settings->budget_ms * UINT64_C(1000000) / 2,
                          &result->a, error, error_size);
    usage_add(&result->a, 1);
    if (failed != 0 || scenario->ping_only)
        return failed;
    int status = server_limits_run(&settings->servers, settings->prefix,
                                   settings->pairs != 0 ? settings->pairs : LIMIT_REQUESTS, &limits,
                                   error, error_size);
    if (status > 0)
        fputs("redlock-bench: the limit of the servers is left out: no redis-benchmark in PATH\n",
              stderr);
    if (status != 0)
        return status > 0 ? 0 : -1;
    scenario_figure(result, "set_per_s", limits.set_per_s);
    scenario_figure(result, "release_per_s", limits.release_per_s);
    scenario_figure(result, SCENARIO_SERVERS_LIMIT,
                    1.0 / (1.0 / limits.set_per_s + 1.0 / limits.release_per_s));
    return 0;
}

/* Counts the keys that are left. The library may still delete keys after a release has returned, so
 * this waits up to LEFTOVER_MS for them. -1: a server does not reply. */
static long leftover_keys(const struct scenario_settings *settings)
{
    uint64_t start_ns = result_now_ns();
    long count;
    do {
        count = servers_count_keys(&settings->servers, settings->prefix);
    } while (count > 0 && result_now_ns() - start_ns < LEFTOVER_MS * UINT64_C(1000000) &&
             usleep(10000) == 0);
    return count;
}

/* Runs a scenario of any kind and counts the keys that it has left. Returns 0, or -1 and a text in
 * `error`. */
int scenario_run(const struct scenario *scenario, struct scenario_settings *settings,
                 struct scenario_result *ret_result, char *error, size_t error_size)
{
    int failed;
    memset(ret_result, 0, sizeof *ret_result);
    ret_result->scenario = scenario;
    error[0] = '\0';
    if (scenario->kind == SCENARIO_OPEN || scenario->kind == SCENARIO_FAULT)
        failed = scenario_run_paced(scenario, settings, ret_result, error, error_size);
    else if (scenario->kind == SCENARIO_LIMITS)
        failed = run_limits(scenario, settings, ret_result, error, error_size);
    else if (scenario->kind == SCENARIO_RENEWALS)
        failed = run_renewals(scenario, settings, ret_result, error, error_size);
    else
        failed = scenario_run_sides(scenario, settings, ret_result, error, error_size);
    if (failed == 0)
        ret_result->leftover_keys = leftover_keys(settings);
    return failed;
}

/* Frees the timeline of the result. */
void scenario_clear(struct scenario_result *result)
{
    free(result->timeline);
    result->timeline = NULL;
}

/* Returns true without violations, if at most one pair in a hundred failed. */
static bool side_passed(const struct result *result)
{
    return result->violations == 0 && result->failed * 100 <= result->pairs;
}

/* Returns true without violations and leftover keys, if at most one pair in a hundred failed on
 * each side. */
bool scenario_passed(const struct scenario_result *result)
{
    return result->leftover_keys == 0 && side_passed(&result->a) && side_passed(&result->b);
}
