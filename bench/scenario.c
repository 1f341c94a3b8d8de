/* SPDX-License-Identifier: MIT
 * Builds the two sides of each scenario, compares them, and looks for what they left behind. */
#include "scenario.h"

#include "client.h"
#include "floor.h"
#include "side.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SLICES         20
#define SLICES_STOPPED 6
#define STOPPED        2
#define CONTENDED_MS   30000
#define HICCUP_MS      1000 /* a busy machine may delay answers: tried again, seen in the tail */
#define LEFTOVER_MS    2000
#define WARM_MIN       200

const struct scenario scenarios[] = {
    {"embedded-1", SCENARIO_EMBEDDED, 1, 1, 10000, "poll loop, 1 in flight"},
    {"embedded-8", SCENARIO_EMBEDDED, 8, 8, 30000, "poll loop, 8 in flight"},
    {"embedded-64", SCENARIO_EMBEDDED, 64, 64, 60000, "poll loop, 64 in flight"},
    {"embedded-256", SCENARIO_EMBEDDED, 256, 256, 120000, "poll loop, 256 in flight"},
    {"threaded-1", SCENARIO_THREADED, 1, 1, 10000, "one blocked caller"},
    {"threaded-8", SCENARIO_THREADED, 8, 8, 20000, "8 blocked callers"},
    {"threaded-64", SCENARIO_THREADED, 64, 64, 40000, "64 blocked callers"},
    {"threaded-256", SCENARIO_THREADED, 256, 256, 40000, "256 blocked callers"},
    {"contended", SCENARIO_CONTENDED, 16, 4, 1000, "16 blocked callers share 4 locks; no floor"},
    {"fenced-1", SCENARIO_FENCED, 1, 1, 10000, "poll loop, with fences against without"},
    {"fenced-64", SCENARIO_FENCED, 64, 64, 40000, "the same, 64 in flight"},
    {"fenced-busy", SCENARIO_FENCED_CONTENDED, 32, 1, 1280, "32 clients want 1 lock, the same"},
    {"stopped", SCENARIO_STOPPED, 1, 1, 3000, "two servers stopped, against all running"},
};
const size_t scenarios_count = sizeof scenarios / sizeof scenarios[0];

const struct scenario *scenario_find(const char *name, size_t len)
{
    for (size_t i = 0; i < scenarios_count; i++) {
        if (strlen(scenarios[i].name) == len && memcmp(scenarios[i].name, name, len) == 0)
            return &scenarios[i];
    }
    return NULL;
}

/* A run being prepared: what has to be closed again, whatever happens. */
struct stage {
    struct scenario_settings *settings;
    struct embedded *embedded, *plain_embedded;
    struct threaded *threaded, *plain_threaded;
    struct floor *floor;
    char fence_key[96];
};

static bool is_fenced(const struct scenario *scenario)
{
    return scenario->kind == SCENARIO_FENCED || scenario->kind == SCENARIO_FENCED_CONTENDED;
}

static int run_floor(void *state, uint64_t pairs, struct result *result)
{
    return floor_run(state, pairs, result);
}

/* The same, and what the servers have worked for it; asking them is not measured. */
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

static int run_fenced(void *state, uint64_t pairs, struct result *result)
{
    struct stage *stage = state;
    if (stage->embedded != NULL)
        return run_priced(stage, embedded_run, stage->embedded, pairs, result);
    return run_priced(stage, threaded_run, stage->threaded, pairs, result);
}

static int run_plain(void *state, uint64_t pairs, struct result *result)
{
    struct stage *stage = state;
    if (stage->plain_embedded != NULL)
        return run_priced(stage, embedded_run, stage->plain_embedded, pairs, result);
    return run_priced(stage, threaded_run, stage->plain_threaded, pairs, result);
}

static int settle_fenced(void *state)
{
    struct stage *stage = state;
    return stage->embedded != NULL ? embedded_settle(stage->embedded) : 0;
}

static int settle_plain(void *state)
{
    struct stage *stage = state;
    return stage->plain_embedded != NULL ? embedded_settle(stage->plain_embedded) : 0;
}

static int continue_servers(void *state)
{
    struct stage *stage = state;
    servers_stop(&stage->settings->servers, STOPPED, false);
    return embedded_wait_votes(stage->embedded);
}

static int stop_servers(void *state)
{
    struct stage *stage = state;
    servers_stop(&stage->settings->servers, STOPPED, true);
    return 0;
}

static int run_staged(void *state, uint64_t pairs, struct result *result)
{
    struct stage *stage = state;
    return embedded_run(stage->embedded, pairs, result);
}

static int settle_staged(void *state)
{
    struct stage *stage = state;
    return embedded_settle(stage->embedded);
}

static int prepare_stopped(struct scenario_settings *settings, char *error, size_t error_size)
{
    const char *directory = getenv("REDLOCK_SANDBOX_DIR");
    if (settings->servers.count < 2 * STOPPED + 1) {
        snprintf(error, error_size, "'stopped' needs at least %d servers", 2 * STOPPED + 1);
        return -1;
    }
    if (directory == NULL || servers_read_pids(&settings->servers, directory) != 0) {
        snprintf(error, error_size,
                 "'stopped' needs the process ids of a sandbox (REDLOCK_SANDBOX_DIR): run it as\n"
                 "  redlock sandbox -- redlock-bench");
        return -1;
    }
    return 0;
}

/* One side with fences and one without, or only one of them. */
static int open_fenced(struct stage *stage, struct client_settings *client, char *error,
                       size_t error_size)
{
    enum scenario_sides sides = stage->settings->sides;
    bool fine = true;
    if (sides != SCENARIO_FLOOR) {
        client->fence_key = stage->fence_key;
        if (client->separate)
            fine = (stage->threaded = threaded_open(client, error, error_size)) != NULL;
        else
            fine = (stage->embedded = embedded_open(client, error, error_size)) != NULL;
        client->fence_key = NULL;
    }
    if (fine && sides != SCENARIO_LIBRARY) {
        if (client->separate)
            fine = (stage->plain_threaded = threaded_open(client, error, error_size)) != NULL;
        else
            fine = (stage->plain_embedded = embedded_open(client, error, error_size)) != NULL;
    }
    return fine ? 0 : -1;
}

static int open_stage(struct stage *stage, const struct scenario *scenario, char *error,
                      size_t error_size)
{
    struct scenario_settings *settings = stage->settings;
    char ours[64], theirs[64];
    snprintf(ours, sizeof ours, "%slibrary:", settings->prefix);
    snprintf(theirs, sizeof theirs, "%sfloor:", settings->prefix);
    struct client_settings client = {
        .servers = settings->servers.text,
        .prefix = ours,
        .depth = scenario->depth,
        .resources = scenario->resources,
        .ttl_ms = settings->ttl_ms,
        .node_timeout_ms = settings->node_timeout_ms,
        .verbose = settings->verbose,
        .wait_ms = scenario->resources < scenario->depth ? CONTENDED_MS : HICCUP_MS,
        .separate = scenario->kind == SCENARIO_FENCED_CONTENDED,
    };
    snprintf(stage->fence_key, sizeof stage->fence_key, "%sfence", settings->prefix);
    if (is_fenced(scenario))
        return open_fenced(stage, &client, error, error_size);
    bool has_floor = scenario->kind == SCENARIO_EMBEDDED || scenario->kind == SCENARIO_THREADED;
    bool blocking = scenario->kind == SCENARIO_THREADED || scenario->kind == SCENARIO_CONTENDED;
    if (scenario->kind == SCENARIO_STOPPED && prepare_stopped(settings, error, error_size) != 0)
        return -1;
    if (has_floor && settings->sides != SCENARIO_LIBRARY) {
        stage->floor = floor_open(&settings->servers, scenario->depth, theirs, settings->ttl_ms,
                                  error, error_size);
        if (stage->floor == NULL)
            return -1;
    }
    if (settings->sides == SCENARIO_FLOOR)
        return 0;
    if (blocking)
        stage->threaded = threaded_open(&client, error, error_size);
    else
        stage->embedded = embedded_open(&client, error, error_size);
    return stage->threaded == NULL && stage->embedded == NULL ? -1 : 0;
}

static void close_stage(struct stage *stage)
{
    floor_close(stage->floor);
    if (stage->embedded != NULL)
        embedded_close(stage->embedded);
    if (stage->plain_embedded != NULL)
        embedded_close(stage->plain_embedded);
    if (stage->threaded != NULL)
        threaded_close(stage->threaded);
    if (stage->plain_threaded != NULL)
        threaded_close(stage->plain_threaded);
}

static uint64_t warm_pairs(const struct scenario_settings *settings,
                           const struct scenario *scenario)
{
    uint64_t warm = UINT64_C(20) * scenario->depth;
    if (settings->warm != UINT64_MAX)
        return settings->warm;
    return warm < WARM_MIN ? WARM_MIN : warm;
}

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
    if (is_fenced(scenario)) {
        if (settings->sides != SCENARIO_FLOOR)
            a = (struct side){"fenced", stage, run_fenced, NULL, settle_fenced};
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
    if (stage->floor != NULL)
        b = (struct side){"floor", stage->floor, run_floor, NULL, NULL};
    if (a.run == NULL) {
        a = b;
        b.name = NULL;
    }
    result->name_a = a.name;
    result->name_b = b.name;
    return side_compare(&comparison, &a, &result->a, b.name == NULL ? NULL : &b, &result->b,
                        &settings->seed);
}

/* What the library deletes behind the caller's back may take a moment; a key that stays is an
 * error. */
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

int scenario_run(const struct scenario *scenario, struct scenario_settings *settings,
                 struct scenario_result *ret_result, char *error, size_t error_size)
{
    struct stage stage = {.settings = settings};
    memset(ret_result, 0, sizeof *ret_result);
    ret_result->scenario = scenario;
    error[0] = '\0';
    int failed = open_stage(&stage, scenario, error, error_size);
    if (failed == 0 && compare(&stage, scenario, ret_result) != 0) {
        snprintf(error, error_size, "%s could not be finished", scenario->name);
        failed = -1;
    }
    if (scenario->kind == SCENARIO_STOPPED && settings->servers.list[0].pid != 0)
        servers_stop(&settings->servers, STOPPED, false);
    close_stage(&stage);
    if (is_fenced(scenario))
        servers_delete(&settings->servers, stage.fence_key);
    if (failed == 0)
        ret_result->leftover_keys = leftover_keys(settings);
    return failed;
}

static bool side_passed(const struct result *result)
{
    return result->violations == 0 && result->failed * 100 <= result->pairs;
}

bool scenario_passed(const struct scenario_result *result)
{
    return result->leftover_keys == 0 && side_passed(&result->a) && side_passed(&result->b);
}
