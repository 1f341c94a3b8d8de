/* SPDX-License-Identifier: MIT
 * redlock-bench: the loop over runs and scenarios. */
#include "environment.h"
#include "options.h"
#include "print.h"
#include "progress.h"
#include "scenario.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECONDS_DEFAULT 6
#define EXIT_USAGE      64
#define EXIT_NO_NODES   69
#define EXIT_OS         71

/* Or something that takes its place: --side floor is then the side without fences. */
static bool has_floor(const struct scenario *scenario)
{
    return scenario->kind == SCENARIO_EMBEDDED || scenario->kind == SCENARIO_THREADED ||
           scenario->kind == SCENARIO_FENCED || scenario->kind == SCENARIO_FENCED_CONTENDED;
}

static int count_pairs(const struct options *options, const struct scenario_settings *settings)
{
    int code = 0;
    for (size_t i = 0; i < options->scenarios_count && code == 0; i++) {
        if (has_floor(options->scenarios[i]) &&
            options->scenarios[i]->kind != SCENARIO_FENCED_CONTENDED)
            code = counted_run(options->counted, options->scenarios[i], settings,
                               options->format == PRINT_JSON);
    }
    return code;
}

static int measure(const struct options *options, struct scenario_settings *settings)
{
    static struct scenario_result result;
    struct print_head head = {
        .seed = options->seed, .ttl_ms = options->ttl_ms, .runs = (unsigned)options->runs};
    char error[1024];
    int code = 0;
    environment_read(&head.environment, &settings->servers);
    struct printer *printer = printer_open(options->format, options->save, &head);
    if (printer == NULL) {
        fprintf(stderr, "redlock-bench: %s: %s\n", options->save, strerror(errno));
        return EXIT_OS;
    }
    for (unsigned run = 1; run <= options->runs && code != EXIT_NO_NODES; run++) {
        for (size_t i = 0; i < options->scenarios_count && code != EXIT_NO_NODES; i++) {
            const struct scenario *scenario = options->scenarios[i];
            if (options->sides == SCENARIO_FLOOR && !has_floor(scenario))
                continue;
            progress_begin(scenario->name, run, head.runs);
            if (scenario_run(scenario, settings, &result, error, sizeof error) != 0) {
                fprintf(stderr, "redlock-bench: %s: %s\n", scenario->name, error);
                code = EXIT_NO_NODES;
            } else {
                result.run = run;
                printer_add(printer, &result);
                if (!scenario_passed(&result))
                    code = 1;
            }
        }
    }
    if (printer_close(printer) != 0) {
        fprintf(stderr, "redlock-bench: the JSON document: %s\n", strerror(errno));
        return EXIT_OS;
    }
    return code;
}

int main(int argc, char **argv)
{
    struct options options = {.servers = getenv("REDLOCK_SERVERS"),
                              .runs = 1,
                              .warm = UINT64_MAX,
                              .ttl_ms = 10000,
                              .seed = result_now_ns()};
    struct scenario_settings settings = {.pairs = 0};
    char error[512], prefix[48];
    if (!options_parse(&options, argc, argv))
        return EXIT_USAGE;
    if (options.servers == NULL) {
        fputs("redlock-bench: no servers: set REDLOCK_SERVERS, or run it in a sandbox:\n"
              "  redlock sandbox -- redlock-bench\n",
              stderr);
        return EXIT_USAGE;
    }
    if (servers_parse(&settings.servers, options.servers, error, sizeof error) != 0) {
        fprintf(stderr, "redlock-bench: %s\n", error);
        return EXIT_USAGE;
    }
    snprintf(prefix, sizeof prefix, "redlock-bench:%ld:%" PRIx64 ":", (long)getpid(),
             result_now_ns());
    settings.prefix = prefix;
    settings.ttl_ms = options.ttl_ms;
    settings.node_timeout_ms = (uint32_t)options.node_timeout_ms;
    settings.pairs = options.pairs;
    settings.warm = options.warm;
    settings.budget_ms = options.seconds * 1000;
    if (options.seconds == 0 && options.pairs == 0)
        settings.budget_ms = SECONDS_DEFAULT * 1000;
    settings.seed = options.seed;
    settings.sides = options.sides;
    settings.verbose = options.verbose;
    if (options.quiet)
        progress_silence();
    return options.counted != 0 ? count_pairs(&options, &settings) : measure(&options, &settings);
}
