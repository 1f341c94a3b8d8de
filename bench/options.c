/* SPDX-License-Identifier: MIT
 * Parses the options of redlock-bench and prints its help. */
#include "options.h"

#include "number.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Prints the text of --help with the list of all scenarios. */
static void print_usage(FILE *file)
{
    fputs(
        "usage: redlock-bench [options]\n"
        "  Measures acquire and release of the library and, in the same run, of a hand-written\n"
        "  loop over hiredis (the baseline). Slices of both sides take turns.\n"
        "  --servers LIST   host:port or redis://host:port, separated by commas or blanks\n"
        "                   (default $REDLOCK_SERVERS)\n"
        "  --tls            measure over TLS, at the addresses in $REDLOCK_TLS_SERVERS\n"
        "  --scenario LIST  names from below, separated by commas (default: all)\n"
        "  --ops N          pairs of acquire and release, for each side and scenario\n"
        "  --warm N         pairs before that do not count (20 for each in flight, at least 200)\n"
        "  --seconds N      time limit of a scenario (3; with --ops: none)\n"
        "  --rate N         operations per second of open loops (1000; with faults 500)\n"
        "  --runs N         repetitions of everything; prints the median ratios (1)\n"
        "  --seed N         of the order of the slices (default: from the clock; printed)\n"
        "  --ttl MS         time to live of a lock (10000)\n"
        "  --node-timeout MS  time limit of the library's requests (default: measured)\n"
        "  --side NAME      run only 'library' or 'baseline' (for profilers)\n"
        "  --instructions   count instructions per pair, with valgrind\n"
        "  --syscalls       count system calls per pair, with strace\n"
        "  --json, --csv    instead of the table\n"
        "  --save FILE      also write the JSON document to FILE\n"
        "  --quiet          no progress on stderr\n"
        "  --verbose        the library's log on stderr\n"
        "scenarios:\n",
        file);
    for (size_t i = 0; i < scenarios_count; i++)
        fprintf(file, "  %-13s  %s\n", scenarios[i].name, scenarios[i].summary);
    fputs("exit: 0 success, 1 violation, leftover key or failed operations, 64 usage,\n"
          "  69 no servers\n"
          "example: redlock sandbox -- redlock-bench --scenario embedded-1,embedded-64 --runs 3\n",
          file);
}

/* Prints what is wrong with an option. Returns false. */
static bool refuse(const char *what, const char *value)
{
    fprintf(stderr, "redlock-bench: %s: '%s'; see redlock-bench --help\n", what, value);
    return false;
}

/* Parses the number of an option. Returns false after a message if it is not valid. */
static bool parse_number(const char *name, const char *text, uint64_t min, uint64_t max,
                         uint64_t *ret_number)
{
    if (number_parse(text, min, max, ret_number))
        return true;
    fprintf(stderr, "redlock-bench: %s: '%s' is not a number from %" PRIu64 " to %" PRIu64 "\n",
            name, text, min, max);
    return false;
}

/* Selects all scenarios of the default run. */
static void choose_all(struct options *options)
{
    for (size_t i = 0; i < scenarios_count; i++) {
        if (!scenarios[i].extra)
            options->scenarios[options->scenarios_count++] = &scenarios[i];
    }
}

/* Selects the scenarios of a list of names. Returns false after a message if one is unknown. */
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

/* Parses --side. Returns false after a message if it is not valid. */
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

/* Stores one option. Returns false after a message if its value is not valid. */
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
    case 'l':
        options->tls = true;
        return true;
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
    default: /* getopt has printed the reason */
        fputs("see redlock-bench --help\n", stderr);
        return false;
    }
}

/* Parses the command line over the defaults in `options`. Returns false after a message if it is
 * not valid. */
bool options_parse(struct options *options, int argc, char **argv)
{
    static const struct option list[] = {{"servers", required_argument, NULL, 's'},
                                         {"scenario", required_argument, NULL, 'c'},
                                         {"ops", required_argument, NULL, 'n'},
                                         {"warm", required_argument, NULL, 'W'},
                                         {"seconds", required_argument, NULL, 'T'},
                                         {"save", required_argument, NULL, 'f'},
                                         {"quiet", no_argument, NULL, 'q'},
                                         {"rate", required_argument, NULL, 'R'},
                                         {"runs", required_argument, NULL, 'r'},
                                         {"seed", required_argument, NULL, 'S'},
                                         {"ttl", required_argument, NULL, 't'},
                                         {"node-timeout", required_argument, NULL, 'w'},
                                         {"side", required_argument, NULL, 'o'},
                                         {"instructions", no_argument, NULL, 'i'},
                                         {"syscalls", no_argument, NULL, 'y'},
                                         {"verbose", no_argument, NULL, 'V'},
                                         {"json", no_argument, NULL, 'j'},
                                         {"csv", no_argument, NULL, 'v'},
                                         {"tls", no_argument, NULL, 'l'},
                                         {"help", no_argument, NULL, 'h'},
                                         {NULL, 0, NULL, 0}};
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
