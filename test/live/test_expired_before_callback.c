/* SPDX-License-Identifier: MIT
 * Locks that expire between the deciding vote and the callback. The callback gets ECLOSED or
 * ETOOSLOW and no lock, and no key is left. */
#include "live.h"
#include "suite.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define GRANTS       6
#define SHORT_TTL_MS 900

/* What the callbacks were told. The lock of the first grant may be held while the others wait. */
static struct {
    atomic_uint begun, told, granted, closed, too_slow, others, with_lock;
    atomic_int shutdown_status; /* 1: not told */
    redlock_lock_t *lock[GRANTS];
    void (*in_first)(redlock_lock_t *lock); /* what the first callback does */
} seen;

static void on_done(redlock_t *rl, int status, redlock_lock_t *lock, const redlock_report_t *report,
                    void *userdata)
{
    (void)rl, (void)report, (void)userdata;
    const unsigned at = atomic_fetch_add(&seen.begun, 1);
    atomic_fetch_add(status == REDLOCK_OK         ? &seen.granted
                     : status == REDLOCK_ECLOSED  ? &seen.closed
                     : status == REDLOCK_ETOOSLOW ? &seen.too_slow
                                                  : &seen.others,
                     1);
    /* What is told as granted is held, whatever happened meanwhile. */
    atomic_fetch_add(&seen.with_lock, lock != NULL && redlock_lock_check(lock, 1) == REDLOCK_OK);
    if (at < GRANTS)
        seen.lock[at] = lock;
    if (at == 0 && seen.in_first != NULL)
        seen.in_first(lock);
    atomic_fetch_add(&seen.told, 1);
}

static void on_shut_down(redlock_t *rl, int status, redlock_lock_t *lock,
                         const redlock_report_t *report, void *userdata)
{
    (void)rl, (void)lock, (void)report, (void)userdata;
    atomic_store(&seen.shutdown_status, status);
}

static int start_shutdown(void)
{
    return redlock_shutdown_start(live.client, wait_scaled_ms(TIME_LIMIT_MS), on_shut_down, NULL);
}

static void connect_in(int mode)
{
    memset(&seen, 0, sizeof seen);
    atomic_store(&seen.shutdown_status, 1);
    live.mode = mode;
    live_connect();
}

static void start(unsigned count, uint64_t ttl_ms)
{
    char resource[24];
    for (unsigned i = 0; i < count; i++) {
        const redlock_opts_t opts = redlock_opts(ttl_ms);
        snprintf(resource, sizeof resource, "untold-%u", i);
        ck_assert_int_eq(redlock_acquire_start(live.client, resource, &opts, on_done, NULL),
                         REDLOCK_OK);
    }
}

static void check_all_closed(void)
{
    ck_assert_uint_eq(atomic_load(&seen.told), GRANTS);
    ck_assert_uint_eq(atomic_load(&seen.closed), GRANTS);
    ck_assert_uint_eq(atomic_load(&seen.with_lock), 0);
    for (unsigned i = 0; i < GRANTS; i++)
        ck_assert_ptr_null(seen.lock[i]);
}

/* ---- hybrid: granted by the I/O thread, told when the user's loop comes by ---- */

static void grant_untold(void)
{
    connect_in(REDLOCK_MODE_HYBRID);
    start(GRANTS, LONG_TTL_MS);
    ck_assert(WAIT_UNTIL(live_stats(live.client).held == GRANTS, TIME_LIMIT_MS));
    ck_assert_uint_eq(atomic_load(&seen.told), 0);
}

START_TEST(free_before_they_are_told)
{
    grant_untold();
    live_disconnect();
    check_all_closed();
}
END_TEST

START_TEST(shutdown_before_they_are_told)
{
    grant_untold();
    CHECK_STATUS(redlock_shutdown(live.client, TIME_LIMIT_MS), REDLOCK_OK);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
    ck_assert_int_eq(redlock_process(live.client), REDLOCK_OK);
    check_all_closed();
}
END_TEST

/* The releases are not answered yet when the grants are told. */
START_TEST(shutdown_that_still_runs)
{
    grant_untold();
    live_pause(0, NODES);
    ck_assert_int_eq(start_shutdown(), REDLOCK_OK);
    ck_assert_int_eq(redlock_process(live.client), REDLOCK_OK);
    ck_assert_int_eq(atomic_load(&seen.shutdown_status), 1);
    live_resume_all();
    check_all_closed();
    ck_assert(LOOP_UNTIL(live.client, atomic_load(&seen.shutdown_status) == 0, TIME_LIMIT_MS));
}
END_TEST

START_TEST(told_in_time)
{
    grant_untold();
    ck_assert_int_eq(redlock_process(live.client), REDLOCK_OK);
    ck_assert_uint_eq(atomic_load(&seen.granted), GRANTS);
    ck_assert_uint_eq(atomic_load(&seen.with_lock), GRANTS);
    for (unsigned i = 0; i < GRANTS; i++)
        redlock_lock_free(seen.lock[i]);
}
END_TEST

/* Their time is over when the loop comes by. */
START_TEST(told_too_late)
{
    redlock_stats_t stats;
    connect_in(REDLOCK_MODE_HYBRID);
    start(GRANTS, live_brief_ms(SHORT_TTL_MS));
    ck_assert(WAIT_UNTIL(live_stats(live.client).acquired == GRANTS, TIME_LIMIT_MS));
    ck_assert(WAIT_UNTIL(live_stats(live.client).held == 0, TIME_LIMIT_MS));
    ck_assert_int_eq(redlock_process(live.client), REDLOCK_OK);
    stats = live_stats(live.client);
    ck_assert_uint_eq(atomic_load(&seen.told), GRANTS);
    ck_assert_uint_eq(atomic_load(&seen.too_slow), GRANTS);
    ck_assert_uint_eq(atomic_load(&seen.with_lock), 0);
    ck_assert_uint_eq(stats.held, 0);
}
END_TEST

/* ---- who has the time goes on trying ---- */

/* What is told is good for half of its time, at least. */
static redlock_opts_t patient_opts(uint64_t ttl_ms)
{
    redlock_opts_t opts = redlock_opts(ttl_ms);
    opts.wait_ms = REDLOCK_WAIT_FOREVER;
    opts.validity_ms_min = ttl_ms / 2;
    return opts;
}

static bool tries_again(uint64_t attempts)
{
    return live_stats(live.client).attempts >= attempts;
}

START_TEST(a_loop_that_comes_too_late_gets_the_next_one)
{
    const redlock_opts_t opts = patient_opts(live_brief_ms(SHORT_TTL_MS / 2));
    connect_in(REDLOCK_MODE_HYBRID);
    ck_assert_int_eq(redlock_acquire_start(live.client, "untold", &opts, on_done, NULL),
                     REDLOCK_OK);
    ck_assert(WAIT_UNTIL(tries_again(2), TIME_LIMIT_MS));
    ck_assert_uint_eq(atomic_load(&seen.told), 0);
    ck_assert(LOOP_UNTIL(live.client, atomic_load(&seen.told) == 1, TIME_LIMIT_MS));
    ck_assert_uint_eq(atomic_load(&seen.granted), 1);
    ck_assert_uint_eq(atomic_load(&seen.with_lock), 1);
    ck_assert_uint_eq(live_stats(live.client).lost, 0);
    redlock_lock_free(seen.lock[0]);
}
END_TEST

/* Cancelled while its grant waits to be told: it is told, or canceled, and does not go on. */
START_TEST(cancelled_before_it_is_told)
{
    redlock_opts_t opts = patient_opts(live_brief_ms(SHORT_TTL_MS / 2));
    redlock_cancel_t *cancel = NULL;
    connect_in(REDLOCK_MODE_HYBRID);
    ck_assert_int_eq(redlock_cancel_new(&cancel, live.client), REDLOCK_OK);
    opts.cancel = cancel;
    ck_assert_int_eq(redlock_acquire_start(live.client, "untold", &opts, on_done, NULL),
                     REDLOCK_OK);
    ck_assert(WAIT_UNTIL(live_stats(live.client).held == 1, TIME_LIMIT_MS));
    redlock_cancel_trigger(cancel);
    redlock_cancel_free(cancel);
    ck_assert(WAIT_UNTIL(live_stats(live.client).held == 0, TIME_LIMIT_MS));
    ck_assert(WAIT_UNTIL(live_stats(live.client).canceled == 1, TIME_LIMIT_MS));
    ck_assert(LOOP_UNTIL(live.client, atomic_load(&seen.told) == 1, TIME_LIMIT_MS));
    ck_assert_uint_eq(atomic_load(&seen.others), 1);
    ck_assert_ptr_null(seen.lock[0]);
}
END_TEST

static atomic_bool stands_still, go_on;

static void stand_still(int number)
{
    (void)number;
    atomic_store(&stands_still, true);
    while (!atomic_load(&go_on))
        wait_pause();
}

static void *sleep_in_acquire(void *userdata)
{
    const redlock_opts_t opts = patient_opts(live_brief_ms(SHORT_TTL_MS));
    *(int *)userdata = redlock_acquire(live.client, "untold", &opts, &seen.lock[0], NULL);
    return NULL;
}

/* Its thread does not run while the I/O thread gets the lock, and loses it again. */
START_TEST(a_thread_that_wakes_too_late_gets_the_next_one)
{
    struct sigaction action = {.sa_handler = stand_still, .sa_flags = SA_RESTART}, before;
    pthread_t thread;
    int status = 1;
    connect_in(REDLOCK_MODE_THREADED);
    atomic_store(&stands_still, false);
    atomic_store(&go_on, false);
    ck_assert_int_eq(sigaction(SIGUSR1, &action, &before), 0);
    cluster_command_all(live.cluster, "SET untold another PX 60000");
    ck_assert_int_eq(pthread_create(&thread, NULL, sleep_in_acquire, &status), 0);
    ck_assert(WAIT_UNTIL(tries_again(1), TIME_LIMIT_MS));
    ck_assert_int_eq(pthread_kill(thread, SIGUSR1), 0);
    ck_assert(WAIT_UNTIL(atomic_load(&stands_still), TIME_LIMIT_MS));
    cluster_command_all(live.cluster, "DEL untold");
    const bool had = WAIT_UNTIL(live_stats(live.client).acquired > 0, TIME_LIMIT_MS);
    const uint64_t attempts = live_stats(live.client).attempts;
    const bool again = WAIT_UNTIL(tries_again(attempts + 1), TIME_LIMIT_MS);
    atomic_store(&go_on, true);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    sigaction(SIGUSR1, &before, NULL);
    ck_assert(had);
    ck_assert_msg(again, "given up: %s", redlock_error_name(status));
    CHECK_STATUS(status, REDLOCK_OK);
    CHECK_STATUS(live_release(seen.lock[0]), REDLOCK_OK);
}
END_TEST

/* ---- a callback in which the client is shut down, while the grants behind it wait ---- */

static void shut_down_inside(redlock_lock_t *lock)
{
    atomic_fetch_add(&seen.others, start_shutdown() != REDLOCK_OK);
    redlock_lock_free(lock);
}

static atomic_bool shut_down_now;

/* Threaded: another thread does it while this one is in the callback. */
static void wait_for_shutdown(redlock_lock_t *lock)
{
    atomic_store(&shut_down_now, true);
    if (!WAIT_UNTIL(redlock_lock_check(lock, 0) == REDLOCK_ELOST, TIME_LIMIT_MS))
        atomic_fetch_add(&seen.others, 1);
    redlock_lock_free(lock);
}

static const int MODES[] = {REDLOCK_MODE_THREADED, REDLOCK_MODE_EMBEDDED, REDLOCK_MODE_HYBRID};

/* All are granted in one go: the servers answer them together. */
static void grant_together(void)
{
    live_pause(0, NODES);
    start(GRANTS, LONG_TTL_MS);
    if (live.mode == REDLOCK_MODE_EMBEDDED)
        ck_assert_int_eq(redlock_process(live.client), REDLOCK_OK);
    ck_assert_uint_eq(live_stats(live.client).waiting, GRANTS);
    live_resume_all();
}

static void check_first_only(void)
{
    ck_assert(LOOP_UNTIL(live.client, atomic_load(&seen.told) == GRANTS, TIME_LIMIT_MS));
    ck_assert_uint_eq(atomic_load(&seen.granted), 1);
    ck_assert_uint_eq(atomic_load(&seen.with_lock), 1);
    ck_assert_uint_eq(atomic_load(&seen.others), 0);
    ck_assert_uint_eq(atomic_load(&seen.closed), GRANTS - 1);
    for (unsigned i = 1; i < GRANTS; i++)
        ck_assert_ptr_null(seen.lock[i]);
}

START_TEST(shutdown_inside_a_callback)
{
    live.node_time_ms = 2000;
    connect_in(MODES[_i]);
    seen.in_first = shut_down_inside;
    grant_together();
    check_first_only();
    ck_assert(LOOP_UNTIL(live.client, atomic_load(&seen.shutdown_status) == 0, TIME_LIMIT_MS));
}
END_TEST

START_TEST(shutdown_during_a_callback)
{
    live.node_time_ms = 2000;
    connect_in(REDLOCK_MODE_THREADED);
    atomic_store(&shut_down_now, false);
    seen.in_first = wait_for_shutdown;
    grant_together();
    ck_assert(WAIT_UNTIL(atomic_load(&shut_down_now), TIME_LIMIT_MS));
    const int status = redlock_shutdown(live.client, wait_scaled_ms(TIME_LIMIT_MS));
    CHECK_STATUS(status, REDLOCK_OK);
    check_first_only();
}
END_TEST

/* ---- an event callback that takes longer than the lock lives ---- */

static atomic_uint events;

static void on_event(redlock_t *rl, const redlock_event_t *event, void *userdata)
{
    (void)rl, (void)userdata;
    if (event->kind != REDLOCK_EVENT_ACQUIRED)
        return;
    const uint64_t end_ms = wait_now_ms() + event->remaining_ms + 20;
    atomic_fetch_add(&events, 1);
    while (wait_now_ms() < end_ms)
        wait_pause();
}

START_TEST(an_event_callback_that_takes_too_long)
{
    atomic_store(&events, 0);
    live.event_fn = on_event;
    connect_in(MODES[_i]);
    start(1, live_brief_ms(SHORT_TTL_MS));
    ck_assert(LOOP_UNTIL(live.client, atomic_load(&seen.told) == 1, TIME_LIMIT_MS));
    ck_assert_uint_eq(atomic_load(&events), 1);
    ck_assert_uint_eq(atomic_load(&seen.too_slow), 1);
    ck_assert_ptr_null(seen.lock[0]);
    ck_assert_uint_eq(live_stats(live.client).held, 0);
}
END_TEST

static Suite *untold_suite(void)
{
    Suite *suite = suite_create("live_expired_before_callback");
    live_add(suite, "free", free_before_they_are_told);
    live_add(suite, "shutdown", shutdown_before_they_are_told);
    live_add(suite, "shutdown runs", shutdown_that_still_runs);
    live_add(suite, "in time", told_in_time);
    live_add(suite, "too late", told_too_late);
    live_add(suite, "next one", a_loop_that_comes_too_late_gets_the_next_one);
    live_add(suite, "canceled", cancelled_before_it_is_told);
#ifndef __SANITIZE_THREAD__ /* it puts signals off until the thread is in a call with our mutex */
    live_add(suite, "late thread", a_thread_that_wakes_too_late_gets_the_next_one);
#else
    (void)a_thread_that_wakes_too_late_gets_the_next_one;
#endif
    live_add_each(suite, "inside", shutdown_inside_a_callback, 3);
    live_add_each(suite, "during", shutdown_during_a_callback, 3);
    live_add_each(suite, "slow event", an_event_callback_that_takes_too_long, 3);
    return suite;
}

int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers();
    const int status = suite_run_nofork(untold_suite());
    live_stop_servers();
    return status;
}
