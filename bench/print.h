/* SPDX-License-Identifier: MIT
 * Prints results: a table for people, CSV, JSON. */
#ifndef BENCH_PRINT_H
#define BENCH_PRINT_H

#include "environment.h"
#include "scenario.h"

/* What is printed on stdout. */
enum print_format { PRINT_TABLE = 0, PRINT_CSV = 1, PRINT_JSON = 2 };

/* The head of a report. */
struct print_head {
    struct environment environment;
    uint64_t seed;   /* of the order of the slices */
    uint64_t ttl_ms; /* of the locks */
    unsigned runs;   /* repetitions of all scenarios */
};

struct printer; /* created by printer_open(), freed by printer_close() */

/* Prints the head and returns a printer. `save` is a file that gets the JSON document as well;
 * NULL: none. Returns NULL and errno if the file cannot be written. */
struct printer *printer_open(enum print_format format, const char *save,
                             const struct print_head *head);
/* Prints one result, or keeps it for the JSON document. */
void printer_add(struct printer *printer, const struct scenario_result *result);
/* Prints what needs all runs: the median ratios, the JSON document. Frees the printer. Returns 0,
 * or -1 and errno if the document could not be written. */
int printer_close(struct printer *printer);

#endif
