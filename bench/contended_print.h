/* SPDX-License-Identifier: MIT
 * Prints the measurements under contention as a table, as CSV or as JSON. */
#ifndef BENCH_CONTENDED_PRINT_H
#define BENCH_CONTENDED_PRINT_H

#include "contended.h"
#include "environment.h"

struct contended_printer;

/* The output: a table for people, CSV, or one JSON document. */
enum contended_format { CONTENDED_TABLE = 0, CONTENDED_CSV = 1, CONTENDED_JSON = 2 };

/* Returns a printer, or NULL if there is no memory for it. (Without memory for the JSON document,
 * the printer prints nothing.) Prints `environment` (machine and versions) and `settings` at once,
 * with the names of the columns, as a table or CSV. JSON keeps them for the document, which is
 * printed at the end. Does not use the two pointers after the call. */
struct contended_printer *contended_printer_open(enum contended_format format,
                                                 const struct environment *environment,
                                                 const struct contended_settings *settings);
/* Prints one result, or keeps it for the JSON document. */
void contended_printer_add(struct contended_printer *printer,
                           const struct contended_result *result);
/* Prints the end of the table or the whole JSON document, and frees the printer. */
void contended_printer_close(struct contended_printer *printer);

#endif
