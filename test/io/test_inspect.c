/* SPDX-License-Identifier: MIT
 * An inspection of a key that expires between the reply with its value and the reply with its TTL.
 * The resource is reported as free and without an owner, and there is nothing to break. */
#include "suite.h"
#include "three_servers.h"
#include "wait.h"

#include <string.h>

#define TOKEN "0123456789012345678901234567890123456789@somebody"

static redlock_report_t *report;

static redlock_report_info_t info(void)
{
    redlock_report_info_t told;
    ck_assert_int_eq(redlock_report_get_info(report, &told, sizeof told), REDLOCK_OK);
    return told;
}

static void check_all_free(unsigned nodes)
{
    redlock_node_report_t node;
    for (size_t i = 0; i < nodes; i++) {
        ck_assert_int_eq(redlock_report_get_node(report, i, &node, sizeof node), REDLOCK_OK);
        if (node.vote == REDLOCK_VOTE_NONE)
            continue; /* a majority had answered */
        ck_assert_int_eq(node.vote, REDLOCK_VOTE_DENIED);
        ck_assert_str_eq(node.text, "free");
        ck_assert_str_eq(node.owner, "");
        ck_assert(node.pttl_ms == UINT64_MAX);
    }
}

static void ends_between_the_questions(size_t server)
{
    fake_redis_put(three_servers.fake[server], "resource", TOKEN, 0);
    fake_redis_rule(three_servers.fake[server],
                    (struct fake_rule){.command = "PTTL", .fault = FAKE_REPLY, .bytes = ":-2\r\n"});
}

static void inspect(void)
{
    redlock_report_free(report);
    report = NULL;
    int status = redlock_inspect(three_servers.client, "resource", &report);
    ck_assert_msg(status == REDLOCK_OK, "%s", redlock_report_text(report));
}

static void remove_all(void)
{
    redlock_report_free(report);
    report = NULL;
    for (size_t i = 0; i < THREE_SERVERS; i++)
        fake_redis_remove(three_servers.fake[i], "resource");
}

START_TEST(gone_everywhere)
{
    for (size_t i = 0; i < THREE_SERVERS; i++)
        ends_between_the_questions(i);
    three_servers_connect();
    ck_assert(three_servers_wait_all_vote());
    inspect();
    ck_assert_int_eq(info().state, REDLOCK_STATE_FREE);
    ck_assert_uint_eq(info().granted, 0);
    check_all_free(THREE_SERVERS);
    remove_all();
}
END_TEST

/* One still has it: no majority, whoever is asked. */
START_TEST(gone_from_a_majority)
{
    fake_redis_put(three_servers.fake[2], "resource", TOKEN, TTL_MS);
    for (size_t i = 0; i < 2; i++)
        ends_between_the_questions(i);
    three_servers_connect();
    ck_assert(three_servers_wait_all_vote());
    inspect();
    ck_assert_int_ne(info().state, REDLOCK_STATE_HELD);
    ck_assert_uint_le(info().granted, 1);
    check_all_free(2);
    remove_all();
}
END_TEST

/* Nothing has ended: the same servers, an honest answer. */
START_TEST(still_there)
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
    tcase_add_test(tcase, gone_everywhere);
    tcase_add_test(tcase, gone_from_a_majority);
    tcase_add_test(tcase, still_there);
    suite_add_tcase(suite, tcase);
    return suite;
}

int main(void)
{
    return suite_run(inspect_suite());
}
