/* SPDX-License-Identifier: MIT
 * The command for the model of fences: searches a row of the table, or all of them, or walks at
 * random. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mutations.h"
#include "search.h"
#include "walk.h"

/* Prints the usage. Returns `status`. */
static int usage(int status)
{
    fputs("usage: fence-model                  all rows of the table, also the long ones\n"
          "       fence-model --short          without the long ones\n"
          "       fence-model NAME...          these rows, and the events of a violation\n"
          "       fence-model --list           what the rows are\n"
          "       fence-model --walks COUNT [--seed N] [NAME]\n"
          "                                    random walks, up to five nodes and four attempts;\n"
          "                                    with a rule switched off as in this row\n"
          "exit status: 0 as expected, 1 not, 2 no memory, 64 no such argument\n",
          status == 0 ? stdout : stderr);
    return status;
}

/* Returns the seconds since `start`. */
static double seconds_since(const struct timespec *start)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - start->tv_sec) + (double)(now.tv_nsec - start->tv_nsec) / 1e9;
}

/* Searches the model of a row and prints the result; writes the events of a violation to `trace`
 * unless it is NULL. Returns true if the result is the expected one. */
static bool search_row(const struct row *row, FILE *trace)
{
    struct model model = row_model(row);
    struct timespec start;

    clock_gettime(CLOCK_MONOTONIC, &start);
    struct search found = search_all(&model, true, ROWS_STATES_MAX, trace);
    bool fine = row_is_as_expected(row, &found);
    printf("%-22s %9llu states %10llu events  %-22s %6.1f s%s\n", row->name,
           (unsigned long long)found.states, (unsigned long long)found.steps,
           found.violated ? "violated" : (found.complete ? "complete, none" : "NOT COMPLETE"),
           seconds_since(&start), fine ? "" : "  NOT AS EXPECTED");
    fflush(stdout);
    return fine;
}

/* Searches all rows, or the short ones. Returns true if all results are the expected ones. */
static bool search_table(bool also_long)
{
    bool fine = true;

    for (unsigned i = 0; i < ROWS_COUNT; i++)
        if (also_long || !ROWS[i].is_long)
            fine = search_row(&ROWS[i], NULL) && fine;
    return fine;
}

/* Walks through random models, with the broken rules of `row` unless it is NULL. Returns true if
 * the result is the expected one. */
static bool walk_row(const struct row *row, uint64_t count, uint64_t seed)
{
    struct timespec start;

    clock_gettime(CLOCK_MONOTONIC, &start);
    struct walks walks = walk_all(row == NULL ? 0 : row->broken, seed, count, NULL);
    printf("%llu walks from seed %llu, %llu events; %llu fences after one round, %llu after two; "
           "%llu nodes forgot, %llu were brought back; %s; %.1f s\n",
           (unsigned long long)walks.walks, (unsigned long long)seed,
           (unsigned long long)walks.events, (unsigned long long)walks.fast,
           (unsigned long long)walks.slow, (unsigned long long)walks.forgot,
           (unsigned long long)walks.returned, walks.violated ? "violated" : "no violation",
           seconds_since(&start));
    if (walks.violated)
        walk_all(row == NULL ? 0 : row->broken, walks.seed, 1, stdout);
    return walks.violated == (row != NULL && row->expected == EXPECT_FOUND);
}

/* Runs the command --walks with the arguments of the program. Returns the exit status. */
static int walk_command(int argc, char **argv)
{
    uint64_t count = strtoull(argv[2], NULL, 10), seed = 1;
    const struct row *row = NULL;
    int at = 3;

    if (count == 0)
        return usage(64);
    if (at + 1 < argc && strcmp(argv[at], "--seed") == 0) {
        seed = strtoull(argv[at + 1], NULL, 10);
        at += 2;
    }
    if (at < argc) {
        row = row_find(argv[at]);
        if (row == NULL)
            return usage(64);
    }
    return walk_row(row, count, seed) ? 0 : 1;
}

/* Runs the command that the arguments name. Returns the exit status that usage() prints. */
int main(int argc, char **argv)
{
    bool fine = true;

    if (argc == 1)
        return search_table(true) ? 0 : 1;
    if (strcmp(argv[1], "--help") == 0)
        return usage(0);
    if (strcmp(argv[1], "--short") == 0)
        return search_table(false) ? 0 : 1;
    if (strcmp(argv[1], "--walks") == 0)
        return argc > 2 ? walk_command(argc, argv) : usage(64);
    if (strcmp(argv[1], "--list") == 0) {
        for (unsigned i = 0; i < ROWS_COUNT; i++)
            printf("%-22s %s %s\n", ROWS[i].name,
                   ROWS[i].expected == EXPECT_FOUND ? "broken:" : "holds: ", ROWS[i].what);
        return 0;
    }
    for (int i = 1; i < argc; i++) {
        const struct row *row = row_find(argv[i]);
        if (row == NULL)
            return usage(64);
        printf("%s\n", row->what);
        fine = search_row(row, stdout) && fine;
    }
    return fine ? 0 : 1;
}
