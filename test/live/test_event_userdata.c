/* SPDX-License-Identifier: MIT
 * event_end_fn, which reports that an event function and its userdata are not used any more. It
 * runs once for each call that got them, after the last event, on the thread of the callbacks, for
 * each way in which a lock can end.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_connect() creates live.client and waits
 * until all nodes are eligible. live_pause(first, count) stops servers with SIGSTOP. LOOP_UNTIL()
 * turns the loop of a client until a condition holds or the deadline has passed. wait_scaled_ms()
 * stretches a time for slow builds. CHECK_STATUS() compares two REDLOCK_* codes. LONG_TTL_MS is a
 * TTL that no case reaches. From live_events.h: note_done() stores the result of an asynchronous
 * call in a struct outcome, and outcome_wait() waits for it and returns its status. */
#include "live_events.h"
#include "suite.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAME "event-end" /* the resource of all cases */

/* The userdata of one acquisition, which records the calls of its functions. */
struct holder {
    atomic_uint ends;      /* calls of event_end_fn */
    atomic_uint events;    /* calls of event_fn */
    atomic_uint late;      /* of these, calls after event_end_fn */
    atomic_uint kinds;     /* kinds of the events, as bits 1 << kind */
    pthread_t thread;      /* on which event_end_fn ran */
    int stats_status;      /* of redlock_get_stats(), called in event_end_fn */
    redlock_lock_t *freed; /* the handle that the event function has freed; NULL: none */
    int frees_at;          /* kind of the event in which it frees the handle; 0: none */
};
static struct holder one, two; /* of the acquisitions of a case */

/* The mode of the client, by _i. */
static const int MODES[] = {REDLOCK_MODE_THREADED, REDLOCK_MODE_EMBEDDED, REDLOCK_MODE_HYBRID};
#define MODE_COUNT 3

/* Event function: counts the event in the holder `userdata`, as late if the end was reported
 * before. Frees the lock if the event is of the kind holder->frees_at. */
static void on_event(redlock_t *rl, const redlock_event_t *event, void *userdata)
{
    struct holder *holder = userdata;
    (void)rl;
    atomic_fetch_add(&holder->late, atomic_load(&holder->ends));
    atomic_fetch_or(&holder->kinds, 1u << event->kind);
    if (holder->frees_at == event->kind && event->lock != NULL && holder->freed == NULL) {
        holder->freed = event->lock;
        redlock_lock_free(event->lock);
    }
    atomic_fetch_add(&holder->events, 1);
}

/* Records the end. Calls the client, which is possible because its mutex is not held. */
static void on_end(void *userdata)
{
    struct holder *holder = userdata;
    redlock_stats_t stats;
    holder->thread = pthread_self();
    holder->stats_status =
        live.client != NULL ? redlock_get_stats(live.client, &stats, sizeof stats) : REDLOCK_OK;
    atomic_fetch_add(&holder->ends, 1);
}

/* Returns the options of an acquisition with this userdata. */
static redlock_opts_t opts_of(struct holder *holder)
{
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    opts.event_fn = on_event;
    opts.event_userdata = holder;
    opts.event_end_fn = on_end;
    return opts;
}

/* Clears both holders and creates live.client in this mode. */
static void connect_in(int mode)
{
    memset(&one, 0, sizeof one);
    memset(&two, 0, sizeof two);
    live.mode = mode;
    live_connect();
}

/* Waits until event_end_fn has run for the holder. Returns false after the deadline. */
static bool has_ended(struct holder *holder)
{
    return LOOP_UNTIL(live.client, atomic_load(&holder->ends) > 0, TIME_LIMIT_MS);
}

/* Checks that event_end_fn has run once, and no event after it. */
static void check_once(struct holder *holder)
{
    ck_assert_uint_eq(atomic_load(&holder->ends), 1);
    ck_assert_uint_eq(atomic_load(&holder->late), 0);
}

/* Waits for event_end_fn, and checks that it ran once, on the right thread. */
static void check_end(struct holder *holder)
{
    ck_assert(has_ended(holder));
    check_once(holder);
    ck_assert_int_eq(holder->stats_status, REDLOCK_OK);
    const bool own_thread = live.mode == REDLOCK_MODE_THREADED;
    ck_assert_int_eq(pthread_equal(holder->thread, pthread_self()) != 0, !own_thread);
}

/* Returns whether the holder got an event of this kind. */
static bool has_seen(const struct holder *holder, int kind)
{
    return (atomic_load(&holder->kinds) & 1u << kind) != 0;
}

/* Acquires the lock. Returns the status. */
static int acquire(const redlock_opts_t *opts, redlock_lock_t **ret)
{
    struct outcome outcome = OUTCOME;
    ck_assert_int_eq(redlock_acquire_start(live.client, NAME, opts, note_done, &outcome),
                     REDLOCK_OK);
    const int status = outcome_wait(live.client, &outcome);
    *ret = outcome.lock;
    return status;
}

/* Acquires the lock, which must be granted. */
static redlock_lock_t *hold(struct holder *holder)
{
    const redlock_opts_t opts = opts_of(holder);
    redlock_lock_t *lock;
    CHECK_STATUS(acquire(&opts, &lock), REDLOCK_OK);
    ck_assert_uint_eq(atomic_load(&holder->ends), 0);
    return lock;
}

/* Ends the client, and checks that event_end_fn did not run again. */
static void leave(struct holder *holder)
{
    if (live.client != NULL && live.mode != REDLOCK_MODE_EMBEDDED)
        live_leave();
    else if (live.client != NULL)
        live_disconnect();
    check_once(holder);
}

/* The end is reported once, after the event RELEASED. */
START_TEST(ends_after_a_release)
{
    struct outcome released = OUTCOME;
    connect_in(MODES[_i]);
    redlock_lock_t *lock = hold(&one);
    ck_assert_int_eq(redlock_release_start(lock, note_done, &released), REDLOCK_OK);
    CHECK_STATUS(outcome_wait(live.client, &released), REDLOCK_OK);
    check_end(&one);
    ck_assert(has_seen(&one, REDLOCK_EVENT_ACQUIRED) && has_seen(&one, REDLOCK_EVENT_RELEASED));
    redlock_lock_free(lock);
    leave(&one);
}
END_TEST

/* The end is reported once, after the event LOST. The lock is lost because its keys were deleted
 * and it was verified. */
START_TEST(ends_after_a_loss)
{
    struct outcome verified = OUTCOME;
    connect_in(MODES[_i]);
    redlock_lock_t *lock = hold(&one);
    ck_assert(LOOP_UNTIL(live.client, live_nodes_with(NAME) == NODES, TIME_LIMIT_MS));
    cluster_command_all(live.cluster, "DEL " NAME);
    ck_assert_int_eq(redlock_verify_start(lock, NULL, note_done, &verified), REDLOCK_OK);
    CHECK_STATUS(outcome_wait(live.client, &verified), REDLOCK_ELOST);
    check_end(&one);
    ck_assert(has_seen(&one, REDLOCK_EVENT_LOST));
    redlock_lock_free(lock);
    leave(&one);
}
END_TEST

/* The end is reported once, after a detach. */
START_TEST(ends_after_a_detach)
{
    connect_in(MODES[_i]);
    redlock_lock_t *lock = hold(&one);
    CHECK_STATUS(redlock_lock_detach(lock), REDLOCK_OK);
    check_end(&one);
    redlock_lock_free(lock);
    leave(&one);
    cluster_command_all(live.cluster, "DEL " NAME);
}
END_TEST

/* The end does not wait for the replies of stopped servers. */
START_TEST(ends_when_a_held_handle_is_freed)
{
    live.node_time_ms = 20000;
    connect_in(MODES[_i]);
    redlock_lock_t *lock = hold(&one);
    live_pause(0, NODES);
    redlock_lock_free(lock);
    check_end(&one);
    ck_assert(!has_seen(&one, REDLOCK_EVENT_RELEASED));
    live_resume_all();
    ck_assert(LOOP_UNTIL(live.client, cluster_count_all_keys(live.cluster) == 0, TIME_LIMIT_MS));
    leave(&one);
}
END_TEST

/* The end is reported once when the handle is freed while the release waits for stopped servers,
 * and before it ends. */
START_TEST(ends_when_the_handle_is_freed_during_the_release)
{
    struct outcome released = OUTCOME;
    live.node_time_ms = 20000;
    connect_in(MODES[_i]);
    redlock_lock_t *lock = hold(&one);
    live_pause(0, NODES);
    ck_assert_int_eq(redlock_release_start(lock, note_done, &released), REDLOCK_OK);
    redlock_lock_free(lock);
    check_end(&one);
    live_resume_all();
    CHECK_STATUS(outcome_wait(live.client, &released), REDLOCK_OK);
    leave(&one);
}
END_TEST

/* The event function frees the handle: no event follows, and event_end_fn runs. */
START_TEST(ends_when_the_handle_is_freed_in_an_event)
{
    struct outcome outcome = OUTCOME;
    connect_in(MODES[_i]);
    redlock_lock_t *lock = hold(&one);
    one.frees_at = REDLOCK_EVENT_EXTENDED;
    ck_assert_int_eq(redlock_extend_start(lock, 0, note_done, &outcome), REDLOCK_OK);
    CHECK_STATUS(outcome_wait(live.client, &outcome), REDLOCK_OK);
    check_end(&one);
    ck_assert_ptr_eq(one.freed, lock);
    ck_assert(!has_seen(&one, REDLOCK_EVENT_RELEASED));
    ck_assert(LOOP_UNTIL(live.client, cluster_count_all_keys(live.cluster) == 0, TIME_LIMIT_MS));
    leave(&one);
}
END_TEST

/* The end is reported once, after the event WAITING, when the wait budget ends without a grant. */
START_TEST(ends_when_an_acquisition_fails)
{
    redlock_opts_t opts;
    redlock_lock_t *lock;
    connect_in(MODES[_i]);
    opts = opts_of(&one);
    opts.wait_ms = live_brief_ms(700);
    cluster_command_all(live.cluster, "SET " NAME " another PX 60000");
    CHECK_STATUS(acquire(&opts, &lock), REDLOCK_ECONTENDED);
    ck_assert_ptr_null(lock);
    check_end(&one);
    ck_assert(has_seen(&one, REDLOCK_EVENT_WAITING));
    leave(&one);
    cluster_command_all(live.cluster, "DEL " NAME);
}
END_TEST

/* The acquisition is canceled in the queue of the client. */
START_TEST(ends_when_an_acquisition_is_canceled)
{
    struct outcome outcome = OUTCOME;
    redlock_opts_t opts;
    connect_in(MODES[_i]);
    redlock_lock_t *lock = hold(&one);
    opts = opts_of(&two);
    opts.wait_ms = REDLOCK_WAIT_FOREVER;
    ck_assert_int_eq(redlock_cancel_new(&opts.cancel, live.client), REDLOCK_OK);
    ck_assert_int_eq(redlock_acquire_start(live.client, NAME, &opts, note_done, &outcome),
                     REDLOCK_OK);
    ck_assert(LOOP_UNTIL(live.client, has_seen(&two, REDLOCK_EVENT_WAITING), TIME_LIMIT_MS));
    redlock_cancel_trigger(opts.cancel);
    CHECK_STATUS(outcome_wait(live.client, &outcome), REDLOCK_ECANCELED);
    check_end(&two);
    ck_assert_uint_eq(atomic_load(&one.ends), 0);
    redlock_cancel_free(opts.cancel);
    redlock_lock_free(lock);
    check_end(&one);
    leave(&one);
    check_once(&two);
}
END_TEST

/* Each adoption has an end of its own: a refused one at once, a successful one when its lock is
 * freed. */
START_TEST(ends_for_each_adoption)
{
    struct outcome adopted = OUTCOME, refused = OUTCOME;
    redlock_opts_t opts;
    connect_in(MODES[_i]);
    redlock_lock_t *lock = hold(&one);
    CHECK_STATUS(redlock_lock_detach(lock), REDLOCK_OK);
    check_end(&one);
    memset(&one, 0, sizeof one);
    opts = opts_of(&one);
    ck_assert_int_eq(redlock_adopt_start(live.client, NAME, redlock_lock_token(lock), &opts,
                                         note_done, &adopted),
                     REDLOCK_OK);
    CHECK_STATUS(outcome_wait(live.client, &adopted), REDLOCK_OK);
    opts = opts_of(&two);
    ck_assert_int_eq(
        redlock_adopt_start(live.client, NAME, "not the token", &opts, note_done, &refused),
        REDLOCK_OK);
    CHECK_STATUS(outcome_wait(live.client, &refused), REDLOCK_ELOST);
    check_end(&two);
    ck_assert_uint_eq(atomic_load(&one.ends), 0);
    redlock_lock_free(adopted.lock);
    check_end(&one);
    redlock_lock_free(lock);
    leave(&one);
}
END_TEST

/* A shutdown reports the end of a held lock once. An acquisition that is refused afterwards
 * reports its end once, too. */
START_TEST(ends_with_a_shutdown)
{
    struct outcome outcome = OUTCOME;
    connect_in(MODES[_i]);
    redlock_lock_t *lock = hold(&one);
    ck_assert_int_eq(
        redlock_shutdown_start(live.client, wait_scaled_ms(TIME_LIMIT_MS), note_done, &outcome),
        REDLOCK_OK);
    CHECK_STATUS(outcome_wait(live.client, &outcome), REDLOCK_OK);
    check_end(&one);
    const redlock_opts_t opts = opts_of(&two);
    ck_assert_int_eq(redlock_acquire_start(live.client, NAME, &opts, note_done, &outcome),
                     REDLOCK_ECLOSED);
    check_once(&two);
    live_disconnect();
    check_once(&one);
    redlock_lock_free(lock);
    check_once(&one);
}
END_TEST

/* One lock is held, and another acquisition waits. The handle outlives the client. */
START_TEST(ends_with_the_client)
{
    struct outcome outcome = OUTCOME;
    redlock_opts_t opts;
    connect_in(MODES[_i]);
    redlock_lock_t *lock = hold(&one);
    opts = opts_of(&two);
    opts.wait_ms = REDLOCK_WAIT_FOREVER;
    ck_assert_int_eq(redlock_acquire_start(live.client, NAME, &opts, note_done, &outcome),
                     REDLOCK_OK);
    live_disconnect();
    CHECK_STATUS(outcome.status, REDLOCK_ECLOSED);
    check_once(&one);
    check_once(&two);
    ck_assert(pthread_equal(one.thread, pthread_self()));
    redlock_lock_free(lock);
    check_once(&one);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

/* Body for redlock_with() in calls that are refused, so that it never runs. */
static int unused_body(redlock_lock_t *lock, void *userdata)
{
    (void)lock;
    (void)userdata;
    return 0;
}

/* Checks that a refused call has run event_end_fn before it returned, on its own thread. */
static void check_refused(int status, int expected)
{
    CHECK_STATUS(status, expected);
    check_once(&one);
    ck_assert(pthread_equal(one.thread, pthread_self()));
    ck_assert_uint_eq(atomic_load(&one.events), 0);
    memset(&one, 0, sizeof one);
}

/* Refused starting calls (…_start) report the end although they return an error. Options of an
 * earlier version, which lack the function, report none. */
START_TEST(ends_when_a_start_is_refused)
{
    struct outcome outcome = OUTCOME;
    redlock_opts_t opts;
    connect_in(MODES[_i]);
    redlock_t *rl = live.client;
    opts = opts_of(&one);
    check_refused(redlock_acquire_start(rl, "", &opts, note_done, &outcome), REDLOCK_EINVAL);
    check_refused(redlock_acquire_start(rl, NAME, &opts, NULL, NULL), REDLOCK_EINVAL);
    check_refused(redlock_acquire_start(NULL, NAME, &opts, note_done, NULL), REDLOCK_EINVAL);
    check_refused(redlock_adopt_start(rl, NAME, NULL, &opts, note_done, &outcome), REDLOCK_EINVAL);
    opts.size = offsetof(redlock_opts_t, event_end_fn); /* options of an earlier version */
    ck_assert_int_eq(redlock_acquire_start(rl, "", &opts, note_done, &outcome), REDLOCK_EINVAL);
    ck_assert_uint_eq(atomic_load(&one.ends), 0);
    ck_assert_uint_eq(outcome_calls(&outcome), 0);
}
END_TEST

/* The same for blocking calls; in embedded mode they are refused with EMODE. */
START_TEST(ends_when_a_blocking_call_is_refused)
{
    redlock_opts_t opts;
    redlock_lock_t *lock = NULL;
    connect_in(MODES[_i]);
    redlock_t *rl = live.client;
    const int expected = MODES[_i] == REDLOCK_MODE_EMBEDDED ? REDLOCK_EMODE : REDLOCK_EINVAL;
    opts = opts_of(&one);
    check_refused(redlock_acquire(rl, "", &opts, &lock, NULL), expected);
    check_refused(redlock_acquire(rl, NAME, &opts, NULL, NULL), expected);
    check_refused(redlock_acquire(NULL, NAME, &opts, &lock, NULL), REDLOCK_EINVAL);
    check_refused(redlock_adopt(rl, NAME, "", &opts, &lock, NULL), expected);
    check_refused(redlock_with(rl, NAME, &opts, NULL, NULL, NULL, NULL), expected);
    check_refused(redlock_with(rl, "", &opts, NULL, NULL, unused_body, NULL), expected);
    ck_assert_ptr_null(lock);
}
END_TEST

/* Blocking calls, one that succeeds and one that fails. _i 1: without an event function. */
START_TEST(ends_for_blocking_calls)
{
    redlock_opts_t opts;
    redlock_lock_t *lock = NULL;
    connect_in(REDLOCK_MODE_THREADED);
    opts = opts_of(&one);
    opts.event_fn = _i == 0 ? on_event : NULL;
    CHECK_STATUS(redlock_acquire(live.client, NAME, &opts, &lock, NULL), REDLOCK_OK);
    opts.event_userdata = &two;
    opts.wait_ms = wait_scaled_ms(100);
    CHECK_STATUS(redlock_with(live.client, NAME, &opts, NULL, NULL, unused_body, NULL),
                 REDLOCK_ECONTENDED);
    check_end(&two);
    ck_assert_uint_eq(atomic_load(&one.ends), 0);
    CHECK_STATUS(redlock_release(lock, NULL), REDLOCK_OK);
    check_end(&one);
    redlock_lock_free(lock);
    memset(&two, 0, sizeof two);
    CHECK_STATUS(redlock_with(live.client, NAME, &opts, NULL, NULL, unused_body, NULL), REDLOCK_OK);
    check_end(&two);
    leave(&one);
}
END_TEST

/* A forked child frees its handles without event_end_fn; the parent runs it once. */
START_TEST(does_not_end_in_a_forked_child)
{
    int status = -1;
    connect_in(MODES[_i]);
    redlock_lock_t *lock = hold(&one);
    const redlock_opts_t opts = opts_of(&two);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        const bool refused =
            redlock_acquire_start(live.client, NAME, &opts, note_done, NULL) == REDLOCK_EFORKED;
        redlock_lock_free(lock);
        const bool freed = redlock_free(live.client) == REDLOCK_OK;
        const bool quiet = atomic_load(&one.ends) == 0 && atomic_load(&one.late) == 0;
        _exit(refused && freed && quiet && atomic_load(&two.ends) == 1 ? 0 : 1);
    }
    ck_assert_int_ge(child, 0);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_uint_eq(atomic_load(&one.ends), 0);
    redlock_lock_free(lock);
    check_end(&one);
    leave(&one);
    ck_assert_uint_eq(atomic_load(&two.ends), 0);
}
END_TEST

/* Returns the suite of all cases. The names are those of CK_RUN_CASE, which runs one group. */
static Suite *event_userdata_suite(void)
{
    Suite *suite = suite_create("live_event_userdata");
    live_add_each(suite, "release", ends_after_a_release, MODE_COUNT);
    live_add_each(suite, "loss", ends_after_a_loss, MODE_COUNT);
    live_add_each(suite, "detach", ends_after_a_detach, MODE_COUNT);
    live_add_each(suite, "lock_free", ends_when_a_held_handle_is_freed, MODE_COUNT);
    live_add_each(suite, "lock_free, releasing", ends_when_the_handle_is_freed_during_the_release,
                  MODE_COUNT);
    live_add_each(suite, "lock_free, event", ends_when_the_handle_is_freed_in_an_event, MODE_COUNT);
    live_add_each(suite, "failed", ends_when_an_acquisition_fails, MODE_COUNT);
    live_add_each(suite, "cancelled", ends_when_an_acquisition_is_canceled, MODE_COUNT);
    live_add_each(suite, "adopt", ends_for_each_adoption, MODE_COUNT);
    live_add_each(suite, "shutdown", ends_with_a_shutdown, MODE_COUNT);
    live_add_each(suite, "free", ends_with_the_client, MODE_COUNT);
    live_add_each(suite, "refused", ends_when_a_start_is_refused, MODE_COUNT);
    live_add_each(suite, "refused, blocking", ends_when_a_blocking_call_is_refused, MODE_COUNT);
    live_add_each(suite, "blocking", ends_for_blocking_calls, 2);
    live_add_each(suite, "fork", does_not_end_in_a_forked_child, MODE_COUNT);
    return suite;
}

/* Starts the servers, runs all cases and stops the servers. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers();
    const int status = suite_run_nofork(event_userdata_suite());
    live_stop_servers();
    return status;
}
