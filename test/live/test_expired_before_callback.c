/* SPDX-License-Identifier: MIT
 * Locks that expire between the deciding vote and the callback. The callback gets ECLOSED or
 * ETOOSLOW and no lock, and no key is left.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_connect() creates live.client and waits
 * until all nodes are eligible. live_release() returns the status of one call and keeps its
 * report. live_pause(first, count) stops servers with SIGSTOP. LOOP_UNTIL() turns the loop of a
 * client until a condition holds or the deadline has passed. WAIT_UNTIL(condition, ms) polls and
 * returns false after the deadline. wait_scaled_ms() stretches a time for slow builds.
 * CHECK_STATUS() compares two REDLOCK_* codes. LONG_TTL_MS is a TTL that no case reaches. */
#include "live.h"
#include "suite.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define GRANTS       6   /* number of acquisitions at once */
#define SHORT_TTL_MS 900 /* a TTL that ends while a callback is held up */

/* The callbacks that have run. */
static struct {
    atomic_uint begun, done;                       /* callbacks that began, that returned */
    atomic_uint granted, closed, too_slow, others; /* by their status */
    atomic_uint with_lock;                         /* whose lock was held */
    atomic_int shutdown_status;                    /* 1: the callback has not run */
    redlock_lock_t *lock[GRANTS];                  /* in the order of the callbacks */
    void (*in_first)(redlock_lock_t *lock);        /* called by the first callback; NULL: none */
} seen;

/* Callback of an acquisition: counts its status in `seen`, checks that a granted lock is held,
 * and keeps the lock. The first callback also runs seen.in_first. */
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
    /* A lock that is reported as granted must be held. */
    atomic_fetch_add(&seen.with_lock, lock != NULL && redlock_lock_check(lock, 1) == REDLOCK_OK);
    if (at < GRANTS)
        seen.lock[at] = lock;
    if (at == 0 && seen.in_first != NULL)
        seen.in_first(lock);
    atomic_fetch_add(&seen.done, 1);
}

/* Callback of the shutdown: stores its status. */
static void on_shut_down(redlock_t *rl, int status, redlock_lock_t *lock,
                         const redlock_report_t *report, void *userdata)
{
    (void)rl, (void)lock, (void)report, (void)userdata;
    atomic_store(&seen.shutdown_status, status);
}

/* Starts a shutdown of live.client. Returns the status of the call. */
static int start_shutdown(void)
{
    return redlock_shutdown_start(live.client, wait_scaled_ms(TIME_LIMIT_MS), on_shut_down, NULL);
}

/* Clears `seen` and creates live.client in this mode. */
static void connect_in(int mode)
{
    memset(&seen, 0, sizeof seen);
    atomic_store(&seen.shutdown_status, 1);
    live.mode = mode;
    live_connect();
}

/* Starts acquisitions of different resources. */
static void start(unsigned count, uint64_t ttl_ms)
{
    char resource[24];
    for (unsigned i = 0; i < count; i++) {
        const redlock_opts_t opts = redlock_opts(ttl_ms);
        snprintf(resource, sizeof resource, "unnotified-%u", i);
        ck_assert_int_eq(redlock_acquire_start(live.client, resource, &opts, on_done, NULL),
                         REDLOCK_OK);
    }
}

/* Checks that all callbacks have run with ECLOSED and without a lock. */
static void check_all_closed(void)
{
    ck_assert_uint_eq(atomic_load(&seen.done), GRANTS);
    ck_assert_uint_eq(atomic_load(&seen.closed), GRANTS);
    ck_assert_uint_eq(atomic_load(&seen.with_lock), 0);
    for (unsigned i = 0; i < GRANTS; i++)
        ck_assert_ptr_null(seen.lock[i]);
}

/* ---- hybrid mode: granted by the I/O thread, reported when the caller's loop turns ---- */

/* Starts acquisitions, and waits until they are granted and their callbacks are pending. */
static void grant_without_callbacks(void)
{
    connect_in(REDLOCK_MODE_HYBRID);
    start(GRANTS, LONG_TTL_MS);
    ck_assert(WAIT_UNTIL(live_stats(live.client).held == GRANTS, TIME_LIMIT_MS));
    ck_assert_uint_eq(atomic_load(&seen.done), 0);
}

/* The client is freed before any callback has run: all callbacks get ECLOSED and no lock. */
START_TEST(free_before_the_callbacks)
{
    grant_without_callbacks();
    live_disconnect();
    check_all_closed();
}
END_TEST

/* The same for a shutdown, which also deletes the keys. */
START_TEST(shutdown_before_the_callbacks)
{
    grant_without_callbacks();
    CHECK_STATUS(redlock_shutdown(live.client, TIME_LIMIT_MS), REDLOCK_OK);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
    ck_assert_int_eq(redlock_process(live.client), REDLOCK_OK);
    check_all_closed();
}
END_TEST

/* The callbacks run while the shutdown still waits for the replies to its releases. */
START_TEST(callbacks_during_a_shutdown)
{
    grant_without_callbacks();
    live_pause(0, NODES);
    ck_assert_int_eq(start_shutdown(), REDLOCK_OK);
    ck_assert_int_eq(redlock_process(live.client), REDLOCK_OK);
    ck_assert_int_eq(atomic_load(&seen.shutdown_status), 1);
    live_resume_all();
    check_all_closed();
    ck_assert(LOOP_UNTIL(live.client, atomic_load(&seen.shutdown_status) == 0, TIME_LIMIT_MS));
}
END_TEST

/* The control: callbacks that run in time get their locks. */
START_TEST(callbacks_in_time)
{
    grant_without_callbacks();
    ck_assert_int_eq(redlock_process(live.client), REDLOCK_OK);
    ck_assert_uint_eq(atomic_load(&seen.granted), GRANTS);
    ck_assert_uint_eq(atomic_load(&seen.with_lock), GRANTS);
    for (unsigned i = 0; i < GRANTS; i++)
        redlock_lock_free(seen.lock[i]);
}
END_TEST

/* The deadlines have passed when the loop turns. */
START_TEST(callbacks_after_the_deadline)
{
    redlock_stats_t stats;
    connect_in(REDLOCK_MODE_HYBRID);
    start(GRANTS, live_brief_ms(SHORT_TTL_MS));
    ck_assert(WAIT_UNTIL(live_stats(live.client).acquired == GRANTS, TIME_LIMIT_MS));
    ck_assert(WAIT_UNTIL(live_stats(live.client).held == 0, TIME_LIMIT_MS));
    ck_assert_int_eq(redlock_process(live.client), REDLOCK_OK);
    stats = live_stats(live.client);
    ck_assert_uint_eq(atomic_load(&seen.done), GRANTS);
    ck_assert_uint_eq(atomic_load(&seen.too_slow), GRANTS);
    ck_assert_uint_eq(atomic_load(&seen.with_lock), 0);
    ck_assert_uint_eq(stats.held, 0);
}
END_TEST

/* ---- an acquisition with a wait budget begins a new attempt ---- */

/* Returns options without a time limit for waiting. A lock that is reported has at least half of
 * its TTL as validity. */
static redlock_opts_t patient_opts(uint64_t ttl_ms)
{
    redlock_opts_t opts = redlock_opts(ttl_ms);
    opts.wait_ms = REDLOCK_WAIT_FOREVER;
    opts.validity_ms_min = ttl_ms / 2;
    return opts;
}

/* Returns whether live.client has made at least so many attempts. */
static bool has_attempts(uint64_t attempts)
{
    return live_stats(live.client).attempts >= attempts;
}

/* The program's loop does not run until the granted lock has expired. The client acquires again
 * by itself, and the callback gets a lock that is held. */
START_TEST(a_late_loop_gets_the_next_grant)
{
    const redlock_opts_t opts = patient_opts(live_brief_ms(SHORT_TTL_MS / 2));
    connect_in(REDLOCK_MODE_HYBRID);
    ck_assert_int_eq(redlock_acquire_start(live.client, "unnotified", &opts, on_done, NULL),
                     REDLOCK_OK);
    ck_assert(WAIT_UNTIL(has_attempts(2), TIME_LIMIT_MS));
    ck_assert_uint_eq(atomic_load(&seen.done), 0);
    ck_assert(LOOP_UNTIL(live.client, atomic_load(&seen.done) == 1, TIME_LIMIT_MS));
    ck_assert_uint_eq(atomic_load(&seen.granted), 1);
    ck_assert_uint_eq(atomic_load(&seen.with_lock), 1);
    ck_assert_uint_eq(live_stats(live.client).lost, 0);
    redlock_lock_free(seen.lock[0]);
}
END_TEST

/* The acquisition is canceled while its callback is pending: it ends, and makes no new attempt. */
START_TEST(canceled_before_the_callback)
{
    redlock_opts_t opts = patient_opts(live_brief_ms(SHORT_TTL_MS / 2));
    redlock_cancel_t *cancel = NULL;
    connect_in(REDLOCK_MODE_HYBRID);
    ck_assert_int_eq(redlock_cancel_new(&cancel, live.client), REDLOCK_OK);
    opts.cancel = cancel;
    ck_assert_int_eq(redlock_acquire_start(live.client, "unnotified", &opts, on_done, NULL),
                     REDLOCK_OK);
    ck_assert(WAIT_UNTIL(live_stats(live.client).held == 1, TIME_LIMIT_MS));
    redlock_cancel_trigger(cancel);
    redlock_cancel_free(cancel);
    ck_assert(WAIT_UNTIL(live_stats(live.client).held == 0, TIME_LIMIT_MS));
    ck_assert(WAIT_UNTIL(live_stats(live.client).canceled == 1, TIME_LIMIT_MS));
    ck_assert(LOOP_UNTIL(live.client, atomic_load(&seen.done) == 1, TIME_LIMIT_MS));
    ck_assert_uint_eq(atomic_load(&seen.others), 1);
    ck_assert_ptr_null(seen.lock[0]);
}
END_TEST

/* Whether the signal handler has stopped its thread, and whether that thread may continue. */
static atomic_bool is_stopped, may_continue;

/* Stops the thread in a signal handler until `may_continue`. */
static void stop_thread(int number)
{
    (void)number;
    atomic_store(&is_stopped, true);
    while (!atomic_load(&may_continue))
        wait_pause();
}

/* Thread function: acquires a lock with a blocking call and stores the status in *userdata. */
static void *sleep_in_acquire(void *userdata)
{
    const redlock_opts_t opts = patient_opts(live_brief_ms(SHORT_TTL_MS));
    *(int *)userdata = redlock_acquire(live.client, "unnotified", &opts, &seen.lock[0], NULL);
    return NULL;
}

/* The calling thread is stopped in a signal handler while the I/O thread acquires the lock and
 * loses it again. */
START_TEST(a_late_thread_gets_the_next_grant)
{
    struct sigaction action = {.sa_handler = stop_thread, .sa_flags = SA_RESTART}, before;
    pthread_t thread;
    int status = 1;
    connect_in(REDLOCK_MODE_THREADED);
    atomic_store(&is_stopped, false);
    atomic_store(&may_continue, false);
    ck_assert_int_eq(sigaction(SIGUSR1, &action, &before), 0);
    cluster_command_all(live.cluster, "SET unnotified another PX 60000");
    ck_assert_int_eq(pthread_create(&thread, NULL, sleep_in_acquire, &status), 0);
    ck_assert(WAIT_UNTIL(has_attempts(1), TIME_LIMIT_MS));
    ck_assert_int_eq(pthread_kill(thread, SIGUSR1), 0);
    ck_assert(WAIT_UNTIL(atomic_load(&is_stopped), TIME_LIMIT_MS));
    cluster_command_all(live.cluster, "DEL unnotified");
    const bool had = WAIT_UNTIL(live_stats(live.client).acquired > 0, TIME_LIMIT_MS);
    const uint64_t attempts = live_stats(live.client).attempts;
    const bool again = WAIT_UNTIL(has_attempts(attempts + 1), TIME_LIMIT_MS);
    atomic_store(&may_continue, true);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    sigaction(SIGUSR1, &before, NULL);
    ck_assert(had);
    ck_assert_msg(again, "no new attempt: %s", redlock_error_name(status));
    CHECK_STATUS(status, REDLOCK_OK);
    CHECK_STATUS(live_release(seen.lock[0]), REDLOCK_OK);
}
END_TEST

/* ---- a shutdown during the first callback, while the callbacks of the other grants wait ---- */

/* For seen.in_first: starts a shutdown from within the callback. */
static void shut_down_inside(redlock_lock_t *lock)
{
    atomic_fetch_add(&seen.others, start_shutdown() != REDLOCK_OK);
    redlock_lock_free(lock);
}

static atomic_bool shut_down_now; /* the callback runs: the case may shut the client down */

/* Waits in the callback until another thread has begun the shutdown. */
static void wait_for_shutdown(redlock_lock_t *lock)
{
    atomic_store(&shut_down_now, true);
    if (!WAIT_UNTIL(redlock_lock_check(lock, 0) == REDLOCK_ELOST, TIME_LIMIT_MS))
        atomic_fetch_add(&seen.others, 1);
    redlock_lock_free(lock);
}

/* The mode of the client, by _i. */
static const int MODES[] = {REDLOCK_MODE_THREADED, REDLOCK_MODE_EMBEDDED, REDLOCK_MODE_HYBRID};

/* Has all acquisitions granted in one turn: the stopped servers reply to all of them together. */
static void grant_together(void)
{
    live_pause(0, NODES);
    start(GRANTS, LONG_TTL_MS);
    if (live.mode == REDLOCK_MODE_EMBEDDED)
        ck_assert_int_eq(redlock_process(live.client), REDLOCK_OK);
    ck_assert_uint_eq(live_stats(live.client).waiting, GRANTS);
    live_resume_all();
}

/* Checks that only the first callback got a lock. */
static void check_first_only(void)
{
    ck_assert(LOOP_UNTIL(live.client, atomic_load(&seen.done) == GRANTS, TIME_LIMIT_MS));
    ck_assert_uint_eq(atomic_load(&seen.granted), 1);
    ck_assert_uint_eq(atomic_load(&seen.with_lock), 1);
    ck_assert_uint_eq(atomic_load(&seen.others), 0);
    ck_assert_uint_eq(atomic_load(&seen.closed), GRANTS - 1);
    for (unsigned i = 1; i < GRANTS; i++)
        ck_assert_ptr_null(seen.lock[i]);
}

/* A shutdown that starts within the first callback: only that callback gets a lock. _i selects
 * the mode. */
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

/* A shutdown by another thread while the first callback runs: only that callback gets a lock. */
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

/* ---- an event function that takes longer than the validity of the lock ---- */

static atomic_uint events; /* ACQUIRED events */

/* Event function that takes longer than the validity of the lock that was acquired. */
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

/* The event function for ACQUIRED runs until the lock has expired: the acquisition then returns
 * ETOOSLOW and no lock. _i selects the mode. */
START_TEST(a_slow_event_callback_ends_the_lock)
{
    atomic_store(&events, 0);
    live.event_fn = on_event;
    connect_in(MODES[_i]);
    start(1, live_brief_ms(SHORT_TTL_MS));
    ck_assert(LOOP_UNTIL(live.client, atomic_load(&seen.done) == 1, TIME_LIMIT_MS));
    ck_assert_uint_eq(atomic_load(&events), 1);
    ck_assert_uint_eq(atomic_load(&seen.too_slow), 1);
    ck_assert_ptr_null(seen.lock[0]);
    ck_assert_uint_eq(live_stats(live.client).held, 0);
}
END_TEST

/* Returns the suite of all cases. The names are those of CK_RUN_CASE, which runs one group. */
static Suite *expired_before_callback_suite(void)
{
    Suite *suite = suite_create("live_expired_before_callback");
    live_add(suite, "free", free_before_the_callbacks);
    live_add(suite, "shutdown", shutdown_before_the_callbacks);
    live_add(suite, "shutdown runs", callbacks_during_a_shutdown);
    live_add(suite, "in time", callbacks_in_time);
    live_add(suite, "too late", callbacks_after_the_deadline);
    live_add(suite, "next one", a_late_loop_gets_the_next_grant);
    live_add(suite, "canceled", canceled_before_the_callback);
#ifndef __SANITIZE_THREAD__ /* it delays signals until the thread is in a call with a mutex */
    live_add(suite, "late thread", a_late_thread_gets_the_next_grant);
#else
    (void)a_late_thread_gets_the_next_grant;
#endif
    live_add_each(suite, "inside", shutdown_inside_a_callback, 3);
    live_add_each(suite, "during", shutdown_during_a_callback, 3);
    live_add_each(suite, "slow event", a_slow_event_callback_ends_the_lock, 3);
    return suite;
}

/* Starts the servers, runs all cases and stops the servers. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers();
    const int status = suite_run_nofork(expired_before_callback_suite());
    live_stop_servers();
    return status;
}
