/* SPDX-License-Identifier: MIT
 * Three fake servers and a client. */
#include "three_servers.h"

#include "wait.h"

#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct three_servers three_servers;

static redlock_report_t *report;
static struct {
    pthread_mutex_t mutex;
    char text[65536], copy[65536];
    size_t len;
} logged = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* Appends a line to the client's log. */
static void log_line(int level, const char *message, void *userdata)
{
    (void)level;
    (void)userdata;
    pthread_mutex_lock(&logged.mutex);
    size_t room = sizeof logged.text - logged.len;
    int len = snprintf(logged.text + logged.len, room, "%s\n", message);
    if (len > 0)
        logged.len += (size_t)len < room ? (size_t)len : room - 1;
    pthread_mutex_unlock(&logged.mutex);
}

/* Returns the client's log, at every level. */
const char *three_servers_log(void)
{
    pthread_mutex_lock(&logged.mutex);
    memcpy(logged.copy, logged.text, sizeof logged.text);
    pthread_mutex_unlock(&logged.mutex);
    return logged.copy;
}

/* Fixture: starts three servers without faults and resets the settings of the next client.
 * There is no client yet. */
void three_servers_setup(void)
{
    fdcheck_begin(&three_servers.before);
    for (size_t i = 0; i < THREE_SERVERS; i++)
        three_servers.fake[i] = fake_redis_start(NULL);
    three_servers.client = NULL;
    three_servers.admission = REDLOCK_ADMISSION_STRICT;
    three_servers.fences = false;
    three_servers.retry_ms = 0;
    three_servers.also = NULL;
    three_servers.also_count = 0;
    three_servers.permits = 0;
    three_servers.node_time_ms = NODE_TIME_MS;
}

/* Fixture: stops everything and checks that no descriptor is left open. */
void three_servers_teardown(void)
{
    three_servers_disconnect();
    for (size_t i = 0; i < THREE_SERVERS; i++) {
        fake_redis_stop(three_servers.fake[i]);
        three_servers.fake[i] = NULL;
    }
    const char *leaked = fdcheck_leaked(&three_servers.before, TIME_LIMIT_MS);
    ck_assert_msg(leaked == NULL, "descriptors left open: %s", leaked);
}

/* Creates the client and does not wait for the servers. */
void three_servers_connect(void)
{
    three_servers_connect_as(NULL, NULL);
}

/* Creates the client for servers that will fail for one of these reasons; with TIMEOUT its node
 * timeout is short. */
void three_servers_connect_for(unsigned causes)
{
    const uint32_t ms = (uint32_t)(SILENT_MS / wait_scaled_ms(1)); /* scaled where it is used */
    const uint32_t silent_ms = ms > SILENT_MS_MIN ? ms : SILENT_MS_MIN;
    three_servers.node_time_ms = (causes & TIMEOUT) != 0 ? silent_ms : NODE_TIME_MS;
    three_servers_connect();
}

/* Creates the client with `user` ("name:password@") in front of each host and `url_rest` ("/3")
 * behind each address; both may be NULL. Does not wait for the servers. */
void three_servers_connect_as(const char *user, const char *url_rest)
{
    redlock_config_t *config = NULL;
    char url[512];
    uint32_t node_time_ms = (uint32_t)wait_scaled_ms(three_servers.node_time_ms);
    ck_assert_int_eq(redlock_config_new(&config, NULL), REDLOCK_OK);
    for (size_t i = 0; i < THREE_SERVERS; i++) {
        const char *plain = fake_redis_url(three_servers.fake[i]);
        size_t scheme = (size_t)(strstr(plain, "://") - plain) + 3;
        snprintf(url, sizeof url, "%.*s%s%s%s", (int)scheme, plain, user == NULL ? "" : user,
                 plain + scheme, url_rest == NULL ? "" : url_rest);
        ck_assert_msg(redlock_config_add_nodes(config, url) == REDLOCK_OK, "%s: %s", url,
                      redlock_config_error(config));
    }
    ck_assert_int_eq(redlock_config_set_node_timeout_ms(config, node_time_ms), REDLOCK_OK);
    ck_assert_int_eq(redlock_config_set_connect_timeout_ms(config, node_time_ms), REDLOCK_OK);
    ck_assert_int_eq(redlock_config_set_retry_ms(
                         config, three_servers.retry_ms == 0 ? 5 : three_servers.retry_ms,
                         three_servers.retry_ms == 0 ? 50 : three_servers.retry_ms),
                     REDLOCK_OK);
    ck_assert_int_eq(redlock_config_set_log(config, REDLOCK_LOG_DEBUG, log_line, NULL), REDLOCK_OK);
    ck_assert_int_eq(redlock_config_set_admission(config, three_servers.admission), REDLOCK_OK);
    if (three_servers.fences)
        ck_assert_int_eq(redlock_config_set_fence_records(config, REDLOCK_FENCE_RECORDS_VOLATILE),
                         REDLOCK_OK);
    int status = redlock_new(&three_servers.client, config);
    ck_assert_msg(status == REDLOCK_OK, "%s: %s", redlock_strerror(status),
                  redlock_config_error(config));
    redlock_config_free(config);
}

/* Frees the client and the last report. */
void three_servers_disconnect(void)
{
    redlock_report_free(report);
    report = NULL;
    if (three_servers.client != NULL)
        ck_assert_int_eq(redlock_free(three_servers.client), REDLOCK_OK);
    three_servers.client = NULL;
}

/* Frees the last report. */
static void free_report(void)
{
    redlock_report_free(report);
    report = NULL;
}

/* Sets in *opts what three_servers.also and three_servers.permits say. */
void three_servers_refine(redlock_opts_t *opts)
{
    opts->also = three_servers.also;
    opts->also_count = three_servers.also_count;
    if (three_servers.permits != 0) {
        opts->kind = REDLOCK_KIND_PERMIT;
        opts->permits = three_servers.permits;
    }
}

/* Tries to acquire "resource" with a TTL of TTL_MS and the wait budget `wait_ms`. Returns the
 * library's result; the report is kept for the checks. */
int three_servers_acquire(redlock_lock_t **ret_lock, uint64_t wait_ms)
{
    redlock_opts_t opts = redlock_opts(TTL_MS);
    opts.wait_ms = wait_ms;
    opts.flags |= three_servers.fences ? REDLOCK_FLAG_FENCE : 0;
    three_servers_refine(&opts);
    free_report();
    int status = redlock_acquire(three_servers.client, "resource", &opts, ret_lock, &report);
    ck_assert_ptr_nonnull(report);
    three_servers.fence = status == REDLOCK_OK ? redlock_lock_fence(*ret_lock) : 0;
    return status;
}

/* Tries to extend a lock. Returns the library's result; the report is kept for the checks. */
int three_servers_extend(redlock_lock_t *lock, uint64_t ttl_ms)
{
    free_report();
    int status = redlock_extend(lock, ttl_ms, &report);
    ck_assert_ptr_nonnull(report);
    return status;
}

/* Tries to release a lock and frees it in any case. Returns the library's result; the report is
 * kept for the checks. */
int three_servers_release(redlock_lock_t *lock)
{
    free_report();
    int status = redlock_release(lock, &report);
    redlock_lock_free(lock);
    ck_assert_ptr_nonnull(report);
    return status;
}

/* Acquires and releases. Fails the test unless both work. */
void three_servers_check_works(void)
{
    redlock_lock_t *lock = NULL;
    int status = three_servers_acquire(&lock, wait_scaled_ms(TIME_LIMIT_MS));
    ck_assert_msg(status == REDLOCK_OK, "acquire: %s%s", redlock_strerror(status),
                  three_servers_text());
    status = three_servers_release(lock);
    ck_assert_msg(status == REDLOCK_OK, "release: %s%s", redlock_strerror(status),
                  three_servers_text());
}

/* Acquires and releases on all three servers. When it returns, no vote and no undo is under
 * way. */
void three_servers_check_all_work(void)
{
    redlock_lock_t *lock = NULL;
    int status = three_servers_acquire(&lock, wait_scaled_ms(TIME_LIMIT_MS));
    ck_assert_msg(status == REDLOCK_OK, "acquire: %s%s", redlock_strerror(status),
                  three_servers_text());
    for (size_t i = 0; i < THREE_SERVERS; i++)
        ck_assert(fake_redis_wait_keys(three_servers.fake[i], 1, TIME_LIMIT_MS));
    status = three_servers_release(lock);
    ck_assert_msg(status == REDLOCK_OK, "release: %s%s", redlock_strerror(status),
                  three_servers_text());
    ck_assert(three_servers_wait_no_keys());
}

/* Returns the summary of the last report. */
redlock_report_info_t three_servers_info(void)
{
    redlock_report_info_t info;
    ck_assert_int_eq(redlock_report_get_info(report, &info, sizeof info), REDLOCK_OK);
    return info;
}

/* Returns the part of the last report about one node. */
redlock_node_report_t three_servers_node(size_t index)
{
    redlock_node_report_t node;
    ck_assert_int_eq(redlock_report_get_node(report, index, &node, sizeof node), REDLOCK_OK);
    return node;
}

/* Returns the last report as text, on all nodes, for messages. */
const char *three_servers_text(void)
{
    static char text[2048];
    size_t at = (size_t)snprintf(text, sizeof text, "\n  %s", redlock_report_text(report));
    for (size_t i = 0; i < THREE_SERVERS && at < sizeof text; i++) {
        redlock_node_report_t node = three_servers_node(i);
        at += (size_t)snprintf(text + at, sizeof text - at, "\n  %s: vote %d, cause %d, %s",
                               node.node, node.vote, node.cause, node.text);
    }
    return text;
}

/* Returns the client's statistics of one node. */
redlock_node_stats_t three_servers_stats(size_t index)
{
    redlock_node_stats_t stats;
    ck_assert_int_eq(redlock_get_node_stats(three_servers.client, index, &stats, sizeof stats),
                     REDLOCK_OK);
    return stats;
}

/* Returns whether all nodes are eligible. */
static bool all_vote(void)
{
    for (size_t i = 0; i < THREE_SERVERS; i++) {
        if (three_servers_stats(i).eligible != 1)
            return false;
    }
    return true;
}

/* Waits until all nodes are eligible. Returns false after TIME_LIMIT_MS. */
bool three_servers_wait_all_vote(void)
{
    return WAIT_UNTIL(all_vote(), TIME_LIMIT_MS);
}

/* Returns whether no server has a key. */
static bool no_keys(void)
{
    for (size_t i = 0; i < THREE_SERVERS; i++) {
        if (fake_redis_keys(three_servers.fake[i]) != 0)
            return false;
    }
    return true;
}

/* Waits until no server has a key. Returns false after UNDONE_MS. */
bool three_servers_wait_no_keys(void)
{
    return WAIT_UNTIL(no_keys(), UNDONE_MS);
}

/* Removes all rules. */
void three_servers_behave(void)
{
    for (size_t i = 0; i < THREE_SERVERS; i++)
        fake_redis_clear_rules(three_servers.fake[i]);
}

/* Checks that the node has failed for one of these reasons, and that its text is printable. */
void three_servers_check_failed(size_t index, const char *name, unsigned causes)
{
    redlock_node_report_t node = three_servers_node(index);
    ck_assert_msg(node.vote == REDLOCK_VOTE_FAILED, "%s: node %zu:%s", name, index,
                  three_servers_text());
    ck_assert_msg((causes >> node.cause & 1u) != 0, "%s: node %zu:%s", name, index,
                  three_servers_text());
    ck_assert_uint_gt(strlen(node.text), 0);
    for (const char *c = node.text; *c != '\0'; c++)
        ck_assert_msg(*c >= 0x20 && *c < 0x7f, "%s: byte %d in '%s'", name, *c, node.text);
}

/* Removes all rules. Then all three nodes must become eligible, locks must be granted, and no key
 * may be left. */
void three_servers_check_recovers(const char *name)
{
    three_servers_behave();
    ck_assert_msg(three_servers_wait_all_vote(), "%s: 0: %s 1: %s 2: %s", name,
                  three_servers_stats(0).text, three_servers_stats(1).text,
                  three_servers_stats(2).text);
    three_servers_check_works();
    ck_assert_msg(three_servers_wait_no_keys(), "%s: keys left behind", name);
}

/* Tries an acquisition with the budget `wait_ms`, which must fail with the status `wanted`, and
 * in time. */
void three_servers_check_fails(const char *name, int wanted, uint64_t wait_ms)
{
    redlock_lock_t *lock = NULL;
    uint64_t start_ms = wait_now_ms();
    int status = three_servers_acquire(&lock, wait_ms);
    uint64_t took_ms = wait_now_ms() - start_ms;
    ck_assert_msg(status == wanted, "%s: %s%s", name, redlock_strerror(status),
                  three_servers_text());
    ck_assert_ptr_null(lock);
    /* The budget, the time that a last attempt may take, and a reserve for a busy machine. */
    ck_assert_msg(took_ms < wait_ms + wait_scaled_ms(4 * three_servers.node_time_ms + 500),
                  "%s: took %llu ms", name, (unsigned long long)took_ms);
}

/* Adds a test case with the two fixtures and a time limit to the suite, and returns it. */
TCase *three_servers_add_case(Suite *suite, const char *name)
{
    TCase *tc = tcase_create(name);
    tcase_add_checked_fixture(tc, three_servers_setup, three_servers_teardown);
    tcase_set_timeout(tc, (double)wait_scaled_ms(120000) / 1000.0);
    suite_add_tcase(suite, tc);
    return tc;
}
