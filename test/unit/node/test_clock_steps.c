/* SPDX-License-Identifier: MIT
 * Clock steps of a server, detected from the replies to TIME: intervals of the offset, widened by
 * drift as they age. */
#include "node/admission.h"
#include "suite.h"

#include <redlock/redlock.h>

#define EPOCH_US INT64_C(1700000000000000)
#define MS_US    INT64_C(1000)

static struct rl_admission_rules rules;
static struct rl_admission node;
static uint64_t now_ns;
static int64_t offset_us; /* the server's clock minus ours */

static void setup(void)
{
    static const struct rl_info info = {.role = "master", .run_id = "a", .uptime_s = 86400};

    rules = (struct rl_admission_rules){.drift = {.ppm = 10000, .constant_us = 2000},
                                        .max_ttl_ns = 30 * RL_SECOND};
    rl_admission_init(&node, &rules, false, false);
    now_ns = 1000 * RL_SECOND;
    offset_us = EPOCH_US;
    rl_admission_greet(&node, &info, now_ns);
}

/* The question takes `there_ns`, the answer `back_ns`. */
static bool ask(uint64_t there_ns, uint64_t back_ns)
{
    uint64_t sent_ns = now_ns;
    uint64_t time_us = (uint64_t)((int64_t)((sent_ns + there_ns) / RL_US) + offset_us);

    now_ns += there_ns + back_ns;
    return rl_admission_time(&node, time_us, sent_ns, now_ns);
}

START_TEST(a_steady_clock_is_never_suspected)
{
    for (unsigned i = 0; i < 1000; i++) {
        ck_assert(!ask(i % 7 * 40 * RL_MS, i % 11 * 30 * RL_MS));
        now_ns += i % 13 * RL_SECOND;
    }
    ck_assert_uint_eq(rl_admission_exclusions(&node, now_ns), 0);
}
END_TEST

/* Up to the drift that is allowed, in either direction, for hours. */
START_TEST(drift_is_no_step)
{
    const int64_t ppm = _i == 0 ? 9900 : -9900;

    for (unsigned i = 0; i < 5000; i++) {
        ck_assert(!ask(RL_MS, RL_MS));
        now_ns += RL_SECOND;
        offset_us += (int64_t)1002000 * ppm / 1000000;
    }
}
END_TEST

/* Drift of 0 is a promise about validity; clocks that are being corrected are not stepping. */
START_TEST(slewing_is_no_step)
{
    rules.drift = (struct rl_drift){0, 0};
    for (unsigned i = 0; i < 1000; i++) {
        ck_assert(!ask(RL_US, RL_US));
        now_ns += RL_SECOND;
        offset_us += 900;
    }
}
END_TEST

START_TEST(steps)
{
    static const int64_t steps_us[] = {60000 * MS_US, -60000 * MS_US, 20 * MS_US, -20 * MS_US};
    static const char *const texts[] = {"its clock jumped 59 s ahead 0 ms ago, votes again in 31 s",
                                        "its clock jumped 59 s back 0 ms ago, votes again in 31 s",
                                        NULL, NULL};
    char text[160];

    ck_assert(!ask(100 * RL_US, 100 * RL_US));
    now_ns += RL_SECOND;
    offset_us += steps_us[_i];
    ck_assert(ask(100 * RL_US, 100 * RL_US));
    ck_assert_int_eq(node.step_us > 0, steps_us[_i] > 0);
    ck_assert_uint_eq(rl_admission_exclusions(&node, now_ns), RL_EXCLUSION_CLOCK_STEP);
    if (texts[_i] != NULL) {
        rl_admission_text(&node, RL_EXCLUSION_CLOCK_STEP, now_ns, text, sizeof text);
        ck_assert_str_eq(text, texts[_i]);
    }
    /* Once, not with every answer; and for max_ttl with drift. */
    now_ns += RL_SECOND;
    ck_assert(!ask(100 * RL_US, 100 * RL_US));
    uint64_t end_ns = node.stepped_ns + UINT64_C(30302) * RL_MS;
    ck_assert_uint_eq(rl_admission_exclusions(&node, end_ns - 1), RL_EXCLUSION_CLOCK_STEP);
    ck_assert_uint_eq(rl_admission_exclusions(&node, end_ns), 0);
}
END_TEST

/* Within what the intervals, drift and rounding leave open nothing can be said: 1 s of 1 % and
 * 2 ms. */
START_TEST(the_smallest_step)
{
    ck_assert(!ask(0, 0));
    now_ns += RL_SECOND;
    offset_us += 12 * MS_US;
    ck_assert(!ask(0, 0));
    setup();
    ck_assert(!ask(0, 0));
    now_ns += RL_SECOND;
    offset_us += 12 * MS_US + 10;
    ck_assert(ask(0, 0));
}
END_TEST

/* An answer that took long says little. It must not wipe out what is known: the step is found by
 * the next quick one. */
START_TEST(slow_answers_hide_nothing)
{
    ck_assert(!ask(100 * RL_US, 100 * RL_US));
    now_ns += RL_SECOND;
    offset_us += _i == 0 ? 200 * MS_US : -200 * MS_US;
    ck_assert(_i == 0 ? !ask(10 * RL_MS, 400 * RL_MS) : !ask(400 * RL_MS, 10 * RL_MS));
    now_ns += RL_SECOND;
    ck_assert(ask(100 * RL_US, 100 * RL_US));
}
END_TEST

/* A process that was stopped between question and answer is not a server that jumped. */
START_TEST(our_own_pauses_are_no_steps)
{
    ck_assert(!ask(100 * RL_US, 100 * RL_US));
    ck_assert(!ask(100 * RL_US, 3600 * RL_SECOND));
    ck_assert(!ask(3600 * RL_SECOND, 100 * RL_US));
    ck_assert(!ask(100 * RL_US, 100 * RL_US));
}
END_TEST

/* Many small steps in one direction are one large one; a new server has a clock of its own. */
START_TEST(creeping)
{
    unsigned found = 0;

    for (unsigned i = 0; i < 20; i++) {
        now_ns += RL_SECOND;
        offset_us += 83 * MS_US; /* chrony in a hurry: 8.3 % */
        found += ask(100 * RL_US, 100 * RL_US);
    }
    ck_assert_uint_ge(found, 18);
    const struct rl_info other = {.role = "master", .run_id = "b", .uptime_s = 86400};
    rl_admission_greet(&node, &other, now_ns);
    offset_us += 3600 * INT64_C(1000000);
    ck_assert(!ask(100 * RL_US, 100 * RL_US));
}
END_TEST

START_TEST(nonsense_is_not_looked_at)
{
    ck_assert(!ask(0, 0));
    ck_assert(!rl_admission_time(&node, UINT64_MAX, now_ns, now_ns));
    ck_assert(!rl_admission_time(&node, (uint64_t)EPOCH_US, now_ns, now_ns - 1));
    now_ns += RL_SECOND;
    ck_assert(!ask(0, 0));
}
END_TEST

START_TEST(the_offset_is_told)
{
    int64_t told_us = 0;

    ck_assert(!rl_admission_offset_us(&node, EPOCH_US, &told_us));
    ask(4 * RL_MS, 4 * RL_MS);
    ck_assert(rl_admission_offset_us(&node, EPOCH_US - 7 * MS_US, &told_us));
    ck_assert_int_eq(told_us, 7 * MS_US);
}
END_TEST

static Suite *clock_watch_suite(void)
{
    Suite *suite = suite_create("node_clock_steps");
    TCase *tcase = tcase_create("clock_watch");
    tcase_add_checked_fixture(tcase, setup, NULL);
    tcase_add_test(tcase, a_steady_clock_is_never_suspected);
    tcase_add_loop_test(tcase, drift_is_no_step, 0, 2);
    tcase_add_test(tcase, slewing_is_no_step);
    tcase_add_loop_test(tcase, steps, 0, 4);
    tcase_add_test(tcase, the_smallest_step);
    tcase_add_loop_test(tcase, slow_answers_hide_nothing, 0, 2);
    tcase_add_test(tcase, our_own_pauses_are_no_steps);
    tcase_add_test(tcase, creeping);
    tcase_add_test(tcase, nonsense_is_not_looked_at);
    tcase_add_test(tcase, the_offset_is_told);
    suite_add_tcase(suite, tcase);
    return suite;
}

int main(void)
{
    return suite_run(clock_watch_suite());
}
