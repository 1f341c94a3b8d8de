/* SPDX-License-Identifier: MIT
 * What is counted by another program that watches this one: instructions and system calls per
 * acquire and release, library against baseline. */
#ifndef BENCH_COUNTED_H
#define BENCH_COUNTED_H

#include "scenario.h"

enum counted {
    COUNTED_INSTRUCTIONS = 1, /* by valgrind's callgrind; user space only */
    COUNTED_SYSCALLS = 2      /* by strace, of all threads */
};

/* Runs this program again under the other one, twice per side with different numbers of pairs, and
 * prints the difference per pair: start and end of the program cancel out. An exit code. */
int counted_run(enum counted what, const struct scenario *scenario,
                const struct scenario_settings *settings, bool json);

#endif
