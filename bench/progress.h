/* SPDX-License-Identifier: MIT
 * Prints the progress of long runs on stderr; short runs print nothing. */
#ifndef BENCH_PROGRESS_H
#define BENCH_PROGRESS_H

#include <stdint.h>

/* Begins a measurement. `what` is its name, which is borrowed; `run` counts from 1 to `runs`. */
void progress_begin(const char *what, unsigned run, unsigned runs);
/* Reports that `done` of `total` are done. Prints a line at most every two seconds. */
void progress_show(uint64_t done, uint64_t total);
/* Suppresses all lines. */
void progress_silence(void);

#endif
