/* SPDX-License-Identifier: MIT
 * The algorithm of fencing tokens as a model (model.h): all states of the small cases, random walks
 * through larger ones, and every rule switched off once, which must be detected. A row is one model
 * of the table in mutations.c; long rows are left to ./dev model. */
#include <string.h>

#include "mutations.h"
#include "search.h"
#include "suite.h"
#include "walk.h"

/* Prints the size of a search. */
static void note(const struct row *row, const struct search *found)
{
    fprintf(stderr, "# %s: %llu states, %llu events, %s\n", row->name,
            (unsigned long long)found->states, (unsigned long long)found->steps,
            found->violated ? "violated" : (found->complete ? "complete" : "not complete"));
}

/* Returns the short row with this number, counted from 0, or NULL. */
static const struct row *short_row(int number)
{
    for (unsigned i = 0; i < ROWS_COUNT; i++)
        if (!ROWS[i].is_long && number-- == 0)
            return &ROWS[i];
    return NULL;
}

/* Searches the short row _i completely, and compares the result with the expected one. */
START_TEST(every_short_row_has_its_expected_result)
{
    const struct row *row = short_row(_i);
    struct model model = row_model(row);
    struct search found = search_all(&model, true, ROWS_STATES_MAX, NULL);
    note(row, &found);
    if (!row_is_as_expected(row, &found))
        ck_abort_msg("%s (%s): %s", row->name, row->what,
                     found.violated ? "violated" : "no violation found");
    ck_assert_uint_gt(found.grants, 0);
}
END_TEST

/* The models of all rows fit, also those of the long rows, which only ./dev model searches. */
START_TEST(all_rows_can_be_searched)
{
    for (unsigned i = 0; i < ROWS_COUNT; i++) {
        struct model model = row_model(&ROWS[i]);
        ck_assert_msg(pack_fits(&model), "%s: too many bits", ROWS[i].name);
        ck_assert_ptr_eq(row_find(ROWS[i].name), &ROWS[i]);
        struct search found = search_all(&model, true, 1000, NULL);
        ck_assert_uint_gt(found.states, 700);
    }
}
END_TEST

/* The events of a violation are printed in order, and the last one returns a fencing token. */
START_TEST(a_violation_is_printed)
{
    const struct row *row = row_find("fewer-grants");
    struct model model = row_model(row);
    char *text = NULL;
    size_t length = 0;
    FILE *trace = open_memstream(&text, &length);

    ck_assert_ptr_nonnull(trace);
    struct search found = search_all(&model, true, ROWS_STATES_MAX, trace);
    fclose(trace);
    unsigned lines = 0;
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    ck_assert(found.violated);
    ck_assert_uint_eq(lines, found.length);
    ck_assert_ptr_nonnull(strstr(text, "A begins with p"));
    ck_assert_ptr_nonnull(strstr(text, "returns after"));
    free(text);
}
END_TEST

/* The reduced model, with and without names, reaches the same fencing tokens as the one in which
 * each message is a state. _i is 0 for the decisions of the model, 1 for those of the library. */
START_TEST(reductions_change_no_outcome)
{
    struct model model = {.nodes = 3, .attempts = 2, .keys = 1, .proposals = 1, .library = _i != 0};
    struct search every = search_all(&model, true, ROWS_STATES_MAX, NULL);
    model.reduced = true;
    struct search named = search_all(&model, false, ROWS_STATES_MAX, NULL);
    struct search least = search_all(&model, true, ROWS_STATES_MAX, NULL);

    fprintf(stderr, "# %s decide: every message %llu states, reduced %llu, without names %llu\n",
            model.library ? "the library's clients" : "the model's clients",
            (unsigned long long)every.states, (unsigned long long)named.states,
            (unsigned long long)least.states);
    ck_assert(every.complete && named.complete && least.complete);
    ck_assert_mem_eq(&every.outcomes, &least.outcomes, sizeof every.outcomes);
    ck_assert_mem_eq(&named.outcomes, &least.outcomes, sizeof every.outcomes);
    ck_assert_uint_lt(least.states, named.states);
    ck_assert_uint_lt(named.states, every.states);
    ck_assert(every.outcomes.word[4] != 0); /* an attempt that began after another had returned */
}
END_TEST

/* Random walks with all rules find no violation. The lower bounds at the end prove that the walks
 * get into each part of the algorithm. */
START_TEST(random_walks_find_no_violation)
{
    struct walks walks = walk_all(0, 1, 60000, NULL);

    fprintf(stderr,
            "# %llu walks, %llu events, %llu fences after one round, %llu after two, %llu nodes "
            "forgot, %llu were brought back\n",
            (unsigned long long)walks.walks, (unsigned long long)walks.events,
            (unsigned long long)walks.fast, (unsigned long long)walks.slow,
            (unsigned long long)walks.forgot, (unsigned long long)walks.returned);
    if (walks.violated)
        ck_abort_msg("seed %llu breaks the order of fences", (unsigned long long)walks.seed);
    ck_assert_uint_gt(walks.fast, 10000);
    ck_assert_uint_gt(walks.slow, 10000);
    ck_assert_uint_gt(walks.returned, 1000);
}
END_TEST

/* Random walks find the broken rules for which a few thousand of them are enough. */
START_TEST(random_walks_find_broken_rules)
{
    static const char *const NAMES[] = {"increment-one-round", "equal-accepted",  "vote-lowers",
                                        "forgetful",           "raise-unguarded", "lost-counts",
                                        "fewer-acks",          "no-acks",         "fewer-grants",
                                        "fewer-accepted",      "not-above",       "prev-ignored",
                                        "one-prev-ignored",    "back-unmerged"};

    for (unsigned i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        const struct row *row = row_find(NAMES[i]);
        struct walks walks = walk_all(row->broken, 1, 100000, NULL);
        if (!walks.violated)
            ck_abort_msg("%s: not found in %llu walks", row->name, (unsigned long long)walks.walks);
    }
}
END_TEST

int main(void)
{
    int short_rows = 0;

    Suite *suite = suite_create("model");
    TCase *search = tcase_create("search"), *walks = tcase_create("walks");

    while (short_row(short_rows) != NULL)
        short_rows++;
    tcase_set_timeout(search, 600);
    tcase_set_timeout(walks, 600);
    tcase_add_loop_test(search, every_short_row_has_its_expected_result, 0, short_rows);
    tcase_add_test(search, all_rows_can_be_searched);
    tcase_add_test(search, a_violation_is_printed);
    tcase_add_loop_test(search, reductions_change_no_outcome, 0, 2);
    tcase_add_test(walks, random_walks_find_no_violation);
    tcase_add_test(walks, random_walks_find_broken_rules);
    suite_add_tcase(suite, search);
    suite_add_tcase(suite, walks);
    return suite_run(suite);
}
