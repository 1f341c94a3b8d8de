/* SPDX-License-Identifier: MIT
 * Counts instructions or system calls per acquire and release, of the library and of the baseline,
 * with a program that watches this one. */
#ifndef BENCH_COUNTED_H
#define BENCH_COUNTED_H

#include "scenario.h"

/* The events that are counted, and the program that counts them. */
enum counted {
    COUNTED_INSTRUCTIONS = 1, /* by valgrind's callgrind; user space only */
    COUNTED_SYSCALLS = 2      /* by strace, in all threads */
};

/* Counts for one scenario and prints the result, as text or as a JSON object. Each side runs twice
 * with different numbers of pairs, so that the start and the end of the program cancel out. Returns
 * an exit code. */
int counted_run(enum counted what, const struct scenario *scenario,
                const struct scenario_settings *settings, bool json);

#endif
