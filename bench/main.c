/* SPDX-License-Identifier: MIT
 * redlock-bench: runs all scenarios, as often as was requested. */
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

#define SECONDS_DEFAULT 3  /* time limit of a scenario without --seconds and --pairs */
#define EXIT_USAGE      64 /* the command line is not valid */
#define EXIT_NO_NODES   69 /* a scenario could not run */
#define EXIT_OS         71 /* a file cannot be written */

/* Returns true if the scenario can run one side alone: the baseline, or for a variant the side with
 * plain locks. */
static bool has_baseline(const struct scenario *scenario)
{
    return scenario->kind == SCENARIO_EMBEDDED || scenario->kind == SCENARIO_THREADED ||
           scenario->kind == SCENARIO_VARIANT;
}

/* Counts instructions or system calls for all scenarios with two sides in one process. Returns an
 * exit code. */
static int count_pairs(const struct options *options, const struct scenario_settings *settings)
{
    int code = 0;
    for (size_t i = 0; i < options->scenarios_count && code == 0; i++) {
        if (has_baseline(options->scenarios[i]) && !options->scenarios[i]->separate)
            code = counted_run(options->counted, options->scenarios[i], settings,
                               options->format == PRINT_JSON);
    }
    return code;
}

/* Returns false if the scenario cannot run here. A scenario that was not chosen by name is then
 * left out, with a line on stderr unless only the baseline runs. */
static bool can_run(const struct options *options, const struct scenario *scenario,
                    struct scenario_settings *settings)
{
    char error[256] = SCENARIO_NO_TLS;
    if (options->sides == SCENARIO_BASELINE && !has_baseline(scenario))
        return false;
    bool fits = !scenario->tls || settings->servers.tls_text[0] != '\0';
    if (fits && scenario_needs_processes(scenario))
        fits = servers_find_pids(&settings->servers, error, sizeof error) == 0;
    if (options->chosen || fits)
        return true;
    fprintf(stderr, "redlock-bench: %s is left out: %s\n", scenario->name, error);
    return false;
}

/* Runs one scenario and prints its result. Returns an exit code. */
static int measure_one(const struct scenario *scenario, struct scenario_settings *settings,
                       unsigned run, struct printer *printer)
{
    static struct scenario_result result;
    char error[1024];
    int code = 0;
    if (scenario_run(scenario, settings, &result, error, sizeof error) != 0) {
        fprintf(stderr, "redlock-bench: %s: %s\n", scenario->name, error);
        code = EXIT_NO_NODES;
    } else {
        result.run = run;
        printer_add(printer, &result);
        code = scenario_passed(&result) ? 0 : 1;
    }
    scenario_clear(&result);
    return code;
}

/* Runs all scenarios and prints the report. Returns an exit code. */
static int measure(const struct options *options, struct scenario_settings *settings)
{
    struct print_head head = {
        .seed = options->seed, .ttl_ms = options->ttl_ms, .runs = (unsigned)options->runs};
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
            if (!can_run(options, scenario, settings))
                continue;
            progress_begin(scenario->name, run, head.runs);
            int one = measure_one(scenario, settings, run, printer);
            code = one > code ? one : code;
        }
    }
    if (printer_close(printer) != 0) {
        fprintf(stderr, "redlock-bench: the JSON document: %s\n", strerror(errno));
        return EXIT_OS;
    }
    return code;
}

/* Reads the lists of servers into the settings. Returns 0 or an exit code, after a message. */
static int read_servers(const struct options *options, struct servers *servers)
{
    char error[512];
    if (options->servers == NULL) {
        fputs("redlock-bench: no servers: set REDLOCK_SERVERS, or run it in a sandbox:\n"
              "  redlock sandbox -- redlock-bench\n",
              stderr);
        return EXIT_USAGE;
    }
    if (servers_parse(servers, options->servers, error, sizeof error) != 0 ||
        (options->tls_servers != NULL &&
         servers_add_tls(servers, options->tls_servers, error, sizeof error) != 0)) {
        fprintf(stderr, "redlock-bench: %s\n", error);
        return EXIT_USAGE;
    }
    servers->tls = options->tls;
    if (options->tls && servers->tls_text[0] == '\0') {
        fputs("redlock-bench: --tls: " SCENARIO_NO_TLS "\n", stderr);
        return EXIT_USAGE;
    }
    return 0;
}

/* Parses the options, then measures the scenarios or counts what their pairs cost. Returns an exit
 * code. */
int main(int argc, char **argv)
{
    struct options options = {.servers = getenv("REDLOCK_SERVERS"),
                              .tls_servers = getenv("REDLOCK_TLS_SERVERS"),
                              .runs = 1,
                              .warm = UINT64_MAX,
                              .ttl_ms = 10000,
                              .seed = result_now_ns()};
    struct scenario_settings settings = {.pairs = 0};
    char prefix[48];
    if (!options_parse(&options, argc, argv) || read_servers(&options, &settings.servers) != 0)
        return EXIT_USAGE;
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
    settings.rate_per_s = options.rate_per_s;
    settings.seed = options.seed;
    settings.sides = options.sides;
    settings.verbose = options.verbose;
    if (options.quiet)
        progress_silence();
    return options.counted != 0 ? count_pairs(&options, &settings) : measure(&options, &settings);
}
