/* SPDX-License-Identifier: MIT
 * Servers and client of the live tests. */
#include "live.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT_MS_MAX 60000

struct live live;

static redlock_report_t *report; /* the last report; NULL: none */

/* Starts the servers of all cases of the program as `opts` says. */
void live_start_servers_with(const struct cluster_opts *opts)
{
    live.cluster = cluster_start_with(opts);
}

/* Starts NODES plain servers for all cases of the program. */
void live_start_servers(void)
{
    live.cluster = cluster_start(NODES);
}

/* Ends the servers, after the last case. */
void live_stop_servers(void)
{
    cluster_stop(live.cluster);
    live.cluster = NULL;
}

/* Begins a case: resets all settings in `live` except the servers, and notes which descriptors
 * are open. */
void live_setup(void)
{
    struct cluster *cluster = live.cluster;
    memset(&live, 0, sizeof live);
    live.cluster = cluster;
    fdcheck_begin(&live.before);
}

/* Shuts live.client down, within half a second (scaled), and frees it. Undos for stopped servers
 * may be left. */
void live_leave(void)
{
    const bool freed = live.freed;
    int status = REDLOCK_EMODE;
    if (live.client != NULL && live.mode != REDLOCK_MODE_EMBEDDED)
        status = redlock_shutdown(live.client, wait_scaled_ms(500)); /* undos for stopped servers
                                                                      * stay pending */
    live_disconnect();
    if (status == REDLOCK_OK)
        live.freed = freed;
}

/* Ends a case: frees the client, makes all servers healthy, and fails the case if a key or a
 * descriptor is left. With TLS, keys may be left by a client that was freed without a shutdown. */
void live_teardown(void)
{
    if (live_is_tls())
        live_resume_all(); /* so that the shutdown succeeds */
    live_leave();
    live_resume_all();
    live_restart_dead();
    if (live.heal != NULL)
        live.heal();
    if (live.freed)
        live_delete_leftovers();
    const bool clean = live_wait_no_keys(TIME_LIMIT_MS);
    if (!clean)
        cluster_command_all(live.cluster,
                            "FLUSHALL"); /* the next case is independent of this one */
    ck_assert_msg(clean, "keys are left");
    const char *leaked = fdcheck_leaked(&live.before, TIME_LIMIT_MS);
    ck_assert_msg(leaked == NULL, "descriptors are left open: %s", leaked);
}

/* Adds a case with the fixture above that runs `times` times, with _i = 0 to times - 1. Returns
 * its group, so that the caller can add fixtures or a time limit. */
TCase *live_add_each(Suite *suite, const char *name, const TTest *test, unsigned times)
{
    TCase *group = tcase_create(name);
    tcase_add_checked_fixture(group, live_setup, live_teardown);
    tcase_add_loop_test(group, test, 0, (int)times);
    suite_add_tcase(suite, group);
    return group;
}

/* Adds a case that has servers of its own: `start` starts them, and they end with the case. */
void live_add_with(Suite *suite, const char *name, const TTest *test, void (*start)(void))
{
    tcase_add_unchecked_fixture(live_add_each(suite, name, test, 1), start, live_stop_servers);
}

/* Adds a case that runs once on the servers of the program. */
void live_add(Suite *suite, const char *name, const TTest *test)
{
    live_add_each(suite, name, test, 1);
}

/* Returns the scaled time, but no more than a configuration accepts, however slow the build is. */
static uint32_t scaled_or(uint32_t chosen_ms, uint32_t usual_ms)
{
    const uint64_t ms = wait_scaled_ms(chosen_ms != 0 ? chosen_ms : usual_ms);
    return (uint32_t)(ms < TIMEOUT_MS_MAX ? ms : TIMEOUT_MS_MAX);
}

/* Returns `ms`, or three tenths of the scaled time where that is longer. For TTLs that a case
 * waits for. */
uint64_t live_brief_ms(uint64_t ms)
{
    const uint64_t slow_ms = wait_scaled_ms(ms) * 3 / 10;
    return slow_ms > ms ? slow_ms : ms;
}

/* Returns the node timeout of cases in which servers stop replying: SILENCE_MS, or a quarter of
 * its scaled time where that is longer. */
uint32_t live_unresponsive_ms(void)
{
    const uint32_t slow_ms = (uint32_t)wait_scaled_ms(SILENCE_MS / 4);
    return slow_ms > SILENCE_MS ? slow_ms : SILENCE_MS;
}

/* Returns whether the servers have TLS. */
bool live_is_tls(void)
{
    return cluster_cacert(live.cluster) != NULL;
}

/* Names the issuer of the servers for addresses that do not name it. */
static void trust_issuer(redlock_config_t *config)
{
    const redlock_tls_t tls = {.size = sizeof tls, .cacert = cluster_cacert(live.cluster)};
    if (live_is_tls())
        ck_assert_int_eq(redlock_config_set_tls(config, &tls), REDLOCK_OK);
}

/* Returns a configuration for the nodes in `urls` with the settings in `live`. The caller frees
 * it. Retries begin after 2 to 20 ms. */
redlock_config_t *live_config_of(const char *urls)
{
    redlock_config_t *config = NULL;
    ck_assert_int_eq(redlock_config_new(&config, live.allocator), REDLOCK_OK);
    ck_assert_msg(redlock_config_add_nodes(config, urls) == REDLOCK_OK, "%s: %s", urls,
                  redlock_config_error(config));
    trust_issuer(config);
    const int mode = live.mode != 0 ? live.mode : REDLOCK_MODE_THREADED;
    const uint64_t max_ttl_ms = live.max_ttl_ms != 0 ? live.max_ttl_ms : LONG_TTL_MS;
    const uint32_t node_time_ms =
        live.silence ? live_unresponsive_ms() : scaled_or(live.node_time_ms, NODE_TIME_MS);
    const uint32_t connect_time_ms = scaled_or(live.connect_time_ms, NODE_TIME_MS);
    ck_assert_int_eq(redlock_config_set_mode(config, mode), REDLOCK_OK);
    ck_assert_int_eq(redlock_config_set_max_ttl_ms(config, max_ttl_ms), REDLOCK_OK);
    ck_assert_int_eq(redlock_config_set_node_timeout_ms(config, node_time_ms), REDLOCK_OK);
    ck_assert_int_eq(redlock_config_set_connect_timeout_ms(config, connect_time_ms), REDLOCK_OK);
    if (live.heartbeat_ms != 0)
        ck_assert_int_eq(redlock_config_set_heartbeat_ms(config, live.heartbeat_ms), REDLOCK_OK);
    if (live.admission != 0)
        ck_assert_int_eq(redlock_config_set_admission(config, live.admission), REDLOCK_OK);
    ck_assert_int_eq(redlock_config_set_retry_ms(config, 2, 20), REDLOCK_OK);
    ck_assert_int_eq(redlock_config_set_event(config, live.event_fn, live.event_userdata),
                     REDLOCK_OK);
    return config;
}

/* Returns a configuration for all servers with the settings in `live`. With live.durable, each
 * address says durable=1 (no quarantine after a restart) instead of fresh=1. */
redlock_config_t *live_config(void)
{
    char urls[CLUSTER_NODES_MAX * 256];
    snprintf(urls, sizeof urls, "%s", cluster_urls(live.cluster));
    for (char *at = urls; live.durable && (at = strstr(at, "fresh=1")) != NULL;) {
        memmove(at + strlen("durable=1"), at + strlen("fresh=1"),
                strlen(at + strlen("fresh=1")) + 1);
        memcpy(at, "durable=1", strlen("durable=1"));
    }
    return live_config_of(urls);
}

/* Creates a client, frees the configuration, and waits until all nodes are eligible. Fails the
 * case if they do not become eligible. */
redlock_t *live_open(redlock_config_t *config)
{
    redlock_t *client = NULL;
    const int status = redlock_new(&client, config);
    ck_assert_msg(status == REDLOCK_OK, "%s: %s", redlock_error_name(status),
                  redlock_config_error(config));
    redlock_config_free(config);
    const size_t nodes = redlock_node_count(client);
    ck_assert_msg(LOOP_UNTIL(client, live_voters(client) == nodes, ELIGIBLE_LIMIT_MS),
                  "%u of %zu nodes are eligible", live_voters(client), nodes);
    return client;
}

/* Creates live.client for all servers and waits until all nodes are eligible. */
void live_connect(void)
{
    live.client = live_open(live_config());
}

/* Frees live.client, if there is one, without shutting it down first, and frees the kept report. */
void live_disconnect(void)
{
    live_keep_report(NULL);
    if (live.client != NULL)
        live_free(live.client);
    live.client = NULL;
}

/* Frees a client without shutting it down, and remembers that for the end of the case. */
void live_free(redlock_t *client)
{
    ck_assert_int_eq(redlock_free(client), REDLOCK_OK);
    live.freed = true;
}

/* Keeps this report (NULL: none) for live_info(), live_node() and live_text(), and frees the one
 * before it. */
void live_keep_report(redlock_report_t *new_report)
{
    redlock_report_free(report);
    report = new_report;
}

/* Acquires a lock with live.client, within wait_ms (0: one attempt). Keeps the report and
 * returns the status. */
int live_acquire(const char *resource, uint64_t ttl_ms, uint64_t wait_ms, redlock_lock_t **ret)
{
    redlock_report_t *new_report = NULL;
    redlock_opts_t opts = redlock_opts(ttl_ms);
    opts.wait_ms = wait_ms;
    const int status = redlock_acquire(live.client, resource, &opts, ret, &new_report);
    live_keep_report(new_report);
    return status;
}

/* Extends the lock to ttl_ms (0: its present TTL). Keeps the report and returns the status. */
int live_extend(redlock_lock_t *lock, uint64_t ttl_ms)
{
    redlock_report_t *new_report = NULL;
    const int status = redlock_extend(lock, ttl_ms, &new_report);
    live_keep_report(new_report);
    return status;
}

/* Releases the lock and frees its handle. Keeps the report and returns the status. */
int live_release(redlock_lock_t *lock)
{
    redlock_report_t *new_report = NULL;
    const int status = redlock_release(lock, &new_report);
    live_keep_report(new_report);
    redlock_lock_free(lock);
    return status;
}

/* Inspects the resource with live.client. Keeps the report, which names the holder, and returns
 * the status. */
int live_inspect(const char *resource)
{
    redlock_report_t *new_report = NULL;
    const int status = redlock_inspect(live.client, resource, &new_report);
    live_keep_report(new_report);
    return status;
}

/* Acquires a lock with live.client within TIME_LIMIT_MS and returns it. Fails the case if it is
 * not granted. */
redlock_lock_t *live_lock(const char *resource, uint64_t ttl_ms)
{
    redlock_lock_t *lock = NULL;
    CHECK_STATUS(live_acquire(resource, ttl_ms, TIME_LIMIT_MS, &lock), REDLOCK_OK);
    ck_assert_ptr_nonnull(lock);
    return lock;
}

/* Acquires, extends and releases a lock with live.client. Fails the case unless all three
 * succeed. */
void live_check_works(void)
{
    redlock_lock_t *lock = live_lock("works", LONG_TTL_MS);
    CHECK_STATUS(live_extend(lock, 0), REDLOCK_OK);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
}

/* Returns the summary of the kept report. Fails the case if there is no report. */
redlock_report_info_t live_info(void)
{
    redlock_report_info_t info;
    ck_assert_ptr_nonnull(report);
    ck_assert_int_eq(redlock_report_get_info(report, &info, sizeof info), REDLOCK_OK);
    return info;
}

/* Returns what the kept report says about one node: vote, cause, text. Fails the case if there
 * is none. */
redlock_node_report_t live_node(unsigned node)
{
    redlock_node_report_t node_report;
    ck_assert_ptr_nonnull(report);
    ck_assert_int_eq(redlock_report_get_node(report, node, &node_report, sizeof node_report),
                     REDLOCK_OK);
    return node_report;
}

/* Returns the kept report as text, with one part per node, for messages. The text is valid until
 * the next call. */
const char *live_text(void)
{
    static char text[4096];
    redlock_node_report_t node_report;
    if (report == NULL)
        return "no report";
    size_t len = (size_t)snprintf(text, sizeof text, "%s", redlock_report_text(report));
    for (size_t i = 0;
         redlock_report_get_node(report, i, &node_report, sizeof node_report) == REDLOCK_OK; i++)
        if (len < sizeof text)
            len += (size_t)snprintf(
                text + len, sizeof text - len, "; n%zu vote %d cause %d rtt %" PRIu64 " us \"%s\"",
                i, node_report.vote, node_report.cause, node_report.rtt_us, node_report.text);
    return text;
}

/* Returns the statistics of the client. */
redlock_stats_t live_stats(redlock_t *client)
{
    redlock_stats_t stats;
    ck_assert_int_eq(redlock_get_stats(client, &stats, sizeof stats), REDLOCK_OK);
    return stats;
}

/* Returns the client's statistics and present state of one node. */
redlock_node_stats_t live_node_stats(redlock_t *client, unsigned node)
{
    redlock_node_stats_t stats;
    ck_assert_int_eq(redlock_get_node_stats(client, node, &stats, sizeof stats), REDLOCK_OK);
    return stats;
}

/* Returns how many nodes of the client are eligible. */
unsigned live_voters(redlock_t *client)
{
    unsigned voters = 0;
    for (unsigned i = 0; i < redlock_node_count(client); i++)
        voters += live_node_stats(client, i).eligible == 1;
    return voters;
}

/* Returns whether the node's server replies: the node is eligible, or only excluded because its
 * server was restarted. */
bool live_is_responsive(redlock_t *client, unsigned node)
{
    const redlock_node_stats_t stats = live_node_stats(client, node);
    return stats.eligible == 1 || stats.cause == REDLOCK_CAUSE_RESTARTED;
}

/* Returns how many nodes of the client have a server that replies. */
unsigned live_responsive(redlock_t *client)
{
    unsigned responsive = 0;
    for (unsigned i = 0; i < redlock_node_count(client); i++)
        responsive += live_is_responsive(client, i);
    return responsive;
}

/* Polls the client's descriptor for at most timeout_ms and calls redlock_process() once. In
 * threaded mode, which has no descriptor, only pauses for a moment. */
void live_turn(redlock_t *client, int timeout_ms)
{
    const int fd = redlock_get_fd(client);
    if (fd == REDLOCK_EMODE) {
        wait_pause();
        return;
    }
    ck_assert_int_ge(fd, 0);
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    poll(&ready, 1, timeout_ms);
    ck_assert_int_eq(redlock_process(client), REDLOCK_OK);
}
