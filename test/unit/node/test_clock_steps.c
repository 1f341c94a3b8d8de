/* SPDX-License-Identifier: MIT
 * Clock steps of a server, detected from the replies to TIME:
 * intervals of the offset, widened by drift as they age. */
#include "node/admission.h"
#include "suite.h"

#include <redlock/redlock.h>

#define EPOCH_US INT64_C(1700000000000000)
#define MS_US    INT64_C(1000)

static struct rl_admission_rules rules; /* the client's settings that admission depends on */
static struct rl_admission node;        /* the admission of the one node of the test */
static uint64_t now_ns;                 /* virtual time */
static int64_t offset_us;               /* the server's clock minus the client's boot clock */

/* Fixture: prepares the admission of one node with a max_ttl of 30 s and greets a master that
 * has run for a day. */
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

/* Simulates TIME: the request takes `there_ns`, the reply `back_ns`. Returns true if the reply
 * shows a clock step. */
static bool reply_to_time(uint64_t there_ns, uint64_t back_ns)
{
    uint64_t sent_ns = now_ns;
    uint64_t time_us = (uint64_t)((int64_t)((sent_ns + there_ns) / RL_US) + offset_us);

    now_ns += there_ns + back_ns;
    return rl_admission_time(&node, time_us, sent_ns, now_ns);
}

START_TEST(a_steady_clock_is_never_suspected)
{
    for (unsigned i = 0; i < 1000; i++) {
        ck_assert(!reply_to_time(i % 7 * 40 * RL_MS, i % 11 * 30 * RL_MS));
        now_ns += i % 13 * RL_SECOND;
    }
    ck_assert_uint_eq(rl_admission_exclusions(&node, now_ns), 0);
}
END_TEST

/* A clock that drifts as much as is allowed, in either direction, for hours. */
START_TEST(drift_is_no_step)
{
    const int64_t ppm = _i == 0 ? 9900 : -9900;

    for (unsigned i = 0; i < 5000; i++) {
        ck_assert(!reply_to_time(RL_MS, RL_MS));
        now_ns += RL_SECOND;
        offset_us += (int64_t)1002000 * ppm / 1000000;
    }
}
END_TEST

/* A configured drift of 0 concerns the validity; a clock that is slewed does not step. */
START_TEST(slewing_is_no_step)
{
    rules.drift = (struct rl_drift){0, 0};
    for (unsigned i = 0; i < 1000; i++) {
        ck_assert(!reply_to_time(RL_US, RL_US));
        now_ns += RL_SECOND;
        offset_us += 900;
    }
}
END_TEST

START_TEST(a_step_is_reported_and_excludes_for_max_ttl)
{
    static const int64_t steps_us[] = {60000 * MS_US, -60000 * MS_US, 20 * MS_US, -20 * MS_US};
    static const char *const texts[] = {"its clock jumped 59 s ahead 0 ms ago, votes again in 31 s",
                                        "its clock jumped 59 s back 0 ms ago, votes again in 31 s",
                                        NULL, NULL};
    char text[160];

    ck_assert(!reply_to_time(100 * RL_US, 100 * RL_US));
    now_ns += RL_SECOND;
    offset_us += steps_us[_i];
    ck_assert(reply_to_time(100 * RL_US, 100 * RL_US));
    ck_assert_int_eq(node.step_us > 0, steps_us[_i] > 0);
    ck_assert_uint_eq(rl_admission_exclusions(&node, now_ns), RL_EXCLUSION_CLOCK_STEP);
    if (texts[_i] != NULL) {
        rl_admission_text(&node, RL_EXCLUSION_CLOCK_STEP, now_ns, text, sizeof text);
        ck_assert_str_eq(text, texts[_i]);
    }
    /* The step is reported once, and the exclusion lasts for max_ttl with drift. */
    now_ns += RL_SECOND;
    ck_assert(!reply_to_time(100 * RL_US, 100 * RL_US));
    uint64_t end_ns = node.stepped_ns + UINT64_C(30302) * RL_MS;
    ck_assert_uint_eq(rl_admission_exclusions(&node, end_ns - 1), RL_EXCLUSION_CLOCK_STEP);
    ck_assert_uint_eq(rl_admission_exclusions(&node, end_ns), 0);
}
END_TEST

/* A clock that stands still is no step whose quarantine would end. */
START_TEST(a_clock_that_stands_still)
{
    char text[160];

    ck_assert(!reply_to_time(100 * RL_US, 100 * RL_US));
    for (unsigned i = 0; i < 3; i++) {
        now_ns += RL_SECOND;
        offset_us =
            (int64_t)node.server_us - (int64_t)(now_ns / RL_US); /* the request takes no time */
        ck_assert(reply_to_time(0, 100 * RL_US));
        ck_assert_uint_eq(rl_admission_exclusions(&node, now_ns), RL_EXCLUSION_CLOCK_STEP);
        ck_assert_uint_eq(rl_admission_quarantine_left_ns(&node, RL_EXCLUSION_CLOCK_STEP, now_ns),
                          0);
        rl_admission_text(&node, RL_EXCLUSION_CLOCK_STEP, now_ns, text, sizeof text);
        ck_assert_str_eq(text, "its clock stands still, so keys do not expire: restart it");
    }
    now_ns += RL_SECOND;
    ck_assert(!reply_to_time(0, 100 * RL_US)); /* it runs again */
    rl_admission_text(&node, RL_EXCLUSION_CLOCK_STEP, now_ns, text, sizeof text);
    ck_assert_str_eq(text, "its clock jumped 989 ms back 1 s ago, votes again in 30 s");
}
END_TEST

/* After one second, drift and rounding leave 1 % of 1 s and 2 ms open: 12 ms. */
START_TEST(steps_above_drift_and_rounding_are_found)
{
    ck_assert(!reply_to_time(0, 0));
    now_ns += RL_SECOND;
    offset_us += 12 * MS_US;
    ck_assert(!reply_to_time(0, 0));
    setup();
    ck_assert(!reply_to_time(0, 0));
    now_ns += RL_SECOND;
    offset_us += 12 * MS_US + 10;
    ck_assert(reply_to_time(0, 0));
}
END_TEST

/* A slow reply gives a wide interval and must not replace the narrow one: the next quick reply
 * shows the step. */
START_TEST(a_slow_reply_does_not_hide_a_step)
{
    ck_assert(!reply_to_time(100 * RL_US, 100 * RL_US));
    now_ns += RL_SECOND;
    offset_us += _i == 0 ? 200 * MS_US : -200 * MS_US;
    ck_assert(_i == 0 ? !reply_to_time(10 * RL_MS, 400 * RL_MS)
                      : !reply_to_time(400 * RL_MS, 10 * RL_MS));
    now_ns += RL_SECOND;
    ck_assert(reply_to_time(100 * RL_US, 100 * RL_US));
}
END_TEST

/* A client that is stopped between request and reply sees a slow reply, not a clock step. */
START_TEST(pauses_of_the_client_are_no_steps)
{
    ck_assert(!reply_to_time(100 * RL_US, 100 * RL_US));
    ck_assert(!reply_to_time(100 * RL_US, 3600 * RL_SECOND));
    ck_assert(!reply_to_time(3600 * RL_SECOND, 100 * RL_US));
    ck_assert(!reply_to_time(100 * RL_US, 100 * RL_US));
}
END_TEST

/* Small steps in one direction are found, and a new server's clock starts a new measurement. */
START_TEST(many_small_steps_are_found)
{
    unsigned found = 0;

    for (unsigned i = 0; i < 20; i++) {
        now_ns += RL_SECOND;
        offset_us += 83 * MS_US; /* the fastest slew of chrony: 8.3 % */
        found += reply_to_time(100 * RL_US, 100 * RL_US);
    }
    ck_assert_uint_ge(found, 18);
    const struct rl_info other = {.role = "master", .run_id = "b", .uptime_s = 86400};
    rl_admission_greet(&node, &other, now_ns);
    offset_us += 3600 * INT64_C(1000000);
    ck_assert(!reply_to_time(100 * RL_US, 100 * RL_US));
}
END_TEST

START_TEST(invalid_times_are_ignored)
{
    ck_assert(!reply_to_time(0, 0));
    ck_assert(!rl_admission_time(&node, UINT64_MAX, now_ns, now_ns));
    ck_assert(!rl_admission_time(&node, (uint64_t)EPOCH_US, now_ns, now_ns - 1));
    now_ns += RL_SECOND;
    ck_assert(!reply_to_time(0, 0));
}
END_TEST

START_TEST(the_offset_is_known_after_a_reply)
{
    int64_t reported_us = 0;

    ck_assert(!rl_admission_offset_us(&node, EPOCH_US, &reported_us));
    reply_to_time(4 * RL_MS, 4 * RL_MS);
    ck_assert(rl_admission_offset_us(&node, EPOCH_US - 7 * MS_US, &reported_us));
    ck_assert_int_eq(reported_us, 7 * MS_US);
}
END_TEST

static Suite *clock_steps_suite(void)
{
    Suite *suite = suite_create("node_clock_steps");
    TCase *tcase = tcase_create("clock_steps");
    tcase_add_checked_fixture(tcase, setup, NULL);
    tcase_add_test(tcase, a_steady_clock_is_never_suspected);
    tcase_add_loop_test(tcase, drift_is_no_step, 0, 2);
    tcase_add_test(tcase, slewing_is_no_step);
    tcase_add_loop_test(tcase, a_step_is_reported_and_excludes_for_max_ttl, 0, 4);
    tcase_add_test(tcase, a_clock_that_stands_still);
    tcase_add_test(tcase, steps_above_drift_and_rounding_are_found);
    tcase_add_loop_test(tcase, a_slow_reply_does_not_hide_a_step, 0, 2);
    tcase_add_test(tcase, pauses_of_the_client_are_no_steps);
    tcase_add_test(tcase, many_small_steps_are_found);
    tcase_add_test(tcase, invalid_times_are_ignored);
    tcase_add_test(tcase, the_offset_is_known_after_a_reply);
    suite_add_tcase(suite, tcase);
    return suite;
}

int main(void)
{
    return suite_run(clock_steps_suite());
}
