/* SPDX-License-Identifier: MIT
 * Clients with a thread of their own are freed while it works: after each number of requests, with
 * operations that wait for callbacks; or shut down first, while another thread sleeps in a call.
 * run() is one such client; sweep() calls run() for 0, 1, 2 and more requests. The key "foreign"
 * belongs to another client. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc_fail.h"
#include "fdcheck.h"
#include "rig.h"

#define REQUESTS_MAX 200   /* more than the operations need */
#define TTL_MS       400   /* of all locks; keys that cannot be released any more expire soon */
#define LINE_MS      10000 /* the key of a line expires that long after its last use */
#define WAIT_MS      10000 /* limit of every wait */

static redlock_opts_t opts; /* of all acquisitions */
static int blocked_status;  /* result of the call in wait_in_a_call() */

/* Returns how many requests the client has sent. */
static unsigned long count_requests(void)
{
    redlock_node_stats_t node;
    unsigned long sum = 0;

    for (unsigned i = 0; i < RIG_NODES; i++)
        if (redlock_get_node_stats(rig.client, i, &node, sizeof node) == REDLOCK_OK)
            sum += node.requests;
    return sum;
}

/* The function of a thread: waits for the lock "foreign" without a time limit, until the client is
 * shut down. */
static void *wait_in_a_call(void *userdata)
{
    redlock_opts_t waiting = opts;
    redlock_lock_t *lock = NULL;

    (void)userdata;
    waiting.wait_ms = REDLOCK_WAIT_FOREVER;
    blocked_status = redlock_acquire(rig.client, "foreign", &waiting, &lock, NULL);
    redlock_lock_free(lock);
    return NULL;
}

/* Starts two acquisitions, an inspection and a wait for the nodes. */
static void start_all(void)
{
    redlock_opts_t waiting = opts;

    waiting.wait_ms = wait_scaled_ms(WAIT_MS);
    rig_acquire(0, "one", &waiting);
    rig_acquire(1, "foreign", &waiting);
    rig_started(2, redlock_inspect_start(rig.client, "one", NULL, rig_done, &rig.call[2]));
    rig_started(3, redlock_wait_ready_start(rig.client, WAIT_MS, NULL, rig_done, &rig.call[3]));
}

/* Checks that each call had one callback. Callbacks that did not run before redlock_free() run
 * inside of it, on this thread. `hybrid`: only for the message. */
static void check_ended_once(bool hybrid)
{

    for (unsigned i = 0; i < RIG_CALLS; i++)
        ck_assert_msg(rig.call[i].callbacks == 1, "call %u was called back %u times (%s)", i,
                      rig.call[i].callbacks, hybrid ? "hybrid" : "threaded");
}

/* Returns true if the servers have only the key of the other client. */
static bool only_foreign_keys(void)
{
    return cluster_count_all_keys(rig.cluster) == RIG_NODES;
}

/* Frees a client after it has sent `wanted` requests. If that number is odd, another thread waits
 * in a blocking call, and the client is shut down first. Returns true if the client came to send
 * that many requests within two seconds (scaled). */
static bool run(int mode, unsigned long wanted)
{
    static struct fdcheck descriptors;
    struct cluster *cluster = rig.cluster;
    const uint64_t end = wait_now_ms() + wait_scaled_ms(2000);
    const bool blocks = wanted % 2 != 0;
    pthread_t thread;
    char text[40];

    memset(&rig, 0, sizeof rig);
    rig.cluster = cluster;
    snprintf(text, sizeof text, "freed after %lu requests", wanted);
    rig_note_text(mode == REDLOCK_MODE_HYBRID ? "hybrid" : "threaded", text);
    fdcheck_begin(&descriptors);
    rig_new_config(mode);
    ck_assert_int_eq(redlock_new(&rig.client, rig.config), REDLOCK_OK);
    redlock_config_free(rig.config);
    opts = redlock_opts(wait_scaled_ms(TTL_MS));
    start_all();
    if (blocks)
        ck_assert_int_eq(pthread_create(&thread, NULL, wait_in_a_call, NULL), 0);
    bool reached;
    while (!(reached = count_requests() >= wanted) && wait_now_ms() < end) {
        if (mode == REDLOCK_MODE_HYBRID)
            ck_assert_int_eq(redlock_process(rig.client), REDLOCK_OK);
        sched_yield();
    }
    if (blocks) {
        /* redlock_free() requires that no other thread uses the client. */
        (void)redlock_shutdown(rig.client, 0);
        pthread_join(thread, NULL);
        ck_assert_int_eq(blocked_status, REDLOCK_ECLOSED);
    }
    ck_assert_int_eq(redlock_free(rig.client), REDLOCK_OK);
    rig.client = NULL;
    check_ended_once(mode == REDLOCK_MODE_HYBRID);
    redlock_lock_free(rig.call[0].lock);
    redlock_lock_free(rig.call[1].lock);
    /* After redlock_free() alone some keys disappear by expiry only, with TLS also that of a line.
     */
    const uint64_t limit_ms = 4 * TTL_MS + 2000 + (rig_is_tls() ? LINE_MS : 0);
    ck_assert_msg(WAIT_UNTIL(only_foreign_keys(), limit_ms), "keys outlive the client");
    const char *open = fdcheck_leaked(&descriptors, 1000);
    ck_assert_msg(open == NULL, "descriptors stay open: %s", open);
    rig_end_note();
    return reached;
}

/* Frees a client after 0, 1, 2 and more requests, in larger steps after a quarter of REQUESTS_MAX,
 * until a client sends no more that many. */
static void sweep(int mode)
{
    const unsigned step = rig_step();
    unsigned wanted = 0, runs = 0;
    int64_t live = 0;

    rig_command_all("SET foreign foreign-token");
    for (; run(mode, wanted) && wanted < REQUESTS_MAX / 4; wanted += step) {
        if (runs++ == 0)
            live = alloc_fail_live(); /* libc keeps what it allocates for its first threads */
    }
    for (; run(mode, wanted) && wanted < REQUESTS_MAX; wanted += 10 * step)
        runs++;
    const int64_t most = live + 4 + rig_spare_blocks();
    ck_assert_msg(WAIT_UNTIL(alloc_fail_live() <= most, WAIT_MS), "%lld blocks are not freed",
                  (long long)(alloc_fail_live() - live));
    printf("# freed in the middle of %u runs\n", runs);
    fflush(stdout);
    ck_assert_uint_gt(runs, 10);
    rig_command_all("DEL foreign");
}

START_TEST(a_threaded_client_can_be_freed_at_any_time)
{
    sweep(REDLOCK_MODE_THREADED);
}
END_TEST

START_TEST(a_hybrid_client_can_be_freed_at_any_time)
{
    sweep(REDLOCK_MODE_HYBRID);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("torture_destroy_threaded");
    TCase *tcase = tcase_create("destroy");
    rig_add_fixtures(tcase);
    tcase_add_test(tcase, a_threaded_client_can_be_freed_at_any_time);
    tcase_add_test(tcase, a_hybrid_client_can_be_freed_at_any_time);
    suite_add_tcase(suite, tcase);
    return rig_main(suite);
}
