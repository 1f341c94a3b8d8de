/* SPDX-License-Identifier: MIT
 * Prints each result in the formats that were requested, and collects the ratios of all runs. */
#include "print_parts.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* A printer between printer_open() and printer_close(). */
struct printer {
    enum print_format format;
    struct json_print *json; /* document that is printed or saved at the end; NULL: none */
    FILE *save;              /* file for the document; NULL: none */
    struct limits limits;    /* of the last scenario "limits" */
    size_t series_count;
    struct series series[SERIES_MAX]; /* ratios of each scenario with two sides */
};

/* Returns a percentile (basis points) in microseconds. */
double print_percentile_us(const struct histogram *histogram, unsigned basis_points)
{
    return (double)histogram_percentile(histogram, basis_points) / 1000.0;
}

/* Returns the percentage of fences that took one round, 0 without fences. */
double print_one_round_percent_of(const struct result *result)
{
    return 100.0 * result_divide((double)result->one_round,
                                 (double)(result->one_round + result->two_rounds));
}

/* Returns the servers' processor time per pair in microseconds, 0 if not measured. */
double print_servers_us_per_pair(const struct result *result)
{
    return result_divide((double)result->servers_us, (double)result->pairs);
}

/* Returns the first side relative to the second one, and for closed loops relative to the
 * limits. */
struct ratio ratio_of(const struct scenario_result *result, const struct limits *limits)
{
    const struct histogram *a = &result->a.pair, *b = &result->b.pair;
    struct ratio ratio = {
        .p50 = result_divide(print_percentile_us(a, 5000), print_percentile_us(b, 5000)),
        .p99 = result_divide(print_percentile_us(a, 9900), print_percentile_us(b, 9900)),
        .rate =
            result_divide(result_pairs_per_second(&result->a), result_pairs_per_second(&result->b)),
    };
    /* The rate of an open loop is given, and held locks have no pairs: no ratios to the limits. */
    bool closed = result->scenario->kind == SCENARIO_EMBEDDED ||
                  result->scenario->kind == SCENARIO_THREADED ||
                  result->scenario->kind == SCENARIO_VARIANT;
    if (closed) {
        ratio.pings = result_divide(print_percentile_us(&result->a.acquire, 5000), limits->ping_us);
        ratio.share = result_divide(result_pairs_per_second(&result->a), limits->pairs_per_s);
    }
    return ratio;
}

/* Stores the limits that the scenario "limits" has measured. */
static void remember_limits(struct limits *limits, const struct scenario_result *result)
{
    limits->ping_us = print_percentile_us(&result->a.pair, 5000);
    for (size_t i = 0; i < result->figures_count; i++) {
        if (strcmp(result->figures[i].name, SCENARIO_SERVERS_LIMIT) == 0)
            limits->pairs_per_s = result->figures[i].value;
    }
}

/* Adds a ratio to the series of its scenario. */
static void remember(struct printer *printer, const struct scenario_result *result,
                     const struct ratio *ratio)
{
    struct series *series = NULL;
    for (size_t i = 0; i < printer->series_count; i++) {
        if (printer->series[i].scenario == result->scenario)
            series = &printer->series[i];
    }
    if (series == NULL) {
        if (printer->series_count == SERIES_MAX)
            return;
        series = &printer->series[printer->series_count++];
        series->scenario = result->scenario;
    }
    if (series->count < RATIOS_MAX)
        series->ratios[series->count++] = *ratio;
}

/* Orders numbers, the smallest first, for qsort(). */
static int compare_double(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Returns the median of one field of all ratios; `offset` is that of the field. */
static double median_of(const struct series *series, size_t offset)
{
    double list[RATIOS_MAX];
    for (size_t i = 0; i < series->count; i++)
        memcpy(&list[i], (const char *)&series->ratios[i] + offset, sizeof list[i]);
    qsort(list, series->count, sizeof list[0], compare_double);
    return list[(series->count - 1) / 2];
}

/* Returns the median of each field over all runs. */
struct ratio ratio_median(const struct series *series)
{
    return (struct ratio){
        .p50 = median_of(series, offsetof(struct ratio, p50)),
        .p99 = median_of(series, offsetof(struct ratio, p99)),
        .rate = median_of(series, offsetof(struct ratio, rate)),
        .pings = median_of(series, offsetof(struct ratio, pings)),
        .share = median_of(series, offsetof(struct ratio, share)),
    };
}

/* Opens the file `save` (NULL: none) and prints the head. Returns NULL and errno on failure. */
struct printer *printer_open(enum print_format format, const char *save,
                             const struct print_head *head)
{
    struct printer *printer = calloc(1, sizeof *printer);
    if (printer == NULL)
        return NULL;
    printer->format = format;
    if (save != NULL && (printer->save = fopen(save, "we")) == NULL) {
        free(printer);
        return NULL;
    }
    if (save != NULL || format == PRINT_JSON)
        printer->json = json_print_open(head);
    if (format == PRINT_TABLE)
        table_open(head);
    else if (format == PRINT_CSV)
        csv_open(head);
    return printer;
}

/* Prints one result or keeps it for the document, and remembers its ratios and limits. */
void printer_add(struct printer *printer, const struct scenario_result *result)
{
    struct ratio ratio = ratio_of(result, &printer->limits);
    if (result->scenario->kind == SCENARIO_LIMITS)
        remember_limits(&printer->limits, result);
    if (result->name_b != NULL)
        remember(printer, result, &ratio);
    if (printer->format == PRINT_TABLE)
        table_add(result, &ratio);
    else if (printer->format == PRINT_CSV)
        csv_add(result);
    if (printer->json != NULL)
        json_print_add(printer->json, result, &ratio);
    fflush(stdout);
}

/* Prints the median ratios or the document, and frees the printer. Returns 0, or -1 and errno. */
int printer_close(struct printer *printer)
{
    int status = 0;
    if (printer->format == PRINT_TABLE)
        table_close(printer->series, printer->series_count);
    if (printer->json != NULL)
        status = json_print_close(printer->json, printer->series, printer->series_count,
                                  printer->format == PRINT_JSON ? stdout : NULL, printer->save);
    free(printer);
    return status;
}
