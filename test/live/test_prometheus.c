/* SPDX-License-Identifier: MIT
 * The figures for Prometheus of a client with real servers: they are those of the statistics, and
 * they say why a server does not vote. The format itself is checked in test/cli/metrics_test.py and
 * examples/test.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_connect() creates live.client and waits
 * until all nodes are eligible. live_lock() acquires a lock, which must be granted. live_release()
 * returns the status of one call and keeps its report. WAIT_UNTIL(condition, ms) polls and returns
 * false after the deadline. LONG_TTL_MS is a TTL that no case reaches. From two_shards.h: ten
 * servers, of which 0 to 4 belong to shard "east" and 5 to 9 to shard "west"; connect_both()
 * creates live.client for both, and resource_in() returns a name that belongs to one of them. */
#include "suite.h"
#include "two_shards.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char text[100000]; /* the figures that read_figures() has read */

/* Reads the figures of live.client. */
static void read_figures(void)
{
    const int len = redlock_stats_prometheus(live.client, NULL, 0, text, sizeof text);
    ck_assert_int_gt(len, 0);
    ck_assert_uint_lt((size_t)len, sizeof text);
}

/* Returns the value of the figure with this name and these labels, in millionths; -1: there is no
 * such line. */
static long long figure(const char *format, ...) __attribute__((format(printf, 1, 2)));
static long long figure(const char *format, ...)
{
    char line[300];
    va_list args;
    line[0] = '\n';
    va_start(args, format);
    vsnprintf(line + 1, sizeof line - 2, format, args);
    va_end(args);
    strcat(line, " ");
    const char *found = strstr(text, line);
    if (found == NULL)
        return -1;
    char *end;
    long long value = strtoll(found + strlen(line), &end, 10) * 1000000;
    if (*end != '.')
        return value;
    char digits[7] = "000000";
    for (size_t i = 0; i < 6 && end[i + 1] >= '0' && end[i + 1] <= '9'; i++)
        digits[i] = end[i + 1];
    return value + atoll(digits);
}

/* Checks one figure, a whole number, against what the statistics say. */
#define CHECK_FIGURE(expected, ...)                                                                \
    ck_assert_msg(figure(__VA_ARGS__) == (long long)(expected)*1000000,                            \
                  "%s: %lld instead of %lld", #__VA_ARGS__, figure(__VA_ARGS__) / 1000000,         \
                  (long long)(expected))

/* Counters, gauges and histograms are those of the statistics. */
START_TEST(figures_are_the_statistics)
{
    live_connect();
    redlock_lock_t *lock = live_lock("a", LONG_TTL_MS), *none = NULL;
    CHECK_STATUS(live_extend(lock, 0), REDLOCK_OK);
    CHECK_STATUS(live_acquire("a", LONG_TTL_MS, 0, &none), REDLOCK_ECONTENDED);
    read_figures();
    const redlock_stats_t stats = live_stats(live.client);
    CHECK_FIGURE(1, "redlock_acquisitions_total{result=\"acquired\"}");
    CHECK_FIGURE(1, "redlock_acquisitions_total{result=\"contended\"}");
    CHECK_FIGURE(0, "redlock_acquisitions_total{result=\"no_quorum\"}");
    CHECK_FIGURE(stats.attempts, "redlock_attempts_total");
    CHECK_FIGURE(1, "redlock_extensions_total{result=\"extended\"}");
    CHECK_FIGURE(0, "redlock_releases_total{result=\"released\"}");
    CHECK_FIGURE(1, "redlock_locks_held");
    CHECK_FIGURE(2, "redlock_acquisition_duration_seconds_count");
    CHECK_FIGURE(2, "redlock_acquisition_duration_seconds_bucket{le=\"+Inf\"}");
    ck_assert_int_eq(figure("redlock_acquisition_duration_seconds_sum"),
                     (long long)stats.wait_us_sum);
    const long long validity_us = figure("redlock_shortest_validity_seconds");
    ck_assert_int_gt(validity_us, 0);
    ck_assert_int_lt(validity_us, LONG_TTL_MS * 1000LL);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    read_figures();
    CHECK_FIGURE(1, "redlock_releases_total{result=\"released\"}");
    CHECK_FIGURE(0, "redlock_locks_held");
    ck_assert_int_eq(figure("redlock_shortest_validity_seconds"), -1);
}
END_TEST

/* Figures of each server are those of its statistics. */
START_TEST(servers_have_their_own_figures)
{
    live_connect();
    redlock_lock_t *lock = live_lock("a", LONG_TTL_MS);
    for (unsigned i = 0; i < NODES; i++)
        ck_assert(WAIT_UNTIL(live_node_stats(live.client, i).granted == 1, TIME_LIMIT_MS));
    read_figures();
    for (unsigned i = 0; i < NODES; i++) {
        const redlock_node_stats_t node = live_node_stats(live.client, i);
        uint64_t trips = 0;
        for (unsigned bucket = 0; bucket < 32; bucket++)
            trips += node.rtt_us_hist[bucket];
        CHECK_FIGURE(1, "redlock_server_eligible{server=\"%s\"}", node.node);
        CHECK_FIGURE(node.requests, "redlock_server_requests_total{server=\"%s\"}", node.node);
        CHECK_FIGURE(0, "redlock_server_replies_total{server=\"%s\",result=\"denied\"}", node.node);
        CHECK_FIGURE(trips, "redlock_server_round_trip_seconds_count{server=\"%s\"}", node.node);
        ck_assert_int_eq(figure("redlock_server_round_trip_seconds_sum{server=\"%s\"}", node.node),
                         (long long)node.rtt_us_sum);
        CHECK_FIGURE(1, "redlock_server_notification_state{server=\"%s\",state=\"idle\"}",
                     node.node);
        CHECK_FIGURE(
            1, "redlock_server_info{server=\"%s\",version=\"%s\",role=\"master\",policy=\"%s\"}",
            node.node, node.version, node.policy);
    }
    CHECK_FIGURE(NODES, "redlock_servers_configured");
    CHECK_FIGURE(NODES, "redlock_servers_eligible");
    CHECK_FIGURE(QUORUM, "redlock_servers_quorum");
    ck_assert_ptr_null(strstr(text, "redlock_server_excluded{"));
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
}
END_TEST

/* A server that does not reply is excluded with a cause, its undos are pending, and the sum of its
 * timeouts grows. */
START_TEST(a_stopped_server_has_a_cause)
{
    live.silence = true;
    live_connect();
    redlock_lock_t *lock = live_lock("a", LONG_TTL_MS);
    ck_assert(WAIT_UNTIL(live_nodes_with("a") == NODES, TIME_LIMIT_MS));
    live_pause(0, 1);
    const redlock_node_stats_t before = live_node_stats(live.client, 0);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    ck_assert(WAIT_UNTIL(!live_is_responsive(live.client, 0), TIME_LIMIT_MS));
    read_figures();
    CHECK_FIGURE(0, "redlock_server_eligible{server=\"%s\"}", before.node);
    CHECK_FIGURE(1, "redlock_server_excluded{server=\"%s\",cause=\"timeout\"}", before.node);
    CHECK_FIGURE(NODES - 1, "redlock_servers_eligible");
    CHECK_FIGURE(1, "redlock_server_undos_pending{server=\"%s\"}", before.node);
    ck_assert_int_gt(figure("redlock_server_timeouts_total{server=\"%s\"}", before.node), 0);
    live_resume_all();
    ck_assert(WAIT_UNTIL(live_node_stats(live.client, 0).undos_pending == 0, TIME_LIMIT_MS));
    read_figures();
    CHECK_FIGURE(0, "redlock_server_undos_pending{server=\"%s\"}", before.node);
}
END_TEST

/* After shards were configured, their figures have the label `shard`. */
START_TEST(shards_are_a_label)
{
    char name[64];
    connect_both();
    redlock_lock_t *lock = live_lock(resource_in(1, "r", 0, name), LONG_TTL_MS);
    read_figures();
    CHECK_FIGURE(0, "redlock_acquisitions_total{shard=\"%s\",result=\"acquired\"}", SHARD_NAMES[0]);
    CHECK_FIGURE(1, "redlock_acquisitions_total{shard=\"%s\",result=\"acquired\"}", SHARD_NAMES[1]);
    CHECK_FIGURE(EACH, "redlock_servers_eligible{shard=\"%s\"}", SHARD_NAMES[0]);
    for (unsigned i = 0; i < SERVERS; i++)
        CHECK_FIGURE(1, "redlock_server_eligible{shard=\"%s\",server=\"%s\"}",
                     SHARD_NAMES[i / EACH], live_node_stats(live.client, i).node);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
}
END_TEST

/* Makes the suite. */
static Suite *prometheus_suite(void)
{
    Suite *suite = suite_create("prometheus");
    live_add_with(suite, "statistics", figures_are_the_statistics, live_start_servers);
    live_add_with(suite, "servers", servers_have_their_own_figures, live_start_servers);
    live_add_with(suite, "stopped", a_stopped_server_has_a_cause, live_start_servers);
    live_add_with(suite, "shards", shards_are_a_label, start_servers);
    return suite;
}

/* Runs the suite; each case has servers of its own. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    return suite_run_nofork(prometheus_suite());
}
