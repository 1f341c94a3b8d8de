/* SPDX-License-Identifier: MIT
 * Prints CSV, one line for each side. The head is in lines that begin with '#'. */
#include "print_parts.h"

#include <inttypes.h>

/* Prints the head as comments, and the names of the columns. */
void csv_open(const struct print_head *head)
{
    environment_print(&head->environment, "# ");
    printf("# seed     %" PRIu64 ", ttl %" PRIu64 " ms, runs %u\n", head->seed, head->ttl_ms,
           head->runs);
    printf("scenario,run,side,depth,pairs,failed,violations,leftover_keys,pairs_per_s");
    for (int kind = 0; kind < 2; kind++) {
        for (size_t i = 0; i < HISTOGRAM_POINTS; i++)
            printf(",%s_%s_us", kind == 0 ? "acquire" : "pair", histogram_point_columns[i]);
    }
    printf(",attempts_per_grant,client_user_us_per_pair,client_sys_us_per_pair,figures\n");
    fflush(stdout);
}

/* Prints the line of one side, up to the figures. */
static void csv_side(const struct scenario_result *result, const char *name,
                     const struct result *side)
{
    double pairs = (double)side->pairs;
    printf("%s,%u,%s,%u,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%ld,%.1f", result->scenario->name,
           result->run, name, result->scenario->depth, side->pairs, side->failed, side->violations,
           result->leftover_keys, result_pairs_per_second(side));
    for (size_t i = 0; i < HISTOGRAM_POINTS; i++)
        printf(",%.1f", print_percentile_us(&side->acquire, histogram_points[i]));
    for (size_t i = 0; i < HISTOGRAM_POINTS; i++)
        printf(",%.1f", print_percentile_us(&side->pair, histogram_points[i]));
    printf(",%.4f,%.2f,%.2f,", result_attempts_per_grant(side),
           result_divide((double)side->user_us, pairs), result_divide((double)side->sys_us, pairs));
}

/* Prints one line for each side; the figures follow the first one. */
void csv_add(const struct scenario_result *result)
{
    csv_side(result, result->name_a, &result->a);
    for (size_t i = 0; i < result->figures_count; i++)
        printf("%s%s=%.6g", i == 0 ? "" : ";", result->figures[i].name, result->figures[i].value);
    printf("\n");
    if (result->name_b != NULL) {
        csv_side(result, result->name_b, &result->b);
        printf("\n");
    }
}
