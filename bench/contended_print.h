/* SPDX-License-Identifier: MIT
 * Table, CSV and JSON of the measurements under contention. */
#ifndef BENCH_CONTENDED_PRINT_H
#define BENCH_CONTENDED_PRINT_H

#include "contended.h"
#include "environment.h"

struct contended_printer;

enum contended_format { CONTENDED_TABLE = 0, CONTENDED_CSV = 1, CONTENDED_JSON = 2 };

struct contended_printer *contended_printer_open(enum contended_format format,
                                                 const struct environment *environment,
                                                 const struct contended_settings *settings);
void contended_printer_add(struct contended_printer *printer,
                           const struct contended_result *result);
void contended_printer_close(struct contended_printer *printer);

#endif
