/* SPDX-License-Identifier: MIT
 * How results are shown: a table for people, CSV, JSON. */
#ifndef BENCH_PRINT_H
#define BENCH_PRINT_H

#include "environment.h"
#include "scenario.h"

enum print_format { PRINT_TABLE = 0, PRINT_CSV = 1, PRINT_JSON = 2 };

struct print_head {
    struct environment environment;
    uint64_t seed, ttl_ms;
    unsigned runs;
};

struct printer;

/* `save`: a file for the JSON document besides what is printed; NULL: none. NULL and errno if it
 * cannot be written. */
struct printer *printer_open(enum print_format format, const char *save,
                             const struct print_head *head);
void printer_add(struct printer *printer, const struct scenario_result *result);
/* Prints what needs all runs: the middle of the ratios, the JSON document. 0, or -1 and errno if
 * the document could not be written. */
int printer_close(struct printer *printer);

#endif
