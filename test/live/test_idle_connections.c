/* SPDX-License-Identifier: MIT
 * Connections that a network has forgotten while they were idle: the client replaces them before a
 * wait budget of a second or a TTL of two seconds ends. Servers that are only slow keep theirs.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. The client reaches the servers through proxies
 * (proxy.h). live_open() creates a client and waits until all nodes are eligible. live_acquire()
 * and live_release() return the status of one call and keep its report. WAIT_UNTIL(condition, ms)
 * polls and returns false after the deadline. wait_scaled_ms() stretches a time for slow builds. */
#include "live_events.h"
#include "proxy.h"
#include "suite.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>

#define BUDGET_MS 1000 /* wait budget; scaled */
#define IDLE_MS   300  /* longer than the time after which a connection counts as idle */
#define FDS_MAX   256  /* more than the process has descriptors */
#define TRIES     20   /* of a case that a pause of the machine may spoil */

static struct proxy *proxy;

/* Fixture: starts the proxies, and connects the client through them, with the default time limits.
 */
static void setup(void)
{
    live_setup();
    events_reset();
    proxy = proxy_start(live.cluster);
    redlock_config_t *config = live_config_of(proxy_urls(proxy));
    ck_assert_int_eq(redlock_config_set_node_timeout_ms(config, 0), REDLOCK_OK);
    live.client = live_open(config);
}

/* Fixture: stops the proxies. */
static void teardown(void)
{
    live_leave();
    proxy_stop(proxy);
    live_teardown();
}

/* Acquires and releases a lock, and lets the connections be idle. */
static void use_and_rest(void)
{
    redlock_lock_t *lock = NULL;

    CHECK_STATUS(live_acquire("used", LONG_TTL_MS, wait_scaled_ms(TIME_LIMIT_MS), &lock),
                 REDLOCK_OK);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    const uint64_t end_ms = wait_now_ms() + IDLE_MS;
    ck_assert(WAIT_UNTIL(wait_now_ms() >= end_ms, TIME_LIMIT_MS));
}

/* Returns the number of connections after the first ones. */
static uint64_t count_reconnects(void)
{
    uint64_t count = 0;

    for (unsigned i = 0; i < NODES; i++)
        count += live_node_stats(live.client, i).reconnects;
    return count;
}

/* Returns the number of connections of this process that the kernel probes after `idle_s`. */
static unsigned count_probed(int idle_s)
{
    unsigned count = 0;

    for (int fd = 0; fd < FDS_MAX; fd++) {
        int on = 0, after_s = 0;
        socklen_t len = sizeof on;
        if (getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, &len) == 0 && on != 0 &&
            getsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &after_s, &len) == 0)
            count += after_s == idle_s;
    }
    return count;
}

/* Returns another client, with this setting of keepalive. */
static redlock_t *open_other(uint32_t idle_ms)
{
    redlock_config_t *config = live_config_of(proxy_urls(proxy));

    ck_assert_int_eq(redlock_config_set_keepalive_ms(config, idle_ms), REDLOCK_OK);
    return live_open(config);
}

/* By default after 30 s, else as configured, in whole seconds; 0: never. */
START_TEST(keepalive_is_as_configured)
{
    ck_assert_uint_eq(count_probed(30), NODES);
    redlock_t *brief = open_other(1001), *none = open_other(0);
    ck_assert_uint_eq(count_probed(2), NODES);
    ck_assert_uint_eq(count_probed(30), NODES);
    ck_assert_uint_eq(count_probed(0), 0);
    redlock_free(brief);
    redlock_free(none);
}
END_TEST

/* The first request finds all connections dead. */
START_TEST(an_acquisition_succeeds_within_its_budget)
{
    redlock_lock_t *lock = NULL;

    use_and_rest();
    proxy_forget(proxy);
    const uint64_t begin_ms = wait_now_ms();
    CHECK_STATUS(live_acquire("first", LONG_TTL_MS, wait_scaled_ms(BUDGET_MS), &lock), REDLOCK_OK);
    printf("# granted after %d ms\n", (int)(wait_now_ms() - begin_ms));
    ck_assert_uint_ge(count_reconnects(), QUORUM);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

/* The connections die while a lock is held, which needs an extension within two seconds. */
START_TEST(a_held_lock_survives)
{
    const uint64_t ttl_ms = live_brief_ms(2000);
    redlock_opts_t opts = redlock_opts(ttl_ms);
    redlock_lock_t *lock = NULL;

    opts.wait_ms = wait_scaled_ms(TIME_LIMIT_MS);
    opts.flags = REDLOCK_FLAG_AUTO_EXTEND;
    opts.event_fn = note_event;
    opts.event_userdata = &lock_events;
    ck_assert_int_eq(redlock_acquire(live.client, "held", &opts, &lock, NULL), REDLOCK_OK);
    proxy_forget(proxy);
    const uint64_t end_ms = wait_now_ms() + ttl_ms;
    ck_assert(WAIT_UNTIL(wait_now_ms() >= end_ms, TIME_LIMIT_MS));
    ck_assert_msg(redlock_lock_check(lock, 0) == REDLOCK_OK, "%s", event_letters(&lock_events));
    ck_assert_uint_eq(count_events(&lock_events, REDLOCK_EVENT_LOST), 0);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

/* The result of the asynchronous acquisition. */
static redlock_lock_t *granted;
static atomic_int granted_status; /* -1: not there yet */

/* Callback of that acquisition. */
static void on_granted(redlock_t *rl, int status, redlock_lock_t *lock,
                       const redlock_report_t *report, void *userdata)
{
    (void)rl;
    (void)report;
    (void)userdata;
    granted = lock;
    atomic_store(&granted_status, status);
}

/* Returns the number of servers that were too slow more often than `before` says. */
static unsigned count_slow(const uint64_t *before)
{
    unsigned count = 0;

    for (unsigned i = 0; i < NODES; i++)
        count += live_node_stats(live.client, i).timeouts > before[i];
    return count;
}

/* Stops the servers while a lock is acquired, until all count as too slow, and continues them.
 * Returns the milliseconds between the two. */
static uint64_t slow_down(void)
{
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    uint64_t before[NODES];

    for (unsigned i = 0; i < NODES; i++)
        before[i] = live_node_stats(live.client, i).timeouts;
    opts.wait_ms = wait_scaled_ms(TIME_LIMIT_MS);
    atomic_store(&granted_status, -1);
    live_pause(0, NODES);
    const uint64_t begin_ms = wait_now_ms();
    CHECK_STATUS(redlock_acquire_start(live.client, "slow", &opts, on_granted, NULL), REDLOCK_OK);
    ck_assert(WAIT_UNTIL(count_slow(before) == NODES, TIME_LIMIT_MS));
    live_resume_all();
    return wait_now_ms() - begin_ms;
}

/* Servers that stand still accept connections, and reply neither on the old ones nor on new ones.
 * When they continue, the old ones are still in use. A silence of two seconds ends a connection in
 * any case, so a case in which the machine itself stood still is repeated. */
START_TEST(slow_servers_keep_their_connections)
{
    bool quick = false;

    for (unsigned i = 0; i < TRIES && !quick; i++) {
        use_and_rest();
        const uint64_t before = count_reconnects();
        quick = slow_down() < 1000;
        ck_assert(WAIT_UNTIL(atomic_load(&granted_status) != -1, TIME_LIMIT_MS));
        CHECK_STATUS(atomic_load(&granted_status), REDLOCK_OK);
        CHECK_STATUS(live_release(granted), REDLOCK_OK);
        if (quick)
            ck_assert_uint_eq(count_reconnects(), before);
    }
    ck_assert(quick);
}
END_TEST

int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    Suite *suite = suite_create("live_idle_connections");
    TCase *tcase = tcase_create("idle_connections");

    suite_add_tcase(suite, tcase);
    tcase_add_unchecked_fixture(tcase, live_start_servers, live_stop_servers);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, keepalive_is_as_configured);
    tcase_add_test(tcase, an_acquisition_succeeds_within_its_budget);
    tcase_add_test(tcase, a_held_lock_survives);
    tcase_add_test(tcase, slow_servers_keep_their_connections);
    return suite_run(suite);
}
