/* SPDX-License-Identifier: MIT
 * Options of redlock-bench, and what it says about itself. */
#include "options.h"

#include "number.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_usage(FILE *file)
{
    fputs("usage: redlock-bench [options]\n"
          "  Measures acquire+release of the library and, in the same run, of a hand-written\n"
          "  hiredis loop (the baseline), slice by slice in turn.\n"
          "  --servers LIST   host:port or redis://host:port, by comma or blank\n"
          "                   (default $REDLOCK_SERVERS)\n"
          "  --scenario LIST  names from below, by comma (default: all)\n"
          "  --ops N          pairs of acquire and release per side and scenario\n"
          "  --warm N         pairs before, not counted (20 for each in flight, at least 200)\n"
          "  --seconds N      end a scenario after so long (3; with --ops: when it is through)\n"
          "  --rate N         operations a second of open loops (1000; with faults 500)\n"
          "  --runs N         repeat everything, then show the middle ratios (1)\n"
          "  --seed N         order of the slices (default: from the clock; printed)\n"
          "  --ttl MS         time to live of a lock (10000)\n"
          "  --node-timeout MS  of the library's nodes (default: measured, as in real life)\n"
          "  --side NAME      run only 'library' or 'baseline' (for profilers)\n"
          "  --instructions   count instructions per pair, with valgrind\n"
          "  --syscalls       count system calls per pair, with strace\n"
          "  --json, --csv    instead of the table\n"
          "  --save FILE      the JSON document, besides what is printed\n"
          "  --quiet          no lines on stderr about how far it is\n"
          "  --verbose        what the library logs, on stderr\n"
          "scenarios:\n",
          file);
    for (size_t i = 0; i < scenarios_count; i++)
        fprintf(file, "  %-13s  %s\n", scenarios[i].name, scenarios[i].summary);
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
    if (number_parse(text, min, max, ret_number))
        return true;
    fprintf(stderr, "redlock-bench: %s: '%s' is not a number from %" PRIu64 " to %" PRIu64 "\n",
            name, text, min, max);
    return false;
}

static void choose_all(struct options *options)
{
    for (size_t i = 0; i < scenarios_count; i++) {
        if (!scenarios[i].extra)
            options->scenarios[options->scenarios_count++] = &scenarios[i];
    }
}

static bool parse_scenarios(struct options *options, const char *list)
{
    if (strcmp(list, "all") == 0)
        return true;
    options->chosen = true;
    do {
        size_t len = strcspn(list, ",");
        const struct scenario *scenario = scenario_find(list, len);
        if (scenario == NULL || options->scenarios_count == SCENARIOS_MAX)
            return refuse("unknown scenario in", list);
        options->scenarios[options->scenarios_count++] = scenario;
        list += len + (list[len] == ',');
    } while (*list != '\0');
    return true;
}

static bool parse_side(struct options *options, const char *name)
{
    if (strcmp(name, "library") == 0)
        options->sides = SCENARIO_LIBRARY;
    else if (strcmp(name, "baseline") == 0)
        options->sides = SCENARIO_BASELINE;
    else
        return refuse("--side is library or baseline, not", name);
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
    case 'W':
        return parse_number("--warm", value, 0, UINT32_MAX, &options->warm);
    case 'T':
        return parse_number("--seconds", value, 1, 86400, &options->seconds);
    case 'R':
        return parse_number("--rate", value, 1, 1000000, &options->rate_per_s);
    case 'f':
        options->save = value;
        return true;
    case 'q':
        options->quiet = true;
        return true;
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
        options->counted = COUNTED_INSTRUCTIONS;
        return true;
    case 'y':
        options->counted = COUNTED_SYSCALLS;
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
    default: /* getopt has said what is wrong */
        fputs("see redlock-bench --help\n", stderr);
        return false;
    }
}

bool options_parse(struct options *options, int argc, char **argv)
{
    static const struct option list[] = {
        {"servers", required_argument, NULL, 's'}, {"scenario", required_argument, NULL, 'c'},
        {"ops", required_argument, NULL, 'n'},     {"warm", required_argument, NULL, 'W'},
        {"seconds", required_argument, NULL, 'T'}, {"save", required_argument, NULL, 'f'},
        {"quiet", no_argument, NULL, 'q'},         {"rate", required_argument, NULL, 'R'},
        {"runs", required_argument, NULL, 'r'},    {"seed", required_argument, NULL, 'S'},
        {"ttl", required_argument, NULL, 't'},     {"node-timeout", required_argument, NULL, 'w'},
        {"side", required_argument, NULL, 'o'},    {"instructions", no_argument, NULL, 'i'},
        {"syscalls", no_argument, NULL, 'y'},      {"verbose", no_argument, NULL, 'V'},
        {"json", no_argument, NULL, 'j'},          {"csv", no_argument, NULL, 'v'},
        {"help", no_argument, NULL, 'h'},          {NULL, 0, NULL, 0}};
    int letter;
    while ((letter = getopt_long(argc, argv, "s:n:h", list, NULL)) != -1) {
        if (!parse_option(options, letter, optarg))
            return false;
    }
    if (optind != argc)
        return refuse("unexpected argument", argv[optind]);
    if (options->scenarios_count == 0)
        choose_all(options);
    return true;
}
