/* SPDX-License-Identifier: MIT
 * The functions that both modes of the library's driver share. */
#ifndef BENCH_DRIVER_REDLOCK_H
#define BENCH_DRIVER_REDLOCK_H

#include "driver.h"

#include <redlock/redlock.h>

#define MS_NS UINT64_C(1000000) /* nanoseconds of a millisecond */

/* Returns the options of an acquisition that starts at now_ns. It waits until the end of the slice
 * if callers contend, otherwise for a short time only. */
redlock_opts_t driver_opts(const struct driver_task *task, uint64_t now_ns, uint64_t end_ns);
/* Returns the status to record for an acquisition that failed with `status`: an attempt that the
 * end of the slice cut short counts as contended, not as an error. */
int driver_status(const struct driver_task *task, int status, uint64_t end_ns);
/* Returns the word for a status that is not 0: "taken", or "error NAME". Valid until the next
 * call. */
const char *driver_word(int status);

/* Prints the client's counts of locks, attempts and split votes since `before`, and updates
 * `before`. */
void driver_sums(const struct driver_task *task, redlock_t *client, redlock_stats_t *before);

/* Runs all slices in embedded mode, with the shutdown of the client. Returns 0 or -1. */
int driver_run_embedded(const struct driver_task *task, redlock_t *client);

#endif
