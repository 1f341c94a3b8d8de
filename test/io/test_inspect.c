/* SPDX-License-Identifier: MIT
 * An inspection of a key that expires between the reply with its value and the reply with its TTL.
 * The resource is reported as free and without an owner, and there is nothing to break. And the
 * waiters in the line of a resource, whatever the key of the line holds.
 *
 * Uses three_servers.h: three fake servers on threads of this process (three_servers.fake[]) and
 * one threaded client. fake_redis_rule() makes a server misbehave, fake_redis_count() counts
 * commands in its log. three_servers_acquire() and the like make one call and keep its report for
 * the checks. */
#include "suite.h"
#include "three_servers.h"
#include "wait.h"

#include <stdio.h>
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

/* Inspects a resource. */
static void inspect_name(const char *name)
{
    redlock_report_free(report);
    report = NULL;
    int status = redlock_inspect(three_servers.client, name, &report);
    ck_assert_msg(status == REDLOCK_OK, "%s", redlock_report_text(report));
}

/* Inspects the resource "resource". */
static void inspect(void)
{
    inspect_name("resource");
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

#define LINE "resource{#q}"

/* Sets the line on one server, or removes it (NULL). */
static void set_line(size_t server, const char *value)
{
    fake_redis_remove(three_servers.fake[server], LINE);
    if (value != NULL)
        fake_redis_put(three_servers.fake[server], LINE, value, TTL_MS);
}

/* Sets the same line on all servers, or removes it (NULL). */
static void set_lines(const char *value)
{
    for (size_t i = 0; i < THREE_SERVERS; i++)
        set_line(i, value);
}

/* Returns the waiters of the last report as "owner since", separated by '|'. */
static const char *waiters(void)
{
    static char text[1024];
    redlock_waiter_t waiter;
    size_t at = 0;

    text[0] = '\0';
    for (size_t i = 0; at < sizeof text / 2 &&
                       redlock_report_get_waiter(report, i, &waiter, sizeof waiter) == REDLOCK_OK;
         i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s %llu", i > 0 ? "|" : "",
                               waiter.owner, (unsigned long long)waiter.since_ms);
    return text;
}

START_TEST(waiters_are_listed_in_order)
{
    redlock_waiter_t waiter;

    set_line(1, "redlock-line\n7 0 h 0 1700000000001 web:1\n8 3 w 12 1700000000002 two words\n"
                "damaged\n9 0 d 0 1700000000003 \n");
    three_servers_connect();
    ck_assert(three_servers_wait_all_vote());
    inspect();
    ck_assert_int_eq(info().state, REDLOCK_STATE_FREE);
    ck_assert_str_eq(waiters(), "web:1 1700000000001|two?words 1700000000002| 1700000000003");
    ck_assert_uint_eq(info().line_length, 3);
    ck_assert_uint_eq(info().line_more, 0);
    ck_assert_uint_eq(info().line_servers, THREE_SERVERS);
    ck_assert_int_eq(redlock_report_get_waiter(report, 3, &waiter, sizeof waiter), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_report_get_waiter(report, 0, NULL, sizeof waiter), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_report_get_waiter(report, 0, &waiter, 0), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_report_get_waiter(NULL, 0, &waiter, sizeof waiter), REDLOCK_EINVAL);
    redlock_report_t *copy = redlock_report_ref(report);
    redlock_report_free(report);
    report = copy;
    ck_assert_str_eq(waiters(), "web:1 1700000000001|two?words 1700000000002| 1700000000003");
    remove_all();
    set_lines(NULL);
}
END_TEST

/* Without the line that was shown, another one is. So the servers are in an order. */
START_TEST(one_line_is_shown_at_a_time)
{
    bool shown[THREE_SERVERS] = {false};

    set_line(0, "redlock-line\n7 0 h 0 1 0\n");
    set_line(1, "redlock-line\n7 0 h 0 1 1\n");
    set_line(2, "redlock-line\n7 0 h 0 1 2\n");
    three_servers_connect();
    ck_assert(three_servers_wait_all_vote());
    for (size_t i = 0; i < THREE_SERVERS; i++) {
        inspect();
        ck_assert_uint_eq(info().line_length, 1);
        size_t server = (size_t)(waiters()[0] - '0');
        ck_assert_msg(server < THREE_SERVERS && !shown[server], "%s", waiters());
        shown[server] = true;
        set_line(server, NULL);
    }
    inspect();
    ck_assert_uint_eq(info().line_length, 0);
    remove_all();
}
END_TEST

/* Inspects with this value as the line of all servers. It may not disturb the inspection. */
static void check_value(const char *value, const char *expected)
{
    set_lines(value);
    inspect();
    ck_assert_int_eq(info().state, REDLOCK_STATE_HELD);
    ck_assert_uint_eq(info().granted, THREE_SERVERS);
    ck_assert_msg(strcmp(waiters(), expected) == 0, "\"%.40s\": \"%s\" instead of \"%s\"", value,
                  waiters(), expected);
}

START_TEST(any_value_may_be_there)
{
    static char longest[100 * 1000];

    three_servers_connect();
    ck_assert(three_servers_wait_all_vote());
    for (size_t i = 0; i < THREE_SERVERS; i++)
        fake_redis_put(three_servers.fake[i], "resource", TOKEN, TTL_MS);
    check_value("", "");
    check_value("redlock-line", "");
    check_value("redlock-line\n", "");
    check_value("redlock-line\nno record at all\n\n", "");
    check_value(TOKEN, "");
    check_value("redlock-line\n7 0 w 0 18446744073709551615 late\n", "18446744073709551615?late 0");
    check_value("redlock-line\n7 0 w 0 999999999999999 later\n", "later 0");
    check_value("redlock-line\n7 0 w 0 5 \x1b[31m\xff\n", "?[31m? 5");
    memset(longest, '\n', sizeof longest - 1);
    memcpy(longest, "redlock-line\n7 0 w 0 5 front", 28);
    check_value(longest, "front 5");
    ck_assert_uint_eq(info().line_more, 1);
    memset(longest, 'x', sizeof longest - 1);
    check_value(longest, "");
    remove_all();
    set_lines(NULL);
}
END_TEST

/* A user without the right leaves the inspection as it is, and who waits is not known. */
START_TEST(an_error_about_the_line_is_not_one_of_the_inspection)
{
    three_servers_connect();
    ck_assert(three_servers_wait_all_vote());
    for (size_t i = 0; i < THREE_SERVERS; i++) {
        fake_redis_put(three_servers.fake[i], "resource", TOKEN, TTL_MS);
        fake_redis_rule(three_servers.fake[i],
                        (struct fake_rule){.command = "GETRANGE",
                                           .fault = FAKE_REPLY,
                                           .bytes = "-NOPERM this user has no permissions\r\n"});
    }
    inspect();
    ck_assert_int_eq(info().state, REDLOCK_STATE_HELD);
    ck_assert_uint_eq(info().granted, THREE_SERVERS);
    ck_assert_uint_eq(info().line_length, 0);
    ck_assert_uint_eq(info().line_servers, 0);
    redlock_node_stats_t stats;
    ck_assert_int_eq(redlock_get_node_stats(three_servers.client, 0, &stats, sizeof stats),
                     REDLOCK_OK);
    ck_assert_uint_eq(stats.errors, 0);
    remove_all();
}
END_TEST

/* Sets the line `key` on all servers. */
static void put_line(const char *key, const char *value)
{
    for (size_t i = 0; i < THREE_SERVERS; i++)
        fake_redis_put(three_servers.fake[i], key, value, TTL_MS);
}

/* The first slot of a semaphore has the waiters for its permits, also if only one server has that
 * line, and else those for itself. Other slots have their own. */
START_TEST(the_first_slot_has_the_line_of_the_semaphore)
{
    three_servers_connect();
    ck_assert(three_servers_wait_all_vote());
    put_line("sem{#0}{#q}", "redlock-line\n7 0 h 0 1 slot0\n");
    put_line("sem{#1}{#q}", "redlock-line\n7 0 h 0 1 slot1\n");
    inspect_name("sem{#0}");
    ck_assert_str_eq(waiters(), "slot0 1");
    for (size_t i = 0; i < THREE_SERVERS; i++) {
        fake_redis_put(three_servers.fake[i], "sem{#}{#q}",
                       "redlock-line\n7 0 h 0 1 first\n8 0 w 0 2 second\n", TTL_MS);
        inspect_name("sem{#0}");
        ck_assert_str_eq(waiters(), "first 1|second 2");
        ck_assert_uint_eq(info().line_servers, THREE_SERVERS);
        fake_redis_remove(three_servers.fake[i], "sem{#}{#q}");
    }
    put_line("sem{#}{#q}", "redlock-line\n7 0 h 0 1 first\n");
    inspect_name("sem{#1}");
    ck_assert_str_eq(waiters(), "slot1 1");
    inspect_name("sem");
    ck_assert_str_eq(waiters(), "");
    ck_assert_uint_eq(info().line_servers, THREE_SERVERS);
    remove_all();
}
END_TEST

#define OTHER "9876543210987654321098765432109876543210@another"

/* The servers have two values, and those with the second one do not reply whether they have deleted
 * it. That they have no key with the first value says nothing about the second one. */
START_TEST(a_break_is_not_done_while_a_part_has_no_votes)
{
    for (size_t i = 0; i < THREE_SERVERS; i++)
        fake_redis_put(three_servers.fake[i], "resource", i == 0 ? TOKEN : OTHER, TTL_MS);
    for (size_t i = 1; i < THREE_SERVERS; i++)
        fake_redis_rule(three_servers.fake[i],
                        (struct fake_rule){.argument = OTHER,
                                           .fault = FAKE_REPLY,
                                           .bytes = "-MISCONF no write to disk\r\n"});
    three_servers_connect();
    ck_assert(three_servers_wait_all_vote());
    int status = redlock_break(three_servers.client, "resource", &report);
    ck_assert_msg(status == REDLOCK_ENOQUORUM, "%d: %s", status, redlock_report_text(report));
    remove_all();
}
END_TEST

/* The second value has expired when the release comes: its servers count as clean. */
START_TEST(a_break_counts_servers_whose_value_has_gone)
{
    for (size_t i = 0; i < THREE_SERVERS; i++)
        fake_redis_put(three_servers.fake[i], "resource", i == 0 ? TOKEN : OTHER, TTL_MS);
    for (size_t i = 1; i < THREE_SERVERS; i++)
        fake_redis_rule(
            three_servers.fake[i],
            (struct fake_rule){.argument = OTHER, .fault = FAKE_REPLY, .bytes = ":0\r\n"});
    three_servers_connect();
    ck_assert(three_servers_wait_all_vote());
    int status = redlock_break(three_servers.client, "resource", &report);
    ck_assert_msg(status == REDLOCK_OK, "%d: %s", status, redlock_report_text(report));
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
    tcase_add_test(tcase, waiters_are_listed_in_order);
    tcase_add_test(tcase, one_line_is_shown_at_a_time);
    tcase_add_test(tcase, any_value_may_be_there);
    tcase_add_test(tcase, an_error_about_the_line_is_not_one_of_the_inspection);
    tcase_add_test(tcase, the_first_slot_has_the_line_of_the_semaphore);
    tcase_add_test(tcase, a_break_is_not_done_while_a_part_has_no_votes);
    tcase_add_test(tcase, a_break_counts_servers_whose_value_has_gone);
    suite_add_tcase(suite, tcase);
    return suite;
}

int main(void)
{
    return suite_run(inspect_suite());
}
