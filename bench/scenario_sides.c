/* SPDX-License-Identifier: MIT
 * Runs a scenario that compares closed loops: opens both sides, runs their slices in turn, closes
 * them. */
#include "baseline.h"
#include "client.h"
#include "scenario_parts.h"
#include "side.h"

#include <stdio.h>
#include <string.h>

#define SLICES         20  /* for each side */
#define SLICES_STOPPED 6   /* of SCENARIO_STOPPED, whose slices wait for votes to count again */
#define STOPPED        2   /* servers that SCENARIO_STOPPED stops */
#define WARM_MIN       200 /* least pairs of the warm-up */

/* What a scenario has opened. close_stage() closes it. NULL: not opened. */
struct stage {
    struct scenario_settings *settings;
    struct embedded *embedded;       /* first side, in embedded mode */
    struct threaded *threaded;       /* first side, in threaded mode */
    struct embedded *plain_embedded; /* SCENARIO_VARIANT: side with plain locks */
    struct threaded *plain_threaded; /* the same, in threaded mode */
    struct baseline *baseline;       /* second side: the baseline */
    char fence_key[96];              /* of the fence records */
};

/* Runs a slice of the baseline. All functions below are those of struct side; `state` is the stage
 * or what it has opened. */
static int run_baseline(void *state, uint64_t pairs, struct result *result)
{
    return baseline_run(state, pairs, result);
}

/* Runs a slice and adds the processor time of the servers. The requests for that time are not
 * measured. */
static int run_priced(struct stage *stage, int (*run)(void *, uint64_t, struct result *),
                      void *state, uint64_t pairs, struct result *result)
{
    uint64_t before_us = servers_cpu_us(&stage->settings->servers);
    int status = run(state, pairs, result);
    uint64_t after_us = servers_cpu_us(&stage->settings->servers);
    if (before_us != 0 && after_us > before_us)
        result->servers_us += after_us - before_us;
    return status;
}

/* Runs a slice of SCENARIO_VARIANT's first side. */
static int run_variant(void *state, uint64_t pairs, struct result *result)
{
    struct stage *stage = state;
    if (stage->embedded != NULL)
        return run_priced(stage, embedded_run, stage->embedded, pairs, result);
    return run_priced(stage, threaded_run, stage->threaded, pairs, result);
}

/* Runs a slice of SCENARIO_VARIANT's second side, with plain locks. */
static int run_plain(void *state, uint64_t pairs, struct result *result)
{
    struct stage *stage = state;
    if (stage->plain_embedded != NULL)
        return run_priced(stage, embedded_run, stage->plain_embedded, pairs, result);
    return run_priced(stage, threaded_run, stage->plain_threaded, pairs, result);
}

/* Finishes the work of the first side after a slice; see embedded_settle(). */
static int settle_variant(void *state)
{
    struct stage *stage = state;
    return stage->embedded != NULL ? embedded_settle(stage->embedded) : 0;
}

/* Finishes the work of the second side after a slice. */
static int settle_plain(void *state)
{
    struct stage *stage = state;
    return stage->plain_embedded != NULL ? embedded_settle(stage->plain_embedded) : 0;
}

/* Continues the stopped servers after a slice, and waits until their votes count again. */
static int continue_servers(void *state)
{
    struct stage *stage = state;
    servers_stop(&stage->settings->servers, STOPPED, false);
    return embedded_wait_votes(stage->embedded);
}

/* Stops servers before a slice of SCENARIO_STOPPED. */
static int stop_servers(void *state)
{
    struct stage *stage = state;
    servers_stop(&stage->settings->servers, STOPPED, true);
    return 0;
}

/* Runs a slice of either side of SCENARIO_STOPPED: both use the same client. */
static int run_staged(void *state, uint64_t pairs, struct result *result)
{
    struct stage *stage = state;
    return embedded_run(stage->embedded, pairs, result);
}

/* Finishes the work of either side of SCENARIO_STOPPED after a slice. */
static int settle_staged(void *state)
{
    struct stage *stage = state;
    return embedded_settle(stage->embedded);
}

/* Checks that SCENARIO_STOPPED can run. Returns 0, or -1 and a text in `error`. */
static int prepare_stopped(struct scenario_settings *settings, char *error, size_t error_size)
{
    if (settings->servers.count < 2 * STOPPED + 1) {
        snprintf(error, error_size, "'stopped' needs at least %d servers", 2 * STOPPED + 1);
        return -1;
    }
    return servers_find_pids(&settings->servers, error, error_size);
}

/* Opens one side, in the mode that the settings require. Returns false and a text in `error` on
 * failure. */
static bool open_one(const struct client_settings *client, struct embedded **ret_embedded,
                     struct threaded **ret_threaded, char *error, size_t error_size)
{
    if (client->separate)
        return (*ret_threaded = threaded_open(client, error, error_size)) != NULL;
    return (*ret_embedded = embedded_open(client, error, error_size)) != NULL;
}

/* Opens the sides of SCENARIO_VARIANT that are to run. `client` are the settings of the plain side.
 * Returns 0, or -1 and a text in `error`. */
static int open_variant(struct stage *stage, const struct scenario *scenario,
                        struct client_settings *client, char *error, size_t error_size)
{
    enum scenario_sides sides = stage->settings->sides;
    struct client_settings variant = *client;
    variant.fence_key = scenario->fenced ? stage->fence_key : NULL;
    variant.permits = scenario->permits;
    variant.also = scenario->also;
    if (scenario->tls) {
        if (stage->settings->servers.tls_text[0] == '\0') {
            snprintf(error, error_size, SCENARIO_NO_TLS);
            return -1;
        }
        variant.servers = stage->settings->servers.tls_text;
        client->servers = stage->settings->servers.text;
    }
    if (scenario->plain_resources != 0)
        client->resources = scenario->plain_resources;
    if (sides != SCENARIO_BASELINE &&
        !open_one(&variant, &stage->embedded, &stage->threaded, error, error_size))
        return -1;
    if (sides != SCENARIO_LIBRARY &&
        !open_one(client, &stage->plain_embedded, &stage->plain_threaded, error, error_size))
        return -1;
    return 0;
}

/* Opens the sides of a scenario. Returns 0, or -1 and a text in `error`; close_stage() must follow
 * in both cases. */
static int open_stage(struct stage *stage, const struct scenario *scenario, char *error,
                      size_t error_size)
{
    struct scenario_settings *settings = stage->settings;
    char library_prefix[64], baseline_prefix[64];
    snprintf(library_prefix, sizeof library_prefix, "%slibrary:", settings->prefix);
    snprintf(baseline_prefix, sizeof baseline_prefix, "%sbaseline:", settings->prefix);
    struct client_settings client = {
        .servers = servers_measured(&settings->servers),
        .prefix = library_prefix,
        .depth = scenario->depth,
        .resources = scenario->resources,
        .ttl_ms = settings->ttl_ms,
        .node_timeout_ms = settings->node_timeout_ms,
        .verbose = settings->verbose,
        .wait_ms = scenario->resources < scenario->depth ? CONTENDED_MS : UNCONTENDED_MS,
        .separate = scenario->separate,
    };
    snprintf(stage->fence_key, sizeof stage->fence_key, "%sfence", settings->prefix);
    if (scenario->kind == SCENARIO_VARIANT)
        return open_variant(stage, scenario, &client, error, error_size);
    bool has_baseline = scenario->kind == SCENARIO_EMBEDDED || scenario->kind == SCENARIO_THREADED;
    bool blocking = scenario->kind == SCENARIO_THREADED || scenario->kind == SCENARIO_CONTENDED;
    if (scenario->kind == SCENARIO_STOPPED && prepare_stopped(settings, error, error_size) != 0)
        return -1;
    if (has_baseline && settings->sides != SCENARIO_LIBRARY) {
        stage->baseline = baseline_open(&settings->servers, scenario->depth, baseline_prefix,
                                        settings->ttl_ms, error, error_size);
        if (stage->baseline == NULL)
            return -1;
    }
    if (settings->sides == SCENARIO_BASELINE)
        return 0;
    if (blocking)
        stage->threaded = threaded_open(&client, error, error_size);
    else
        stage->embedded = embedded_open(&client, error, error_size);
    return stage->threaded == NULL && stage->embedded == NULL ? -1 : 0;
}

/* Closes everything that the stage has opened. */
static void close_stage(struct stage *stage)
{
    baseline_close(stage->baseline);
    if (stage->embedded != NULL)
        embedded_close(stage->embedded);
    if (stage->plain_embedded != NULL)
        embedded_close(stage->plain_embedded);
    if (stage->threaded != NULL)
        threaded_close(stage->threaded);
    if (stage->plain_threaded != NULL)
        threaded_close(stage->plain_threaded);
}

/* Returns the number of pairs that each side runs before the measurement. */
static uint64_t warm_pairs(const struct scenario_settings *settings,
                           const struct scenario *scenario)
{
    uint64_t warm = UINT64_C(20) * scenario->depth;
    if (settings->warm != UINT64_MAX)
        return settings->warm;
    return warm < WARM_MIN ? WARM_MIN : warm;
}

/* Runs both sides and stores their results and names. A side that runs alone is the first one.
 * Returns 0 or -1. */
static int compare(struct stage *stage, const struct scenario *scenario,
                   struct scenario_result *result)
{
    struct scenario_settings *settings = stage->settings;
    struct side a = {.name = "library"}, b = {.name = NULL};
    bool stopped = scenario->kind == SCENARIO_STOPPED;
    const struct comparison comparison = {
        .pairs = settings->pairs != 0 ? settings->pairs : scenario->pairs,
        .slices = stopped ? SLICES_STOPPED : SLICES,
        .depth = scenario->depth,
        .warm = warm_pairs(settings, scenario),
        .budget_ns = settings->budget_ms * UINT64_C(1000000),
    };
    if (scenario->kind == SCENARIO_VARIANT) {
        if (settings->sides != SCENARIO_BASELINE)
            a = (struct side){scenario->variant, stage, run_variant, NULL, settle_variant};
        if (settings->sides != SCENARIO_LIBRARY)
            b = (struct side){"plain", stage, run_plain, NULL, settle_plain};
    } else if (stopped) {
        a = (struct side){"2 stopped", stage, run_staged, stop_servers, continue_servers};
        b = (struct side){"healthy", stage, run_staged, NULL, settle_staged};
    } else if (stage->embedded != NULL) {
        a = (struct side){"library", stage->embedded, embedded_run, NULL, embedded_settle};
    } else if (stage->threaded != NULL) {
        a = (struct side){"library", stage->threaded, threaded_run, NULL, NULL};
    }
    if (stage->baseline != NULL)
        b = (struct side){"baseline", stage->baseline, run_baseline, NULL, NULL};
    if (a.run == NULL) {
        a = b;
        b.name = NULL;
    }
    result->name_a = a.name;
    result->name_b = b.name;
    int failed = side_compare(&comparison, &a, &result->a, b.name == NULL ? NULL : &b, &result->b,
                              &settings->seed);
    if (failed == 0 && scenario->tls && b.name != NULL)
        scenario_figure(result, "client_cpu_ratio",
                        result_divide(result_client_us_per_pair(&result->a),
                                      result_client_us_per_pair(&result->b)));
    return failed;
}

/* Opens both sides, compares them, continues stopped servers and closes everything. Returns 0, or
 * -1 and a text in `error`. */
int scenario_run_sides(const struct scenario *scenario, struct scenario_settings *settings,
                       struct scenario_result *result, char *error, size_t error_size)
{
    struct stage stage = {.settings = settings};
    int failed = open_stage(&stage, scenario, error, error_size);
    if (failed == 0 && compare(&stage, scenario, result) != 0) {
        snprintf(error, error_size,
                 "the run could not finish: a server does not reply any more; see redlock nodes");
        failed = -1;
    }
    if (scenario->kind == SCENARIO_STOPPED && settings->servers.list[0].pid != 0)
        servers_stop(&settings->servers, STOPPED, false);
    close_stage(&stage);
    if (scenario->fenced)
        servers_delete(&settings->servers, stage.fence_key);
    return failed;
}
