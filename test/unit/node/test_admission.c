/* SPDX-License-Identifier: MIT
 * Admission, row by row, in virtual time: what a server reports about itself, and from when on its
 * votes count. */
#include "core/cause.h"
#include "node/admission.h"
#include "suite.h"

#include <redlock/redlock.h>
#include <string.h>

#define QUARANTINE_NS (UINT64_C(30302) * RL_MS) /* 30 s and 1 % and 2 ms */
#define ZEROS         "0000000000000000000000000000000000000000"

static struct rl_admission_rules rules; /* the client's settings that admission depends on */
static struct rl_admission node;        /* the admission of the one node of the test */
static uint64_t now_ns;                 /* virtual time */

/* Fixture: prepares the admission of one node with a max_ttl of 30 s. */
static void setup(void)
{
    rules = (struct rl_admission_rules){.drift = {.ppm = 10000, .constant_us = 2000},
                                        .max_ttl_ns = 30 * RL_SECOND};
    rl_admission_init(&node, &rules, false, false);
    now_ns = 1000 * RL_SECOND;
}

/* Returns the INFO of a master. */
static struct rl_info server(const char *run_id, uint64_t uptime_s)
{
    struct rl_info info = {.role = "master", .replid2 = ZEROS, .second_offset = -1};

    strcpy(info.run_id, run_id);
    strcpy(info.policy, "noeviction");
    info.uptime_s = uptime_s;
    return info;
}

/* Greets such a server now. Returns true if its admission has changed. */
static bool greet(const char *run_id, uint64_t uptime_s)
{
    const struct rl_info info = server(run_id, uptime_s);

    return rl_admission_greet(&node, &info, now_ns);
}

/* Returns the reasons why the server is excluded now. */
static uint32_t exclusions(void)
{
    return rl_admission_exclusions(&node, now_ns);
}

/* Checks that this is the only exclusion, and that it ends in exactly `wait_ns`. */
static void check_quarantine(uint32_t exclusion, uint64_t wait_ns)
{
    const uint64_t begin_ns = now_ns;

    ck_assert_uint_eq(exclusions(), exclusion);
    ck_assert_uint_eq(rl_admission_due_ns(&node, exclusion), begin_ns + wait_ns);
    ck_assert_uint_eq(rl_admission_quarantine_left_ns(&node, exclusion, now_ns), wait_ns);
    now_ns = begin_ns + wait_ns - 1;
    ck_assert_uint_eq(exclusions(), exclusion);
    now_ns++;
    ck_assert_uint_eq(exclusions(), 0);
    ck_assert_uint_eq(rl_admission_due_ns(&node, 0), RL_NEVER);
    now_ns = begin_ns;
}

/* Checks the text about the exclusions now. */
static void check_text(const char *expected)
{
    char text[160];

    rl_admission_text(&node, exclusions(), now_ns, text, sizeof text);
    ck_assert_str_eq(text, expected);
}

/* ---- restarts ---- */

START_TEST(a_young_server_is_in_quarantine_at_first_contact)
{
    static const struct {
        uint64_t uptime_s, wait_ns;
    } table[] = {
        {0, QUARANTINE_NS},
        {1, QUARANTINE_NS}, /* uptime is rounded: the second may have just begun */
        {2, QUARANTINE_NS - RL_SECOND},
        {30, QUARANTINE_NS - 29 * RL_SECOND},
        {31, QUARANTINE_NS - 30 * RL_SECOND},
    };

    ck_assert(greet("a", table[_i].uptime_s));
    check_quarantine(RL_EXCLUSION_RESTARTED, table[_i].wait_ns);
}
END_TEST

START_TEST(an_old_server_votes_at_first_contact)
{
    static const uint64_t uptimes[] = {32, 86400, UINT64_MAX / RL_SECOND, UINT64_MAX};

    ck_assert(greet("a", uptimes[_i]));
    ck_assert_uint_eq(exclusions(), 0);
    check_text("");
}
END_TEST

/* The same server on a new connection neither restarts the quarantine nor ends it. */
START_TEST(a_reconnection_does_not_change_the_quarantine)
{
    greet("a", 0);
    now_ns += 10 * RL_SECOND;
    ck_assert(!greet("a", 86400));
    check_quarantine(RL_EXCLUSION_RESTARTED, QUARANTINE_NS - 10 * RL_SECOND);
    now_ns += QUARANTINE_NS;
    ck_assert(!greet("a", 0));
    ck_assert_uint_eq(exclusions(), 0);
}
END_TEST

/* The uptime depends on the server's wall clock, so it proves nothing after a restart. */
START_TEST(a_restart_is_timed_by_the_client)
{
    greet("a", 86400);
    now_ns += 5 * RL_SECOND;
    ck_assert(greet("b", 86400));
    check_quarantine(RL_EXCLUSION_RESTARTED, QUARANTINE_NS);
    now_ns += 4 * RL_SECOND;
    check_text("restarted 4 s ago, votes again in 27 s");
    now_ns += QUARANTINE_NS - 4 * RL_SECOND - 1;
    check_text("restarted 30 s ago, votes again in 1 ms");
    /* The earlier run id again: it is unknown what that server has lost meanwhile. */
    ck_assert(greet("a", 86400));
    check_quarantine(RL_EXCLUSION_RESTARTED, QUARANTINE_NS);
}
END_TEST

START_TEST(causes_of_exclusions_are_marked_as_such)
{
    for (unsigned i = 0; RL_EXCLUSION_RESTARTED >> i != 0; i++)
        ck_assert(rl_cause_of(rl_admission_cause(1u << i))->excludes);
}
END_TEST

START_TEST(durable_servers_have_no_quarantine)
{
    rl_admission_init(&node, &rules, true, false);
    greet("a", 0);
    ck_assert_uint_eq(exclusions(), 0);
    greet("b", 0);
    ck_assert_uint_eq(exclusions(), 0);
}
END_TEST

/* A fresh server had no keys before the first contact, but it may have some after it. */
START_TEST(fresh_servers_have_no_first_quarantine)
{
    rl_admission_init(&node, &rules, false, true);
    greet("a", 0);
    ck_assert_uint_eq(exclusions(), 0);
    now_ns += RL_SECOND;
    ck_assert(greet("b", 0));
    check_quarantine(RL_EXCLUSION_RESTARTED, QUARANTINE_NS);
}
END_TEST

/* A key with a longer TTL than max_ttl prolongs the running quarantine, and starts one again that
 * has ended. */
START_TEST(a_longer_ttl_prolongs_the_quarantine)
{
    greet("a", 0);
    rules.ttl_seen_ns = 60 * RL_SECOND;
    check_quarantine(RL_EXCLUSION_RESTARTED, UINT64_C(60602) * RL_MS);
    rules.ttl_seen_ns = 10 * RL_SECOND;
    check_quarantine(RL_EXCLUSION_RESTARTED, QUARANTINE_NS);
    now_ns += QUARANTINE_NS;
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

/* ---- promotions: servers with the data of another master ---- */

/* Greets a server with these signs of a promotion. */
static bool greet_promoted(const char *run_id, uint64_t uptime_s, const char *replid2,
                           int64_t offset)
{
    struct rl_info info = server(run_id, uptime_s);

    strcpy(info.replid2, replid2);
    info.second_offset = offset;
    return rl_admission_greet(&node, &info, now_ns);
}

/* The time of the promotion is unknown, so the uptime does not count, not even on a fresh server
 * (1). */
START_TEST(promoted_servers_are_in_quarantine)
{
    rl_admission_init(&node, &rules, false, _i == 1);
    greet_promoted("a", 86400, "abcd", 4711);
    check_quarantine(RL_EXCLUSION_PROMOTED, QUARANTINE_NS);
    now_ns += 3 * RL_SECOND;
    check_text("has another server's data, first seen 3 s ago, votes again in 28 s");
    ck_assert(!greet_promoted("a", 86400, "abcd", 4711));
    check_quarantine(RL_EXCLUSION_PROMOTED, QUARANTINE_NS - 3 * RL_SECOND);
    /* A second promotion under the same run id. */
    ck_assert(greet_promoted("a", 86400, "abcd", 5000));
    check_quarantine(RL_EXCLUSION_PROMOTED, QUARANTINE_NS);
    ck_assert(greet_promoted("a", 86400, "bcde", 5000));
    check_quarantine(RL_EXCLUSION_PROMOTED, QUARANTINE_NS);
}
END_TEST

/* Promoted twice from the same master, which has written nothing in between: only the server's own
 * replication id differs. */
START_TEST(promoted_again_from_the_same_master)
{
    struct rl_info info = server("a", 86400);

    strcpy(info.replid2, "abcd");
    info.second_offset = 1;
    strcpy(info.replid, "first");
    rl_admission_greet(&node, &info, now_ns);
    now_ns += QUARANTINE_NS;
    ck_assert_uint_eq(exclusions(), 0);
    ck_assert(!rl_admission_greet(&node, &info, now_ns));
    strcpy(info.replid, "second");
    ck_assert(rl_admission_greet(&node, &info, now_ns));
    check_quarantine(RL_EXCLUSION_PROMOTED, QUARANTINE_NS);
}
END_TEST

/* A master without replicas takes another replication id after an hour. */
START_TEST(a_new_replication_id_alone_is_no_promotion)
{
    struct rl_info info = server("a", 86400);

    strcpy(info.replid, "first");
    rl_admission_greet(&node, &info, now_ns);
    strcpy(info.replid, "second");
    ck_assert(!rl_admission_greet(&node, &info, now_ns));
    ck_assert_uint_eq(exclusions(), 0);
}
END_TEST

START_TEST(a_promotion_of_a_known_server_is_noticed)
{
    greet("a", 86400);
    ck_assert(greet_promoted("a", 86400, "abcd", 4711));
    check_quarantine(RL_EXCLUSION_PROMOTED, QUARANTINE_NS);
    /* A server without these signs again does not end the quarantine. */
    now_ns += 3 * RL_SECOND;
    ck_assert(!greet("a", 86400));
    check_quarantine(RL_EXCLUSION_PROMOTED, QUARANTINE_NS - 3 * RL_SECOND);
}
END_TEST

START_TEST(signs_of_a_promotion)
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

START_TEST(durable_servers_may_be_promoted)
{
    rl_admission_init(&node, &rules, true, false);
    greet_promoted("a", 1, "abcd", 4711);
    ck_assert_uint_eq(exclusions(), 0);
}
END_TEST

/* ---- exclusions that an operator must end ---- */

START_TEST(evicting_servers_are_excluded)
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
    greet("a", 86400); /* the policy was corrected */
    ck_assert_uint_eq(exclusions(), 0);
}
END_TEST

/* Greets a server that sends no INFO: it refuses (`refused`), or its INFO is empty. */
static void greet_without_info(bool refused)
{
    struct rl_info info = server("", 0);

    info.refused = refused;
    rl_admission_greet(&node, &info, now_ns);
}

START_TEST(servers_that_do_not_know_info)
{
    struct rl_info info = server("", 0);

    info.refused = info.unknown = true;
    rl_admission_greet(&node, &info, now_ns);
    ck_assert_uint_eq(exclusions(), RL_EXCLUSION_NO_INFO);
    check_text("does not know INFO: it is a proxy, or the command was renamed");
}
END_TEST

START_TEST(servers_without_info_are_excluded_unless_lenient)
{
    greet_without_info(_i == 0);
    ck_assert_uint_eq(exclusions(), RL_EXCLUSION_NO_INFO);
    check_text("does not report its identity: allow INFO to this user, or use lenient admission");
    rules.lenient = true;
    greet_without_info(_i == 0);
    ck_assert_uint_eq(exclusions(), 0);
    /* The run id that was known before is kept. */
    rules.lenient = false;
    greet("a", 86400);
    greet_without_info(_i == 0);
    ck_assert_uint_eq(exclusions(), RL_EXCLUSION_NO_INFO);
    ck_assert(greet("b", 86400));
    ck_assert_uint_eq(exclusions(), RL_EXCLUSION_RESTARTED);
}
END_TEST

/* One section is refused, but not the one with the run id: not enough without lenient admission. */
START_TEST(a_refused_section_of_info_excludes_unless_lenient)
{
    struct rl_info info = server("a", 86400);

    info.refused = true;
    rl_admission_greet(&node, &info, now_ns);
    ck_assert_uint_eq(exclusions(), RL_EXCLUSION_NO_INFO);
    rules.lenient = true;
    info.uptime_s = 0;
    strcpy(info.run_id, "b");
    rl_admission_greet(&node, &info, now_ns);
    ck_assert_uint_eq(exclusions(), RL_EXCLUSION_RESTARTED); /* the known fields still count */
}
END_TEST

/* ---- several exclusions at once ---- */

START_TEST(the_most_important_cause_is_named)
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

/* The reported time is that of the last quarantine. An exclusion that an operator must end has no
 * such time. */
START_TEST(the_longest_quarantine_counts)
{
    greet("a", 86400);
    rl_admission_time(&node, 0, now_ns, now_ns);
    now_ns += RL_SECOND;
    ck_assert(rl_admission_time(&node, 9000000, now_ns, now_ns));
    now_ns += 10 * RL_SECOND;
    greet("b", 86400);
    ck_assert_uint_eq(exclusions(), RL_EXCLUSION_RESTARTED | RL_EXCLUSION_CLOCK_STEP);
    ck_assert_uint_eq(rl_admission_quarantine_left_ns(&node, exclusions(), now_ns), QUARANTINE_NS);
    ck_assert_uint_eq(rl_admission_due_ns(&node, exclusions()),
                      now_ns + QUARANTINE_NS - 10 * RL_SECOND);
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
    tcase_add_loop_test(tcase, a_young_server_is_in_quarantine_at_first_contact, 0, 5);
    tcase_add_loop_test(tcase, an_old_server_votes_at_first_contact, 0, 4);
    tcase_add_test(tcase, a_reconnection_does_not_change_the_quarantine);
    tcase_add_test(tcase, a_restart_is_timed_by_the_client);
    tcase_add_test(tcase, causes_of_exclusions_are_marked_as_such);
    tcase_add_test(tcase, durable_servers_have_no_quarantine);
    tcase_add_test(tcase, fresh_servers_have_no_first_quarantine);
    tcase_add_test(tcase, a_longer_ttl_prolongs_the_quarantine);
    tcase_add_test(tcase, time_does_not_overflow);
    tcase_add_loop_test(tcase, promoted_servers_are_in_quarantine, 0, 2);
    tcase_add_test(tcase, promoted_again_from_the_same_master);
    tcase_add_test(tcase, a_new_replication_id_alone_is_no_promotion);
    tcase_add_test(tcase, a_promotion_of_a_known_server_is_noticed);
    tcase_add_loop_test(tcase, signs_of_a_promotion, 0, 6);
    tcase_add_test(tcase, durable_servers_may_be_promoted);
    tcase_add_loop_test(tcase, evicting_servers_are_excluded, 0, 6);
    tcase_add_test(tcase, servers_that_do_not_know_info);
    tcase_add_loop_test(tcase, servers_without_info_are_excluded_unless_lenient, 0, 2);
    tcase_add_test(tcase, a_refused_section_of_info_excludes_unless_lenient);
    tcase_add_loop_test(tcase, the_most_important_cause_is_named, 0, 6);
    tcase_add_test(tcase, the_longest_quarantine_counts);
    suite_add_tcase(suite, tcase);
    return suite;
}

int main(void)
{
    return suite_run(admission_suite());
}
