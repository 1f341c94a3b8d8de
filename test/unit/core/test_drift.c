/* SPDX-License-Identifier: MIT
 * Validity arithmetic: exact at the corners, never in the caller's favour, never wrapping. */
#include "core/drift.h"

#include "suite.h"

static const struct rl_drift DEFAULT_DRIFT = {.ppm = 10000, .constant_us = 2000};

START_TEST(drift_is_rounded_up)
{
    static const struct {
        uint64_t ttl_ns;
        struct rl_drift drift;
        uint64_t expected_ns;
    } cases[] = {
        {0, {0, 0}, 0},
        {0, {10000, 2000}, 2 * RL_MS},
        {1, {1, 0}, 1},       /* a fraction of a nanosecond is rounded up */
        {1000000, {1, 0}, 1}, /* exactly one nanosecond */
        {1000001, {1, 0}, 2}, /* slightly more is two */
        {999999, {1, 0}, 1},
        {10 * RL_MS, {10000, 2000}, 2100000}, /* the shortest TTL: 1 % and the constant */
        {30 * RL_SECOND, {10000, 2000}, 302 * RL_MS},
        {86400 * RL_SECOND, {500000, 1000000}, 43201 * RL_SECOND},
        {UINT64_MAX,
         {10000, 0},
         UINT64_C(184467440737095517)},                     /* ceil(18446744073709551615 / 100) */
        {UINT64_MAX, {500000, 0}, UINT64_C(1) << 63},       /* ceil(2^64 / 2 - 1/2) */
        {UINT64_MAX, {UINT32_MAX, UINT32_MAX}, UINT64_MAX}, /* saturates */
        {0, {0, UINT32_MAX}, UINT64_C(4294967295000)},
    };
    ck_assert_uint_eq(rl_drift_ns(cases[_i].ttl_ns, &cases[_i].drift), cases[_i].expected_ns);
}
END_TEST
#define DRIFT_CASES 13

#ifdef __SIZEOF_INT128__ /* not on processors of 32 bits */
/* Compares with 128-bit arithmetic, for TTLs of every magnitude. */
START_TEST(drift_equals_wide_arithmetic)
{
    for (unsigned bit = 0; bit < 64; bit++)
        for (uint64_t ppm = 0; ppm <= RL_DRIFT_PPM_MAX; ppm = ppm * 3 + 1) {
            uint64_t ttl_ns = (UINT64_C(1) << bit) + 12345 % (UINT64_C(1) << bit);
            struct rl_drift drift = {.ppm = (uint32_t)ppm, .constant_us = 7};
            __extension__ unsigned __int128 exact = (unsigned __int128)ttl_ns * ppm + 999999;
            ck_assert_uint_eq(rl_drift_ns(ttl_ns, &drift), (uint64_t)(exact / 1000000) + 7000);
        }
}
END_TEST
#endif

START_TEST(loss_margin_is_five_ms_or_a_thousandth)
{
    ck_assert_uint_eq(rl_loss_margin_ns(0), 5 * RL_MS);
    ck_assert_uint_eq(rl_loss_margin_ns(10 * RL_MS), 5 * RL_MS);
    ck_assert_uint_eq(rl_loss_margin_ns(5 * RL_SECOND), 5 * RL_MS);
    ck_assert_uint_eq(rl_loss_margin_ns(5 * RL_SECOND + 1), 5 * RL_MS + 1); /* rounded up */
    ck_assert_uint_eq(rl_loss_margin_ns(30 * RL_SECOND), 30 * RL_MS);
    ck_assert_uint_eq(rl_loss_margin_ns(UINT64_MAX), UINT64_MAX / 1000 + 1);
}
END_TEST

START_TEST(usable_time_is_never_negative)
{
    static const struct rl_drift all = {.ppm = RL_DRIFT_PPM_MAX, .constant_us = 1000000};

    ck_assert_uint_eq(rl_usable_ns(30 * RL_SECOND, &DEFAULT_DRIFT), 29668 * RL_MS);
    ck_assert_uint_eq(rl_usable_ns(10 * RL_MS, &DEFAULT_DRIFT), 2900 * RL_US);
    ck_assert_uint_eq(rl_usable_ns(7 * RL_MS, &DEFAULT_DRIFT), 0);
    ck_assert_uint_eq(rl_usable_ns(0, &DEFAULT_DRIFT), 0);
    ck_assert_uint_eq(rl_usable_ns(2 * RL_SECOND, &all), 0);
}
END_TEST

/* A TTL that is one millisecond shorter gives less than the usable time. */
START_TEST(the_ttl_for_a_usable_time_is_the_shortest)
{
    static const uint32_t ppms[] = {0, 1, 1000, 10000, 123457, RL_DRIFT_PPM_MAX};

    for (unsigned i = 0; i < sizeof ppms / sizeof ppms[0]; i++) {
        struct rl_drift drift = {.ppm = ppms[i], .constant_us = 2000};
        for (uint64_t usable_ns = 0; usable_ns < UINT64_MAX / 8; usable_ns = usable_ns * 3 + 1) {
            uint64_t ttl_ns = rl_ttl_for_ns(usable_ns, &drift);
            ck_assert_uint_eq(ttl_ns % RL_MS, 0);
            ck_assert_uint_ge(rl_usable_ns(ttl_ns, &drift), usable_ns);
            if (usable_ns > 0)
                ck_assert_uint_lt(rl_usable_ns(ttl_ns - RL_MS, &drift), usable_ns);
        }
        /* The usable time of a TTL never needs a longer TTL. */
        for (uint64_t ttl_ms = 8; ttl_ms < UINT64_C(1) << 40; ttl_ms = ttl_ms * 5 / 4 + 1) {
            uint64_t usable_ns = rl_usable_ns(ttl_ms * RL_MS, &drift);
            if (usable_ns > 0)
                ck_assert_uint_le(rl_ttl_for_ns(usable_ns, &drift), ttl_ms * RL_MS);
        }
    }
    ck_assert_uint_eq(rl_ttl_for_ns(29668 * RL_MS, &DEFAULT_DRIFT), 30 * RL_SECOND);
    ck_assert_uint_eq(rl_ttl_for_ns(29668 * RL_MS + 1, &DEFAULT_DRIFT), 30001 * RL_MS);
    ck_assert_uint_eq(rl_ttl_for_ns(UINT64_MAX, &DEFAULT_DRIFT), UINT64_MAX);
}
END_TEST

START_TEST(a_deadline_is_set_on_both_clocks)
{
    struct rl_now t1 = {.boot_ns = 1000 * RL_SECOND, .raw_ns = 400 * RL_SECOND};
    struct rl_now deadline = rl_deadline(t1, 30 * RL_SECOND, &DEFAULT_DRIFT);
    ck_assert_uint_eq(deadline.boot_ns - t1.boot_ns, 29668 * RL_MS);
    ck_assert_uint_eq(deadline.raw_ns - t1.raw_ns, 29668 * RL_MS);

    deadline = rl_deadline(t1, 7 * RL_MS, &DEFAULT_DRIFT); /* no usable time: expired at once */
    ck_assert_uint_eq(rl_remaining_ns(deadline, t1), 0);

    t1.boot_ns = UINT64_MAX - 1;
    deadline = rl_deadline(t1, 30 * RL_SECOND, &DEFAULT_DRIFT);
    ck_assert_uint_eq(deadline.boot_ns, UINT64_MAX);
}
END_TEST

/* The clock that has advanced further decides. Only the boot clock sees a suspend, and only the raw
 * clock is free of slewing. */
START_TEST(the_stricter_clock_decides)
{
    struct rl_now start = {.boot_ns = 100, .raw_ns = 1100};
    struct rl_now deadline = {.boot_ns = 200, .raw_ns = 1200};

    ck_assert_uint_eq(rl_remaining_ns(deadline, start), 100);
    ck_assert_uint_eq(rl_remaining_ns(deadline, (struct rl_now){190, 1110}), 10);
    ck_assert_uint_eq(rl_remaining_ns(deadline, (struct rl_now){110, 1195}), 5);
    ck_assert_uint_eq(rl_remaining_ns(deadline, (struct rl_now){200, 1100}), 0);
    ck_assert_uint_eq(rl_remaining_ns(deadline, (struct rl_now){100, 1200}), 0);
    ck_assert_uint_eq(rl_remaining_ns(deadline, (struct rl_now){5000, 1100}), 0);

    ck_assert_uint_eq(rl_elapsed_ns(start, start), 0);
    ck_assert_uint_eq(rl_elapsed_ns(start, (struct rl_now){150, 1110}), 50);
    ck_assert_uint_eq(rl_elapsed_ns(start, (struct rl_now){101, 1120}), 20);
    ck_assert_uint_eq(rl_elapsed_ns(start, (struct rl_now){0, 0}), 0); /* never negative */
}
END_TEST

START_TEST(later_saturates)
{
    struct rl_now now = {.boot_ns = 5, .raw_ns = UINT64_MAX - 2};
    struct rl_now later = rl_later(now, 2);
    ck_assert_uint_eq(later.boot_ns, 7);
    ck_assert_uint_eq(later.raw_ns, UINT64_MAX);
    later = rl_later(now, UINT64_MAX);
    ck_assert_uint_eq(later.boot_ns, UINT64_MAX);
    ck_assert_uint_eq(later.raw_ns, UINT64_MAX);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("core_drift");
    TCase *tcase = tcase_create("drift");
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, drift_is_rounded_up, 0, DRIFT_CASES);
#ifdef __SIZEOF_INT128__
    tcase_add_test(tcase, drift_equals_wide_arithmetic);
#endif
    tcase_add_test(tcase, loss_margin_is_five_ms_or_a_thousandth);
    tcase_add_test(tcase, usable_time_is_never_negative);
    tcase_add_test(tcase, the_ttl_for_a_usable_time_is_the_shortest);
    tcase_add_test(tcase, a_deadline_is_set_on_both_clocks);
    tcase_add_test(tcase, the_stricter_clock_decides);
    tcase_add_test(tcase, later_saturates);
    return suite_run(suite);
}
