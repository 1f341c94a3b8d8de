/* SPDX-License-Identifier: MIT
 * The ways in which scenarios run. All return 0, or -1 and a text in `error`. */
#ifndef BENCH_SCENARIO_PARTS_H
#define BENCH_SCENARIO_PARTS_H

#include "client.h"
#include "scenario.h"

#define CONTENDED_MS 30000
#define HICCUP_MS    1000 /* a busy machine may delay answers: tried again, seen in the tail */

/* scenario_sides.c: closed loops, two sides in slices. */
int scenario_run_sides(const struct scenario *scenario, struct scenario_settings *settings,
                       struct scenario_result *result, char *error, size_t error_size);
/* scenario_paced.c: open loops, with faults or without. */
int scenario_run_paced(const struct scenario *scenario, struct scenario_settings *settings,
                       struct scenario_result *result, char *error, size_t error_size);

/* scenario.c */
void scenario_figure(struct scenario_result *result, const char *name, double value);

#endif
