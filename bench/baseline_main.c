/* SPDX-License-Identifier: MIT
 * The baseline as a program of its own. */
#include "baseline.h"
#include "number.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Text of --help. */
static const char usage[] =
    "usage: baseline [--servers LIST] [--depth D] [--ops N] [--ttl MS] [--json]\n"
    "  The hand-written loop with which redlock-bench compares the library.\n"
    "  --servers LIST  host:port or redis://host:port, separated by commas or blanks\n"
    "                  (default $REDLOCK_SERVERS)\n"
    "  --depth D       acquisitions in flight, 1 to 4096 (1)\n"
    "  --ops N         pairs of acquire and release (10000)\n"
    "  --ttl MS        time to live of a lock (10000)\n"
    "  --json          one JSON object instead of text\n"
    "example: redlock sandbox -- baseline --depth 64\n";

/* Prints what is wrong with the command line. Returns the exit code. */
static int refuse(const char *what)
{
    fprintf(stderr, "baseline: %s\n", what);
    return 64;
}

/* Prints the result as text or as one JSON object. */
static void print_result(const struct result *result, uint64_t depth, bool json)
{
    if (json)
        printf("{\"depth\":%" PRIu64 ",\"pairs\":%" PRIu64 ",\"failed\":%" PRIu64, depth,
               result->pairs, result->failed);
    else
        printf("baseline, %" PRIu64 " in flight: %" PRIu64 " pairs, %" PRIu64 " failed, ", depth,
               result->pairs, result->failed);
    printf(json ? ",\"pairs_per_s\":%.0f,\"pair_us\":{" : "%.0f pairs/s; us: ",
           result_pairs_per_second(result));
    for (size_t i = 0; i < HISTOGRAM_POINTS; i++) {
        double us = (double)histogram_percentile(&result->pair, histogram_points[i]) / 1000.0;
        const char *name = json ? histogram_point_columns[i] : histogram_point_names[i];
        printf(json ? "%s\"%s\":%.1f" : "%s%s %.1f", i == 0 ? "" : json ? "," : "  ", name, us);
    }
    printf(json ? "}}\n" : "\n");
}

/* Parses the options, runs one measurement and prints it. Exit codes: 0 success, 1 a pair failed or
 * keys are left, 64 wrong usage, 69 a server failed. */
int main(int argc, char **argv)
{
    static const struct option options[] = {{"servers", required_argument, NULL, 's'},
                                            {"depth", required_argument, NULL, 'd'},
                                            {"ops", required_argument, NULL, 'n'},
                                            {"ttl", required_argument, NULL, 't'},
                                            {"json", no_argument, NULL, 'j'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    const char *list = getenv("REDLOCK_SERVERS");
    uint64_t depth = 1, ops = 10000, ttl_ms = 10000;
    bool json = false;
    int letter;
    while ((letter = getopt_long(argc, argv, "s:d:n:t:jh", options, NULL)) != -1) {
        if (letter == 's')
            list = optarg;
        else if (letter == 'd' && !number_parse(optarg, 1, 4096, &depth))
            return refuse("--depth: expected a number from 1 to 4096");
        else if (letter == 'n' && !number_parse(optarg, 1, UINT32_MAX, &ops))
            return refuse("--ops: expected a number above 0");
        else if (letter == 't' && !number_parse(optarg, 10, 86400000, &ttl_ms))
            return refuse("--ttl: expected milliseconds from 10 to 86400000");
        else if (letter == 'j')
            json = true;
        else if (letter == 'h' || letter == '?')
            return fputs(usage, letter == 'h' ? stdout : stderr), letter == 'h' ? 0 : 64;
    }
    if (list == NULL || optind != argc)
        return refuse(list == NULL ? "no servers: set REDLOCK_SERVERS, or run it as\n"
                                     "  redlock sandbox -- baseline"
                                   : "unexpected argument; see baseline --help");
    char error[512] = "";
    struct servers servers;
    if (servers_parse(&servers, list, error, sizeof error) != 0)
        return refuse(error);
    char prefix[64];
    snprintf(prefix, sizeof prefix, "redlock-bench:%ld:", (long)getpid());
    struct baseline *baseline =
        baseline_open(&servers, (unsigned)depth, prefix, ttl_ms, error, sizeof error);
    static struct result result;
    if (baseline == NULL || baseline_run(baseline, ops, &result) != 0) {
        fprintf(stderr, "baseline: %s\n",
                baseline == NULL ? error
                                 : "a server closed the connection or sent an invalid reply");
        baseline_close(baseline);
        return 69;
    }
    baseline_close(baseline);
    print_result(&result, depth, json);
    long left = servers_count_keys(&servers, prefix);
    if (left != 0)
        fprintf(stderr, "baseline: %ld keys left behind\n", left);
    return left == 0 && result.failed == 0 ? 0 : 1;
}
