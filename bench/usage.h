/* SPDX-License-Identifier: MIT
 * Processor time of this process, all its threads. */
#ifndef BENCH_USAGE_H
#define BENCH_USAGE_H

#include "result.h"

/* With a sign, to add differences. */
void usage_add(struct result *result, int sign);

#endif
