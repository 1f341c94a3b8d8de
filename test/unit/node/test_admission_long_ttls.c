/* SPDX-License-Identifier: MIT
 * Keys with a TTL above max_ttl: their effect on the quarantine, and the event that reports them.
 */
#include "node/admission.h"
#include "suite.h"

static struct rl_admission_rules rules; /* the client's settings that admission depends on */
static uint64_t now_ns;                 /* virtual time */

/* Fixture: prepares rules of admission with a max_ttl of 30 s. */
static void setup(void)
{
    rules = (struct rl_admission_rules){.drift = {.ppm = 10000, .constant_us = 2000},
                                        .max_ttl_ns = 30 * RL_SECOND};
    now_ns = 1000 * RL_SECOND;
}

START_TEST(ttls_above_max_ttl_are_noticed)
{
    static const struct {
        int64_t ttl_ms;
        uint64_t seen_ns;
        bool exceeds;
    } table[] = {
        {INT64_MIN, 0, false},
        {-1, 0, false}, /* a key that never expires is no lock */
        {0, 0, false},
        {30000, 30 * RL_SECOND, false},
        {30001, UINT64_C(30001) * RL_MS, true},
        {86400000, 86400 * RL_SECOND, true},
        {INT64_MAX, 86400 * RL_SECOND, true},
    };

    ck_assert(rl_admission_saw_ttl(&rules, 0, table[_i].ttl_ms, now_ns) == table[_i].exceeds);
    ck_assert_uint_eq(rules.ttl_seen_ns, table[_i].seen_ns);
    ck_assert(!rl_admission_saw_ttl(&rules, 0, 1, now_ns)); /* the longest TTL is kept */
    ck_assert_uint_eq(rules.ttl_seen_ns, rl_max_u64(table[_i].seen_ns, RL_MS));
}
END_TEST

/* A server whose clock was set back shows a TTL of an hour. A holder with a larger max_ttl shows it
 * on a quorum of nodes. */
START_TEST(a_long_ttl_counts_when_a_quorum_shows_it)
{
    const uint64_t hour_ns = 3600 * RL_SECOND;

    rules.quorum = 3;
    ck_assert(rl_admission_saw_ttl(&rules, 4, 3600000, now_ns)); /* noticed all the same */
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

/* Several servers may have their clocks set back at different times. */
START_TEST(the_quorum_must_show_it_within_a_second)
{
    const uint64_t hour_ms = 3600000;

    rules.quorum = 3;
    for (unsigned i = 0; i < 5; i++) {
        ck_assert(rl_admission_saw_ttl(&rules, i, (int64_t)hour_ms, now_ns));
        ck_assert_uint_eq(rules.ttl_seen_ns, 0);
        now_ns += 600 * RL_MS; /* two of them within a second, never three */
    }
    ck_assert(!rl_admission_saw_ttl(&rules, 4, 1, now_ns)); /* its long TTL stays remembered */
    ck_assert(rl_admission_saw_ttl(&rules, 0, (int64_t)hour_ms, now_ns));
    ck_assert_uint_eq(rules.ttl_seen_ns, 0);
    ck_assert(rl_admission_saw_ttl(&rules, 1, (int64_t)hour_ms, now_ns));
    ck_assert_uint_eq(rules.ttl_seen_ns, hour_ms * RL_MS);
    now_ns += 10 * RL_SECOND; /* a TTL that a quorum has shown stays */
    ck_assert(rl_admission_saw_ttl(&rules, 1, (int64_t)hour_ms, now_ns));
    ck_assert_uint_eq(rules.ttl_seen_ns, hour_ms * RL_MS);
}
END_TEST

START_TEST(a_long_ttl_is_reported_once_per_node_and_length)
{
    ck_assert(!rl_admission_reports_ttl(&rules, 1, -1)); /* no expiry has an event of its own */
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
    tcase_add_loop_test(tcase, ttls_above_max_ttl_are_noticed, 0, 7);
    tcase_add_test(tcase, a_long_ttl_counts_when_a_quorum_shows_it);
    tcase_add_test(tcase, the_quorum_must_show_it_within_a_second);
    tcase_add_test(tcase, a_long_ttl_is_reported_once_per_node_and_length);
    suite_add_tcase(suite, tcase);
    return suite;
}

int main(void)
{
    return suite_run(long_ttls_suite());
}
