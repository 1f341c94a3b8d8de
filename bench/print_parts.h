/* SPDX-License-Identifier: MIT
 * What table, CSV and JSON have in common. Times are shown in microseconds. A ratio is the first
 * side divided by the second one: times below 1 and rates above 1 are good. */
#ifndef BENCH_PRINT_PARTS_H
#define BENCH_PRINT_PARTS_H

#include "print.h"

#define RATIOS_MAX 64
#define SERIES_MAX 64

/* The last two are 0 where the baseline was not measured, or means nothing. */
struct ratio {
    double p50, p99, rate; /* to the other side */
    double pings;          /* acquisition, median, in PING round trips */
    double share;          /* of what the servers do at most */
};

/* What "limits" has measured; 0: not. */
struct limits {
    double ping_us, pairs_per_s;
};

/* The ratios of all runs of one scenario. */
struct series {
    const struct scenario *scenario;
    size_t count;
    struct ratio ratios[RATIOS_MAX];
};

struct ratio ratio_of(const struct scenario_result *result, const struct limits *limits);
/* The middle one of the runs' ratios (the lower of two middle ones). */
struct ratio ratio_middle(const struct series *series);

double print_percentile_us(const struct histogram *histogram, unsigned basis_points);
/* Of fences, those that took one round. */
double print_one_round_percent_of(const struct result *result);
double print_servers_us_per_pair(const struct result *result);

void table_open(const struct print_head *head);
void table_add(const struct scenario_result *result, const struct ratio *ratio);
void table_close(const struct series *series, size_t count);

void csv_open(const struct print_head *head);
void csv_add(const struct scenario_result *result);

struct json_print;
struct json_print *json_print_open(const struct print_head *head);
void json_print_add(struct json_print *json, const struct scenario_result *result,
                    const struct ratio *ratio);
/* Writes the document to both files (NULL: to none), closes the second one and frees it. 0, or -1
 * and errno. */
int json_print_close(struct json_print *json, const struct series *series, size_t count, FILE *out,
                     FILE *save);

#endif
