/* SPDX-License-Identifier: MIT
 * Checks that each case of contention_cases.c stays within its bounds. test/mutations/ checks that
 * a case leaves its bounds without the rule of the library that it needs. */
#include "contention.h"
#include "suite.h"
#include "wait.h"

#include <sodium.h>

#define SEEDS 2 /* seeds per case */

/* Runs a case with several seeds: no violation, and all results within bounds. */
static void run_case(const struct sim_case *scenario, bool lines)
{
    static struct sim_world world;
    static struct sim_contention contention;

    for (uint64_t seed = 1; seed <= (wait_scaled_ms(1) > 1 ? 1 : SEEDS); seed++) {
        bool good = sim_case_run(scenario, seed, lines, false, &world, &contention);
        ck_assert_msg(good, "%s, seed %d, lines %s: %s", scenario->name, (int)seed,
                      lines ? "on" : "off", world.violation);
        ck_assert_uint_gt(contention.all, 0);
        sim_world_free(&world);
    }
}

/* Runs case number _i with clients that use lines. */
START_TEST(stays_within_bounds)
{
    run_case(sim_case_at((unsigned)_i), true);
}
END_TEST

/* Runs common case number _i with clients that do not use lines. */
START_TEST(stays_within_bounds_without_lines)
{
    run_case(&sim_common_cases[_i], false);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("contention");
    TCase *tc = tcase_create("cases");

    if (sodium_init() < 0)
        return EXIT_FAILURE;
    tcase_set_timeout(tc, 280);
    tcase_add_loop_test(tc, stays_within_bounds, 0, (int)sim_case_count());
    tcase_add_loop_test(tc, stays_within_bounds_without_lines, 0, (int)sim_common_case_count);
    suite_add_tcase(suite, tc);
    return suite_run_nofork(suite);
}
