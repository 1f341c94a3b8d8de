/* SPDX-License-Identifier: MIT
 * Callbacks of threaded mode run on a thread of their own, one at a time: a slow one delays other
 * callbacks, and nothing else. Also: handles that callbacks free, and requests that callers leave
 * to a thread whose call is refused.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_connect() creates live.client and waits
 * until all nodes are eligible. live_acquire() and live_release() return the status of one call.
 * live_brief_ms() stretches a TTL that a case waits for. WAIT_UNTIL(condition, ms) polls and
 * returns false after the deadline. CHECK_STATUS() compares two REDLOCK_* codes. LONG_TTL_MS is a
 * TTL that no case reaches. From live_events.h: note_done() stores the result of an asynchronous
 * call in a struct outcome, and outcome_wait() waits for it and returns its status. */
#include "live_events.h"
#include "suite.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A callback that is held up. */
static struct {
    atomic_bool held;           /* hold() waits while this is true */
    atomic_uint begun, ended;   /* calls of hold() */
    atomic_int check_status;    /* of the lock that hold() has checked; 1: none yet */
    atomic_bool gave_up;        /* a callback was not released: the case was stuck */
    atomic_uint running;        /* callbacks that run at this moment */
    atomic_bool overlapped;     /* two callbacks have run at the same time */
    atomic_int thread_id;       /* kernel's id of the thread that runs hold() */
    atomic_int blocking_status; /* of a blocking call in refused_call(); 1: none yet */
    atomic_bool may_call;       /* refused_call() makes its call */
    atomic_uint lines, lost;    /* log lines; of these, lines that say how many were lost */
} slow;

/* Notes that a callback begins. */
static void enter_callback(void)
{
    if (atomic_fetch_add(&slow.running, 1) != 0)
        atomic_store(&slow.overlapped, true);
}

/* Notes that a callback ends. */
static void leave_callback(void)
{
    atomic_fetch_sub(&slow.running, 1);
}

/* Waits until slow.held is false. */
static void wait_for_release(void)
{
    if (!WAIT_UNTIL(!atomic_load(&slow.held), 5 * TIME_LIMIT_MS))
        atomic_store(&slow.gave_up, true);
}

/* Completion callback: waits until slow.held is false. Then checks the lock `userdata`, if it is
 * not NULL. */
static void hold(redlock_t *rl, int status, redlock_lock_t *lock, const redlock_report_t *report,
                 void *userdata)
{
    (void)rl, (void)status, (void)lock, (void)report;
    enter_callback();
    atomic_fetch_add(&slow.begun, 1);
    wait_for_release();
    if (userdata != NULL)
        atomic_store(&slow.check_status, redlock_lock_check(userdata, 0));
    leave_callback();
    atomic_fetch_add(&slow.ended, 1);
}

/* Clears `slow`, and creates live.client in threaded mode. */
static void connect_threaded(void)
{
    memset(&slow, 0, sizeof slow);
    atomic_store(&slow.blocking_status, 1);
    atomic_store(&slow.check_status, 1);
    events_reset();
    live_connect();
}

/* Has hold() run on the callback thread, and returns while it waits. `lock`: checked at its end;
 * NULL: none. */
static void hold_callbacks(redlock_lock_t *lock)
{
    atomic_store(&slow.held, true);
    CHECK_STATUS(redlock_inspect_start(live.client, "nothing", NULL, hold, lock), REDLOCK_OK);
    ck_assert(WAIT_UNTIL(atomic_load(&slow.begun) == 1, TIME_LIMIT_MS));
}

/* Ends hold(). */
static void release_callbacks(void)
{
    atomic_store(&slow.held, false);
    ck_assert(WAIT_UNTIL(atomic_load(&slow.ended) == 1, TIME_LIMIT_MS));
}

/* Waits until a time has passed. */
static void pass_ms(uint64_t ms)
{
    const uint64_t end_ms = wait_now_ms() + ms;
    (void)WAIT_UNTIL(wait_now_ms() >= end_ms, 5 * TIME_LIMIT_MS);
}

/* A callback waits for three TTLs. Held locks are extended, and other calls work. Afterwards the
 * events arrive, merged. */
START_TEST(a_slow_callback_loses_no_lock)
{
    const uint64_t ttl_ms = live_brief_ms(1000);
    redlock_lock_t *lock = NULL;
    connect_threaded();
    redlock_opts_t opts = redlock_opts(ttl_ms);
    opts.flags = REDLOCK_FLAG_AUTO_EXTEND;
    opts.event_fn = note_event;
    opts.event_userdata = &lock_events;
    CHECK_STATUS(redlock_acquire(live.client, "extended", &opts, &lock, NULL), REDLOCK_OK);
    ck_assert(WAIT_UNTIL(count_events(&lock_events, REDLOCK_EVENT_ACQUIRED) == 1, TIME_LIMIT_MS));
    hold_callbacks(NULL);
    const unsigned before = count_events(&lock_events, REDLOCK_EVENT_EXTENDED);
    pass_ms(3 * ttl_ms);
    ck_assert_int_eq(redlock_lock_check(lock, 0), REDLOCK_OK);
    ck_assert_uint_ge(live_stats(live.client).extended, 3);
    ck_assert_uint_le(count_events(&lock_events, REDLOCK_EVENT_EXTENDED), before);
    live_check_works();
    release_callbacks();
    ck_assert(
        WAIT_UNTIL(count_events(&lock_events, REDLOCK_EVENT_EXTENDED) > before, TIME_LIMIT_MS));
    ck_assert_uint_eq(count_events(&lock_events, REDLOCK_EVENT_LOST), 0);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
}
END_TEST

/* A grant that waits for its callback is not extended. It is undone when it does not last, and the
 * callback gets no lock. */
START_TEST(a_grant_that_is_not_delivered_is_undone)
{
    const uint64_t ttl_ms = live_brief_ms(1000);
    struct outcome outcome = OUTCOME;
    connect_threaded();
    hold_callbacks(NULL);
    redlock_opts_t opts = redlock_opts(ttl_ms);
    opts.flags = REDLOCK_FLAG_AUTO_EXTEND;
    CHECK_STATUS(redlock_acquire_start(live.client, "late", &opts, note_done, &outcome),
                 REDLOCK_OK);
    ck_assert(WAIT_UNTIL(live_nodes_with("late") == NODES, TIME_LIMIT_MS));
    ck_assert(WAIT_UNTIL(live_nodes_with("late") == 0, TIME_LIMIT_MS));
    ck_assert_uint_eq(live_stats(live.client).extended, 0);
    ck_assert_uint_eq(outcome_calls(&outcome), 0);
    release_callbacks();
    CHECK_STATUS(outcome_wait(live.client, &outcome), REDLOCK_ETOOSLOW);
    ck_assert_ptr_null(outcome.lock);
}
END_TEST

/* A grant whose callback comes in time is extended from then on. */
START_TEST(a_grant_is_extended_once_it_is_delivered)
{
    struct outcome outcome = OUTCOME;
    connect_threaded();
    hold_callbacks(NULL);
    redlock_opts_t opts = redlock_opts(live_brief_ms(4000));
    opts.flags = REDLOCK_FLAG_AUTO_EXTEND;
    opts.extend_at_ms = opts.ttl_ms - live_brief_ms(100);
    CHECK_STATUS(redlock_acquire_start(live.client, "soon", &opts, note_done, &outcome),
                 REDLOCK_OK);
    ck_assert(WAIT_UNTIL(live_nodes_with("soon") == NODES, TIME_LIMIT_MS));
    release_callbacks();
    CHECK_STATUS(outcome_wait(live.client, &outcome), REDLOCK_OK);
    ck_assert(WAIT_UNTIL(live_stats(live.client).extended > 0, TIME_LIMIT_MS));
    CHECK_STATUS(live_release(outcome.lock), REDLOCK_OK);
}
END_TEST

/* Completion callback: notes that it runs. Never overlaps hold(). */
static void note_run(redlock_t *rl, int status, redlock_lock_t *lock,
                     const redlock_report_t *report, void *userdata)
{
    (void)rl, (void)status, (void)lock, (void)report;
    enter_callback();
    atomic_fetch_add((atomic_uint *)userdata, 1);
    leave_callback();
}

/* Thread function: lets hold() return after *userdata milliseconds, in which redlock_free() waits
 * for it. */
static void *let_go(void *userdata)
{
    pass_ms(*(const uint64_t *)userdata);
    atomic_store(&slow.held, false);
    return NULL;
}

/* redlock_free() waits for the callback that runs, for three TTLs, in which a lock is extended.
 * Then it runs the other callbacks itself. */
START_TEST(freeing_waits_for_the_running_callback)
{
    enum { OTHERS = 10 };
    static atomic_uint runs;
    const uint64_t ttl_ms = live_brief_ms(1000);
    uint64_t held_ms = 3 * ttl_ms;
    pthread_t thread;
    redlock_lock_t *lock = NULL;
    atomic_store(&runs, 0);
    connect_threaded();
    redlock_opts_t opts = redlock_opts(ttl_ms);
    opts.flags = REDLOCK_FLAG_AUTO_EXTEND;
    CHECK_STATUS(redlock_acquire(live.client, "freed", &opts, &lock, NULL), REDLOCK_OK);
    hold_callbacks(lock);
    for (unsigned i = 0; i < OTHERS; i++)
        CHECK_STATUS(redlock_inspect_start(live.client, "nothing", NULL, note_run, &runs),
                     REDLOCK_OK);
    ck_assert_int_eq(pthread_create(&thread, NULL, let_go, &held_ms), 0);
    live_disconnect();
    ck_assert_uint_eq(atomic_load(&slow.ended), 1);
    ck_assert_uint_eq(atomic_load(&runs), OTHERS);
    CHECK_STATUS(atomic_load(&slow.check_status), REDLOCK_OK);
    redlock_lock_free(lock);
    ck_assert(!atomic_load(&slow.overlapped));
    pthread_join(thread, NULL);
}
END_TEST

/* Starts operation number `which` on live.client or `lock`. Returns the status of the call. */
static int start_operation(unsigned which, redlock_lock_t *lock, struct outcome *outcome)
{
    switch (which) {
    case 0:
        return redlock_extend_start(lock, 0, note_done, outcome);
    case 1:
        return redlock_release_start(lock, note_done, outcome);
    case 2:
        return redlock_verify_start(lock, NULL, note_done, outcome);
    case 3:
        return redlock_inspect_start(live.client, "first", NULL, note_done, outcome);
    case 4:
        return redlock_wait_ready_start(live.client, REDLOCK_WAIT_FOREVER, NULL, note_done,
                                        outcome);
    default:
        return redlock_shutdown_start(live.client, wait_scaled_ms(TIME_LIMIT_MS), note_done,
                                      outcome);
    }
}

/* The first function of a client may come with any call: its callback runs. _i: the operation. */
START_TEST(the_first_function_starts_the_thread)
{
    struct outcome outcome = OUTCOME;
    connect_threaded();
    redlock_lock_t *lock = live_lock("first", LONG_TTL_MS);
    CHECK_STATUS(start_operation((unsigned)_i, lock, &outcome), REDLOCK_OK);
    CHECK_STATUS(outcome_wait(live.client, &outcome), REDLOCK_OK);
    ck_assert(!pthread_equal(outcome.thread, pthread_self()));
    redlock_lock_free(lock);
}
END_TEST

/* ---- log lines ---- */

/* Log function: waits until slow.held is false. Counts lines. */
static void hold_line(int level, const char *message, void *userdata)
{
    (void)level, (void)userdata;
    enter_callback();
    atomic_fetch_add(&slow.lines, 1);
    atomic_fetch_add(&slow.lost, strstr(message, "log lines were lost") != NULL);
    wait_for_release();
    leave_callback();
}

/* A log function waits for three TTLs: locks are extended meanwhile. */
START_TEST(a_slow_log_function_loses_no_lock)
{
    const uint64_t ttl_ms = live_brief_ms(1000);
    redlock_lock_t *lock = NULL;
    memset(&slow, 0, sizeof slow);
    redlock_config_t *config = live_config();
    CHECK_STATUS(redlock_config_set_log(config, REDLOCK_LOG_INFO, hold_line, NULL), REDLOCK_OK);
    live.client = live_open(config);
    ck_assert(WAIT_UNTIL(atomic_load(&slow.lines) >= NODES, TIME_LIMIT_MS));
    atomic_store(&slow.held, true);
    const unsigned lines = atomic_load(&slow.lines);
    cluster_kill(live.cluster, 4);
    ck_assert(WAIT_UNTIL(atomic_load(&slow.lines) > lines, TIME_LIMIT_MS)); /* it is down */
    redlock_opts_t opts = redlock_opts(ttl_ms);
    opts.flags = REDLOCK_FLAG_AUTO_EXTEND;
    CHECK_STATUS(redlock_acquire(live.client, "logged", &opts, &lock, NULL), REDLOCK_OK);
    pass_ms(3 * ttl_ms);
    ck_assert_int_eq(redlock_lock_check(lock, 0), REDLOCK_OK);
    ck_assert_uint_eq(atomic_load(&slow.lines), lines + 1);
    ck_assert(!atomic_load(&slow.gave_up));
    atomic_store(&slow.held, false);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    live_restart_dead();
}
END_TEST

/* The reason of a call that is refused is logged before the call returns, on its thread, also while
 * a callback waits. */
START_TEST(the_reason_of_a_refused_call_is_logged_at_once)
{
    struct outcome outcome = OUTCOME;
    memset(&slow, 0, sizeof slow);
    redlock_config_t *config = live_config();
    CHECK_STATUS(redlock_config_set_log(config, REDLOCK_LOG_ERROR, hold_line, NULL), REDLOCK_OK);
    live.client = live_open(config);
    const redlock_opts_t opts = redlock_opts(0);
    CHECK_STATUS(redlock_acquire_start(live.client, "x", &opts, note_done, &outcome),
                 REDLOCK_EINVAL);
    ck_assert_uint_eq(atomic_load(&slow.lines), 1);
}
END_TEST

/* ---- handles that callbacks free ---- */

/* Two locks whose handles the first event function frees. */
static struct {
    redlock_lock_t *lock[2];
    unsigned events;     /* calls of the event function of a lock */
    unsigned freed_seen; /* events of the client that have a lock although it was freed */
    bool freed;
} pair;

/* Event function of both locks: frees the handles of both in the first event. */
static void free_both(redlock_t *rl, const redlock_event_t *event, void *userdata)
{
    (void)rl, (void)event, (void)userdata;
    pair.events++;
    if (pair.freed)
        return;
    pair.freed = true;
    redlock_lock_free(pair.lock[0]);
    redlock_lock_free(pair.lock[1]);
}

/* Event function of the client: counts events with a freed lock. */
static void see_freed(redlock_t *rl, const redlock_event_t *event, void *userdata)
{
    (void)rl, (void)userdata;
    pair.freed_seen += pair.freed && event->lock != NULL;
}

/* Two locks are lost, and their events wait. The first event that runs frees both handles: no event
 * function of a lock runs any more, and the client's gets no handle. _i: redlock_process() runs the
 * events (0), or redlock_free() (1). */
START_TEST(no_event_follows_a_freed_handle)
{
    const redlock_event_fn client_fn = see_freed;
    memset(&pair, 0, sizeof pair);
    live.mode = REDLOCK_MODE_HYBRID;
    live.event_fn = client_fn;
    live_connect();
    redlock_opts_t opts = redlock_opts(live_brief_ms(500));
    opts.event_fn = free_both;
    for (unsigned i = 0; i < 2; i++)
        CHECK_STATUS(
            redlock_acquire(live.client, i == 0 ? "first" : "second", &opts, &pair.lock[i], NULL),
            REDLOCK_OK);
    ck_assert(WAIT_UNTIL(live_stats(live.client).held == 0, TIME_LIMIT_MS));
    ck_assert_uint_eq(pair.events, 0);
    if (_i == 0)
        CHECK_STATUS(redlock_process(live.client), REDLOCK_OK);
    else
        live_disconnect();
    ck_assert(pair.freed);
    ck_assert_uint_eq(pair.events, 1);
    ck_assert_uint_eq(pair.freed_seen, 0);
}
END_TEST

/* ---- a request that was left to a thread whose call is refused ---- */

/* The allocator of the case: the thread of `waits` waits in it, once, until the callback thread
 * sleeps in a futex call. */
static struct {
    pthread_t thread; /* with `waits` */
    atomic_bool waits;
} meeting;

/* Returns whether the thread with this kernel id is in a futex call: it waits for the mutex. */
static bool sleeps_on_a_futex(int id)
{
    char path[64], text[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", id);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    if (fgets(text, sizeof text, file) == NULL)
        text[0] = '\0';
    fclose(file);
    return atoi(text) == SYS_futex;
}

static atomic_bool poller_held; /* epoll_wait() returns only when this is false */

/* Replaces epoll_wait() of libc for the whole program. */
int epoll_wait(int epoll_fd, struct epoll_event *events, int max, int timeout_ms)
{
    int (*next)(int, struct epoll_event *, int, int);
    *(void **)&next = dlsym(RTLD_NEXT, "epoll_wait");
    const int count = next(epoll_fd, events, max, timeout_ms);
    (void)WAIT_UNTIL(!atomic_load(&poller_held), 5 * TIME_LIMIT_MS);
    return count;
}

/* Implements redlock_allocator_t.malloc_fn. */
static void *meeting_malloc(size_t size, void *userdata)
{
    (void)userdata;
    if (atomic_load(&meeting.waits) && pthread_equal(pthread_self(), meeting.thread)) {
        atomic_store(&meeting.waits, false);
        atomic_store(&slow.may_call, true);
        (void)WAIT_UNTIL(sleeps_on_a_futex(atomic_load(&slow.thread_id)), TIME_LIMIT_MS);
    }
    return malloc(size);
}

/* Implements redlock_allocator_t.realloc_fn. */
static void *meeting_realloc(void *block, size_t size, void *userdata)
{
    (void)userdata;
    return realloc(block, size);
}

/* Implements redlock_allocator_t.free_fn. */
static void meeting_free(void *block, void *userdata)
{
    (void)userdata;
    free(block);
}

/* Completion callback: makes a blocking call when it may, which is refused, and goes on waiting. */
static void refused_call(redlock_t *rl, int status, redlock_lock_t *lock,
                         const redlock_report_t *report, void *userdata)
{
    (void)status, (void)lock, (void)report, (void)userdata;
    atomic_store(&slow.thread_id, (int)syscall(SYS_gettid));
    atomic_fetch_add(&slow.begun, 1);
    (void)WAIT_UNTIL(atomic_load(&slow.may_call), 5 * TIME_LIMIT_MS);
    atomic_store(&slow.blocking_status, redlock_inspect(rl, "nothing", NULL));
    wait_for_release();
    atomic_fetch_add(&slow.ended, 1);
}

/* A caller leaves its requests to a thread that is about to enter the client. That thread's call is
 * refused, because it blocks in a callback; it sends the requests all the same. The I/O thread
 * cannot do it: it does not leave the poller. */
START_TEST(requests_left_to_a_refused_call_are_sent)
{
    static const redlock_allocator_t allocator = {.size = sizeof allocator,
                                                  .malloc_fn = meeting_malloc,
                                                  .realloc_fn = meeting_realloc,
                                                  .free_fn = meeting_free};
    struct outcome outcome = OUTCOME;
    live.allocator = &allocator;
    connect_threaded();
    atomic_store(&slow.held, true);
    CHECK_STATUS(redlock_inspect_start(live.client, "nothing", NULL, refused_call, NULL),
                 REDLOCK_OK);
    ck_assert(WAIT_UNTIL(atomic_load(&slow.begun) == 1, TIME_LIMIT_MS));
    atomic_store(&poller_held, true);
    meeting.thread = pthread_self();
    atomic_store(&meeting.waits, true);
    const redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    CHECK_STATUS(redlock_acquire_start(live.client, "left", &opts, note_done, &outcome),
                 REDLOCK_OK);
    ck_assert(WAIT_UNTIL(atomic_load(&slow.blocking_status) != 1, TIME_LIMIT_MS));
    CHECK_STATUS(atomic_load(&slow.blocking_status), REDLOCK_EDEADLK);
    const bool sent = WAIT_UNTIL(live_nodes_with("left") == NODES, TIME_LIMIT_MS);
    atomic_store(&poller_held, false);
    ck_assert(sent);
    release_callbacks();
    CHECK_STATUS(outcome_wait(live.client, &outcome), REDLOCK_OK);
    CHECK_STATUS(live_release(outcome.lock), REDLOCK_OK);
}
END_TEST

/* Returns the suite of all cases. The names are those of CK_RUN_CASE, which runs one group. */
static Suite *callback_suite(void)
{
    Suite *suite = suite_create("callback_thread");
    live_add(suite, "slow", a_slow_callback_loses_no_lock);
    live_add(suite, "undelivered", a_grant_that_is_not_delivered_is_undone);
    live_add(suite, "delivered", a_grant_is_extended_once_it_is_delivered);
    live_add(suite, "free", freeing_waits_for_the_running_callback);
    live_add_each(suite, "first", the_first_function_starts_the_thread, 6);
    live_add(suite, "log", a_slow_log_function_loses_no_lock);
    live_add(suite, "refused", the_reason_of_a_refused_call_is_logged_at_once);
    live_add_each(suite, "freed", no_event_follows_a_freed_handle, 2);
    live_add(suite, "left", requests_left_to_a_refused_call_are_sent);
    return suite;
}

/* Starts the servers, runs all cases and stops the servers. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers();
    const int status = suite_run_nofork(callback_suite());
    live_stop_servers();
    return status;
}
