/* SPDX-License-Identifier: MIT
 * The harness tests itself: clocks of servers that are stepped and run fast, links that lose the
 * packets of one direction or of both. */
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"
#include "suite.h"
#include "wait.h"

static struct cluster *cluster;

/* Fixture: starts one server whose clock the test can change. */
static void start_with_clocks(void)
{
    const struct cluster_opts opts = {.nodes = 1, .clocks = true};
    cluster = cluster_start_with(&opts);
}

/* Fixture: starts two servers whose links the test can cut. */
static void start_with_links(void)
{
    const struct cluster_opts opts = {.nodes = 2, .network = true};
    cluster = cluster_start_with(&opts);
}

/* Fixture: stops the servers. */
static void stop(void)
{
    cluster_stop(cluster);
    cluster = NULL;
}

/* Returns what server 0 replies to TIME, in ms. */
static int64_t server_time_ms(void)
{
    char *text = cluster_command(cluster, 0, "TIME");
    ck_assert_ptr_nonnull(text);
    char *rest = NULL;
    const int64_t seconds = strtoll(text, &rest, 10);
    const int64_t ms = seconds * 1000 + strtoll(rest, NULL, 10) / 1000;
    free(text);
    return ms;
}

/* Returns the test's own wall clock in ms. */
static int64_t our_time_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* How far the server is ahead; asked between two looks at our clock. */
static void check_ahead(int64_t least_ms, int64_t most_ms)
{
    const int64_t before_ms = our_time_ms();
    const int64_t server_ms = server_time_ms();
    const int64_t after_ms = our_time_ms();
    ck_assert_msg(server_ms - before_ms >= least_ms && server_ms - after_ms <= most_ms + 1,
                  "ahead by %" PRId64 " to %" PRId64 " ms instead of %" PRId64 " to %" PRId64,
                  server_ms - after_ms, server_ms - before_ms, least_ms, most_ms);
}

START_TEST(a_clock_steps)
{
    check_ahead(-1, 1);
    ck_assert(cluster_replies(cluster, 0, "OK", "SET key v PX 30000"));
    cluster_clock_step(cluster, 0, -3600000);
    check_ahead(-3600001, -3599999);
    ck_assert_int_gt(cluster_integer(cluster, 0, "PTTL key"), 3600000);
    cluster_clock_step(cluster, 0, 3600000 + 60000);
    check_ahead(59999, 60001);
    ck_assert(cluster_replies(cluster, 0, "(nil)", "GET key"));
    cluster_restart(cluster, 0, false);
    check_ahead(59999, 60001);
    cluster_clock_reset(cluster, 0);
    check_ahead(-1, 1);
    ck_assert(cluster_clock_ahead_ms(cluster, 0) == 0);
}
END_TEST

START_TEST(a_clock_runs_fast)
{
    cluster_clock_rate(cluster, 0, 1000000); /* twice as fast */
    ck_assert(WAIT_UNTIL(server_time_ms() - our_time_ms() > 100, 10000));
    cluster_clock_rate(cluster, 0, 0); /* what it is ahead stays */
    const int64_t ahead_ms = cluster_clock_ahead_ms(cluster, 0);
    ck_assert_int_ge(ahead_ms, 100);
    check_ahead(ahead_ms - 1, ahead_ms + 2);
}
END_TEST

/* A connection over the link, as a client would have it: one that has time, or one that finds out.
 */
static redisContext *dial(unsigned node, bool has_time)
{
    char host[64];
    const struct timeval timeout = {.tv_sec = has_time ? 10 : 0, .tv_usec = has_time ? 0 : 300000};
    ck_assert_int_eq(sscanf(cluster_url(cluster, node), "redis://%63[0-9.]:", host), 1);
    redisContext *context = redisConnectWithTimeout(host, cluster_port(cluster, node), timeout);
    ck_assert_ptr_nonnull(context);
    if (context->err == 0)
        ck_assert_int_eq(redisSetTimeout(context, timeout), REDIS_OK);
    return context;
}

/* Sends a command. Returns whether a reply came that is no error. */
static bool is_answered(redisContext *context, const char *command)
{
    redisReply *reply = redisCommand(context, command);
    const bool answered = reply != NULL && reply->type != REDIS_REPLY_ERROR;
    freeReplyObject(reply);
    return answered;
}

/* _i: nothing, there, back, both. */
START_TEST(a_link_is_cut)
{
    const bool cut = _i != NETWORK_WHOLE;
    redisContext *to_cut = dial(0, true), *to_other = dial(1, true);
    ck_assert(is_answered(to_cut, "PING") && is_answered(to_other, "PING"));
    cluster_cut(cluster, 0, (enum network_cut)_i);
    if (cut)
        ck_assert_int_eq(redisSetTimeout(to_cut, (struct timeval){.tv_usec = 300000}), REDIS_OK);
    ck_assert(is_answered(to_cut, "SET key v") != cut);
    ck_assert(is_answered(to_other, "PING"));
    redisContext *again = dial(0, !cut);
    ck_assert((again->err != 0) == cut);
    /* The harness sees the server all the same, and what it was told. */
    const bool arrives = (_i & NETWORK_CUT_THERE) == 0;
    ck_assert(cluster_replies(cluster, 0, arrives ? "v" : "(nil)", "GET key"));
    redisFree(again);
    redisFree(to_cut);
    cluster_cut(cluster, 0, NETWORK_WHOLE);
    redisContext *healed = dial(0, true);
    ck_assert(is_answered(healed, "PING"));
    redisFree(healed);
    redisFree(to_other);
    ck_assert(WAIT_UNTIL(cluster_replies(cluster, 0, "v", "GET key"), 10000)); /* sent once more */
    cluster_restart(cluster, 0, false);
}
END_TEST

/* Adds a test case with its start fixture to the suite; the case runs with _i from 0 to times -
 * 1. */
static void add(Suite *suite, const char *name, const TTest *test, int times, void (*start)(void))
{
    TCase *group = tcase_create(name);
    tcase_add_checked_fixture(group, start, stop);
    tcase_set_timeout(group, 60);
    tcase_add_loop_test(group, test, 0, times);
    suite_add_tcase(suite, group);
}

int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    Suite *suite = suite_create("clocks_and_links");
    add(suite, "steps", a_clock_steps, 1, start_with_clocks);
    add(suite, "rate", a_clock_runs_fast, 1, start_with_clocks);
    const char *missing = network_missing();
    if (missing == NULL)
        add(suite, "links", a_link_is_cut, 4, start_with_links);
    else
        printf("# links are not tested: %s\n", missing);
    fflush(stdout);
    return suite_run_nofork(suite);
}
