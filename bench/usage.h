/* SPDX-License-Identifier: MIT
 * Processor time of this process with all its threads. */
#ifndef BENCH_USAGE_H
#define BENCH_USAGE_H

#include "result.h"

/* Adds the processor time until now to `result`. With a negative `sign` it subtracts the time, so
 * that two calls around a run add the difference. */
void usage_add(struct result *result, int sign);

#endif
