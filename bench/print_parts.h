/* SPDX-License-Identifier: MIT
 * The parts that the printers of table, CSV and JSON share. Times are printed in microseconds. A
 * ratio is the first side divided by the second one: times below 1 and rates above 1 are better. */
#ifndef BENCH_PRINT_PARTS_H
#define BENCH_PRINT_PARTS_H

#include "print.h"

#define RATIOS_MAX 64 /* runs whose ratios are kept for each scenario */
#define SERIES_MAX 64 /* scenarios whose ratios are kept */

/* The first side of a result, relative to the second one and to the limits. */
struct ratio {
    double p50, p99, rate; /* to the second side: times of a pair, pairs per second */
    double pings;          /* median acquisition, in round trips of PING; 0: does not apply */
    double share;          /* rate, relative to the limit of the servers; 0: does not apply */
};

/* The results of the scenario "limits"; 0: not measured. */
struct limits {
    double ping_us;     /* median round trip */
    double pairs_per_s; /* pairs that the slowest server can execute */
};

/* The ratios of all runs of one scenario. */
struct series {
    const struct scenario *scenario;
    size_t count; /* of ratios[] */
    struct ratio ratios[RATIOS_MAX];
};

/* Returns the ratios of one result with two sides. */
struct ratio ratio_of(const struct scenario_result *result, const struct limits *limits);
/* Returns the median of each ratio, the lower one of two medians. */
struct ratio ratio_median(const struct series *series);

/* Returns a percentile of a histogram of nanoseconds, in microseconds. */
double print_percentile_us(const struct histogram *histogram, unsigned basis_points);
/* Returns the percentage of locks with a fence that needed one round only. */
double print_one_round_percent_of(const struct result *result);
/* Returns the processor time of all servers per pair, 0 if not measured. */
double print_servers_us_per_pair(const struct result *result);

/* print_table.c. Prints the head. */
void table_open(const struct print_head *head);
/* Prints the lines of one result; `ratio` is used only if there are two sides. */
void table_add(const struct scenario_result *result, const struct ratio *ratio);
/* Prints the end with the median ratios of `count` series. */
void table_close(const struct series *series, size_t count);

/* print_csv.c. Prints the head. */
void csv_open(const struct print_head *head);
/* Prints one line for each side. */
void csv_add(const struct scenario_result *result);

/* print_json.c. The JSON document, which json_print_open() creates and json_print_close() frees. */
struct json_print;
/* Creates the document with its head. Never returns NULL: aborts if out of memory. */
struct json_print *json_print_open(const struct print_head *head);
/* Adds one result; `ratio` is used only if there are two sides. */
void json_print_add(struct json_print *json, const struct scenario_result *result,
                    const struct ratio *ratio);
/* Writes the document to both files (NULL: none), closes `save` and frees the document. Returns 0,
 * or -1 and errno. */
int json_print_close(struct json_print *json, const struct series *series, size_t count, FILE *out,
                     FILE *save);

#endif
