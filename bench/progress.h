/* SPDX-License-Identifier: MIT
 * Lines on stderr that say how far a long run is; short runs have none. */
#ifndef BENCH_PROGRESS_H
#define BENCH_PROGRESS_H

#include <stdint.h>

/* What is measured from now on; `runs` is the number of all runs. */
void progress_begin(const char *what, unsigned run, unsigned runs);
/* So much of it is done. A line at most every two seconds. */
void progress_show(uint64_t done, uint64_t total);
/* No lines at all. */
void progress_silence(void);

#endif
