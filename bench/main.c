/* SPDX-License-Identifier: MIT
 * redlock-bench: options, and the loop over runs and scenarios. */
#include "environment.h"
#include "instructions.h"
#include "print.h"
#include "scenario.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SCENARIOS_MAX 32
#define EXIT_USAGE    64
#define EXIT_NO_NODES 69

struct options {
    const char *servers;
    const struct scenario *scenarios[SCENARIOS_MAX];
    size_t scenarios_count;
    uint64_t runs, pairs, seed, ttl_ms, node_timeout_ms;
    enum scenario_sides sides;
    enum print_format format;
    bool instructions, verbose;
};

static void print_usage(FILE *file)
{
    fputs("usage: redlock-bench [options]\n"
          "  Measures acquire+release of the library and, in the same run, of a hand-written\n"
          "  hiredis loop (the floor), slice by slice in turn.\n"
          "  --servers LIST   host:port or redis://host:port, by comma or blank\n"
          "                   (default $REDLOCK_SERVERS)\n"
          "  --scenario LIST  names from below, by comma (default: all)\n"
          "  --ops N          pairs of acquire and release per side and scenario\n"
          "  --runs N         repeat everything, then show the middle ratios (1)\n"
          "  --seed N         order of the slices (default: from the clock; printed)\n"
          "  --ttl MS         time to live of a lock (10000)\n"
          "  --node-timeout MS  of the library's nodes (default: measured, as in real life)\n"
          "  --side NAME      run only 'library' or 'floor' (for profilers)\n"
          "  --instructions   count instructions per pair under valgrind\n"
          "  --json, --csv    instead of the table\n"
          "  --verbose        what the library logs, on stderr\n"
          "scenarios:\n",
          file);
    for (size_t i = 0; i < scenarios_count; i++)
        fprintf(file, "  %-15s  %s\n", scenarios[i].name, scenarios[i].summary);
    fputs("exit: 0 fine, 1 violation, leftover key or failed operations, 64 usage, 69 no servers\n"
          "example: redlock sandbox -- redlock-bench --scenario embedded-1,embedded-64 --runs 3\n",
          file);
}

static bool refuse(const char *what, const char *value)
{
    fprintf(stderr, "redlock-bench: %s: '%s'; see redlock-bench --help\n", what, value);
    return false;
}

static bool parse_number(const char *name, const char *text, uint64_t min, uint64_t max,
                         uint64_t *ret_number)
{
    char *end = NULL;
    unsigned long long number = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || number < min || number > max) {
        fprintf(stderr, "redlock-bench: %s: '%s' is not a number from %" PRIu64 " to %" PRIu64 "\n",
                name, text, min, max);
        return false;
    }
    *ret_number = number;
    return true;
}

static bool parse_scenarios(struct options *options, const char *list)
{
    if (strcmp(list, "all") == 0)
        return true;
    while (*list != '\0') {
        size_t len = strcspn(list, ",");
        const struct scenario *scenario = scenario_find(list, len);
        if (scenario == NULL || options->scenarios_count == SCENARIOS_MAX)
            return refuse("unknown scenario in", list);
        options->scenarios[options->scenarios_count++] = scenario;
        list += len + (list[len] == ',');
    }
    return true;
}

static bool parse_side(struct options *options, const char *name)
{
    if (strcmp(name, "library") == 0)
        options->sides = SCENARIO_LIBRARY;
    else if (strcmp(name, "floor") == 0)
        options->sides = SCENARIO_FLOOR;
    else
        return refuse("--side is library or floor, not", name);
    return true;
}

static bool parse_option(struct options *options, int letter, const char *value)
{
    switch (letter) {
    case 's':
        options->servers = value;
        return true;
    case 'c':
        return parse_scenarios(options, value);
    case 'n':
        return parse_number("--ops", value, 1, UINT32_MAX, &options->pairs);
    case 'r':
        return parse_number("--runs", value, 1, 64, &options->runs);
    case 'S':
        return parse_number("--seed", value, 0, INT64_MAX, &options->seed);
    case 't':
        return parse_number("--ttl", value, 100, 30000, &options->ttl_ms);
    case 'w':
        return parse_number("--node-timeout", value, 1, 60000, &options->node_timeout_ms);
    case 'o':
        return parse_side(options, value);
    case 'V':
        options->verbose = true;
        return true;
    case 'i':
        options->instructions = true;
        return true;
    case 'j':
        options->format = PRINT_JSON;
        return true;
    case 'v':
        options->format = PRINT_CSV;
        return true;
    case 'h':
        print_usage(stdout);
        exit(0);
    default:
        return false;
    }
}

static bool parse_options(struct options *options, int argc, char **argv)
{
    static const struct option list[] = {{"servers", required_argument, NULL, 's'},
                                         {"scenario", required_argument, NULL, 'c'},
                                         {"ops", required_argument, NULL, 'n'},
                                         {"runs", required_argument, NULL, 'r'},
                                         {"seed", required_argument, NULL, 'S'},
                                         {"ttl", required_argument, NULL, 't'},
                                         {"node-timeout", required_argument, NULL, 'w'},
                                         {"side", required_argument, NULL, 'o'},
                                         {"instructions", no_argument, NULL, 'i'},
                                         {"verbose", no_argument, NULL, 'V'},
                                         {"json", no_argument, NULL, 'j'},
                                         {"csv", no_argument, NULL, 'v'},
                                         {"help", no_argument, NULL, 'h'},
                                         {NULL, 0, NULL, 0}};
    int letter;
    while ((letter = getopt_long(argc, argv, "s:n:h", list, NULL)) != -1) {
        if (!parse_option(options, letter, optarg))
            return false;
    }
    if (optind != argc)
        return refuse("unexpected argument", argv[optind]);
    for (size_t i = 0; options->scenarios_count == 0 && i < scenarios_count; i++)
        options->scenarios[i] = &scenarios[i];
    if (options->scenarios_count == 0)
        options->scenarios_count = scenarios_count;
    return true;
}

/* Or something that takes its place: --side floor is then the side without fences. */
static bool has_floor(const struct scenario *scenario)
{
    return scenario->kind == SCENARIO_EMBEDDED || scenario->kind == SCENARIO_THREADED ||
           scenario->kind == SCENARIO_FENCED || scenario->kind == SCENARIO_FENCED_CONTENDED;
}

static int count_instructions(const struct options *options,
                              const struct scenario_settings *settings)
{
    int code = 0;
    for (size_t i = 0; i < options->scenarios_count && code == 0; i++) {
        if (has_floor(options->scenarios[i]) &&
            options->scenarios[i]->kind != SCENARIO_FENCED_CONTENDED)
            code = instructions_run(options->scenarios[i], settings, options->format == PRINT_JSON);
    }
    return code;
}

static int measure(const struct options *options, struct scenario_settings *settings)
{
    static struct scenario_result result;
    struct environment environment;
    char error[1024];
    int code = 0;
    environment_read(&environment, &settings->servers);
    struct printer *printer =
        printer_open(options->format, &environment, options->seed, options->ttl_ms);
    if (printer == NULL)
        return 71;
    for (unsigned run = 1; run <= options->runs && code != EXIT_NO_NODES; run++) {
        for (size_t i = 0; i < options->scenarios_count && code != EXIT_NO_NODES; i++) {
            const struct scenario *scenario = options->scenarios[i];
            if (options->sides == SCENARIO_FLOOR && !has_floor(scenario))
                continue;
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
    printer_close(printer);
    return code;
}

int main(int argc, char **argv)
{
    struct options options = {
        .servers = getenv("REDLOCK_SERVERS"), .runs = 1, .ttl_ms = 10000, .seed = result_now_ns()};
    struct scenario_settings settings = {.pairs = 0};
    char error[512], prefix[48];
    if (!parse_options(&options, argc, argv))
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
    settings.seed = options.seed;
    settings.sides = options.sides;
    settings.verbose = options.verbose;
    return options.instructions ? count_instructions(&options, &settings)
                                : measure(&options, &settings);
}
