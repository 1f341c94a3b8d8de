/* SPDX-License-Identifier: MIT
 * The age of a server that the client sees for the first time. Its clock may be wrong and its CPU
 * time proves little; the client waits for the rest. */
#include "node/admission.h"
#include "suite.h"

#include <string.h>

#define NOW_NS        (1000 * RL_SECOND)
#define QUARANTINE_NS (UINT64_C(30302) * RL_MS) /* 30 s and 1 % and 2 ms */

static struct rl_admission_rules rules; /* the client's settings that admission depends on */
static struct rl_admission node;        /* the admission of the one node of the test */

/* Fixture: prepares the admission of one node with a max_ttl of 30 s. */
static void setup(void)
{
    rules = (struct rl_admission_rules){.drift = {.ppm = 10000, .constant_us = 2000},
                                        .max_ttl_ns = 30 * RL_SECOND};
    rl_admission_init(&node, &rules, false, false);
}

/* Returns the INFO of a master. */
static struct rl_info server(const char *run_id, uint64_t uptime_s)
{
    struct rl_info info = {.role = "master", .uptime_s = uptime_s};

    strcpy(info.run_id, run_id);
    return info;
}

/* Checks that the server is in quarantine for exactly `wait_ns`. */
static void check_wait(uint64_t wait_ns)
{
    ck_assert_uint_eq(rl_admission_exclusions(&node, NOW_NS + wait_ns), 0);
    if (wait_ns == 0) /* not even in a tick that has begun earlier */
        ck_assert_uint_eq(rl_admission_exclusions(&node, NOW_NS - RL_MS), 0);
    else
        ck_assert_uint_eq(rl_admission_exclusions(&node, NOW_NS + wait_ns - 1),
                          RL_EXCLUSION_RESTARTED);
}

/* An uptime that is absurdly long for the CPU time shows that the server's clock was set. The CPU
 * time is then the lower bound of the server's age. */
START_TEST(an_absurd_uptime_is_replaced_by_cpu_time)
{
    static const struct {
        uint64_t uptime_s, user_us, sys_us, wait_ns;
    } table[] = {
        {3600, 9000, 7000, QUARANTINE_NS - UINT64_C(13840) * RL_US}, /* 16 ms less 1 % and 2 ms */
        {3600, 72000, 0, 0},                                         /* 20 ppm: an idle server */
        {3600, 0, 72000, 0},
        {3602, 72000, 0, QUARANTINE_NS - UINT64_C(69280) * RL_US},
        {86400, 1, 0, QUARANTINE_NS},
        {999999999999999999, 20000000, 11000000, 0}, /* 31 s of work are older than the guard */
        {20, 9000, 7000, QUARANTINE_NS - 19 * RL_SECOND}, /* plausible: counts */
        {0, 5000000, 0, QUARANTINE_NS},                   /* the clock was set back */
        {3600, UINT64_MAX, UINT64_MAX, 0},
    };
    struct rl_info info = server("a", table[_i].uptime_s);

    info.cpu_user_us = table[_i].user_us;
    info.cpu_sys_us = table[_i].sys_us;
    rl_admission_greet(&node, &info, NOW_NS);
    check_wait(table[_i].wait_ns);
}
END_TEST

/* Only CPU time counts, and only at the first contact. */
START_TEST(with_proven_admission_only_cpu_time_counts)
{
    struct rl_info info = server("a", 86400);

    rules.proven = true;
    rl_admission_greet(&node, &info, NOW_NS); /* without a CPU time */
    check_wait(QUARANTINE_NS);
    rl_admission_init(&node, &rules, false, false);
    info.cpu_user_us = 10 * (RL_SECOND / RL_US);
    rl_admission_greet(&node, &info, NOW_NS);
    check_wait(QUARANTINE_NS - 9898 * RL_MS);
    char text[160];
    rl_admission_text(&node, RL_EXCLUSION_RESTARTED, NOW_NS, text, sizeof text);
    ck_assert_str_eq(text, "restarted 9 s ago, votes again in 21 s");
    info.cpu_user_us = 40 * (RL_SECOND / RL_US);
    strcpy(info.run_id, "b");
    rl_admission_greet(&node, &info, NOW_NS);
    check_wait(QUARANTINE_NS);
    rl_admission_init(&node, &rules, false, false);
    rl_admission_greet(&node, &info, NOW_NS);
    check_wait(0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("node_admission_new_server");
    TCase *tcase = tcase_create("first contact");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, NULL);
    tcase_add_loop_test(tcase, an_absurd_uptime_is_replaced_by_cpu_time, 0, 9);
    tcase_add_test(tcase, with_proven_admission_only_cpu_time_counts);
    return suite_run(suite);
}
