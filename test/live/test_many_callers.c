/* SPDX-License-Identifier: MIT
 * Many callers of one client: their requests are sent together, and no caller waits longer for
 * that. Node timeouts are long here, so that a caller that is not woken, or a request that is not
 * sent, is late by seconds.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_connect() creates live.client and waits
 * until all nodes are eligible. live_open(live_config()) returns such a client. live_lock()
 * acquires a lock, which must be granted. live_acquire() and live_release() return the status of
 * one call and keep its report. LOOP_UNTIL() turns the loop of a client until a condition holds or
 * the deadline has passed. WAIT_UNTIL(condition, ms) polls and returns false after the deadline.
 * wait_scaled_ms() stretches a time for slow builds. CHECK_STATUS() compares two REDLOCK_* codes.
 * LONG_TTL_MS is a TTL that no case reaches. */
#include "live.h"
#include "suite.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define CALLERS         32   /* threads with one call each */
#define NODE_TIMEOUT_MS 8000 /* node timeout; scaled by live_config() */
#define LATE_MS         6000 /* scaled */

/* Creates live.client with a node timeout so long that a missed wake-up makes a call late by
 * seconds. */
static void connect_patient(void)
{
    live.node_time_ms = NODE_TIMEOUT_MS;
    live_connect();
}

/* Returns how many reads from connections all servers have done. */
static uint64_t count_reads(void)
{
    static const char name[] = "total_reads_processed:";
    uint64_t sum = 0;

    for (unsigned i = 0; i < NODES; i++) {
        char *info = cluster_command(live.cluster, i, "INFO stats");
        const char *at = strstr(info, name);
        ck_assert_ptr_nonnull(at);
        sum += strtoull(at + sizeof name - 1, NULL, 10);
        free(info);
    }
    return sum;
}

/* A thread that acquires a lock of its own. */
struct caller {
    pthread_t thread;
    unsigned number;
    redlock_lock_t *lock;
    int status;
};

/* Thread function: acquires a resource of its own and stores handle and status. */
static void *acquire(void *userdata)
{
    struct caller *caller = userdata;
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    char resource[24];

    snprintf(resource, sizeof resource, "caller-%u", caller->number);
    caller->status = redlock_acquire(live.client, resource, &opts, &caller->lock, NULL);
    return NULL;
}

static atomic_bool holds;  /* epoll_wait() holds the I/O thread up */
static atomic_uint inside; /* calls that it holds up */

/* Replaces epoll_wait() of libc for the whole program: returns only when `holds` is false. */
int epoll_wait(int epoll_fd, struct epoll_event *events, int max, int timeout_ms)
{
    int (*next)(int, struct epoll_event *, int, int);
    *(void **)&next = dlsym(RTLD_NEXT, "epoll_wait");
    const int count = next(epoll_fd, events, max, timeout_ms);
    if (atomic_load(&holds)) {
        atomic_fetch_add(&inside, 1);
        (void)WAIT_UNTIL(!atomic_load(&holds), TIME_LIMIT_MS);
    }
    return count;
}

/* Callers start while the I/O thread is busy. The first two send their requests
 * themselves, because no other caller waits yet. The others leave their requests to the I/O thread,
 * which sends all of them with one write to each server. */
START_TEST(requests_of_many_callers_are_sent_together)
{
    static struct caller callers[CALLERS];

    connect_patient();
    atomic_store(&holds, true);
    ck_assert(WAIT_UNTIL(atomic_load(&inside) > 0, TIME_LIMIT_MS)); /* after a heartbeat */
    const uint64_t before = count_reads();
    for (unsigned i = 0; i < CALLERS; i++) {
        callers[i] = (struct caller){.number = i};
        ck_assert_int_eq(pthread_create(&callers[i].thread, NULL, acquire, &callers[i]), 0);
        ck_assert(WAIT_UNTIL(live_stats(live.client).waiting == i + 1, TIME_LIMIT_MS));
    }
    atomic_store(&holds, false);
    for (unsigned i = 0; i < CALLERS; i++) {
        pthread_join(callers[i].thread, NULL);
        CHECK_STATUS(callers[i].status, REDLOCK_OK);
    }
    const uint64_t count = count_reads() - before;
    for (unsigned i = 0; i < CALLERS; i++)
        CHECK_STATUS(live_release(callers[i].lock), REDLOCK_OK);
    /* Three writes to each of five servers, those of count_reads(), and writes that a server reads
     * in two parts. */
    ck_assert_msg(count <= 8 * NODES, "%llu reads of servers for %d callers",
                  (unsigned long long)count, CALLERS);
}
END_TEST

/* ---- one caller that works while others wait ---- */

#define SLEEPERS 3   /* threads that wait for one lock */
#define TURNS    200 /* blocking calls one after the other */
#define MANY     150

/* A thread that waits for a held lock. */
struct sleeper {
    pthread_t thread;
    redlock_cancel_t *cancel;
    int status;
};

/* Thread function: waits for the lock "taken" until it is canceled, and stores the status. */
static void *wait_in_acquire(void *userdata)
{
    struct sleeper *sleeper = userdata;
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    redlock_lock_t *lock = NULL;

    opts.wait_ms = REDLOCK_WAIT_FOREVER;
    opts.cancel = sleeper->cancel;
    sleeper->status = redlock_acquire(live.client, "taken", &opts, &lock, NULL);
    redlock_lock_free(lock);
    return NULL;
}

/* The I/O thread sends the requests of the working caller. It must be woken if it is in the poller,
 * and must notice the requests otherwise. */
START_TEST(a_caller_beside_sleepers_is_never_late)
{
    static struct sleeper sleepers[SLEEPERS];

    connect_patient();
    redlock_lock_t *taken = live_lock("taken", LONG_TTL_MS);
    for (unsigned i = 0; i < SLEEPERS; i++) {
        ck_assert_int_eq(redlock_cancel_new(&sleepers[i].cancel, live.client), REDLOCK_OK);
        ck_assert_int_eq(pthread_create(&sleepers[i].thread, NULL, wait_in_acquire, &sleepers[i]),
                         0);
    }
    ck_assert(WAIT_UNTIL(live_stats(live.client).waiting == SLEEPERS, TIME_LIMIT_MS));
    for (unsigned i = 0; i < TURNS; i++) {
        redlock_lock_t *lock = NULL;
        const uint64_t begun_ms = wait_now_ms();
        CHECK_STATUS(live_acquire("free", LONG_TTL_MS, 0, &lock), REDLOCK_OK);
        CHECK_STATUS(live_release(lock), REDLOCK_OK);
        const uint64_t took_ms = wait_now_ms() - begun_ms;
        ck_assert_msg(took_ms < wait_scaled_ms(LATE_MS), "took %d ms", (int)took_ms);
    }
    for (unsigned i = 0; i < SLEEPERS; i++)
        redlock_cancel_trigger(sleepers[i].cancel);
    for (unsigned i = 0; i < SLEEPERS; i++) {
        pthread_join(sleepers[i].thread, NULL);
        redlock_cancel_free(sleepers[i].cancel);
        ck_assert_int_eq(sleepers[i].status, REDLOCK_ECANCELED);
    }
    CHECK_STATUS(live_release(taken), REDLOCK_OK);
}
END_TEST

/* More callers are woken in one turn of the loop than are collected before the mutex is unlocked.
 */
START_TEST(a_cancel_wakes_all_sleepers)
{
    static struct sleeper many[MANY];
    redlock_cancel_t *cancel;

    connect_patient();
    redlock_lock_t *taken = live_lock("taken", LONG_TTL_MS);
    ck_assert_int_eq(redlock_cancel_new(&cancel, live.client), REDLOCK_OK);
    for (unsigned i = 0; i < MANY; i++) {
        many[i].cancel = cancel;
        ck_assert_int_eq(pthread_create(&many[i].thread, NULL, wait_in_acquire, &many[i]), 0);
    }
    ck_assert(WAIT_UNTIL(live_stats(live.client).waiting == MANY, TIME_LIMIT_MS));
    redlock_cancel_trigger(cancel);
    for (unsigned i = 0; i < MANY; i++) {
        pthread_join(many[i].thread, NULL);
        ck_assert_int_eq(many[i].status, REDLOCK_ECANCELED);
    }
    redlock_cancel_free(cancel);
    CHECK_STATUS(live_release(taken), REDLOCK_OK);
}
END_TEST

/* ---- thousands of locks in one turn ---- */

#define BURST    3000 /* operations that are started at once */
#define NAME_LEN 400  /* bytes of each name */

/* The locks of a burst. */
struct burst {
    redlock_lock_t *locks[BURST];
    unsigned acquired, failed; /* acquisitions that succeeded, that failed */
    unsigned released;         /* releases that have ended */
    unsigned unreleased;       /* of these, releases that failed */
    int last;                  /* status of the last failure */
};

/* Callback of an acquisition of the burst: keeps the lock, or counts the failure and its status. */
static void on_acquired(redlock_t *client, int status, redlock_lock_t *lock,
                        const redlock_report_t *report, void *userdata)
{
    struct burst *burst = userdata;

    (void)client;
    (void)report;
    if (status == REDLOCK_OK) {
        burst->locks[burst->acquired++] = lock;
        return;
    }
    burst->failed++;
    burst->last = status;
}

/* Callback of a release of the burst: counts it and frees the lock. */
static void on_released(redlock_t *client, int status, redlock_lock_t *lock,
                        const redlock_report_t *report, void *userdata)
{
    struct burst *burst = userdata;

    (void)client;
    (void)report;
    burst->released++;
    if (status != REDLOCK_OK) {
        burst->unreleased++;
        burst->last = status;
    }
    redlock_lock_free(lock);
}

/* More requests than may be queued for a node, in both directions: each lock is acquired in its
 * first attempt, each release is confirmed, and no key is left. */
START_TEST(thousands_of_locks_in_one_tick)
{
    static struct burst burst;
    static char name[NAME_LEN + 1];
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);

    live.mode = REDLOCK_MODE_EMBEDDED;
    connect_patient();
    memset(name, 'n', NAME_LEN);
    for (unsigned i = 0; i < BURST; i++) {
        snprintf(name, 8, "%07u", i);
        name[7] = '-';
        CHECK_STATUS(redlock_acquire_start(live.client, name, &opts, on_acquired, &burst),
                     REDLOCK_OK);
    }
    ck_assert(LOOP_UNTIL(live.client, burst.acquired + burst.failed == BURST, 3 * TIME_LIMIT_MS));
    ck_assert_msg(burst.failed == 0, "%u not acquired: %s", burst.failed,
                  redlock_error_name(burst.last));
    for (unsigned i = 0; i < BURST; i++)
        CHECK_STATUS(redlock_release_start(burst.locks[i], on_released, &burst), REDLOCK_OK);
    ck_assert(LOOP_UNTIL(live.client, burst.released == BURST, 3 * TIME_LIMIT_MS));
    ck_assert_msg(burst.unreleased == 0, "%u not released: %s", burst.unreleased,
                  redlock_error_name(burst.last));
    ck_assert(LOOP_UNTIL(live.client, cluster_count_all_keys(live.cluster) == 0, TIME_LIMIT_MS));
}
END_TEST

/* Returns the suite of all cases. The names are those of CK_RUN_CASE, which runs one group. */
static Suite *callers_suite(void)
{
    Suite *suite = suite_create("live_many_callers");
    live_add(suite, "together", requests_of_many_callers_are_sent_together);
    live_add(suite, "asleep", a_caller_beside_sleepers_is_never_late);
    live_add(suite, "many", a_cancel_wakes_all_sleepers);
    live_add(suite, "burst", thousands_of_locks_in_one_tick);
    return suite;
}

/* Starts the servers, runs all cases and stops the servers. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers();
    const int status = suite_run_nofork(callers_suite());
    live_stop_servers();
    return status;
}
