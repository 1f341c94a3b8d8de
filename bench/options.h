/* SPDX-License-Identifier: MIT
 * The command line of redlock-bench. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include "counted.h"
#include "print.h"

#define SCENARIOS_MAX 64

struct options {
    const char *servers;
    const struct scenario *scenarios[SCENARIOS_MAX];
    size_t scenarios_count;
    uint64_t runs, pairs, warm, seconds, rate_per_s, seed, ttl_ms, node_timeout_ms;
    bool chosen; /* scenarios, by name */
    enum scenario_sides sides;
    enum print_format format;
    const char *save;
    enum counted counted; /* 0: nothing, times are measured */
    bool verbose, quiet;
};

/* False: something is wrong with it, and was said. */
bool options_parse(struct options *options, int argc, char **argv);

#endif
