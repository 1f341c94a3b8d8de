/* SPDX-License-Identifier: MIT
 * Builds and prints the JSON document. */
#include "print_parts.h"

#include <errno.h>
#include <redlock/redlock.h>
#include <stdlib.h>

#define BINS 100 /* parts of a timeline */

/* A document between json_print_open() and json_print_close(). */
struct json_print {
    json_t *document;
    json_t *results; /* array in `document`; both references are owned */
};

/* Returns the percentiles of reports in microseconds, by name. */
static json_t *json_percentiles(const struct histogram *histogram)
{
    json_t *object = json_object();
    for (size_t i = 0; i < HISTOGRAM_POINTS; i++)
        json_object_set_new(object, histogram_point_columns[i],
                            json_real(print_percentile_us(histogram, histogram_points[i])));
    return object;
}

/* Returns a curve for plots: pairs of percentile and microseconds, closer together towards 100
 * %. */
static json_t *json_curve(const struct histogram *histogram)
{
    json_t *list = json_array();
    for (unsigned left = 10000; left >= 1; left -= left > 1000  ? 500
                                                   : left > 100 ? 50
                                                   : left > 10  ? 5
                                                                : 1)
        json_array_append_new(list, json_pack("[f, f]", (10000.0 - left) / 100.0,
                                              print_percentile_us(histogram, 10000 - left)));
    json_array_append_new(list, json_pack("[f, f]", 100.0, print_percentile_us(histogram, 10000)));
    return list;
}

/* Returns one side of a result. */
static json_t *json_side(const char *name, const struct result *side)
{
    double pairs = (double)side->pairs;
    json_t *object = json_pack(
        "{s:s, s:I, s:I, s:s, s:I, s:f, s:I, s:I, s:f}", "side", name, "pairs",
        (json_int_t)side->pairs, "failed", (json_int_t)side->failed, "last_error",
        side->last_error == 0 ? "" : redlock_error_name(side->last_error), "violations",
        (json_int_t)side->violations, "pairs_per_s", result_pairs_per_second(side), "one_round",
        (json_int_t)side->one_round, "two_rounds", (json_int_t)side->two_rounds,
        "servers_us_per_pair", print_servers_us_per_pair(side));
    json_t *more = json_pack("{s:f, s:f, s:f, s:o, s:o, s:o}", "attempts_per_grant",
                             result_attempts_per_grant(side), "client_user_us_per_pair",
                             result_divide((double)side->user_us, pairs), "client_sys_us_per_pair",
                             result_divide((double)side->sys_us, pairs), "acquire_us",
                             json_percentiles(&side->acquire), "pair_us",
                             json_percentiles(&side->pair), "pair_curve", json_curve(&side->pair));
    json_object_update(object, more);
    json_decref(more);
    return object;
}

/* Returns the ratios of a result. */
static json_t *json_ratio(const struct ratio *ratio)
{
    return json_pack("{s:f, s:f, s:f, s:f, s:f}", "pairs_per_s", ratio->rate, "pair_p50",
                     ratio->p50, "pair_p99", ratio->p99, "acquire_p50_pings", ratio->pings,
                     "of_servers_limit", ratio->share);
}

/* Divides the run into 100 equal parts and returns for each [start, operations, failed, p50, p99,
 * max], times in milliseconds. Sorts the samples. */
static json_t *json_timeline(struct timeline *timeline)
{
    json_t *bins = json_array(), *marks = json_array();
    timeline_sort(timeline);
    uint64_t end_ns = timeline->count == 0 ? 0 : timeline->samples[timeline->count - 1].at_ns + 1;
    size_t at = 0;
    for (unsigned i = 1; i <= BINS; i++) {
        struct timeline_bin bin;
        timeline_bin(timeline, &at, end_ns * i / BINS, &bin);
        json_array_append_new(
            bins, json_pack("[f, I, I, f, f, f]", (double)(end_ns * (i - 1) / BINS) / 1e6,
                            (json_int_t)bin.count, (json_int_t)bin.failed, (double)bin.p50_ns / 1e6,
                            (double)bin.p99_ns / 1e6, (double)bin.max_ns / 1e6));
    }
    for (size_t i = 0; i < timeline->marks_count; i++)
        json_array_append_new(marks, json_pack("[f, s]", (double)timeline->marks[i].at_ns / 1e6,
                                               timeline->marks[i].text));
    return json_pack("{s:o, s:o}", "bins", bins, "marks", marks);
}

/* Returns the figures of a result, by name. */
static json_t *json_figures(const struct scenario_result *result)
{
    json_t *object = json_object();
    for (size_t i = 0; i < result->figures_count; i++)
        json_object_set_new(object, result->figures[i].name, json_real(result->figures[i].value));
    return object;
}

/* Creates the document with its head. Aborts if out of memory. */
struct json_print *json_print_open(const struct print_head *head)
{
    struct json_print *json = calloc(1, sizeof *json);
    if (json == NULL)
        abort();
    json->results = json_array();
    json->document =
        json_pack("{s:s, s:o, s:I, s:I, s:i, s:O}", "schema", "redlock.bench/1", "environment",
                  environment_json(&head->environment), "seed", (json_int_t)head->seed, "ttl_ms",
                  (json_int_t)head->ttl_ms, "runs", (int)head->runs, "results", json->results);
    return json;
}

/* Adds one result with its sides, ratio, figures and timeline to the document. */
void json_print_add(struct json_print *json, const struct scenario_result *result,
                    const struct ratio *ratio)
{
    json_t *sides = json_array();
    json_array_append_new(sides, json_side(result->name_a, &result->a));
    json_t *object = json_pack("{s:s, s:i, s:i, s:I, s:b, s:o}", "scenario", result->scenario->name,
                               "run", (int)result->run, "depth", (int)result->scenario->depth,
                               "leftover_keys", (json_int_t)result->leftover_keys, "passed",
                               scenario_passed(result), "sides", sides);
    if (result->name_b != NULL) {
        json_array_append_new(sides, json_side(result->name_b, &result->b));
        json_object_set_new(object, "ratio", json_ratio(ratio));
    }
    if (result->figures_count != 0)
        json_object_set_new(object, "figures", json_figures(result));
    if (result->timeline != NULL)
        json_object_set_new(object, "timeline", json_timeline(result->timeline));
    json_array_append_new(json->results, object);
}

/* Writes the document to a file. Returns 0, or -1 and errno. */
static int dump(const json_t *document, FILE *file)
{
    if (json_dumpf(document, file, JSON_INDENT(2) | JSON_REAL_PRECISION(6)) != 0)
        return -1;
    return fputc('\n', file) == EOF || fflush(file) != 0 ? -1 : 0;
}

/* Adds the median ratios, writes the document to `out` and `save` (NULL: none), closes `save` and
 * frees the document. Returns 0, or -1 and errno. */
int json_print_close(struct json_print *json, const struct series *series, size_t count, FILE *out,
                     FILE *save)
{
    int status = 0;
    json_t *medians = json_object();
    for (size_t i = 0; i < count; i++) {
        struct ratio ratio = ratio_median(&series[i]);
        json_object_set_new(medians, series[i].scenario->name, json_ratio(&ratio));
    }
    json_object_set_new(json->document, "median_ratios", medians);
    if (out != NULL && dump(json->document, out) != 0)
        status = -1;
    if (save != NULL && (dump(json->document, save) != 0 || fclose(save) != 0))
        status = -1;
    json_decref(json->results);
    json_decref(json->document);
    free(json);
    return status;
}
