/* SPDX-License-Identifier: MIT
 * Runs the simulator with fixed seeds, and then with random ones for a while. A failure names its
 * seed; redlock-sim --seed N --trace prints the run. */
#include "campaign.h"
#include "suite.h"
#include "wait.h"
#include "world.h"

#include <inttypes.h>
#include <sodium.h>

#define FIXED_RUNS 3000 /* number of fixed seeds: 1 to 3000 */
#define FRESH_RUNS 6000 /* number of random seeds */

/* Checks that a campaign had no violation. */
static void check(const struct sim_totals *totals)
{
    ck_assert_msg(totals->violations == 0,
                  "%" PRIu64 " violations, the first one with seed %" PRIu64, totals->violations,
                  totals->first_bad);
}

/* Returns the number of runs for this build: all, or a small part in an instrumented build, which
 * is slow. */
static uint64_t scaled(uint64_t count)
{
    uint64_t factor = wait_scaled_ms(1);

    return count / (factor * factor);
}

/* Seeds 1 to FIXED_RUNS run without a violation; every hundredth runs twice with equal results. */
START_TEST(fixed_seeds)
{
    struct sim_totals totals = {0};

    sim_campaign(&totals, 1, 1, scaled(FIXED_RUNS), 0);
    check(&totals);
    ck_assert_uint_eq(totals.runs, scaled(FIXED_RUNS));
    ck_assert_uint_gt(totals.repeats, 0);
}
END_TEST

/* Seeds that once found a fault of the library or of the oracle. */
static const uint64_t FAULT_SEEDS[] = {
    /* Clocks were read again between a decision and its announcement. */
    160763120024880, 452, 1149, 1094, 2964,
    /* Pauses had no random part, and two contenders split the votes again and again. */
    7000108308,
    /* Heads of a semaphore's line notified each other with undos, and tried one slot for ever. */
    154512204572369,
    /* Heads that counted fewer permits kept another client from one that they did not know. */
    300000037401,
    /* A reset that a partition had blocked was never sent again. */
    400000062934,
    /* A PING without a reply made no node suspect, after late replies had ended the suspicion. */
    500000224083,
    /* A client that had stood still acquired a lock and ended it in one turn. */
    600000363251,
    /* A search waited without end for a node to which no probe could be sent. */
    86982698925671};
#define FAULT_SEED_COUNT (sizeof FAULT_SEEDS / sizeof FAULT_SEEDS[0])

/* Runs one of the seeds above, number _i. */
START_TEST(seeds_of_former_faults)
{
    struct sim_totals totals = {0};

    sim_campaign(&totals, FAULT_SEEDS[_i], 1, 1, 0);
    check(&totals);
    ck_assert_uint_eq(totals.runs, 1);
}
END_TEST

/* Random seeds run without a violation. The first seed is printed; those after it follow one by
 * one. */
START_TEST(fresh_seeds)
{
    struct sim_totals totals = {0};
    uint64_t first;

    randombytes_buf(&first, sizeof first);
    first >>= 16;
    fprintf(stderr, "fresh seeds from %" PRIu64 " on\n", first);
    sim_campaign(&totals, first, 1, scaled(FRESH_RUNS), 0);
    sim_totals_print_to(&totals, stderr);
    check(&totals);
    ck_assert_uint_eq(totals.runs, scaled(FRESH_RUNS));
}
END_TEST

/* The runs are worth their time: half of them have 300 events or more, 98 % have a fault, there is
 * at least one grant per run, there are at least three clients, and each kind of fault occurs. */
START_TEST(runs_have_grants_and_faults)
{
    struct sim_totals totals = {0};

    sim_campaign(&totals, 1000000, 1, scaled(1000), 0);
    check(&totals);
    ck_assert_uint_ge(sim_totals_percentile(&totals, 50), 300);
    ck_assert_uint_ge(totals.with_fault * 100, totals.runs * 98);
    ck_assert_uint_eq(totals.clients[0] + totals.clients[1] + totals.clients[2], 0);
    ck_assert_uint_ge(totals.grants, totals.runs);
    if (totals.runs < 100)
        return;
    for (unsigned i = 0; i < SIM_COUNTED; i++)
        ck_assert_msg(totals.injected[i] > 0, "no fault of kind %s", sim_fault_names[i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sim");
    TCase *tc = tcase_create("sim");

    if (sodium_init() < 0)
        return EXIT_FAILURE;
    tcase_set_timeout(tc, (double)wait_scaled_ms(280000) / 1000.0);
    tcase_add_test(tc, fixed_seeds);
    tcase_add_loop_test(tc, seeds_of_former_faults, 0, (int)FAULT_SEED_COUNT);
    tcase_add_test(tc, runs_have_grants_and_faults);
    tcase_add_test(tc, fresh_seeds);
    suite_add_tcase(suite, tc);
    return suite_run_nofork(suite);
}
