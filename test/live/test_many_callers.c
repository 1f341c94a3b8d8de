/* SPDX-License-Identifier: MIT
 * Many callers of one client: their requests are sent together, and none waits longer for that.
 * Node timeouts are long here: a caller that is not woken, or a request that is not sent, is late
 * by seconds. */
#include "live.h"
#include "suite.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALLERS   32
#define SILENT_MS 8000 /* node timeout; scaled by live_config() */
#define LATE_MS   6000 /* scaled */

static void connect_patient(void)
{
    live.node_time_ms = SILENT_MS;
    live_connect();
}

static uint64_t reads(void)
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

struct caller {
    pthread_t thread;
    unsigned number;
    redlock_lock_t *lock;
    int status;
};

static void *take(void *userdata)
{
    struct caller *caller = userdata;
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    char resource[24];

    snprintf(resource, sizeof resource, "caller-%u", caller->number);
    caller->status = redlock_acquire(live.client, resource, &opts, &caller->lock, NULL);
    return NULL;
}

static atomic_bool inside, go_on;

static void stay(redlock_t *client, int status, redlock_lock_t *lock,
                 const redlock_report_t *report, void *userdata)
{
    (void)client;
    (void)status;
    (void)lock;
    (void)report;
    (void)userdata;
    atomic_store(&inside, true);
    (void)WAIT_UNTIL(atomic_load(&go_on), TIME_LIMIT_MS);
}

/* They come while the I/O thread is in a callback, and leave what they have to say to it, but for
 * the first two: with nobody asleep yet, these send for themselves. Five servers then hear of each
 * of those, and once of all others. */
START_TEST(what_they_say_leaves_together)
{
    static struct caller callers[CALLERS];

    connect_patient();
    atomic_store(&inside, false);
    atomic_store(&go_on, false);
    CHECK_STATUS(redlock_inspect_start(live.client, "nothing", NULL, stay, NULL), REDLOCK_OK);
    ck_assert(WAIT_UNTIL(atomic_load(&inside), TIME_LIMIT_MS));
    const uint64_t before = reads();
    for (unsigned i = 0; i < CALLERS; i++) {
        callers[i] = (struct caller){.number = i};
        ck_assert_int_eq(pthread_create(&callers[i].thread, NULL, take, &callers[i]), 0);
        ck_assert(WAIT_UNTIL(live_stats(live.client).waiting == i + 1, TIME_LIMIT_MS));
    }
    atomic_store(&go_on, true);
    for (unsigned i = 0; i < CALLERS; i++) {
        pthread_join(callers[i].thread, NULL);
        CHECK_STATUS(callers[i].status, REDLOCK_OK);
    }
    const uint64_t count = reads() - before;
    for (unsigned i = 0; i < CALLERS; i++)
        CHECK_STATUS(live_release(callers[i].lock), REDLOCK_OK);
    /* Three times five, those of looking, and what a server reads in two parts. */
    ck_assert_msg(count <= 8 * NODES, "%llu reads of servers for %d callers",
                  (unsigned long long)count, CALLERS);
}
END_TEST

/* ---- one that works while others sleep ---- */

#define SLEEPERS 3
#define TURNS    200
#define MANY     150

struct sleeper {
    pthread_t thread;
    redlock_cancel_t *cancel;
    int status;
};

static void *contend_too(void *userdata)
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

/* The I/O thread sends for it each time: it must be in the poller and woken, or not in there and
 * know. */
START_TEST(nobody_is_forgotten)
{
    static struct sleeper sleepers[SLEEPERS];

    connect_patient();
    redlock_lock_t *taken = live_lock("taken", LONG_TTL_MS);
    for (unsigned i = 0; i < SLEEPERS; i++) {
        ck_assert_int_eq(redlock_cancel_new(&sleepers[i].cancel, live.client), REDLOCK_OK);
        ck_assert_int_eq(pthread_create(&sleepers[i].thread, NULL, contend_too, &sleepers[i]), 0);
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

/* More are told in one turn of the loop than are noted before the mutex is given back. */
START_TEST(all_are_woken)
{
    static struct sleeper many[MANY];
    redlock_cancel_t *cancel;

    connect_patient();
    redlock_lock_t *taken = live_lock("taken", LONG_TTL_MS);
    ck_assert_int_eq(redlock_cancel_new(&cancel, live.client), REDLOCK_OK);
    for (unsigned i = 0; i < MANY; i++) {
        many[i].cancel = cancel;
        ck_assert_int_eq(pthread_create(&many[i].thread, NULL, contend_too, &many[i]), 0);
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

/* ---- thousands in one tick ---- */

#define BURST    3000
#define NAME_LEN 400

struct burst {
    redlock_lock_t *locks[BURST];
    unsigned have, failed, given, ungiven;
    int last;
};

static void on_taken(redlock_t *client, int status, redlock_lock_t *lock,
                     const redlock_report_t *report, void *userdata)
{
    struct burst *burst = userdata;

    (void)client;
    (void)report;
    if (status == REDLOCK_OK) {
        burst->locks[burst->have++] = lock;
        return;
    }
    burst->failed++;
    burst->last = status;
}

static void on_given(redlock_t *client, int status, redlock_lock_t *lock,
                     const redlock_report_t *report, void *userdata)
{
    struct burst *burst = userdata;

    (void)client;
    (void)report;
    burst->given++;
    if (status != REDLOCK_OK) {
        burst->ungiven++;
        burst->last = status;
    }
    redlock_lock_free(lock);
}

/* More than what may wait for a node, in both directions: the first attempt of each wins, each
 * release is confirmed, and nothing stays. */
START_TEST(thousands_at_once)
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
        CHECK_STATUS(redlock_acquire_start(live.client, name, &opts, on_taken, &burst), REDLOCK_OK);
    }
    ck_assert(LOOP_UNTIL(live.client, burst.have + burst.failed == BURST, 3 * TIME_LIMIT_MS));
    ck_assert_msg(burst.failed == 0, "%u not taken: %s", burst.failed,
                  redlock_error_name(burst.last));
    for (unsigned i = 0; i < BURST; i++)
        CHECK_STATUS(redlock_release_start(burst.locks[i], on_given, &burst), REDLOCK_OK);
    ck_assert(LOOP_UNTIL(live.client, burst.given == BURST, 3 * TIME_LIMIT_MS));
    ck_assert_msg(burst.ungiven == 0, "%u not given back: %s", burst.ungiven,
                  redlock_error_name(burst.last));
    ck_assert(LOOP_UNTIL(live.client, cluster_count_all_keys(live.cluster) == 0, TIME_LIMIT_MS));
}
END_TEST

static Suite *callers_suite(void)
{
    Suite *suite = suite_create("live_many_callers");
    live_add(suite, "together", what_they_say_leaves_together);
    live_add(suite, "asleep", nobody_is_forgotten);
    live_add(suite, "many", all_are_woken);
    live_add(suite, "burst", thousands_at_once);
    return suite;
}

int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers();
    const int status = suite_run_nofork(callers_suite());
    live_stop_servers();
    return status;
}
