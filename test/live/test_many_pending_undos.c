/* SPDX-License-Identifier: MIT
 * Thousands of locks that are released while servers are stopped or dead: all undos are sent when
 * the servers are back, with memory from the client's allocator, and undos without memory are
 * reported. Also a server that was stopped for longer than the TTL, with more requests in its queue
 * than it reads at once.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_connect() creates live.client and waits
 * until all nodes are eligible. live_pause(first, count) stops servers with SIGSTOP. LOOP_UNTIL()
 * turns the loop of a client until a condition holds or the deadline has passed. wait_scaled_ms()
 * stretches a time for slow builds. CHECK_STATUS() compares two REDLOCK_* codes. LONG_TTL_MS is a
 * TTL that no case reaches. */
#include "live.h"
#include "suite.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOCKS 1500 /* held at once */
#define FEW   600  /* the SETs of this many locks are more than a server reads at once, or twice */
#define AWAY  2    /* servers that are stopped or dead */

static atomic_size_t allocated; /* calls of the allocator */
static atomic_bool may_grow;    /* false: realloc() fails */

/* Allocator that counts its calls. */
static void *count_malloc(size_t size, void *userdata)
{
    (void)userdata;
    atomic_fetch_add(&allocated, 1);
    return malloc(size);
}

/* Fails if !may_grow: the lists of undos grow with it. */
static void *count_realloc(void *ptr, size_t size, void *userdata)
{
    (void)userdata;
    atomic_fetch_add(&allocated, 1);
    return atomic_load(&may_grow) ? realloc(ptr, size) : NULL;
}

/* free() for this allocator; not counted. */
static void count_free(void *ptr, void *userdata)
{
    (void)userdata;
    free(ptr);
}

/* Creates live.client in embedded mode with the counting allocator and this node timeout
 * (scaled). */
static void connect_with_allocator(uint32_t node_time_ms)
{
    static const redlock_allocator_t allocator = {.size = sizeof allocator,
                                                  .malloc_fn = count_malloc,
                                                  .realloc_fn = count_realloc,
                                                  .free_fn = count_free};
    atomic_store(&may_grow, true);
    live.allocator = &allocator;
    live.mode = REDLOCK_MODE_EMBEDDED;
    live.node_time_ms = node_time_ms;
    live_connect();
    ck_assert_uint_gt(atomic_load(&allocated), 0);
}

/* The locks of a case. */
struct locks {
    redlock_lock_t *lock[LOCKS];      /* `granted` of them */
    unsigned done, granted, released; /* acquisitions that ended, that succeeded; releases that
                                       * succeeded */
};

static struct locks locks;

/* Callback of an acquisition: keeps the lock of a grant. */
static void on_acquired(redlock_t *rl, int status, redlock_lock_t *lock,
                        const redlock_report_t *report, void *userdata)
{
    (void)rl;
    (void)report;
    (void)userdata;
    locks.done++;
    if (status == REDLOCK_OK)
        locks.lock[locks.granted++] = lock;
}

/* Callback of a release: counts the successful ones. */
static void on_released(redlock_t *rl, int status, redlock_lock_t *lock,
                        const redlock_report_t *report, void *userdata)
{
    (void)rl;
    (void)report;
    (void)lock;
    (void)userdata;
    locks.released += status == REDLOCK_OK;
}

/* Acquires `count` locks, `at_a_time` of them together. */
static void acquire_many(unsigned count, unsigned at_a_time, uint64_t ttl_ms)
{
    locks.done = locks.granted = locks.released = 0;
    for (unsigned i = 0; i < count;) {
        for (unsigned end = i + at_a_time; i < end && i < count; i++) {
            char resource[32];
            redlock_opts_t opts = redlock_opts(ttl_ms);
            snprintf(resource, sizeof resource, "many:%u", i);
            ck_assert_int_eq(redlock_acquire_start(live.client, resource, &opts, on_acquired, NULL),
                             REDLOCK_OK);
        }
        ck_assert(LOOP_UNTIL(live.client, locks.done == i, TIME_LIMIT_MS));
    }
    ck_assert_uint_eq(locks.granted, count);
}

/* Releases all locks, and waits until the releases have succeeded. */
static void release_all(void)
{
    for (unsigned i = 0; i < locks.granted; i++) {
        ck_assert_int_eq(redlock_release_start(locks.lock[i], on_released, NULL), REDLOCK_OK);
        redlock_lock_free(locks.lock[i]);
    }
    ck_assert(LOOP_UNTIL(live.client, locks.released == locks.granted, TIME_LIMIT_MS));
}

/* Returns the number of pending undos of a node. */
static uint64_t pending_undos(unsigned node)
{
    return live_node_stats(live.client, node).undos_pending;
}

/* Waits until the servers have confirmed that many undos, and checks that none is left or lost. */
static void wait_until_undone(uint64_t count)
{
    ck_assert(LOOP_UNTIL(live.client, live_stats(live.client).undone >= count, TIME_LIMIT_MS));
    for (unsigned i = 0; i < NODES; i++)
        ck_assert_uint_eq(pending_undos(i), 0);
    const redlock_stats_t stats = live_stats(live.client);
    ck_assert_uint_eq(stats.undone, count);
    ck_assert_uint_eq(stats.undo_expired + stats.undo_dropped, 0);
}

/* Returns whether the client has closed the connection, and a new one has failed. */
static bool is_disconnected(unsigned node)
{
    const redlock_node_stats_t stats = live_node_stats(live.client, node);
    return strcmp(stats.text, "no reply to the greeting") == 0 ||
           strncmp(stats.text, "no end of the TLS handshake", 27) == 0 ||
           strncmp(stats.text, "connect: ", 9) == 0;
}

/* Waits until the client knows that the first AWAY servers are not connected. */
static void wait_until_disconnected(void)
{
    for (unsigned i = 0; i < AWAY; i++)
        ck_assert_msg(LOOP_UNTIL(live.client, is_disconnected(i), TIME_LIMIT_MS), "node %u: \"%s\"",
                      i, live_node_stats(live.client, i).text);
}

/* _i 0: the servers are stopped; 1: they are killed and restarted with their data. */
START_TEST(undos_of_many_locks_are_sent_later)
{
    connect_with_allocator(2000);
    acquire_many(LOCKS, 250, LONG_TTL_MS);
    for (unsigned i = 0; i < NODES; i++)
        ck_assert(
            LOOP_UNTIL(live.client, cluster_count_keys(live.cluster, i) == LOCKS, TIME_LIMIT_MS));
    if (_i == 0)
        live_pause(0, AWAY);
    for (unsigned i = 0; i < AWAY && _i == 1; i++)
        cluster_kill(live.cluster, i);
    release_all();
    wait_until_disconnected();
    for (unsigned i = 0; i < AWAY; i++)
        ck_assert_uint_eq(pending_undos(i), LOCKS);
    if (_i == 0)
        live_resume_all();
    for (unsigned i = 0; i < AWAY && _i == 1; i++)
        cluster_restart(live.cluster, i, true);
    wait_until_undone((uint64_t)NODES * LOCKS);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

/* A stopped server executes the requests in its socket when it continues, also after the TTL. If
 * they are more than it reads at once, it notices then that the client has disconnected, and reads
 * no more: it executes SETs, but not the undos after them. */
START_TEST(sets_executed_after_the_ttl_are_undone)
{
    const uint64_t ttl_ms = wait_lived_ms(3000);
    connect_with_allocator(1000);
    live_pause(0, AWAY);
    acquire_many(FEW, FEW, ttl_ms);
    release_all();
    wait_until_disconnected();
    const uint64_t expired_ms = wait_now_ms() + ttl_ms + ttl_ms / 50;
    ck_assert(LOOP_UNTIL(live.client, wait_now_ms() >= expired_ms, TIME_LIMIT_MS));
    for (unsigned i = 0; i < AWAY; i++)
        ck_assert_uint_eq(pending_undos(i), FEW);
    live_resume_all();
    wait_until_undone((uint64_t)NODES * FEW);
    for (unsigned i = 0; i < NODES; i++)
        ck_assert_uint_eq(cluster_count_keys(live.cluster, i), 0);
}
END_TEST

/* Callback of the shutdown: stores its status in *userdata. */
static void on_shut_down(redlock_t *rl, int status, redlock_lock_t *lock,
                         const redlock_report_t *report, void *userdata)
{
    int *ret_status = userdata;
    (void)rl;
    (void)lock;
    (void)report;
    *ret_status = status;
}

/* Undos without memory are dropped: the statistics count them, and a shutdown fails. */
START_TEST(undos_without_memory_are_reported)
{
    int status = 1;
    connect_with_allocator(2000);
    acquire_many(FEW, 20, LONG_TTL_MS);
    for (unsigned i = 0; i < NODES; i++)
        ck_assert(
            LOOP_UNTIL(live.client, cluster_count_keys(live.cluster, i) == FEW, TIME_LIMIT_MS));
    cluster_kill(live.cluster, 0);
    ck_assert(LOOP_UNTIL(live.client, is_disconnected(0), TIME_LIMIT_MS));
    atomic_store(&may_grow, false);
    release_all();
    atomic_store(&may_grow, true);
    const redlock_stats_t stats = live_stats(live.client);
    ck_assert_uint_gt(stats.undo_dropped, 0);
    ck_assert_uint_eq(stats.undo_dropped + pending_undos(0), FEW);
    ck_assert_int_eq(
        redlock_shutdown_start(live.client, wait_scaled_ms(TIME_LIMIT_MS), on_shut_down, &status),
        REDLOCK_OK);
    ck_assert(LOOP_UNTIL(live.client, status != 1, TIME_LIMIT_MS));
    CHECK_STATUS(status, REDLOCK_ENOMEM);
    cluster_restart(live.cluster, 0, true);
    ck_assert_uint_ge(cluster_count_keys(live.cluster, 0), stats.undo_dropped);
    cluster_command_all(live.cluster, "FLUSHALL");
}
END_TEST

/* Returns the suite of all cases. The names are those of CK_RUN_CASE, which runs one group. */
static Suite *many_pending_undos_suite(void)
{
    Suite *suite = suite_create("live_many_pending_undos");
    live_add_each(suite, "away", undos_of_many_locks_are_sent_later, 2);
    live_add(suite, "stopped", sets_executed_after_the_ttl_are_undone);
    live_add(suite, "memory", undos_without_memory_are_reported);
    return suite;
}

/* Starts the servers, runs all cases and stops the servers. Skips without a server program. */
int main(void)
{
    const struct cluster_opts opts = {.keep_data = true};
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers_with(&opts);
    const int status = suite_run_nofork(many_pending_undos_suite());
    live_stop_servers();
    return status;
}
