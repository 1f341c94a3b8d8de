/* SPDX-License-Identifier: MIT
 * All votes, in all orders, each with and without a timeout, for up to five nodes: rounds, leases,
 * and a small world of servers. Runs in the optimized build only. */
/* Saves the time of Check's note about each assertion; see suite.h. */
#define SUITE_MANY_ASSERTIONS
#include "suite.h"
#include "walk.h"

/* Prints the size of a walk. */
static void report(const char *what, unsigned nodes)
{
    fprintf(stderr, "# %s, %u nodes: %llu sequences of votes, %llu steps\n", what, nodes,
            walk_tally.sequences, walk_tally.steps);
}

START_TEST(every_order_of_replies_to_an_acquisition)
{
    unsigned nodes = (unsigned)_i;

    walk_acquire(nodes);
    report("acquire", nodes);
    ck_assert_uint_gt(walk_tally.sequences, nodes == 5 ? 100000 : 4);
}
END_TEST

START_TEST(every_order_of_replies_to_an_extension)
{
    unsigned nodes = (unsigned)_i;

    walk_extend(nodes);
    report("extend", nodes);
    ck_assert_uint_gt(walk_tally.sequences, nodes == 5 ? 100000 : 4);
}
END_TEST

START_TEST(every_order_of_replies_to_a_fenced_acquisition)
{
    unsigned nodes = (unsigned)_i;

    walk_fence(nodes);
    report("fence", nodes);
    ck_assert_uint_gt(walk_tally.sequences, nodes == 3 ? 10000 : 4);
}
END_TEST

START_TEST(every_order_of_replies_to_a_release)
{
    unsigned nodes = (unsigned)_i;

    walk_release(nodes);
    report("release", nodes);
    ck_assert_uint_gt(walk_tally.sequences, nodes == 5 ? 100000 : 4);
}
END_TEST

static const struct world_limits WORLDS[] = {
    {.nodes = 1, .flushes = 3, .visits = 3, .failures = 3, .rounds = 6, .foreign = 2},
    {.nodes = 2, .flushes = 3, .visits = 3, .failures = 3, .rounds = 6, .foreign = 2},
    {.nodes = 3, .flushes = 2, .visits = 2, .failures = 2, .rounds = 4, .foreign = 1},
    {.nodes = 3, .flushes = 1, .visits = 1, .failures = 3, .rounds = 4, .orphans = true},
    {.nodes = 4, .flushes = 2, .visits = 1, .failures = 1, .rounds = 3, .foreign = 1},
    {.nodes = 5, .flushes = 3, .visits = 1, .rounds = 3},
    {.nodes = 5, .flushes = 3, .visits = 1, .failures = 1, .rounds = 2},
};

START_TEST(restored_keys_hide_no_other_holder)
{
    const struct world_limits *limits = &WORLDS[_i];
    struct world_tally tally = walk_world(limits);

    fprintf(stderr,
            "# world %d, %u nodes: %llu states, %llu steps; %llu extensions, %llu losses, %llu of "
            "them after a visit, %llu races with a slow SET\n",
            _i, limits->nodes, tally.states, walk_tally.steps, tally.extended, tally.lost,
            tally.found_out, tally.races);
    ck_assert_uint_gt(tally.extended, 0);
    ck_assert_uint_gt(tally.found_out, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("exhaustive");
    TCase *tcase = tcase_create("votes");
    tcase_set_timeout(tcase, 120);
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, every_order_of_replies_to_an_acquisition, 1, WALK_NODES_MAX + 1);
    tcase_add_loop_test(tcase, every_order_of_replies_to_an_extension, 1, WALK_NODES_MAX + 1);
    tcase_add_loop_test(tcase, every_order_of_replies_to_a_fenced_acquisition, 1, 5);
    tcase_add_loop_test(tcase, every_order_of_replies_to_a_release, 1, WALK_NODES_MAX + 1);
    tcase = tcase_create("worlds");
    tcase_set_timeout(tcase, 120);
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, restored_keys_hide_no_other_holder, 0,
                        sizeof WORLDS / sizeof WORLDS[0]);
    return suite_run(suite);
}
