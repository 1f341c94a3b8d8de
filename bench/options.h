/* SPDX-License-Identifier: MIT
 * The command line of redlock-bench. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include "counted.h"
#include "print.h"

#define SCENARIOS_MAX 64 /* scenarios of one run */

/* The command line, with defaults for what was not given. Borrows its texts from argv. */
struct options {
    const char *servers;     /* list of URLs; NULL: not given */
    const char *tls_servers; /* list of URLs of the same servers with TLS; NULL: not given */
    const struct scenario *scenarios[SCENARIOS_MAX];
    size_t scenarios_count;
    uint64_t runs;       /* repetitions of all scenarios */
    uint64_t pairs;      /* for each side; 0: the scenario's default */
    uint64_t warm;       /* pairs that do not count; UINT64_MAX: the default */
    uint64_t seconds;    /* time limit of a scenario; 0: not given */
    uint64_t rate_per_s; /* of open loops; 0: the scenario's default */
    uint64_t seed;
    uint64_t ttl_ms;
    uint64_t node_timeout_ms; /* 0: derived from the round trips */
    bool chosen;              /* the scenarios were chosen by name */
    enum scenario_sides sides;
    enum print_format format;
    const char *save;     /* file for the JSON document; NULL: none */
    enum counted counted; /* what to count; 0: measure times instead */
    bool tls;             /* the measured connections use TLS */
    bool verbose;         /* print the library's log */
    bool quiet;           /* print no progress */
};

/* Parses the command line into `options`, which holds the defaults. Returns false after a message
 * if it is not valid. Ends the program after --help. */
bool options_parse(struct options *options, int argc, char **argv);

#endif
