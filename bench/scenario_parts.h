/* SPDX-License-Identifier: MIT
 * The functions that run the kinds of scenarios. Each returns 0, or -1 and a text in `error`. */
#ifndef BENCH_SCENARIO_PARTS_H
#define BENCH_SCENARIO_PARTS_H

#include "client.h"
#include "scenario.h"

#define CONTENDED_MS 30000 /* longest wait of an acquisition with contenders */
/* Longest wait of an acquisition without contenders. A busy machine may delay replies until an
 * attempt fails. The next attempt then succeeds, and its time is in the high percentiles. */
#define UNCONTENDED_MS 1000

/* scenario_sides.c. Runs closed loops: two sides in slices that take turns. */
int scenario_run_sides(const struct scenario *scenario, struct scenario_settings *settings,
                       struct scenario_result *result, char *error, size_t error_size);
/* scenario_paced.c. Runs open loops, with faults or without. */
int scenario_run_paced(const struct scenario *scenario, struct scenario_settings *settings,
                       struct scenario_result *result, char *error, size_t error_size);

/* scenario.c. Adds a figure to the result; `name` is not copied. Ignored if there are
 * FIGURES_MAX. */
void scenario_figure(struct scenario_result *result, const char *name, double value);

#endif
