/* SPDX-License-Identifier: MIT
 * Admission of nodes that are listed with waitaof=1: they need an append-only file, and have lost
 * their keys if they come up without one. */
#include "node/admission.h"
#include "suite.h"

#include <redlock/redlock.h>
#include <stdio.h>

#define GUARD_NS (UINT64_C(30302) * RL_MS) /* 30 s and 1 % and 2 ms */

static struct rl_admission_rules rules;
static struct rl_admission node;
static uint64_t now_ns;

static void setup(void)
{
    rules = (struct rl_admission_rules){.drift = {.ppm = 10000, .floor_us = 2000},
                                        .max_ttl_ns = 30 * RL_SECOND};
    rl_admission_init(&node, &rules, true, false);
    node.waitaof = true;
    now_ns = 1000 * RL_SECOND;
}

static uint32_t bars(void)
{
    return rl_admission_bars(&node, now_ns);
}

static void check_text(const char *expected)
{
    char text[160];

    rl_admission_text(&node, bars(), now_ns, text, sizeof text);
    ck_assert_str_eq(text, expected);
}

static bool greet_with_file(const char *run_id, bool aof, unsigned major, unsigned minor)
{
    struct rl_info info = {.role = "master", .second_offset = -1, .uptime_s = 86400};

    snprintf(info.run_id, sizeof info.run_id, "%s", run_id);
    info.aof = aof;
    info.major = major;
    info.minor = minor;
    return rl_admission_greet(&node, &info, now_ns);
}

START_TEST(asked_for_its_disk)
{
    greet_with_file("a", true, 7, 2);
    ck_assert_uint_eq(bars(), 0);
    greet_with_file("b", true, 8, 0); /* a restart without a guard: what counted is there */
    ck_assert_uint_eq(bars(), 0);
    /* Switched off while it runs: nothing can be had there, and nothing was lost. */
    ck_assert(!greet_with_file("b", false, 8, 0));
    ck_assert_uint_eq(bars(), RL_BAR_NO_AOF);
    ck_assert_uint_eq(rl_admission_cause(bars()), REDLOCK_CAUSE_NO_AOF);
    check_text("keeps no append-only file: set appendonly yes and appendfsync everysec, or list it "
               "without waitaof=1");
    ck_assert_uint_eq(rl_admission_due_ns(&node, bars()), RL_NEVER);
    ck_assert_uint_eq(rl_admission_votes_again_ns(&node, bars(), now_ns), 0);
    ck_assert_uint_ne(bars() & RL_BARS_ACQUIRE, 0);
    ck_assert_uint_ne(bars() & RL_BARS_EXTEND, 0);
    ck_assert(!greet_with_file("b", true, 8, 0));
    ck_assert_uint_eq(bars(), 0);
}
END_TEST

/* A server that comes up without a file has lost its keys; that it is told to keep one afterwards
 * does not bring them back. */
START_TEST(restarted_without_a_file)
{
    greet_with_file("a", true, 7, 2);
    ck_assert(greet_with_file("b", false, 7, 2));
    ck_assert_uint_eq(bars(), RL_BAR_NO_AOF | RL_BAR_RESTARTED);
    ck_assert(!greet_with_file("b", true, 7, 2));
    ck_assert_uint_eq(bars(), RL_BAR_RESTARTED);
    now_ns += GUARD_NS - 1;
    ck_assert_uint_eq(bars(), RL_BAR_RESTARTED);
    now_ns++;
    ck_assert_uint_eq(bars(), 0);
}
END_TEST

START_TEST(too_old_to_be_asked)
{
    greet_with_file("a", true, 7, 0);
    ck_assert_uint_eq(bars(), RL_BAR_NO_AOF);
    check_text("does not know WAITAOF: use Redis 7.2 or later, or list it without waitaof=1");
    greet_with_file("a", true, 7, 4);
    ck_assert_uint_eq(bars(), RL_BAR_NO_AOF);
    check_text("of a version that answers WAITAOF too early: use Redis 7.2, 7.4.3 or later, or "
               "list it without waitaof=1");
    /* Where it may not be asked who it is, its answers decide. */
    rules.lenient = true;
    const struct rl_info info = {.refused = true};
    rl_admission_greet(&node, &info, now_ns);
    ck_assert_uint_eq(bars(), 0);
    /* Nobody asked for it: whatever it keeps. */
    node.waitaof = false;
    greet_with_file("b", false, 7, 0);
    ck_assert_uint_eq(bars(), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("admission_disk");
    TCase *tcase = tcase_create("disk");
    tcase_add_checked_fixture(tcase, setup, NULL);
    tcase_add_test(tcase, asked_for_its_disk);
    tcase_add_test(tcase, restarted_without_a_file);
    tcase_add_test(tcase, too_old_to_be_asked);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
