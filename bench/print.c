/* SPDX-License-Identifier: MIT
 * To each result its ways of being shown, and the ratios of all runs. */
#include "print_parts.h"

#include <errno.h>
#include <stdlib.h>

struct printer {
    enum print_format format;
    struct json_print *json; /* printed or saved at the end */
    FILE *save;
    size_t series_count;
    struct series series[SERIES_MAX];
};

double print_percentile_us(const struct histogram *histogram, unsigned basis_points)
{
    return (double)histogram_percentile(histogram, basis_points) / 1000.0;
}

double print_one_round_percent(const struct result *result)
{
    return 100.0 * result_divide((double)result->one_round,
                                 (double)(result->one_round + result->two_rounds));
}

double print_servers_us_per_pair(const struct result *result)
{
    return result_divide((double)result->servers_us, (double)result->pairs);
}

struct ratio ratio_of(const struct scenario_result *result)
{
    const struct histogram *a = &result->a.pair, *b = &result->b.pair;
    return (struct ratio){
        .p50 = result_divide(print_percentile_us(a, 5000), print_percentile_us(b, 5000)),
        .p99 = result_divide(print_percentile_us(a, 9900), print_percentile_us(b, 9900)),
        .rate =
            result_divide(result_pairs_per_second(&result->a), result_pairs_per_second(&result->b)),
    };
}

static void remember(struct printer *printer, const struct scenario_result *result)
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
        series->ratios[series->count++] = ratio_of(result);
}

static int compare_double(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

struct ratio ratio_middle(const struct series *series)
{
    double p50[RATIOS_MAX], p99[RATIOS_MAX], rate[RATIOS_MAX];
    for (size_t i = 0; i < series->count; i++) {
        p50[i] = series->ratios[i].p50;
        p99[i] = series->ratios[i].p99;
        rate[i] = series->ratios[i].rate;
    }
    qsort(p50, series->count, sizeof p50[0], compare_double);
    qsort(p99, series->count, sizeof p99[0], compare_double);
    qsort(rate, series->count, sizeof rate[0], compare_double);
    size_t at = (series->count - 1) / 2;
    return (struct ratio){p50[at], p99[at], rate[at]};
}

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

void printer_add(struct printer *printer, const struct scenario_result *result)
{
    if (result->name_b != NULL)
        remember(printer, result);
    if (printer->format == PRINT_TABLE)
        table_add(result);
    else if (printer->format == PRINT_CSV)
        csv_add(result);
    if (printer->json != NULL)
        json_print_add(printer->json, result);
    fflush(stdout);
}

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
