/* SPDX-License-Identifier: MIT
 * Prints the measurements under contention as a table, as CSV or as JSON. */
#ifndef BENCH_CONTENDED_PRINT_H
#define BENCH_CONTENDED_PRINT_H

#include "contended.h"
#include "environment.h"

struct contended_printer;

/* What is printed. */
enum contended_format { CONTENDED_TABLE = 0, CONTENDED_CSV = 1, CONTENDED_JSON = 2 };

/* Prints the head and returns a printer, or NULL if out of memory. */
struct contended_printer *contended_printer_open(enum contended_format format,
                                                 const struct environment *environment,
                                                 const struct contended_settings *settings);
/* Prints one result, or keeps it for the JSON document. */
void contended_printer_add(struct contended_printer *printer,
                           const struct contended_result *result);
/* Prints the end of the table or the whole JSON document, and frees the printer. */
void contended_printer_close(struct contended_printer *printer);

#endif
