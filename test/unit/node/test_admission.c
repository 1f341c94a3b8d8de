/* SPDX-License-Identifier: MIT
 * Admission, row by row, in virtual time: what a server reports about itself, and from when on its
 * votes count. */
#include "core/cause.h"
#include "node/admission.h"
#include "suite.h"

#include <redlock/redlock.h>
#include <string.h>

#define GUARD_NS (UINT64_C(30302) * RL_MS) /* 30 s and 1 % and 2 ms */
#define ZEROS    "0000000000000000000000000000000000000000"

static struct rl_admission_rules rules;
static struct rl_admission node;
static uint64_t now_ns;

static void setup(void)
{
    rules = (struct rl_admission_rules){.drift = {.ppm = 10000, .constant_us = 2000},
                                        .max_ttl_ns = 30 * RL_SECOND};
    rl_admission_init(&node, &rules, false, false);
    now_ns = 1000 * RL_SECOND;
}

static struct rl_info server(const char *run_id, uint64_t uptime_s)
{
    struct rl_info info = {.role = "master", .replid2 = ZEROS, .second_offset = -1};

    strcpy(info.run_id, run_id);
    strcpy(info.policy, "noeviction");
    info.uptime_s = uptime_s;
    return info;
}

static bool greet(const char *run_id, uint64_t uptime_s)
{
    const struct rl_info info = server(run_id, uptime_s);

    return rl_admission_greet(&node, &info, now_ns);
}

static uint32_t exclusions(void)
{
    return rl_admission_exclusions(&node, now_ns);
}

/* Barred until exactly `end_ns` from now, by nothing else, and says so. */
static void check_guard(uint32_t expected, uint64_t wait_ns)
{
    const uint64_t begin_ns = now_ns;

    ck_assert_uint_eq(exclusions(), expected);
    ck_assert_uint_eq(rl_admission_due_ns(&node, expected), begin_ns + wait_ns);
    ck_assert_uint_eq(rl_admission_quarantine_left_ns(&node, expected, now_ns), wait_ns);
    now_ns = begin_ns + wait_ns - 1;
    ck_assert_uint_eq(exclusions(), expected);
    now_ns++;
    ck_assert_uint_eq(exclusions(), 0);
    ck_assert_uint_eq(rl_admission_due_ns(&node, 0), RL_NEVER);
    now_ns = begin_ns;
}

static void check_text(const char *expected)
{
    char text[160];

    rl_admission_text(&node, exclusions(), now_ns, text, sizeof text);
    ck_assert_str_eq(text, expected);
}

/* ---- restarts ---- */

START_TEST(first_contact)
{
    static const struct {
        uint64_t uptime_s, wait_ns;
    } table[] = {
        {0, GUARD_NS},
        {1, GUARD_NS}, /* the second may have just begun */
        {2, GUARD_NS - RL_SECOND},
        {30, GUARD_NS - 29 * RL_SECOND},
        {31, GUARD_NS - 30 * RL_SECOND},
    };

    ck_assert(greet("a", table[_i].uptime_s));
    check_guard(RL_EXCLUSION_RESTARTED, table[_i].wait_ns);
}
END_TEST

START_TEST(first_contact_with_an_old_server)
{
    static const uint64_t uptimes[] = {32, 86400, UINT64_MAX / RL_SECOND, UINT64_MAX};

    ck_assert(greet("a", uptimes[_i]));
    ck_assert_uint_eq(exclusions(), 0);
    check_text("");
}
END_TEST

/* The same server on a new connection: nothing begins anew, nothing is over before its time. */
START_TEST(reconnect)
{
    greet("a", 0);
    now_ns += 10 * RL_SECOND;
    ck_assert(!greet("a", 86400));
    check_guard(RL_EXCLUSION_RESTARTED, GUARD_NS - 10 * RL_SECOND);
    now_ns += GUARD_NS;
    ck_assert(!greet("a", 0));
    ck_assert_uint_eq(exclusions(), 0);
}
END_TEST

/* Uptime is wall-clock time: after a restart and a step ahead it says anything (row 19). */
START_TEST(restart_is_timed_by_us)
{
    greet("a", 86400);
    now_ns += 5 * RL_SECOND;
    ck_assert(greet("b", 86400));
    check_guard(RL_EXCLUSION_RESTARTED, GUARD_NS);
    now_ns += 4 * RL_SECOND;
    check_text("restarted 4 s ago, votes again in 27 s");
    now_ns += GUARD_NS - 4 * RL_SECOND - 1;
    check_text("restarted 30 s ago, votes again in 1 ms");
    /* Once more, and back to the one before: nobody knows where it was meanwhile. */
    ck_assert(greet("a", 86400));
    check_guard(RL_EXCLUSION_RESTARTED, GUARD_NS);
}
END_TEST

START_TEST(causes_of_exclusions_exclude)
{
    for (unsigned i = 0; RL_EXCLUSION_RESTARTED >> i != 0; i++)
        ck_assert(rl_cause_of(rl_admission_cause(1u << i))->excludes);
}
END_TEST

START_TEST(durable_servers_need_no_guard)
{
    rl_admission_init(&node, &rules, true, false);
    greet("a", 0);
    ck_assert_uint_eq(exclusions(), 0);
    greet("b", 0);
    ck_assert_uint_eq(exclusions(), 0);
}
END_TEST

/* Fresh: there was nothing to forget before we came, but afterwards there was. */
START_TEST(fresh_servers_need_no_first_guard)
{
    rl_admission_init(&node, &rules, false, true);
    greet("a", 0);
    ck_assert_uint_eq(exclusions(), 0);
    now_ns += RL_SECOND;
    ck_assert(greet("b", 0));
    check_guard(RL_EXCLUSION_RESTARTED, GUARD_NS);
}
END_TEST

/* Somebody holds longer locks than we thought: the guard that runs grows, one that is over comes
 * back. */
START_TEST(a_longer_ttl_was_seen)
{
    greet("a", 0);
    rules.ttl_seen_ns = 60 * RL_SECOND;
    check_guard(RL_EXCLUSION_RESTARTED, UINT64_C(60602) * RL_MS);
    rules.ttl_seen_ns = 10 * RL_SECOND;
    check_guard(RL_EXCLUSION_RESTARTED, GUARD_NS);
    now_ns += GUARD_NS;
    ck_assert_uint_eq(exclusions(), 0);
    rules.ttl_seen_ns = 60 * RL_SECOND;
    ck_assert_uint_eq(exclusions(), RL_EXCLUSION_RESTARTED);
}
END_TEST

START_TEST(time_does_not_overflow)
{
    rules.max_ttl_ns = UINT64_MAX;
    greet("a", 5);
    ck_assert_uint_eq(exclusions(), RL_EXCLUSION_RESTARTED);
    now_ns = UINT64_MAX - 1;
    ck_assert_uint_eq(exclusions(), RL_EXCLUSION_RESTARTED);
    check_text("restarted 18446743077 s ago, votes again in 1 ms");
}
END_TEST

/* ---- other masters' data ---- */

static bool greet_promoted(const char *run_id, uint64_t uptime_s, const char *replid2,
                           int64_t offset)
{
    struct rl_info info = server(run_id, uptime_s);

    strcpy(info.replid2, replid2);
    info.second_offset = offset;
    return rl_admission_greet(&node, &info, now_ns);
}

/* Of unknown age: uptime says nothing, also if no lock was there when we came. */
START_TEST(promoted_servers)
{
    rl_admission_init(&node, &rules, false, _i == 1);
    greet_promoted("a", 86400, "abcd", 4711);
    check_guard(RL_EXCLUSION_PROMOTED, GUARD_NS);
    now_ns += 3 * RL_SECOND;
    check_text("has another server's data, first seen 3 s ago, votes again in 28 s");
    ck_assert(!greet_promoted("a", 86400, "abcd", 4711));
    check_guard(RL_EXCLUSION_PROMOTED, GUARD_NS - 3 * RL_SECOND);
    /* Again, under the same name. */
    ck_assert(greet_promoted("a", 86400, "abcd", 5000));
    check_guard(RL_EXCLUSION_PROMOTED, GUARD_NS);
    ck_assert(greet_promoted("a", 86400, "bcde", 5000));
    check_guard(RL_EXCLUSION_PROMOTED, GUARD_NS);
}
END_TEST

/* Twice behind the same master, which has written nothing meanwhile: only its own name tells. */
START_TEST(promoted_again_from_the_same_master)
{
    struct rl_info info = server("a", 86400);

    strcpy(info.replid2, "abcd");
    info.second_offset = 1;
    strcpy(info.replid, "first");
    rl_admission_greet(&node, &info, now_ns);
    now_ns += GUARD_NS;
    ck_assert_uint_eq(exclusions(), 0);
    ck_assert(!rl_admission_greet(&node, &info, now_ns));
    strcpy(info.replid, "second");
    ck_assert(rl_admission_greet(&node, &info, now_ns));
    check_guard(RL_EXCLUSION_PROMOTED, GUARD_NS);
}
END_TEST

/* A master that nobody follows any more takes another name after an hour. */
START_TEST(a_new_name_is_no_promotion)
{
    struct rl_info info = server("a", 86400);

    strcpy(info.replid, "first");
    rl_admission_greet(&node, &info, now_ns);
    strcpy(info.replid, "second");
    ck_assert(!rl_admission_greet(&node, &info, now_ns));
    ck_assert_uint_eq(exclusions(), 0);
}
END_TEST

START_TEST(promoted_while_known)
{
    greet("a", 86400);
    ck_assert(greet_promoted("a", 86400, "abcd", 4711));
    check_guard(RL_EXCLUSION_PROMOTED, GUARD_NS);
    /* It forgets whose data they were: that is no promotion, and does not end the guard. */
    now_ns += 3 * RL_SECOND;
    ck_assert(!greet("a", 86400));
    check_guard(RL_EXCLUSION_PROMOTED, GUARD_NS - 3 * RL_SECOND);
}
END_TEST

START_TEST(promoted_signs)
{
    static const struct {
        const char *replid2;
        int64_t offset;
        bool promoted;
    } table[] = {
        {"", 0, false},    {ZEROS, -1, false},    {ZEROS, 0, false},
        {ZEROS, 17, true}, {"00000a0", -1, true}, {"", 17, true},
    };

    greet_promoted("a", 86400, table[_i].replid2, table[_i].offset);
    ck_assert_uint_eq(exclusions(), table[_i].promoted ? RL_EXCLUSION_PROMOTED : 0);
}
END_TEST

START_TEST(durable_and_promoted)
{
    rl_admission_init(&node, &rules, true, false);
    greet_promoted("a", 1, "abcd", 4711);
    ck_assert_uint_eq(exclusions(), 0);
}
END_TEST

/* ---- what an operator has to mend ---- */

START_TEST(eviction)
{
    static const struct {
        uint64_t maxmemory;
        const char *policy;
        bool evicts;
    } table[] = {
        {0, "allkeys-lru", false}, {1, "noeviction", false},  {1, "", false},
        {1, "allkeys-lru", true},  {1, "volatile-ttl", true}, {UINT64_MAX, "volatile-lfu", true},
    };
    struct rl_info info = server("a", 86400);

    info.maxmemory = table[_i].maxmemory;
    strcpy(info.policy, table[_i].policy);
    rl_admission_greet(&node, &info, now_ns);
    ck_assert_uint_eq(exclusions(), table[_i].evicts ? RL_EXCLUSION_EVICTING : 0);
    if (!table[_i].evicts)
        return;
    char text[160];
    rl_admission_text(&node, exclusions(), now_ns, text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, table[_i].policy));
    ck_assert_uint_eq(rl_admission_quarantine_left_ns(&node, exclusions(), now_ns), 0);
    ck_assert_uint_eq(rl_admission_due_ns(&node, exclusions()), RL_NEVER);
    greet("a", 86400); /* mended */
    ck_assert_uint_eq(exclusions(), 0);
}
END_TEST

static void greet_silent(bool refused)
{
    struct rl_info info = server("", 0);

    info.refused = refused;
    rl_admission_greet(&node, &info, now_ns);
}

START_TEST(anonymous_servers)
{
    greet_silent(_i == 0);
    ck_assert_uint_eq(exclusions(), RL_EXCLUSION_NO_INFO);
    check_text("does not report its identity: allow INFO to this user, or use lenient admission");
    rules.lenient = true;
    greet_silent(_i == 0);
    ck_assert_uint_eq(exclusions(), 0);
    /* Whom we knew before is not forgotten. */
    rules.lenient = false;
    greet("a", 86400);
    greet_silent(_i == 0);
    ck_assert_uint_eq(exclusions(), RL_EXCLUSION_NO_INFO);
    ck_assert(greet("b", 86400));
    ck_assert_uint_eq(exclusions(), RL_EXCLUSION_RESTARTED);
}
END_TEST

/* A section is refused, the one with the name is not: still not enough in strict mode. */
START_TEST(half_anonymous_servers)
{
    struct rl_info info = server("a", 86400);

    info.refused = true;
    rl_admission_greet(&node, &info, now_ns);
    ck_assert_uint_eq(exclusions(), RL_EXCLUSION_NO_INFO);
    rules.lenient = true;
    info.uptime_s = 0;
    strcpy(info.run_id, "b");
    rl_admission_greet(&node, &info, now_ns);
    ck_assert_uint_eq(exclusions(),
                      RL_EXCLUSION_RESTARTED); /* the guard holds as far as it is told */
}
END_TEST

/* ---- several at once ---- */

START_TEST(the_first_reason_is_named)
{
    static const struct {
        uint32_t exclusions;
        uint8_t cause;
    } table[] = {
        {0, REDLOCK_CAUSE_NONE},
        {RL_EXCLUSION_RESTARTED, REDLOCK_CAUSE_RESTARTED},
        {RL_EXCLUSION_RESTARTED | RL_EXCLUSION_PROMOTED, REDLOCK_CAUSE_PROMOTED},
        {RL_EXCLUSION_RESTARTED | RL_EXCLUSION_CLOCK_STEP, REDLOCK_CAUSE_CLOCK_STEP},
        {RL_EXCLUSION_EVICTING | RL_EXCLUSION_RESTARTED, REDLOCK_CAUSE_EVICTING},
        {RL_EXCLUSION_EVICTING | RL_EXCLUSION_NO_INFO, REDLOCK_CAUSE_NO_INFO},
    };

    ck_assert_uint_eq(rl_admission_cause(table[_i].exclusions), table[_i].cause);
}
END_TEST

/* A wait is over when the last reason is; who has to be mended has no end to tell. */
START_TEST(the_longest_wait_counts)
{
    greet("a", 86400);
    rl_admission_time(&node, 0, now_ns, now_ns);
    now_ns += RL_SECOND;
    ck_assert(rl_admission_time(&node, 9000000, now_ns, now_ns));
    now_ns += 10 * RL_SECOND;
    greet("b", 86400);
    ck_assert_uint_eq(exclusions(), RL_EXCLUSION_RESTARTED | RL_EXCLUSION_CLOCK_STEP);
    ck_assert_uint_eq(rl_admission_quarantine_left_ns(&node, exclusions(), now_ns), GUARD_NS);
    ck_assert_uint_eq(rl_admission_due_ns(&node, exclusions()), now_ns + GUARD_NS - 10 * RL_SECOND);
    check_text("its clock jumped 7 s ahead 10 s ago, votes again in 31 s");
    ck_assert_uint_eq(
        rl_admission_quarantine_left_ns(&node, exclusions() | RL_EXCLUSION_EVICTING, now_ns), 0);
}
END_TEST

static Suite *admission_suite(void)
{
    Suite *suite = suite_create("node_admission");
    TCase *tcase = tcase_create("admission");
    tcase_add_checked_fixture(tcase, setup, NULL);
    tcase_add_loop_test(tcase, first_contact, 0, 5);
    tcase_add_loop_test(tcase, first_contact_with_an_old_server, 0, 4);
    tcase_add_test(tcase, reconnect);
    tcase_add_test(tcase, restart_is_timed_by_us);
    tcase_add_test(tcase, causes_of_exclusions_exclude);
    tcase_add_test(tcase, durable_servers_need_no_guard);
    tcase_add_test(tcase, fresh_servers_need_no_first_guard);
    tcase_add_test(tcase, a_longer_ttl_was_seen);
    tcase_add_test(tcase, time_does_not_overflow);
    tcase_add_loop_test(tcase, promoted_servers, 0, 2);
    tcase_add_test(tcase, promoted_again_from_the_same_master);
    tcase_add_test(tcase, a_new_name_is_no_promotion);
    tcase_add_test(tcase, promoted_while_known);
    tcase_add_loop_test(tcase, promoted_signs, 0, 6);
    tcase_add_test(tcase, durable_and_promoted);
    tcase_add_loop_test(tcase, eviction, 0, 6);
    tcase_add_loop_test(tcase, anonymous_servers, 0, 2);
    tcase_add_test(tcase, half_anonymous_servers);
    tcase_add_loop_test(tcase, the_first_reason_is_named, 0, 6);
    tcase_add_test(tcase, the_longest_wait_counts);
    suite_add_tcase(suite, tcase);
    return suite;
}

int main(void)
{
    return suite_run(admission_suite());
}
