/* SPDX-License-Identifier: MIT
 * An inspection of a key that expires between the reply with its value and the reply with its TTL.
 * The resource is reported as free and without an owner, and there is nothing to break.
 *
 * Uses three_servers.h: three fake servers on threads of this process (three_servers.fake[]) and
 * one threaded client. fake_redis_rule() makes a server misbehave, fake_redis_count() counts
 * commands in its log. three_servers_acquire() and the like make one call and keep its report for
 * the checks. */
#include "suite.h"
#include "three_servers.h"
#include "wait.h"

#include <string.h>

#define TOKEN "0123456789012345678901234567890123456789@somebody"

static redlock_report_t *report;

/* Returns the facts of the last report. */
static redlock_report_info_t info(void)
{
    redlock_report_info_t result;
    ck_assert_int_eq(redlock_report_get_info(report, &result, sizeof result), REDLOCK_OK);
    return result;
}

/* Checks that each of these nodes reports the key as free. */
static void check_all_free(unsigned nodes)
{
    redlock_node_report_t node;
    for (size_t i = 0; i < nodes; i++) {
        ck_assert_int_eq(redlock_report_get_node(report, i, &node, sizeof node), REDLOCK_OK);
        if (node.vote == REDLOCK_VOTE_NONE)
            continue; /* a majority had replied */
        ck_assert_int_eq(node.vote, REDLOCK_VOTE_DENIED);
        ck_assert_str_eq(node.text, "free");
        ck_assert_str_eq(node.owner, "");
        ck_assert(node.pttl_ms == UINT64_MAX);
    }
}

/* Lets the key expire between the replies to GET and PTTL. */
static void expire_before_pttl(size_t server)
{
    fake_redis_put(three_servers.fake[server], "resource", TOKEN, 0);
    fake_redis_rule(three_servers.fake[server],
                    (struct fake_rule){.command = "PTTL", .fault = FAKE_REPLY, .bytes = ":-2\r\n"});
}

/* Inspects the resource. */
static void inspect(void)
{
    redlock_report_free(report);
    report = NULL;
    int status = redlock_inspect(three_servers.client, "resource", &report);
    ck_assert_msg(status == REDLOCK_OK, "%s", redlock_report_text(report));
}

/* Frees the report and removes the key on all servers. */
static void remove_all(void)
{
    redlock_report_free(report);
    report = NULL;
    for (size_t i = 0; i < THREE_SERVERS; i++)
        fake_redis_remove(three_servers.fake[i], "resource");
}

START_TEST(a_key_that_expires_on_all_servers_is_free)
{
    for (size_t i = 0; i < THREE_SERVERS; i++)
        expire_before_pttl(i);
    three_servers_connect();
    ck_assert(three_servers_wait_all_vote());
    inspect();
    ck_assert_int_eq(info().state, REDLOCK_STATE_FREE);
    ck_assert_uint_eq(info().granted, 0);
    check_all_free(THREE_SERVERS);
    remove_all();
}
END_TEST

/* One server still has the key, which is no majority. */
START_TEST(a_key_that_expires_on_a_majority_is_not_held)
{
    fake_redis_put(three_servers.fake[2], "resource", TOKEN, TTL_MS);
    for (size_t i = 0; i < 2; i++)
        expire_before_pttl(i);
    three_servers_connect();
    ck_assert(three_servers_wait_all_vote());
    inspect();
    ck_assert_int_ne(info().state, REDLOCK_STATE_HELD);
    ck_assert_uint_le(info().granted, 1);
    check_all_free(2);
    remove_all();
}
END_TEST

/* The same servers with a key that does not expire. */
START_TEST(a_key_that_stays_is_held)
{
    for (size_t i = 0; i < THREE_SERVERS; i++)
        fake_redis_put(three_servers.fake[i], "resource", TOKEN, TTL_MS);
    three_servers_connect();
    ck_assert(three_servers_wait_all_vote());
    inspect();
    ck_assert_int_eq(info().state, REDLOCK_STATE_HELD);
    ck_assert_uint_ge(info().granted, 2);
    remove_all();
}
END_TEST

static Suite *inspect_suite(void)
{
    Suite *suite = suite_create("inspect");
    TCase *tcase = tcase_create("ending");
    tcase_add_checked_fixture(tcase, three_servers_setup, three_servers_teardown);
    tcase_add_test(tcase, a_key_that_expires_on_all_servers_is_free);
    tcase_add_test(tcase, a_key_that_expires_on_a_majority_is_not_held);
    tcase_add_test(tcase, a_key_that_stays_is_held);
    suite_add_tcase(suite, tcase);
    return suite;
}

int main(void)
{
    return suite_run(inspect_suite());
}
