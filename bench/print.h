/* SPDX-License-Identifier: MIT
 * How results are shown: a table for people, CSV, JSON. */
#ifndef BENCH_PRINT_H
#define BENCH_PRINT_H

#include "environment.h"
#include "scenario.h"

enum print_format { PRINT_TABLE = 0, PRINT_CSV = 1, PRINT_JSON = 2 };

struct printer;

struct printer *printer_open(enum print_format format, const struct environment *environment,
                             uint64_t seed, uint64_t ttl_ms);
void printer_add(struct printer *printer, const struct scenario_result *result);
/* Prints what needs all runs: the middle of the ratios, the JSON document. */
void printer_close(struct printer *printer);

#endif
