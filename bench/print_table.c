/* SPDX-License-Identifier: MIT
 * Prints the table for people: a line for each side, and their ratio below. */
#include "print_parts.h"

#include <inttypes.h>
#include <redlock/redlock.h>

/* Prints the head of the report and of the table. */
void table_open(const struct print_head *head)
{
    printf("redlock-bench: acquire and release\n");
    environment_print(&head->environment, "  ");
    printf("  seed     %" PRIu64 ", ttl %" PRIu64 " ms, runs %u\n\n", head->seed, head->ttl_ms,
           head->runs);
    printf("%-14s%-11s%9s", "scenario", "side", "pairs/s");
    for (size_t i = 0; i < HISTOGRAM_POINTS; i++)
        printf("%6s us", histogram_point_names[i]);
    printf("%8s%8s%8s\n", "att/gr", "cpu us", "failed");
    fflush(stdout);
}

/* Prints microseconds, with a digit after the point unless the number is large. */
static void print_us(double us)
{
    printf("%9.*f", us < 9999.95 ? 1 : 0, us);
}

/* Prints the line of one side. */
static void table_side(const char *scenario, const char *name, const struct result *result)
{
    printf("%-14s%-11s%9.0f", scenario, name, result_pairs_per_second(result));
    for (size_t i = 0; i < HISTOGRAM_POINTS; i++)
        print_us(print_percentile_us(&result->pair, histogram_points[i]));
    printf("%8.2f%8.1f%8" PRIu64 "%s%s\n", result_attempts_per_grant(result),
           result_client_us_per_pair(result), result->failed, result->last_error != 0 ? "  " : "",
           result->last_error != 0 ? redlock_strerror(result->last_error) : "");
}

/* Prints the servers' processor time and the rounds of fences, if they were measured. */
static void table_fences(const char *name, const struct result *result)
{
    if (result->servers_us != 0)
        printf("%-14s%-11s%9.1f us of all servers' processors per pair\n", "", name,
               print_servers_us_per_pair(result));
    if (result->one_round + result->two_rounds != 0)
        printf("%-14s%-11s%9.2f %% of %" PRIu64 " fences after one round\n", "", name,
               print_one_round_percent_of(result), result->one_round + result->two_rounds);
}

/* Prints the figures of the scenario by name, and the marks of its timeline. */
static void table_figures(const struct scenario_result *result)
{
    for (size_t i = 0; i < result->figures_count; i++)
        printf("%s%s %.6g", i == 0 ? "                         " : ", ", result->figures[i].name,
               result->figures[i].value);
    if (result->figures_count != 0)
        printf("\n");
    for (size_t i = 0; result->timeline != NULL && i < result->timeline->marks_count; i++)
        printf("%-25s%.3f s: %s\n", "", (double)result->timeline->marks[i].at_ns / 1e9,
               result->timeline->marks[i].text);
}

/* Prints a line for each side, their ratio, and what only some scenarios have. */
void table_add(const struct scenario_result *result, const struct ratio *ratio)
{
    table_side(result->scenario->name, result->name_a, &result->a);
    if (result->name_b != NULL) {
        table_side("", result->name_b, &result->b);
        printf("%-14s%-11s%8.2fx%8.2fx%26.2fx\n", "", "ratio", ratio->rate, ratio->p50, ratio->p99);
    }
    table_fences(result->name_a, &result->a);
    if (result->name_b != NULL)
        table_fences(result->name_b, &result->b);
    table_figures(result);
    uint64_t violations = result->a.violations + result->b.violations;
    if (violations != 0 || result->leftover_keys > 0)
        printf("%-14sWRONG: %" PRIu64 " violations, %ld keys left\n", "", violations,
               result->leftover_keys);
    if (result->leftover_keys < 0)
        printf("%-14sWRONG: a server does not reply: leftover keys unknown; see redlock nodes\n",
               "");
}

/* Explains the columns, below the table. */
static const char table_end[] =
    "\npairs/s: acquired and released; p50 to max: time of a pair; att/gr: attempts per grant\n"
    "cpu us: processor time of this process per pair, user and system\n";

/* Head of the table of ratios; %s is its title. */
static const char ratios_head[] =
    "\n%s\n"
    "scenario      runs   pairs/s       p50       p99   acquire/PING   of servers' limit\n";

/* Prints a ratio, or blanks if it does not apply. */
static void print_part(int width, double value, double factor, const char *unit)
{
    if (value > 0.0)
        printf("%*.2f%s", width, value * factor, unit);
    else
        printf("%*s", width + 1, "");
}

/* Prints the explanation of the columns and the median ratios of `count` scenarios. */
void table_close(const struct series *series, size_t count)
{
    fputs(table_end, stdout);
    if (count == 0)
        return;
    printf(ratios_head, series[0].count > 1
                            ? "ratios to the other side and to the limits, median of the runs"
                            : "ratios to the other side and to the limits");
    for (size_t i = 0; i < count; i++) {
        struct ratio ratio = ratio_median(&series[i]);
        printf("%-14s%4zu%9.2fx%9.2fx%9.2fx", series[i].scenario->name, series[i].count, ratio.rate,
               ratio.p50, ratio.p99);
        print_part(14, ratio.pings, 1.0, "x");
        print_part(19, ratio.share, 100.0, "%");
        printf("\n");
    }
}
