/* SPDX-License-Identifier: MIT
 * Stopped servers that have received a SET of the client: whatever the client does next, no key
 * without a holder is left after they continue. Each way to close a connection, many times.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_connect() creates live.client and waits
 * until all nodes are eligible. live_open(live_config()) returns such a client. live_lock()
 * acquires a lock, which must be granted. live_acquire(), live_extend() and live_release() return
 * the status of one call and keep its report, which live_text() returns as text. live_pause(first,
 * count) stops servers with SIGSTOP. WAIT_UNTIL(condition, ms) polls and returns false after the
 * deadline. wait_scaled_ms() stretches a time for slow builds. CHECK_STATUS() compares two
 * REDLOCK_* codes. LONG_TTL_MS is a TTL that no case reaches. */
#include "live.h"
#include "suite.h"

#include <stdatomic.h>
#include <stdio.h>

#define TIMES            20 /* repetitions, because each depends on a race */
#define STOPPED          3  /* nodes 0 to 2: no majority without them */
#define SHORT_TIMEOUT_MS 50 /* node timeout of cases in which no reply must be in time */

/* Resets the servers' counters, after the client has connected. */
static void start_counting(void)
{
    for (unsigned i = 0; i < NODES; i++)
        ck_assert(cluster_replies(live.cluster, i, "OK", "CONFIG RESETSTAT"));
}

/* Continues the servers. Each stopped one must then execute `sets` SETs, and no key may be left. */
static void continue_servers(uint64_t sets)
{
    live_resume_all();
    for (unsigned i = 0; i < STOPPED; i++)
        ck_assert_msg(WAIT_UNTIL(live_calls(i, "set") == sets, TIME_LIMIT_MS),
                      "node %u executed %d SETs of %d", i, (int)live_calls(i, "set"), (int)sets);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}

/* Creates a client with this node timeout; 0: one in which servers that run reply in time. */
static void connect_for(uint32_t node_time_ms)
{
    live.silence = node_time_ms == 0;
    live.node_time_ms = node_time_ms;
    live_connect();
    start_counting();
}

/* Tries to acquire a lock, which fails because too few servers reply in time. */
static void acquire_without_quorum(const char *resource)
{
    redlock_lock_t *lock = NULL;
    CHECK_STATUS(live_acquire(resource, LONG_TTL_MS, 0, &lock), REDLOCK_ENOQUORUM);
}

/* The client is freed after an acquisition has failed for want of replies: no key is left when
 * the servers continue. */
START_TEST(free_after_a_timeout_leaves_no_key)
{
    connect_for(SHORT_TIMEOUT_MS);
    live_pause(0, STOPPED);
    acquire_without_quorum("timeout");
    live_disconnect();
    continue_servers(1);
}
END_TEST

/* Acquires, extends and releases a lock. Returns whether all three have succeeded. */
static bool works(void)
{
    redlock_lock_t *lock = NULL;
    if (live_acquire("works", LONG_TTL_MS, wait_scaled_ms(TIME_LIMIT_MS), &lock) != REDLOCK_OK)
        return false;
    const bool extended = live_extend(lock, 0) == REDLOCK_OK;
    return live_release(lock) == REDLOCK_OK && extended;
}

/* The same with a client that goes on, and that works afterwards. On a busy machine a reply may
 * come after the short node timeout, so that one call fails. */
START_TEST(a_timeout_leaves_no_key)
{
    connect_for(SHORT_TIMEOUT_MS);
    live_pause(0, STOPPED);
    acquire_without_quorum("timeout");
    continue_servers(1);
    ck_assert_msg(WAIT_UNTIL(works(), TIME_LIMIT_MS), "%s", live_text());
}
END_TEST

/* The result of an asynchronous call. */
struct outcome {
    atomic_int calls;
    int status;
};

/* Callback of an acquisition that stores its status and counts the call. */
static void on_done(redlock_t *rl, int status, redlock_lock_t *lock, const redlock_report_t *report,
                    void *userdata)
{
    struct outcome *outcome = userdata;
    (void)rl;
    (void)report;
    (void)lock;
    outcome->status = status;
    atomic_fetch_add(&outcome->calls, 1);
}

/* Starts an acquisition that waits without a limit. */
static void start_acquire(redlock_t *client, struct outcome *outcome, redlock_cancel_t *cancel)
{
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    opts.wait_ms = REDLOCK_WAIT_FOREVER;
    opts.cancel = cancel;
    atomic_store(&outcome->calls, 0);
    ck_assert_int_eq(redlock_acquire_start(client, "started", &opts, on_done, outcome), REDLOCK_OK);
}

/* The client is freed while a SET is in flight: the callback gets ECLOSED, and no key is left. */
START_TEST(free_with_a_set_in_flight_leaves_no_key)
{
    struct outcome outcome;
    live_connect();
    start_counting();
    live_pause(0, STOPPED);
    start_acquire(live.client, &outcome, NULL);
    live_disconnect();
    ck_assert_int_eq(atomic_load(&outcome.calls), 1);
    CHECK_STATUS(outcome.status, REDLOCK_ECLOSED);
    continue_servers(1);
}
END_TEST

/* The acquisition is canceled while a SET is in flight: no key is left. With odd _i the client
 * is freed as well. */
START_TEST(cancel_with_a_set_in_flight_leaves_no_key)
{
    struct outcome outcome;
    redlock_cancel_t *cancel = NULL;
    live_connect();
    start_counting();
    ck_assert_int_eq(redlock_cancel_new(&cancel, live.client), REDLOCK_OK);
    live_pause(0, STOPPED);
    start_acquire(live.client, &outcome, cancel);
    redlock_cancel_trigger(cancel);
    ck_assert(WAIT_UNTIL(atomic_load(&outcome.calls) == 1, TIME_LIMIT_MS));
    CHECK_STATUS(outcome.status, REDLOCK_ECANCELED);
    redlock_cancel_free(cancel);
    if (_i % 2 == 1)
        live_disconnect();
    continue_servers(1);
}
END_TEST

/* Two servers are stopped: the lock is held, and released before they execute the SET. */
START_TEST(a_release_before_the_set_arrives_leaves_no_key)
{
    connect_for(0);
    live_pause(0, 2);
    redlock_lock_t *lock = live_lock("meanwhile", LONG_TTL_MS);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    if (_i % 3 == 1)
        live_disconnect();
    if (_i % 3 == 2)
        ck_assert_int_eq(redlock_shutdown(live.client, wait_scaled_ms(TIME_LIMIT_MS)), REDLOCK_OK);
    live_resume_all();
    for (unsigned i = 0; i < 2; i++)
        ck_assert(WAIT_UNTIL(live_calls(i, "set") == 1, TIME_LIMIT_MS));
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

/* The handle is freed, or the whole client is, while two nodes have the SET before them. */
START_TEST(a_freed_handle_before_the_set_arrives_leaves_no_key)
{
    connect_for(0);
    live_pause(0, 2);
    redlock_lock_t *lock = live_lock("forgotten", LONG_TTL_MS);
    if (_i % 2 == 0)
        redlock_lock_free(lock);
    live_disconnect();
    if (_i % 2 == 1)
        redlock_lock_free(lock);
    live_resume_all();
    for (unsigned i = 0; i < 2; i++)
        ck_assert(WAIT_UNTIL(live_calls(i, "set") == 1, TIME_LIMIT_MS));
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

/* Many clients, each of which has sent one SET to each stopped server. */
struct clients {
    redlock_t *client[TIMES];
    redlock_lock_t *lock[TIMES]; /* NULL: not granted */
    uint64_t reconnects[TIMES];  /* to node 0, before the acquisition */
};

/* Creates TIMES clients with this node timeout (0: that of live_unresponsive_ms()), and begins
 * to count the servers' commands. */
static void clients_open(struct clients *clients, uint32_t node_time_ms)
{
    live.silence = node_time_ms == 0;
    live.node_time_ms = node_time_ms;
    for (unsigned i = 0; i < TIMES; i++)
        clients->client[i] = live_open(live_config());
    start_counting();
}

/* Makes one attempt with each client, for a resource each. Each must return `expected`. */
static void clients_acquire(struct clients *clients, int expected)
{
    char name[32];
    for (unsigned i = 0; i < TIMES; i++) {
        const redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
        snprintf(name, sizeof name, "resource%u", i);
        clients->lock[i] = NULL;
        clients->reconnects[i] = live_node_stats(clients->client[i], 0).reconnects;
        CHECK_STATUS(redlock_acquire(clients->client[i], name, &opts, &clients->lock[i], NULL),
                     expected);
    }
}

/* Waits until each client has connected again, which begins two seconds after the last reply. */
static void clients_wait_for_new_connections(struct clients *clients)
{
    for (unsigned i = 0; i < TIMES; i++)
        ck_assert(
            WAIT_UNTIL(live_node_stats(clients->client[i], 0).reconnects > clients->reconnects[i],
                       TIME_LIMIT_MS));
}

/* Frees all clients. */
static void clients_close(struct clients *clients)
{
    for (unsigned i = 0; i < TIMES; i++)
        ck_assert_int_eq(redlock_free(clients->client[i]), REDLOCK_OK);
}

/* The undo was sent after the SET, and is sent once more on the new connection, because the client
 * does not know whether the first one is executed. */
START_TEST(an_undo_is_repeated_on_the_new_connection)
{
    struct clients clients;
    clients_open(&clients, SHORT_TIMEOUT_MS);
    live_pause(0, STOPPED);
    clients_acquire(&clients, REDLOCK_ENOQUORUM);
    clients_wait_for_new_connections(&clients);
    continue_servers(TIMES);
    for (unsigned i = 0; i < STOPPED; i++)
        /* An undo reads the key with GET; the greeting also has an EVALSHA, but no GET. */
        ck_assert_msg(WAIT_UNTIL(live_calls(i, "get") == 2 * TIMES, TIME_LIMIT_MS),
                      "node %u executed %d undos of %d", i, (int)live_calls(i, "get"), 2 * TIMES);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
    clients_close(&clients);
}
END_TEST

/* The lock is held, so that no undo follows its SET, and the connection is closed abortively. The
 * SET was delivered before. Half of the locks are released while the servers are stopped, and half
 * afterwards. */
START_TEST(a_delivered_set_outlives_its_connection)
{
    struct clients clients;
    clients_open(&clients, 0);
    live_pause(0, 2);
    clients_acquire(&clients, REDLOCK_OK);
    clients_wait_for_new_connections(&clients);
    for (unsigned i = 0; i < TIMES / 2; i++)
        CHECK_STATUS(redlock_release(clients.lock[i], NULL), REDLOCK_OK);
    live_resume_all();
    for (unsigned i = 0; i < 2; i++)
        ck_assert(WAIT_UNTIL(live_calls(i, "set") == TIMES, TIME_LIMIT_MS));
    ck_assert_msg(WAIT_UNTIL(cluster_count_keys(live.cluster, 0) == TIMES / 2 &&
                                 cluster_count_keys(live.cluster, 1) == TIMES / 2,
                             TIME_LIMIT_MS),
                  "%zu and %zu keys", cluster_count_keys(live.cluster, 0),
                  cluster_count_keys(live.cluster, 1));
    for (unsigned i = 0; i < TIMES; i++) {
        if (i >= TIMES / 2)
            CHECK_STATUS(redlock_release(clients.lock[i], NULL), REDLOCK_OK);
        redlock_lock_free(clients.lock[i]);
    }
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
    clients_close(&clients);
}
END_TEST

/* Returns the suite of all cases. The names are those of CK_RUN_CASE, which runs one group. */
static Suite *stopped_servers_suite(void)
{
    Suite *suite = suite_create("live_stopped_servers");
    live_add_each(suite, "timeout, free", free_after_a_timeout_leaves_no_key, TIMES);
    live_add_each(suite, "timeout", a_timeout_leaves_no_key, TIMES);
    live_add_each(suite, "free", free_with_a_set_in_flight_leaves_no_key, TIMES);
    live_add_each(suite, "cancel", cancel_with_a_set_in_flight_leaves_no_key, TIMES);
    live_add_each(suite, "release", a_release_before_the_set_arrives_leaves_no_key, TIMES);
    live_add_each(suite, "freed", a_freed_handle_before_the_set_arrives_leaves_no_key, TIMES);
    /* A stopped server makes no TLS handshake: there is no new connection before it continues. */
    if (!live_is_tls()) {
        live_add(suite, "repeated", an_undo_is_repeated_on_the_new_connection);
        live_add(suite, "abortive", a_delivered_set_outlives_its_connection);
    }
    return suite;
}

/* Starts the servers, runs all cases and stops the servers. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers();
    const int status = suite_run_nofork(stopped_servers_suite());
    live_stop_servers();
    return status;
}
