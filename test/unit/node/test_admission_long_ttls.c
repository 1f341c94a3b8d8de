/* SPDX-License-Identifier: MIT
 * Keys with a TTL above max_ttl: their effect on the quarantine, and the event that reports them.
 */
#include "node/admission.h"
#include "suite.h"

static struct rl_admission_rules rules;
static uint64_t now_ns;

static void setup(void)
{
    rules = (struct rl_admission_rules){.drift = {.ppm = 10000, .constant_us = 2000},
                                        .max_ttl_ns = 30 * RL_SECOND};
    now_ns = 1000 * RL_SECOND;
}

START_TEST(which_ttls_are_long)
{
    static const struct {
        int64_t ttl_ms;
        uint64_t seen_ns;
        bool exceeds;
    } table[] = {
        {INT64_MIN, 0, false},
        {-1, 0, false}, /* never expires: no lock */
        {0, 0, false},
        {30000, 30 * RL_SECOND, false},
        {30001, UINT64_C(30001) * RL_MS, true},
        {86400000, 86400 * RL_SECOND, true},
        {INT64_MAX, 86400 * RL_SECOND, true},
    };

    ck_assert(rl_admission_saw_ttl(&rules, 0, table[_i].ttl_ms, now_ns) == table[_i].exceeds);
    ck_assert_uint_eq(rules.ttl_seen_ns, table[_i].seen_ns);
    ck_assert(!rl_admission_saw_ttl(&rules, 0, 1, now_ns)); /* what was seen is not forgotten */
    ck_assert_uint_eq(rules.ttl_seen_ns, rl_max_u64(table[_i].seen_ns, RL_MS));
}
END_TEST

/* A clock that was set back shows a life of an hour on its node, a holder with a larger max_ttl on
 * as many as it has locked. (Found by chaos: after one step nobody got a lock for an hour.) */
START_TEST(one_node_is_not_believed)
{
    const uint64_t hour_ns = 3600 * RL_SECOND;

    rules.quorum = 3;
    ck_assert(rl_admission_saw_ttl(&rules, 4, 3600000, now_ns)); /* it is told all the same */
    ck_assert(rl_admission_saw_ttl(&rules, 4, 3600000, now_ns));
    ck_assert(rl_admission_saw_ttl(&rules, 0, 3000000, now_ns));
    ck_assert_uint_eq(rules.ttl_seen_ns, 0);
    ck_assert(rl_admission_saw_ttl(&rules, 2, 2000000, now_ns));
    ck_assert_uint_eq(rules.ttl_seen_ns, 2000 * RL_SECOND);
    ck_assert(rl_admission_saw_ttl(&rules, 2, 3600000, now_ns));
    ck_assert_uint_eq(rules.ttl_seen_ns, 3000 * RL_SECOND);
    ck_assert(rl_admission_saw_ttl(&rules, 0, 3600000, now_ns));
    ck_assert_uint_eq(rules.ttl_seen_ns, hour_ns);
}
END_TEST

/* (Found by chaos: each of three servers had its clock set back for a while, at different times.)
 */
START_TEST(nodes_must_show_it_at_the_same_time)
{
    const uint64_t hour_ms = 3600000;

    rules.quorum = 3;
    for (unsigned i = 0; i < 5; i++) {
        ck_assert(rl_admission_saw_ttl(&rules, i, (int64_t)hour_ms, now_ns));
        ck_assert_uint_eq(rules.ttl_seen_ns, 0);
        now_ns += 600 * RL_MS; /* two of them within a second, never three */
    }
    ck_assert(!rl_admission_saw_ttl(&rules, 4, 1, now_ns)); /* it was longer a moment ago */
    ck_assert(rl_admission_saw_ttl(&rules, 0, (int64_t)hour_ms, now_ns));
    ck_assert_uint_eq(rules.ttl_seen_ns, 0);
    ck_assert(rl_admission_saw_ttl(&rules, 1, (int64_t)hour_ms, now_ns));
    ck_assert_uint_eq(rules.ttl_seen_ns, hour_ms * RL_MS);
    now_ns += 10 * RL_SECOND; /* what all have shown once stays */
    ck_assert(rl_admission_saw_ttl(&rules, 1, (int64_t)hour_ms, now_ns));
    ck_assert_uint_eq(rules.ttl_seen_ns, hour_ms * RL_MS);
}
END_TEST

START_TEST(a_long_life_is_told_of_once)
{
    ck_assert(!rl_admission_reports_ttl(&rules, 1, -1)); /* no expiry: its own finding */
    ck_assert(rl_admission_reports_ttl(&rules, 1, 5000));
    ck_assert(!rl_admission_reports_ttl(&rules, 1, 4000));
    ck_assert(rl_admission_reports_ttl(&rules, 2, 4000));
    ck_assert(rl_admission_reports_ttl(&rules, 1, 5001));
}
END_TEST

static Suite *long_ttls_suite(void)
{
    Suite *suite = suite_create("node_admission_long_ttls");
    TCase *tcase = tcase_create("long_ttls");

    tcase_add_checked_fixture(tcase, setup, NULL);
    tcase_add_loop_test(tcase, which_ttls_are_long, 0, 7);
    tcase_add_test(tcase, one_node_is_not_believed);
    tcase_add_test(tcase, nodes_must_show_it_at_the_same_time);
    tcase_add_test(tcase, a_long_life_is_told_of_once);
    suite_add_tcase(suite, tcase);
    return suite;
}

int main(void)
{
    return suite_run(long_ttls_suite());
}
