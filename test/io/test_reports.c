/* SPDX-License-Identifier: MIT
 * References to reports: a report that a callback received can be kept, and reads the same later,
 * on another thread and after the client was freed. Its fields agree with its texts.
 *
 * Uses three_servers.h: three fake servers on threads of this process (three_servers.fake[]) and
 * one threaded client. fake_redis_rule() makes a server misbehave, fake_redis_count() counts
 * commands in its log. three_servers_acquire() and the like make one call and keep its report for
 * the checks. */
#include "suite.h"
#include "three_servers.h"
#include "wait.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define TOKEN "0123456789012345678901234567890123456789@somebody"

/* The text of the report in a callback, and the references that the callback took. */
static struct {
    char words[4096];
    redlock_report_t *kept[2];
    atomic_bool done;
} seen;

/* Writes all fields and texts of a report. */
static void write_words(char *to, size_t size, const redlock_report_t *report)
{
    redlock_report_info_t info;
    redlock_node_report_t node;

    ck_assert_int_eq(redlock_report_get_info(report, &info, sizeof info), REDLOCK_OK);
    int at = snprintf(to, size, "%d %d %u/%u/%u %s '%s'", info.status, info.state, info.nodes,
                      info.quorum, info.granted, info.shard, redlock_report_text(report));
    for (size_t i = 0; redlock_report_get_node(report, i, &node, sizeof node) == REDLOCK_OK; i++)
        at += snprintf(to + at, size - (size_t)at, "; %s %d %d %llu %llu '%s' '%s'", node.node,
                       node.vote, node.cause, (unsigned long long)node.rtt_us,
                       (unsigned long long)node.pttl_ms, node.owner, node.text);
}

/* Checks that the report reads as it did in the callback. */
static void check_words(const redlock_report_t *report)
{
    char words[sizeof seen.words];

    write_words(words, sizeof words, report);
    ck_assert_str_eq(words, seen.words);
}

/* Records the report of the inspection and takes two references. */
static void on_inspected(redlock_t *rl, int status, redlock_lock_t *lock,
                         const redlock_report_t *report, void *userdata)
{
    (void)rl;
    (void)lock;
    (void)userdata;
    ck_assert_int_eq(status, REDLOCK_OK);
    write_words(seen.words, sizeof seen.words, report);
    for (size_t i = 0; i < 2; i++)
        seen.kept[i] = redlock_report_ref(report);
    atomic_store(&seen.done, true);
}

/* Frees a reference, on a thread of its own. */
static void *free_reference(void *report)
{
    redlock_report_free(report);
    return NULL;
}

/* The report has owners, times and texts, and one server has another key than the others. */
START_TEST(a_report_of_a_callback_can_be_kept)
{
    pthread_t thread;

    for (size_t i = 0; i < THREE_SERVERS - 1; i++)
        fake_redis_put(three_servers.fake[i], "resource", TOKEN, TTL_MS);
    three_servers_connect();
    ck_assert(three_servers_wait_all_vote());
    atomic_store(&seen.done, false);
    ck_assert_int_eq(
        redlock_inspect_start(three_servers.client, "resource", NULL, on_inspected, NULL),
        REDLOCK_OK);
    ck_assert(WAIT_UNTIL(atomic_load(&seen.done), TIME_LIMIT_MS));
    three_servers_disconnect();
    ck_assert_ptr_nonnull(strstr(seen.words, "'somebody'"));
    redlock_report_t *again = redlock_report_ref(seen.kept[0]);
    ck_assert_ptr_eq(again, seen.kept[0]);
    for (size_t i = 0; i < 2; i++) {
        check_words(seen.kept[i]);
        ck_assert_int_eq(pthread_create(&thread, NULL, free_reference, seen.kept[i]), 0);
        ck_assert_int_eq(pthread_join(thread, NULL), 0);
    }
    check_words(again);
    redlock_report_free(again);
}
END_TEST

START_TEST(a_report_of_a_blocking_call_has_references)
{
    redlock_report_t *report = NULL;

    three_servers_connect();
    ck_assert(three_servers_wait_all_vote());
    ck_assert_int_eq(redlock_inspect(three_servers.client, "resource", &report), REDLOCK_OK);
    redlock_report_t *again = redlock_report_ref(report);
    ck_assert_ptr_eq(again, report);
    write_words(seen.words, sizeof seen.words, report);
    redlock_report_free(report);
    check_words(again);
    redlock_report_free(again);
}
END_TEST

/* Refused arguments have a report without nodes; a closing client has a constant one. */
START_TEST(reports_without_nodes)
{
    redlock_report_t *report = NULL;

    three_servers_connect();
    ck_assert_int_eq(redlock_inspect(three_servers.client, "", &report), REDLOCK_EINVAL);
    redlock_report_t *again = redlock_report_ref(report);
    redlock_report_free(report);
    ck_assert_str_ne(redlock_report_text(again), "");
    redlock_report_free(again);
    (void)redlock_shutdown(three_servers.client, 0);
    ck_assert_int_eq(redlock_inspect(three_servers.client, "resource", &report), REDLOCK_ECLOSED);
    again = redlock_report_ref(report);
    redlock_report_free(report);
    ck_assert_str_ne(redlock_report_text(again), "");
    redlock_report_free(again);
    ck_assert_ptr_null(redlock_report_ref(NULL));
}
END_TEST

/* A value of the key, and the state that the report shows. */
static const struct key_case {
    const char *value;
    uint64_t ttl_ms;
    int key;
    bool foreign;
} keys[] = {
    {.key = REDLOCK_KEY_ABSENT},
    {.value = TOKEN, .ttl_ms = TTL_MS, .key = REDLOCK_KEY_EXPIRES},
    {.value = TOKEN, .key = REDLOCK_KEY_PERSISTENT},
    {.value = TOKEN, .key = REDLOCK_KEY_FOREIGN, .foreign = true},
};

START_TEST(the_report_shows_the_state_of_the_key)
{
    const struct key_case *row = &keys[_i];
    redlock_report_t *report = NULL;
    redlock_node_report_t node;
    unsigned done = 0;

    for (size_t i = 0; i < THREE_SERVERS; i++) {
        if (row->value != NULL)
            fake_redis_put(three_servers.fake[i], "resource", row->value, row->ttl_ms);
        if (row->foreign)
            fake_redis_rule(three_servers.fake[i],
                            (struct fake_rule){.command = "GET",
                                               .fault = FAKE_REPLY,
                                               .bytes = "-WRONGTYPE no string\r\n"});
    }
    three_servers_connect();
    ck_assert(three_servers_wait_all_vote());
    ck_assert_int_eq(redlock_inspect(three_servers.client, "resource", &report), REDLOCK_OK);
    for (size_t i = 0; redlock_report_get_node(report, i, &node, sizeof node) == REDLOCK_OK; i++) {
        bool answered = node.vote != REDLOCK_VOTE_NONE; /* two replies of three are enough */
        ck_assert_int_eq(node.key, answered ? row->key : REDLOCK_KEY_UNKNOWN);
        done += answered;
    }
    ck_assert_uint_ge(done, 2);
    redlock_report_free(report);
}
END_TEST

/* The text of a failure names the nodes that caused it, and the report marks them. */
START_TEST(the_text_names_the_nodes_that_failed)
{
    redlock_opts_t opts = redlock_opts(TTL_MS);
    redlock_report_t *report = NULL;
    redlock_lock_t *lock = NULL;
    redlock_node_report_t node;
    unsigned done = 0;

    for (size_t i = 0; i < THREE_SERVERS - 1; i++)
        fake_redis_rule(
            three_servers.fake[i],
            (struct fake_rule){.command = "SET", .fault = FAKE_REPLY, .bytes = "-ERR no\r\n"});
    three_servers_connect();
    ck_assert(three_servers_wait_all_vote());
    ck_assert_int_eq(redlock_acquire(three_servers.client, "resource", &opts, &lock, &report),
                     REDLOCK_ENOQUORUM);
    for (size_t i = 0; redlock_report_get_node(report, i, &node, sizeof node) == REDLOCK_OK; i++) {
        bool named = strstr(redlock_report_text(report), node.node) != NULL;
        ck_assert_int_eq(node.in_text, named);
        done += named;
    }
    ck_assert_uint_ge(done, 2);
    redlock_report_free(report);
}
END_TEST

/* A text that does not fit into the line is left out as a whole, and the report does not mark its
 * node. A shorter one behind it is there. */
START_TEST(the_text_contains_no_part_of_a_text)
{
    redlock_opts_t opts = redlock_opts(TTL_MS);
    redlock_report_t *report = NULL;
    redlock_lock_t *lock = NULL;
    redlock_node_report_t node;
    char error[THREE_SERVERS][400];
    unsigned named = 0, nodes = 0;

    for (size_t i = 0; i < THREE_SERVERS; i++) { /* different texts, which are not grouped */
        snprintf(error[i], sizeof error[i], "-ERR %zu %0350d\r\n", i, 0);
        fake_redis_rule(
            three_servers.fake[i],
            (struct fake_rule){.command = "SET", .fault = FAKE_REPLY, .bytes = error[i]});
    }
    three_servers_connect();
    ck_assert(three_servers_wait_all_vote());
    ck_assert_int_eq(redlock_acquire(three_servers.client, "resource", &opts, &lock, &report),
                     REDLOCK_ENOQUORUM);
    const char *line = redlock_report_text(report);
    for (size_t i = 0; redlock_report_get_node(report, i, &node, sizeof node) == REDLOCK_OK; i++) {
        char entry[512];
        snprintf(entry, sizeof entry, "; %s: %s", node.node, node.text);
        ck_assert_int_eq(node.in_text, strstr(line, entry) != NULL);
        ck_assert(node.in_text || strstr(line, node.node) == NULL);
        named += node.in_text != 0;
        nodes++;
    }
    ck_assert_uint_eq(nodes, THREE_SERVERS);
    ck_assert_uint_ge(named, 1);
    redlock_report_free(report);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("reports");
    TCase *tcase = tcase_create("references");

    tcase_add_checked_fixture(tcase, three_servers_setup, three_servers_teardown);
    tcase_add_test(tcase, a_report_of_a_callback_can_be_kept);
    tcase_add_test(tcase, a_report_of_a_blocking_call_has_references);
    tcase_add_test(tcase, reports_without_nodes);
    tcase_add_loop_test(tcase, the_report_shows_the_state_of_the_key, 0,
                        sizeof keys / sizeof keys[0]);
    tcase_add_test(tcase, the_text_names_the_nodes_that_failed);
    tcase_add_test(tcase, the_text_contains_no_part_of_a_text);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
