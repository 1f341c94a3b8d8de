/* SPDX-License-Identifier: MIT
 * Where a measurement was made. */
#ifndef BENCH_ENVIRONMENT_H
#define BENCH_ENVIRONMENT_H

#include "servers.h"

struct environment {
    char cpu[128];
    long cpus;
    char kernel[128];
    char compiler[64];
    char redlock[32], hiredis[32], libsodium[32];
    char server[64];
    size_t servers;
};

void environment_read(struct environment *ret_environment, const struct servers *servers);

#endif
