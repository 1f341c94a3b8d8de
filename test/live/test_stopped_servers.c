/* SPDX-License-Identifier: MIT
 * Stopped servers with a SET of the client in their queue: whatever the client does next, no key
 * without an owner exists after they continue. Each way to close a connection, many times. */
#include "live.h"
#include "suite.h"

#include <stdatomic.h>
#include <stdio.h>

#define TIMES   20
#define STOPPED 3  /* nodes 0 to 2: no majority without them */
#define VAIN_MS 50 /* node timeout where no answer is to be in time, of nobody */

/* Counting starts with a connected client, so that the greeting is not in it. */
static void start_counting(void)
{
    for (unsigned i = 0; i < NODES; i++)
        ck_assert(cluster_replies(live.cluster, i, "OK", "CONFIG RESETSTAT"));
}

/* The servers go on; each of the stopped ones must have found `sets` SETs in its queue. */
static void go_on(uint64_t sets)
{
    live_resume_all();
    for (unsigned i = 0; i < STOPPED; i++)
        ck_assert_msg(WAIT_UNTIL(live_calls(i, "set") == sets, TIME_LIMIT_MS),
                      "node %u executed %d SETs of %d", i, (int)live_calls(i, "set"), (int)sets);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}

/* 0: so that those that are well answer in time. */
static void connect_for(uint32_t node_time_ms)
{
    live.silence = node_time_ms == 0;
    live.node_time_ms = node_time_ms;
    live_connect();
    start_counting();
}

static void acquire_in_vain(const char *resource)
{
    redlock_lock_t *lock = NULL;
    CHECK_STATUS(live_acquire(resource, LONG_TTL_MS, 0, &lock), REDLOCK_ENOQUORUM);
}

START_TEST(a_timeout_then_free)
{
    connect_for(VAIN_MS);
    live_pause(0, STOPPED);
    acquire_in_vain("timeout");
    live_disconnect();
    go_on(1);
}
END_TEST

START_TEST(a_timeout_and_life_goes_on)
{
    connect_for(VAIN_MS);
    live_pause(0, STOPPED);
    acquire_in_vain("timeout");
    go_on(1);
    live_check_works();
}
END_TEST

struct outcome {
    atomic_int calls;
    int status;
};

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

static void start_acquire(redlock_t *client, struct outcome *outcome, redlock_cancel_t *cancel)
{
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    opts.wait_ms = REDLOCK_WAIT_FOREVER;
    opts.cancel = cancel;
    atomic_store(&outcome->calls, 0);
    ck_assert_int_eq(redlock_acquire_start(client, "started", &opts, on_done, outcome), REDLOCK_OK);
}

START_TEST(free_with_the_set_in_flight)
{
    struct outcome outcome;
    live_connect();
    start_counting();
    live_pause(0, STOPPED);
    start_acquire(live.client, &outcome, NULL);
    live_disconnect();
    ck_assert_int_eq(atomic_load(&outcome.calls), 1);
    CHECK_STATUS(outcome.status, REDLOCK_ECLOSED);
    go_on(1);
}
END_TEST

START_TEST(cancelled_with_the_set_in_flight)
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
    go_on(1);
}
END_TEST

/* Two stopped: the lock is held, and released before they have seen it. */
START_TEST(held_and_released_meanwhile)
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
START_TEST(held_and_forgotten_meanwhile)
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

/* Many clients, each with one SET in the queue of each stopped server. */
struct clients {
    redlock_t *client[TIMES];
    redlock_lock_t *lock[TIMES];
    uint64_t reconnects[TIMES];
};

static void clients_open(struct clients *clients, uint32_t node_time_ms)
{
    live.silence = node_time_ms == 0;
    live.node_time_ms = node_time_ms;
    for (unsigned i = 0; i < TIMES; i++)
        clients->client[i] = live_open(live_config());
    start_counting();
}

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

/* A silent connection is given up after two seconds. */
static void clients_wait_for_new_connections(struct clients *clients)
{
    for (unsigned i = 0; i < TIMES; i++)
        ck_assert(
            WAIT_UNTIL(live_node_stats(clients->client[i], 0).reconnects > clients->reconnects[i],
                       TIME_LIMIT_MS));
}

static void clients_close(struct clients *clients)
{
    for (unsigned i = 0; i < TIMES; i++)
        ck_assert_int_eq(redlock_free(clients->client[i]), REDLOCK_OK);
}

/* The undo went out behind the SET, and once more on the new connection: what became of the first
 * one is not known. */
START_TEST(an_undo_is_repeated_on_the_new_connection)
{
    struct clients clients;
    clients_open(&clients, VAIN_MS);
    live_pause(0, STOPPED);
    clients_acquire(&clients, REDLOCK_ENOQUORUM);
    clients_wait_for_new_connections(&clients);
    go_on(TIMES);
    for (unsigned i = 0; i < STOPPED; i++)
        ck_assert_msg(WAIT_UNTIL(live_calls(i, "evalsha") == 2 * TIMES, TIME_LIMIT_MS),
                      "node %u executed %d undos of %d", i, (int)live_calls(i, "evalsha"),
                      2 * TIMES);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
    clients_close(&clients);
}
END_TEST

/* A lock that is held: no undo behind its SET, the connection is closed abortively, the SET was
 * delivered all the same. Half of the locks are released while the servers are stopped, half
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

static Suite *closing_suite(void)
{
    Suite *suite = suite_create("live_stopped_servers");
    live_add_each(suite, "timeout, free", a_timeout_then_free, TIMES);
    live_add_each(suite, "timeout", a_timeout_and_life_goes_on, TIMES);
    live_add_each(suite, "free", free_with_the_set_in_flight, TIMES);
    live_add_each(suite, "cancel", cancelled_with_the_set_in_flight, TIMES);
    live_add_each(suite, "release", held_and_released_meanwhile, TIMES);
    live_add_each(suite, "forgotten", held_and_forgotten_meanwhile, TIMES);
    live_add(suite, "repeated", an_undo_is_repeated_on_the_new_connection);
    live_add(suite, "abortive", a_delivered_set_outlives_its_connection);
    return suite;
}

int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers();
    const int status = suite_run_nofork(closing_suite());
    live_stop_servers();
    return status;
}
