/* SPDX-License-Identifier: MIT
 * What both modes of the library's driver share. */
#ifndef BENCH_DRIVER_REDLOCK_H
#define BENCH_DRIVER_REDLOCK_H

#include "driver.h"

#include <redlock/redlock.h>

#define MS_NS UINT64_C(1000000)

redlock_opts_t driver_opts(const struct driver_task *task, uint64_t now_ns, uint64_t end_ns);
/* Of an acquisition that failed. */
int driver_status(const struct driver_task *task, int status, uint64_t end_ns);
const char *driver_word(int status);

/* Prints what the library says of attempts since `before`, which becomes what it says now. */
void driver_sums(const struct driver_task *task, redlock_t *client, redlock_stats_t *before);

/* All slices, up to the client's shutdown: 0 or -1. */
int driver_run_embedded(const struct driver_task *task, redlock_t *client);

#endif
