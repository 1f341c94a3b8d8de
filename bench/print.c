/* SPDX-License-Identifier: MIT
 * Table, CSV and JSON of the results. Times are shown in microseconds. A ratio is the first side
 * divided by the second one: times below 1 and rates above 1 are good. */
#include "print.h"

#include <inttypes.h>
#include <jansson.h>
#include <redlock/redlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POINTS     5
#define RATIOS_MAX 64

static const unsigned points[POINTS] = {5000, 9000, 9900, 9990, 10000};
static const char *const point_names[POINTS] = {"p50", "p90", "p99", "p99_9", "max"};

struct ratio {
    double p50, p99, rate;
};

/* The ratios of all runs of one scenario. */
struct series {
    const struct scenario *scenario;
    size_t count;
    struct ratio ratios[RATIOS_MAX];
};

struct printer {
    enum print_format format;
    json_t *document, *results;
    size_t series_count;
    struct series series[16];
};

static double percentile_us(const struct histogram *histogram, unsigned basis_points)
{
    return (double)histogram_percentile(histogram, basis_points) / 1000.0;
}

static double divide(double a, double b)
{
    return b > 0.0 ? a / b : 0.0;
}

static struct ratio ratio_of(const struct scenario_result *result)
{
    const struct histogram *a = &result->a.pair, *b = &result->b.pair;
    return (struct ratio){
        .p50 = divide(percentile_us(a, 5000), percentile_us(b, 5000)),
        .p99 = divide(percentile_us(a, 9900), percentile_us(b, 9900)),
        .rate = divide(result_pairs_per_second(&result->a), result_pairs_per_second(&result->b)),
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
        if (printer->series_count == sizeof printer->series / sizeof printer->series[0])
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

/* The middle one of the runs' ratios (the lower of two middle ones). */
static struct ratio middle(const struct series *series)
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

/* ---- table ---- */

static void table_header(const struct environment *env, uint64_t seed, uint64_t ttl_ms)
{
    printf("redlock-bench: acquire and release, closed loop\n"
           "  machine  %s, %ld CPUs, %s\n"
           "  servers  %zu x %s\n"
           "  library  redlock %s, hiredis %s, libsodium %s, compiler %s\n"
           "  seed     %" PRIu64 ", ttl %" PRIu64 " ms\n\n"
           "%-14s%-11s%10s%10s%10s%10s%10s%10s%8s\n",
           env->cpu, env->cpus, env->kernel, env->servers, env->server, env->redlock, env->hiredis,
           env->libsodium, env->compiler, seed, ttl_ms, "scenario", "side", "pairs/s", "p50 us",
           "p90 us", "p99 us", "p99.9 us", "max us", "failed");
    fflush(stdout);
}

static void table_side(const char *scenario, const char *name, const struct result *result)
{
    printf("%-14s%-11s%10.0f", scenario, name, result_pairs_per_second(result));
    for (size_t i = 0; i < POINTS; i++)
        printf("%10.1f", percentile_us(&result->pair, points[i]));
    printf("%8" PRIu64 "%s%s\n", result->failed, result->last_error != 0 ? "  " : "",
           result->last_error != 0 ? redlock_strerror(result->last_error) : "");
}

static double one_round_percent(const struct result *result)
{
    return 100.0 *
           divide((double)result->one_round, (double)(result->one_round + result->two_rounds));
}

static double servers_us_per_pair(const struct result *result)
{
    return divide((double)result->servers_us, (double)result->pairs);
}

static void table_fences(const char *name, const struct result *result)
{
    if (result->servers_us != 0)
        printf("%-14s%-11s%10.1f us of all servers' processors per pair\n", "", name,
               servers_us_per_pair(result));
    if (result->one_round + result->two_rounds != 0)
        printf("%-14s%-11s%10.2f %% of %" PRIu64 " fences after one round\n", "", name,
               one_round_percent(result), result->one_round + result->two_rounds);
}

static void table_add(const struct scenario_result *result)
{
    table_side(result->scenario->name, result->name_a, &result->a);
    if (result->name_b != NULL) {
        struct ratio ratio = ratio_of(result);
        table_side("", result->name_b, &result->b);
        printf("%-14s%-11s%9.2fx%9.2fx%20.2fx\n", "", "ratio", ratio.rate, ratio.p50, ratio.p99);
    }
    table_fences(result->name_a, &result->a);
    if (result->name_b != NULL)
        table_fences(result->name_b, &result->b);
    uint64_t violations = result->a.violations + result->b.violations;
    if (violations != 0 || result->leftover_keys != 0)
        printf("%-14sWRONG: %" PRIu64 " violations, %ld keys left behind\n", "", violations,
               result->leftover_keys);
    fflush(stdout);
}

static void table_summary(const struct printer *printer)
{
    if (printer->series_count == 0 || printer->series[0].count < 2)
        return;
    printf("\nmiddle ratio of the runs\n%-14s%10s%10s%10s%10s\n", "scenario", "runs", "pairs/s",
           "p50", "p99");
    for (size_t i = 0; i < printer->series_count; i++) {
        struct ratio ratio = middle(&printer->series[i]);
        printf("%-14s%10zu%9.2fx%9.2fx%9.2fx\n", printer->series[i].scenario->name,
               printer->series[i].count, ratio.rate, ratio.p50, ratio.p99);
    }
}

/* ---- CSV ---- */

static void csv_side(const struct scenario_result *result, const char *name,
                     const struct result *side)
{
    printf("%s,%u,%s,%u,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%ld,%.1f", result->scenario->name,
           result->run, name, result->scenario->depth, side->pairs, side->failed, side->violations,
           result->leftover_keys, result_pairs_per_second(side));
    for (size_t i = 0; i < POINTS; i++)
        printf(",%.1f", percentile_us(&side->acquire, points[i]));
    for (size_t i = 0; i < POINTS; i++)
        printf(",%.1f", percentile_us(&side->pair, points[i]));
    printf("\n");
    fflush(stdout);
}

static void csv_header(void)
{
    printf("scenario,run,side,depth,pairs,failed,violations,leftover_keys,pairs_per_s");
    for (int kind = 0; kind < 2; kind++) {
        for (size_t i = 0; i < POINTS; i++)
            printf(",%s_%s_us", kind == 0 ? "acquire" : "pair", point_names[i]);
    }
    printf("\n");
}

/* ---- JSON ---- */

static json_t *json_percentiles(const struct histogram *histogram)
{
    json_t *object = json_object();
    for (size_t i = 0; i < POINTS; i++)
        json_object_set_new(object, point_names[i], json_real(percentile_us(histogram, points[i])));
    return object;
}

static json_t *json_side(const char *name, const struct result *side)
{
    return json_pack(
        "{s:s, s:I, s:I, s:s, s:I, s:f, s:I, s:I, s:f, s:o, s:o}", "side", name, "pairs",
        (json_int_t)side->pairs, "failed", (json_int_t)side->failed, "last_error",
        side->last_error == 0 ? "" : redlock_error_name(side->last_error), "violations",
        (json_int_t)side->violations, "pairs_per_s", result_pairs_per_second(side), "one_round",
        (json_int_t)side->one_round, "two_rounds", (json_int_t)side->two_rounds,
        "servers_us_per_pair", servers_us_per_pair(side), "acquire_us",
        json_percentiles(&side->acquire), "pair_us", json_percentiles(&side->pair));
}

static json_t *json_ratio(const struct ratio *ratio)
{
    return json_pack("{s:f, s:f, s:f}", "pairs_per_s", ratio->rate, "pair_p50", ratio->p50,
                     "pair_p99", ratio->p99);
}

static void json_add(struct printer *printer, const struct scenario_result *result)
{
    json_t *sides = json_array();
    json_array_append_new(sides, json_side(result->name_a, &result->a));
    json_t *object = json_pack("{s:s, s:i, s:i, s:I, s:b, s:o}", "scenario", result->scenario->name,
                               "run", (int)result->run, "depth", (int)result->scenario->depth,
                               "leftover_keys", (json_int_t)result->leftover_keys, "passed",
                               scenario_passed(result), "sides", sides);
    if (result->name_b != NULL) {
        struct ratio ratio = ratio_of(result);
        json_array_append_new(sides, json_side(result->name_b, &result->b));
        json_object_set_new(object, "ratio", json_ratio(&ratio));
    }
    json_array_append_new(printer->results, object);
}

static void json_open(struct printer *printer, const struct environment *env, uint64_t seed,
                      uint64_t ttl_ms)
{
    printer->results = json_array();
    printer->document = json_pack(
        "{s:s, s:{s:s, s:I, s:s, s:s, s:s, s:s, s:s, s:s, s:I}, s:I, s:I, s:O}", "schema",
        "redlock.bench/1", "environment", "cpu", env->cpu, "cpus", (json_int_t)env->cpus, "kernel",
        env->kernel, "compiler", env->compiler, "redlock", env->redlock, "hiredis", env->hiredis,
        "libsodium", env->libsodium, "server", env->server, "servers", (json_int_t)env->servers,
        "seed", (json_int_t)seed, "ttl_ms", (json_int_t)ttl_ms, "results", printer->results);
}

static void json_close(struct printer *printer)
{
    json_t *middles = json_object();
    for (size_t i = 0; i < printer->series_count; i++) {
        struct ratio ratio = middle(&printer->series[i]);
        json_object_set_new(middles, printer->series[i].scenario->name, json_ratio(&ratio));
    }
    json_object_set_new(printer->document, "middle_ratios", middles);
    json_dumpf(printer->document, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    printf("\n");
    json_decref(printer->results);
    json_decref(printer->document);
}

/* ---- */

struct printer *printer_open(enum print_format format, const struct environment *environment,
                             uint64_t seed, uint64_t ttl_ms)
{
    struct printer *printer = calloc(1, sizeof *printer);
    if (printer == NULL)
        return NULL;
    printer->format = format;
    if (format == PRINT_TABLE)
        table_header(environment, seed, ttl_ms);
    else if (format == PRINT_CSV)
        csv_header();
    else
        json_open(printer, environment, seed, ttl_ms);
    return printer;
}

void printer_add(struct printer *printer, const struct scenario_result *result)
{
    if (result->name_b != NULL)
        remember(printer, result);
    if (printer->format == PRINT_TABLE) {
        table_add(result);
    } else if (printer->format == PRINT_CSV) {
        csv_side(result, result->name_a, &result->a);
        if (result->name_b != NULL)
            csv_side(result, result->name_b, &result->b);
    } else {
        json_add(printer, result);
    }
}

void printer_close(struct printer *printer)
{
    if (printer->format == PRINT_TABLE)
        table_summary(printer);
    else if (printer->format == PRINT_JSON)
        json_close(printer);
    free(printer);
}
