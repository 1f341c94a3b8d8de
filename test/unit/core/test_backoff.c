/* SPDX-License-Identifier: MIT
 * Backoff: the bounds of a delay, and that the whole range between them is used. */
/* Saves the time of Check's note about each assertion; see suite.h. */
#define SUITE_MANY_ASSERTIONS
#include "core/backoff.h"

#include "suite.h"

static const struct rl_backoff BOUNDS = {.min_ns = 10 * RL_MS, .max_ns = 200 * RL_MS};

/* The range in which a delay must lie. */
struct range {
    struct rl_backoff bounds;
    unsigned failures; /* attempts that have failed before */
    uint64_t round_trip_ns;
    uint64_t low_ns, high_ns;
};

static const struct range RANGES[] = {
    {{10 * RL_MS, 200 * RL_MS}, 0, 0, 10 * RL_MS, 10 * RL_MS},
    {{10 * RL_MS, 200 * RL_MS}, 1, 0, 10 * RL_MS, 20 * RL_MS},
    {{10 * RL_MS, 200 * RL_MS}, 4, 0, 10 * RL_MS, 160 * RL_MS},
    {{10 * RL_MS, 200 * RL_MS}, 5, 0, 10 * RL_MS, 200 * RL_MS}, /* bounded by max_ns */
    {{10 * RL_MS, 200 * RL_MS}, UINT32_MAX, 0, 10 * RL_MS, 200 * RL_MS},
    {{10 * RL_MS, 200 * RL_MS}, 1, 3 * RL_MS, 10 * RL_MS, 20 * RL_MS},
    {{10 * RL_MS, 200 * RL_MS}, 1, 5 * RL_MS, 15 * RL_MS, 30 * RL_MS}, /* 3 round trips */
    /* Round trips raise the lower bound to nearly max_ns, or above it: still a random range. */
    {{10 * RL_MS, 200 * RL_MS}, 9, 60 * RL_MS, 180 * RL_MS, 360 * RL_MS},
    {{10 * RL_MS, 200 * RL_MS}, 9, 90 * RL_MS, 270 * RL_MS, 540 * RL_MS},
    {{300 * RL_MS, 200 * RL_MS}, 3, 0, 300 * RL_MS, 300 * RL_MS},
    {{1, UINT64_MAX}, 63, 0, 1, UINT64_C(1) << 63},
    {{1, UINT64_MAX}, 64, 0, 1, UINT64_MAX},
    {{3, UINT64_MAX}, 80, 0, 3, UINT64_MAX}, /* doubling saturates */
    {{0, 0}, 5, 0, 0, 0},
    {{0, 7}, 5, 0, 0, 0},
    {{1, 10}, 0, UINT64_MAX, UINT64_MAX, UINT64_MAX}, /* tripling saturates */
};
#define RANGE_COUNT (sizeof RANGES / sizeof RANGES[0])

START_TEST(delays_lie_in_the_exact_range)
{
    const struct range *range = &RANGES[_i];
    uint64_t span = range->high_ns - range->low_ns;

    ck_assert_uint_eq(rl_backoff_ns(&range->bounds, range->failures, range->round_trip_ns, 0),
                      range->low_ns);
    ck_assert_uint_eq(rl_backoff_ns(&range->bounds, range->failures, range->round_trip_ns, span),
                      range->high_ns);
    uint64_t word = 88172645463325252u;
    for (unsigned i = 0; i < 1000; i++) {
        word = word * 6364136223846793005u + 1442695040888963407u;
        uint64_t delay_ns =
            rl_backoff_ns(&range->bounds, range->failures, range->round_trip_ns, word);
        ck_assert_uint_ge(delay_ns, range->low_ns);
        ck_assert_uint_le(delay_ns, range->high_ns);
    }
}
END_TEST

/* Contenders with different random words get different delays, from the whole range. */
START_TEST(delays_are_spread)
{
    unsigned quarter[4] = {0};
    uint64_t low_ns = 10 * RL_MS, width_ns = 190 * RL_MS / 4 + 1;
    uint64_t word = 1;

    for (unsigned i = 0; i < 4000; i++) {
        word = word * 6364136223846793005u + 1442695040888963407u;
        quarter[(rl_backoff_ns(&BOUNDS, 8, 0, word) - low_ns) / width_ns]++;
    }
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_uint_ge(quarter[i], 850);
        ck_assert_uint_le(quarter[i], 1150);
    }
}
END_TEST

/* The delay before a connection doubles up to its bound, and is at most a quarter shorter. */
START_TEST(connection_delays_double)
{
    static const struct rl_backoff bounds = {50 * RL_MS, 2 * RL_SECOND};
    uint64_t expected_ns = 50 * RL_MS;

    for (unsigned failures = 0; failures < 100; failures++) {
        ck_assert_uint_eq(rl_backoff_connect_ns(&bounds, failures, 0), expected_ns);
        ck_assert_uint_eq(rl_backoff_connect_ns(&bounds, failures, expected_ns / 4),
                          expected_ns - expected_ns / 4);
        ck_assert_uint_eq(rl_backoff_connect_ns(&bounds, failures, expected_ns / 4 + 1),
                          expected_ns);
        expected_ns = rl_min_u64(2 * expected_ns, bounds.max_ns);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("core_backoff");
    TCase *tcase = tcase_create("backoff");
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, delays_lie_in_the_exact_range, 0, (int)RANGE_COUNT);
    tcase_add_test(tcase, delays_are_spread);
    tcase_add_test(tcase, connection_delays_double);
    return suite_run(suite);
}
