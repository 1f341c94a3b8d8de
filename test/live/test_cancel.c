/* SPDX-License-Identifier: MIT
 * Cancellation: before a call, during it, from a signal handler, of many calls at once, and after
 * the client was freed. The keys that a canceled operation has set are undone.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_connect() creates live.client and waits
 * until all nodes are eligible. live_lock() acquires a lock, which must be granted. live_release()
 * returns the status of one call and keeps its report, which live_text() reads. live_pause(first,
 * count) stops servers with SIGSTOP. LOOP_UNTIL() turns the loop of a client until a condition
 * holds or the deadline has passed. live_turn() turns a client's loop once. WAIT_UNTIL(condition,
 * ms) polls and returns false after the deadline. CHECK_STATUS() compares two REDLOCK_* codes.
 * LONG_TTL_MS is a TTL that no case reaches. From live_events.h: note_done() stores the result of
 * an asynchronous call in a struct outcome, and outcome_wait() waits for it and returns its
 * status. */
#include "live_events.h"
#include "suite.h"

#include <errno.h>
#include <signal.h>

#define SHARED 6 /* number of calls with one cancel object */

/* Returns a new cancel object of live.client. */
static redlock_cancel_t *new_cancel(void)
{
    redlock_cancel_t *cancel = NULL;
    ck_assert_int_eq(redlock_cancel_new(&cancel, live.client), REDLOCK_OK);
    ck_assert_ptr_nonnull(cancel);
    return cancel;
}

/* Returns the options of an acquisition that waits without a limit. */
static redlock_opts_t waiting(redlock_cancel_t *cancel)
{
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    opts.wait_ms = REDLOCK_WAIT_FOREVER;
    opts.cancel = cancel;
    return opts;
}

/* _i: threaded, embedded, hybrid. */
static void connect_in_mode(int index)
{
    static const int modes[] = {REDLOCK_MODE_THREADED, REDLOCK_MODE_EMBEDDED, REDLOCK_MODE_HYBRID};
    live.mode = modes[index];
    live_connect();
}

/* Calls with a cancel object that was triggered before return ECANCELED without a request and
 * without a callback. */
START_TEST(a_triggered_cancel_refuses_calls)
{
    connect_in_mode(_i);
    redlock_cancel_t *cancel = new_cancel();
    redlock_lock_t *lock = NULL;
    redlock_report_t *report = NULL;
    struct outcome outcome = OUTCOME;
    const redlock_opts_t opts = waiting(cancel);
    redlock_cancel_trigger(cancel);
    for (unsigned i = 0; i < NODES; i++)
        ck_assert(cluster_replies(live.cluster, i, "OK", "CONFIG RESETSTAT"));
    if (_i != 1) {
        CHECK_STATUS(redlock_acquire(live.client, "before", &opts, &lock, &report),
                     REDLOCK_ECANCELED);
        live_keep_report(report);
        ck_assert_str_ne(live_text(), "");
    }
    CHECK_STATUS(redlock_acquire_start(live.client, "before", &opts, note_done, &outcome),
                 REDLOCK_ECANCELED);
    CHECK_STATUS(redlock_inspect_start(live.client, "before", cancel, note_done, &outcome),
                 REDLOCK_ECANCELED);
    for (unsigned i = 0; i < 10; i++)
        live_turn(live.client, 1);
    ck_assert_uint_eq(outcome_calls(&outcome), 0); /* refused: no callback */
    for (unsigned i = 0; i < NODES; i++)
        ck_assert_uint_eq(live_calls(i, "set"), 0);
    redlock_cancel_free(cancel);
}
END_TEST

/* An acquisition that waits for another holder ends with ECANCELED and no key, also if the
 * cancel object is freed right after the trigger. */
START_TEST(a_waiting_acquire_is_canceled)
{
    struct outcome outcome = OUTCOME;
    connect_in_mode(_i);
    redlock_cancel_t *cancel = new_cancel();
    const redlock_opts_t opts = waiting(cancel);
    cluster_command_all(live.cluster, "SET during another PX 60000");
    ck_assert_int_eq(redlock_acquire_start(live.client, "during", &opts, note_done, &outcome),
                     REDLOCK_OK);
    ck_assert(LOOP_UNTIL(live.client, live_stats(live.client).attempts >= 3, TIME_LIMIT_MS));
    ck_assert_uint_eq(outcome_calls(&outcome), 0);
    redlock_cancel_trigger(cancel);
    redlock_cancel_free(cancel); /* the operation has a reference of its own */
    CHECK_STATUS(outcome_wait(live.client, &outcome), REDLOCK_ECANCELED);
    ck_assert_ptr_null(outcome.lock);
    cluster_command_all(live.cluster, "DEL during");
    ck_assert(LOOP_UNTIL(live.client, cluster_count_all_keys(live.cluster) == 0, TIME_LIMIT_MS));
}
END_TEST

/* The acquisition waits in the client's queue: the locks before and after it are not affected. */
START_TEST(a_queued_acquire_is_canceled)
{
    struct outcome first = OUTCOME, outcome = OUTCOME, last = OUTCOME;
    connect_in_mode(_i);
    redlock_cancel_t *cancel = new_cancel();
    const redlock_opts_t plain = redlock_opts(LONG_TTL_MS), opts = waiting(cancel);
    redlock_opts_t last_opts = waiting(NULL);
    ck_assert_int_eq(redlock_acquire_start(live.client, "during", &plain, note_done, &first),
                     REDLOCK_OK);
    CHECK_STATUS(outcome_wait(live.client, &first), REDLOCK_OK);
    ck_assert_int_eq(redlock_acquire_start(live.client, "during", &opts, note_done, &outcome),
                     REDLOCK_OK);
    ck_assert_int_eq(redlock_acquire_start(live.client, "during", &last_opts, note_done, &last),
                     REDLOCK_OK);
    ck_assert(LOOP_UNTIL(live.client, live_stats(live.client).waiting == 2, TIME_LIMIT_MS));
    redlock_cancel_trigger(cancel);
    redlock_cancel_free(cancel);
    CHECK_STATUS(outcome_wait(live.client, &outcome), REDLOCK_ECANCELED);
    ck_assert_ptr_null(outcome.lock);
    ck_assert_uint_eq(live_stats(live.client).attempts, 1);
    ck_assert_int_eq(redlock_lock_check(first.lock, 0), REDLOCK_OK);
    redlock_lock_free(first.lock);
    CHECK_STATUS(outcome_wait(live.client, &last), REDLOCK_OK);
    redlock_lock_free(last.lock);
    ck_assert(LOOP_UNTIL(live.client, cluster_count_all_keys(live.cluster) == 0, TIME_LIMIT_MS));
}
END_TEST

/* One trigger ends SHARED waiting acquisitions, and no other one. Afterwards the client works as
 * before. */
START_TEST(one_object_cancels_every_call_that_has_it)
{
    struct outcome held = OUTCOME, outcome[SHARED], other = OUTCOME, ready = OUTCOME;
    connect_in_mode(_i);
    redlock_cancel_t *cancel = new_cancel();
    const redlock_opts_t plain = redlock_opts(LONG_TTL_MS), opts = waiting(cancel);
    redlock_opts_t other_opts = waiting(NULL);
    other_opts.wait_ms = REDLOCK_WAIT_FOREVER;
    ck_assert_int_eq(redlock_acquire_start(live.client, "shared", &plain, note_done, &held),
                     REDLOCK_OK);
    CHECK_STATUS(outcome_wait(live.client, &held), REDLOCK_OK);
    for (unsigned i = 0; i < SHARED; i++) {
        outcome[i] = (struct outcome)OUTCOME;
        ck_assert_int_eq(
            redlock_acquire_start(live.client, "shared", &opts, note_done, &outcome[i]),
            REDLOCK_OK);
    }
    ck_assert_int_eq(redlock_acquire_start(live.client, "shared", &other_opts, note_done, &other),
                     REDLOCK_OK);
    redlock_cancel_trigger(cancel);
    redlock_cancel_trigger(cancel);
    for (unsigned i = 0; i < SHARED; i++)
        CHECK_STATUS(outcome_wait(live.client, &outcome[i]), REDLOCK_ECANCELED);
    ck_assert_uint_eq(outcome_calls(&other), 0); /* it has no cancel object */
    redlock_lock_free(held.lock);
    CHECK_STATUS(outcome_wait(live.client, &other), REDLOCK_OK);
    ck_assert_int_eq(redlock_wait_ready_start(live.client, 1000, NULL, note_done, &ready),
                     REDLOCK_OK);
    CHECK_STATUS(outcome_wait(live.client, &ready), REDLOCK_OK);
    redlock_lock_free(other.lock);
    redlock_cancel_free(cancel);
    ck_assert(LOOP_UNTIL(live.client, cluster_count_all_keys(live.cluster) == 0, TIME_LIMIT_MS));
}
END_TEST

/* A thread in a blocking call. */
struct sleeper {
    pthread_t thread;
    redlock_cancel_t *cancel;
    int status;
};

/* Thread function: waits for the lock "sleep" in a blocking call and stores the status. */
static void *sleep_in_acquire(void *userdata)
{
    struct sleeper *sleeper = userdata;
    redlock_lock_t *lock = NULL;
    const redlock_opts_t opts = waiting(sleeper->cancel);
    sleeper->status = redlock_acquire(live.client, "sleep", &opts, &lock, NULL);
    return NULL;
}

/* One trigger ends the blocking calls of SHARED threads. _i selects threaded or hybrid mode. */
START_TEST(a_blocking_call_is_cancelled_from_another_thread)
{
    connect_in_mode(_i == 0 ? 0 : 2);
    redlock_lock_t *held = live_lock("sleep", LONG_TTL_MS);
    struct sleeper sleepers[SHARED];
    redlock_cancel_t *cancel = new_cancel();
    for (unsigned i = 0; i < SHARED; i++) {
        sleepers[i] = (struct sleeper){.cancel = cancel};
        ck_assert_int_eq(pthread_create(&sleepers[i].thread, NULL, sleep_in_acquire, &sleepers[i]),
                         0);
    }
    ck_assert(WAIT_UNTIL(live_stats(live.client).waiting == SHARED, TIME_LIMIT_MS));
    redlock_cancel_trigger(cancel);
    for (unsigned i = 0; i < SHARED; i++) {
        pthread_join(sleepers[i].thread, NULL);
        CHECK_STATUS(sleepers[i].status, REDLOCK_ECANCELED);
    }
    redlock_cancel_free(cancel);
    CHECK_STATUS(live_release(held), REDLOCK_OK);
}
END_TEST

static redlock_cancel_t *signalled; /* what the signal handler triggers */

/* Signal handler that triggers the cancel object `signalled`. */
static void on_signal(int number)
{
    (void)number;
    redlock_cancel_trigger(signalled);
}

/* redlock_cancel_trigger() in a signal handler ends the acquisition and leaves errno as it was. */
START_TEST(a_signal_handler_may_trigger)
{
    struct sigaction action = {.sa_handler = on_signal}, before;
    connect_in_mode(_i);
    struct outcome held = OUTCOME, outcome = OUTCOME;
    const redlock_opts_t plain = redlock_opts(LONG_TTL_MS);
    signalled = new_cancel();
    const redlock_opts_t opts = waiting(signalled);
    ck_assert_int_eq(sigaction(SIGUSR1, &action, &before), 0);
    ck_assert_int_eq(redlock_acquire_start(live.client, "signal", &plain, note_done, &held),
                     REDLOCK_OK);
    CHECK_STATUS(outcome_wait(live.client, &held), REDLOCK_OK);
    ck_assert_int_eq(redlock_acquire_start(live.client, "signal", &opts, note_done, &outcome),
                     REDLOCK_OK);
    errno = E2BIG;
    ck_assert_int_eq(raise(SIGUSR1), 0);
    ck_assert_int_eq(errno, E2BIG);
    CHECK_STATUS(outcome_wait(live.client, &outcome), REDLOCK_ECANCELED);
    sigaction(SIGUSR1, &before, NULL);
    redlock_cancel_free(signalled);
    redlock_lock_free(held.lock);
    ck_assert(LOOP_UNTIL(live.client, cluster_count_all_keys(live.cluster) == 0, TIME_LIMIT_MS));
}
END_TEST

/* The cancel is triggered around the end of the operation. A lock that was granted stays held. */
START_TEST(a_late_cancel_changes_nothing)
{
    connect_in_mode(_i);
    for (unsigned i = 0; i < 30; i++) {
        struct outcome outcome = OUTCOME;
        redlock_cancel_t *cancel = new_cancel();
        const redlock_opts_t opts = waiting(cancel);
        ck_assert_int_eq(redlock_acquire_start(live.client, "late", &opts, note_done, &outcome),
                         REDLOCK_OK);
        for (unsigned turn = 0; turn < i % 4; turn++)
            live_turn(live.client, 0);
        redlock_cancel_trigger(cancel);
        const int status = outcome_wait(live.client, &outcome);
        if (status == REDLOCK_OK) {
            redlock_cancel_trigger(cancel);
            live_turn(live.client, 0);
            ck_assert_int_eq(redlock_lock_check(outcome.lock, 0), REDLOCK_OK);
            redlock_lock_free(outcome.lock);
        } else {
            CHECK_STATUS(status, REDLOCK_ECANCELED);
            ck_assert_ptr_null(outcome.lock);
        }
        redlock_cancel_free(cancel);
    }
    ck_assert(LOOP_UNTIL(live.client, cluster_count_all_keys(live.cluster) == 0, TIME_LIMIT_MS));
}
END_TEST

/* An inspection, a release by token and a break wait for stopped servers. */
START_TEST(other_calls_are_cancelled_too)
{
    struct outcome outcome[4] = {OUTCOME, OUTCOME, OUTCOME, OUTCOME};
    live.node_time_ms = 20000;
    connect_in_mode(_i);
    redlock_cancel_t *cancel = new_cancel();
    live_pause(0, 3);
    ck_assert_int_eq(redlock_inspect_start(live.client, "a", cancel, note_done, &outcome[0]),
                     REDLOCK_OK);
    ck_assert_int_eq(
        redlock_release_token_start(live.client, "b", "token", cancel, note_done, &outcome[1]),
        REDLOCK_OK);
    ck_assert_int_eq(redlock_break_start(live.client, "c", cancel, note_done, &outcome[2]),
                     REDLOCK_OK);
    live_turn(live.client, 0);
    redlock_cancel_trigger(cancel);
    for (unsigned i = 0; i < 3; i++)
        CHECK_STATUS(outcome_wait(live.client, &outcome[i]), REDLOCK_ECANCELED);
    redlock_cancel_free(cancel);
}
END_TEST

/* Triggering and freeing a cancel object after its client is allowed, and so is NULL. */
START_TEST(a_cancel_outlives_its_client)
{
    connect_in_mode(_i);
    redlock_cancel_t *cancel = new_cancel();
    live_disconnect();
    redlock_cancel_trigger(cancel);
    redlock_cancel_free(cancel);
    redlock_cancel_free(NULL);
    redlock_cancel_trigger(NULL);
}
END_TEST

/* Returns the suite of all cases. The names are those of CK_RUN_CASE, which runs one group. */
static Suite *cancel_suite(void)
{
    Suite *suite = suite_create("cancel");
    live_add_each(suite, "before", a_triggered_cancel_refuses_calls, 3);
    live_add_each(suite, "waiting", a_waiting_acquire_is_canceled, 3);
    live_add_each(suite, "queue", a_queued_acquire_is_canceled, 3);
    live_add_each(suite, "shared", one_object_cancels_every_call_that_has_it, 3);
    live_add_each(suite, "blocking", a_blocking_call_is_cancelled_from_another_thread, 2);
    live_add_each(suite, "signal", a_signal_handler_may_trigger, 3);
    live_add_each(suite, "late", a_late_cancel_changes_nothing, 3);
    live_add_each(suite, "others", other_calls_are_cancelled_too, 3);
    live_add_each(suite, "outlives", a_cancel_outlives_its_client, 3);
    return suite;
}

/* Starts the servers, runs all cases and stops the servers. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers();
    const int status = suite_run_nofork(cancel_suite());
    live_stop_servers();
    return status;
}
