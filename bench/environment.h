/* SPDX-License-Identifier: MIT
 * The environment of a measurement, which every report begins with. */
#ifndef BENCH_ENVIRONMENT_H
#define BENCH_ENVIRONMENT_H

#include "servers.h"

#include <jansson.h>
#include <stdio.h>

/* Where a measurement was made. All texts end with a NUL. */
struct environment {
    char cpu[128]; /* model */
    long cpus;     /* number of processors */
    char kernel[128];
    char compiler[64], flags[512]; /* of the benchmark, and how those of the library differ */
    char redlock[32], hiredis[32], libsodium[32]; /* versions */
    char server[256];                             /* name and version, all that occur */
    size_t servers;                               /* number of servers */
    double load[3]; /* load averages of 1, 5 and 15 minutes, before the measurement */
};

/* Reads the environment of this process. Unreadable properties are "unknown", empty or 0. */
void environment_read(struct environment *ret_environment, const struct servers *servers);

/* environment_print.c. Prints the environment as lines that begin with `start`. */
void environment_print(const struct environment *environment, const char *start);
/* Returns the environment as a JSON object, owned by the caller. */
json_t *environment_json(const struct environment *environment);

#endif
