/* SPDX-License-Identifier: MIT
 * Where a measurement was made: the head of each report. */
#ifndef BENCH_ENVIRONMENT_H
#define BENCH_ENVIRONMENT_H

#include "servers.h"

#include <jansson.h>
#include <stdio.h>

struct environment {
    char cpu[128];
    long cpus;
    char kernel[128];
    char compiler[64], flags[512]; /* of the benchmark; the library's differences are named */
    char redlock[32], hiredis[32], libsodium[32];
    char server[256]; /* version, or all different ones */
    size_t servers;
    double load[3]; /* averages of 1, 5 and 15 minutes when it began */
};

void environment_read(struct environment *ret_environment, const struct servers *servers);

/* environment_print.c: as lines that begin with `start`; as an object. */
void environment_print(const struct environment *environment, const char *start);
json_t *environment_json(const struct environment *environment);

#endif
