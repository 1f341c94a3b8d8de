/* SPDX-License-Identifier: MIT
 * When the command of `redlock run` is killed, and which durations are refused. */
#include <string.h>

#include "../../../tools/clock.h"
#include "../../../tools/timing.h"
#include "suite.h"

#define MS(n) ((n)*NS_PER_MS)

static const struct kill_time {
    uint64_t deadline_ns, stopped_ns, grace_ms;
    uint64_t kill_ns;
} KILL_TIMES[] = {
    {MS(10000), 0, 5000, MS(9750)},         /* the reserve before the deadline */
    {MS(10000), 0, 0, MS(9750)},            /* also without a grace */
    {MS(10000), MS(2000), 5000, MS(7000)},  /* the end of the grace comes first */
    {MS(10000), MS(5000), 5000, MS(9750)},  /* the grace would end at the deadline */
    {MS(10000), MS(4750), 5000, MS(9750)},  /* both at the same time */
    {MS(10000), MS(12000), 5000, MS(9750)}, /* stopped after the deadline */
    {MS(250), 0, 5000, 1},                  /* not 0, which means "no time" */
    {MS(251), 0, 5000, MS(1)},
    {0, 0, 5000, 1},
};

START_TEST(kill_time)
{
    const struct kill_time *row = &KILL_TIMES[_i];

    ck_assert_uint_eq(timing_kill_ns(row->deadline_ns, row->stopped_ns, row->grace_ms),
                      row->kill_ns);
}
END_TEST

static const struct timing DEFAULTS = {.ttl_ms = 30000,
                                       .max_ttl_ms = 30000,
                                       .validity_ms = 29668,
                                       .renew_ms = 10000,
                                       .grace_ms = 5000,
                                       .try_ms = 250};

/* Renewal, one retry, the grace and the drift together must be less than the TTL, to the
 * millisecond. */
START_TEST(sum_must_be_less_than_the_ttl)
{
    struct timing timing = DEFAULTS;
    char why[512] = "";

    uint64_t rest_ms = timing.ttl_ms - timing.try_ms - timing.grace_ms - timing_drift_ms(&timing);
    timing.renew_ms = rest_ms - 1;
    ck_assert(timing_check(&timing, why, sizeof why));
    timing.renew_ms = rest_ms;
    ck_assert(!timing_check(&timing, why, sizeof why));
    ck_assert_ptr_nonnull(strstr(why, "leaves no time to extend"));
}
END_TEST

/* A grace that is shorter than the reserve counts as the reserve. */
START_TEST(reserve_is_part_of_the_sum)
{
    struct timing timing = DEFAULTS;
    char why[512] = "";

    timing.grace_ms = 0;
    timing.renew_ms = 0;
    timing.ttl_ms = 300;
    timing.validity_ms = KILL_RESERVE_MS;
    ck_assert(!timing_check(&timing, why, sizeof why));
    timing.validity_ms++;
    ck_assert(timing_check(&timing, why, sizeof why));
}
END_TEST

/* The library renews `renew` after the last success. The validity was then the TTL minus the drift.
 */
START_TEST(renewal_begins_in_time)
{
    struct timing timing = DEFAULTS;

    ck_assert_uint_eq(timing_extend_at_ms(&timing),
                      timing.ttl_ms - timing_drift_ms(&timing) - timing.renew_ms);
    timing.renew_ms = timing.ttl_ms;
    ck_assert_uint_eq(timing_extend_at_ms(&timing), 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tools_timing");
    TCase *tcase = tcase_create("timing");
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, kill_time, 0, (int)(sizeof KILL_TIMES / sizeof KILL_TIMES[0]));
    tcase_add_test(tcase, sum_must_be_less_than_the_ttl);
    tcase_add_test(tcase, reserve_is_part_of_the_sum);
    tcase_add_test(tcase, renewal_begins_in_time);
    return suite_run(suite);
}
