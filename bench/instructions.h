/* SPDX-License-Identifier: MIT
 * Counts the client's instructions per acquire and release, library against floor. */
#ifndef BENCH_INSTRUCTIONS_H
#define BENCH_INSTRUCTIONS_H

#include "scenario.h"

/* Runs this program again under callgrind, twice per side with different numbers of pairs, and
 * prints the difference per pair: start and end of the program cancel out. An exit code. */
int instructions_run(const struct scenario *scenario, const struct scenario_settings *settings,
                     bool json);

#endif
