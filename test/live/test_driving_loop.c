/* SPDX-License-Identifier: MIT
 * Callers that drive the loop (leaders): they return when another thread ends their operation, and
 * they hand the loop over in time when other callers only wait for the clock. Node timeouts are
 * long here, so that a caller that is not woken is late by seconds.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_connect() creates live.client and waits
 * until all nodes are eligible. live_open(live_config()) returns such a client. live_acquire() and
 * live_release() return the status of one call and keep its report. live_pause(first, count) stops
 * servers with SIGSTOP. live_voters() counts the eligible nodes, live_responsive() the nodes that
 * reply. WAIT_UNTIL(condition, ms) polls and returns false after the deadline. wait_scaled_ms()
 * stretches a time for slow builds. CHECK_STATUS() compares two REDLOCK_* codes. LONG_TTL_MS is a
 * TTL that no case reaches. */
#include "live.h"
#include "suite.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#define STREAK          24 /* blocking calls in a row: more than a caller needs to drive the loop */
#define LATE_MS         6000 /* a call that need not wait for a server is late after this; scaled */
#define NODE_TIMEOUT_MS 8000 /* node timeout; scaled by live_config() */
#define BURST           12   /* locks of one burst */
#define BURSTS_MS       1500 /* duration of the case */
#define PAUSE_US        2600 /* just longer than the I/O thread waits to take the loop back */

/* Creates live.client with a node timeout so long that a missed wake-up makes a call late by
 * seconds. */
static void connect_patient(void)
{
    live.node_time_ms = NODE_TIMEOUT_MS;
    live_connect();
}

/* Makes so many blocking calls that the next one drives the loop, unless the I/O thread needs it.
 */
static void become_leader(void)
{
    for (unsigned i = 0; i < STREAK; i++)
        CHECK_STATUS(redlock_inspect(live.client, "streak", NULL), REDLOCK_OK);
}

/* Checks that a call that began at begun_ms is not late. */
static void check_quick(const char *what, uint64_t begun_ms)
{
    const uint64_t took_ms = wait_now_ms() - begun_ms;
    ck_assert_msg(took_ms < wait_scaled_ms(LATE_MS), "%s took %d ms", what, (int)took_ms);
}

/* ---- bursts ---- */

/* Waits for that time. */
static void pass_us(uint64_t us)
{
    const uint64_t end_ns = wait_now_ns() + us * 1000;
    while (wait_now_ns() < end_ns)
        wait_pause();
}

/* Acquires and releases a lock, and checks that neither call is late. */
static void lock_and_unlock(unsigned i)
{
    char resource[16];
    redlock_lock_t *lock = NULL;
    snprintf(resource, sizeof resource, "burst-%u", i);
    uint64_t begun_ms = wait_now_ms();
    CHECK_STATUS(live_acquire(resource, LONG_TTL_MS, 0, &lock), REDLOCK_OK);
    check_quick("acquire", begun_ms);
    begun_ms = wait_now_ms();
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    check_quick("release", begun_ms);
}

/* Between two bursts the I/O thread takes the loop back, or is about to do so. */
START_TEST(bursts_with_pauses_are_never_late)
{
    connect_patient();
    const uint64_t end_ms = wait_now_ms() + BURSTS_MS;
    for (unsigned round = 0; wait_now_ms() < end_ms; round++) {
        for (unsigned i = 0; i < BURST; i++)
            lock_and_unlock(i);
        pass_us(PAUSE_US + round % 7 * 100);
    }
}
END_TEST

/* ---- a leader while a majority of servers is stopped ---- */

/* A thread in a blocking call. */
struct caller {
    pthread_t thread;
    redlock_cancel_t *cancel;
    int status;
    atomic_bool done;
};

/* Thread function: waits for the lock "driven" without a time limit, so that the caller drives
 * the loop, and stores the status. */
static void *acquire(void *userdata)
{
    struct caller *caller = userdata;
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    redlock_lock_t *lock = NULL;
    opts.wait_ms = REDLOCK_WAIT_FOREVER;
    opts.cancel = caller->cancel;
    caller->status = redlock_acquire(live.client, "driven", &opts, &lock, NULL);
    redlock_lock_free(lock);
    atomic_store(&caller->done, true);
    pthread_testcancel();
    return NULL;
}

/* Starts a thread whose acquisition drives the loop and waits for stopped servers. */
static void start_leader(struct caller *caller)
{
    connect_patient();
    become_leader();
    live_pause(0, QUORUM);
    ck_assert_int_eq(redlock_cancel_new(&caller->cancel, live.client), REDLOCK_OK);
    atomic_store(&caller->done, false);
    ck_assert_int_eq(pthread_create(&caller->thread, NULL, acquire, caller), 0);
    ck_assert(WAIT_UNTIL(live_stats(live.client).waiting == 1, TIME_LIMIT_MS));
}

/* Checks that the call of the thread returns in time with that status. */
static void check_ended(struct caller *caller, int status, uint64_t begun_ms)
{
    const bool ended = WAIT_UNTIL(atomic_load(&caller->done), LATE_MS);
    live_resume_all();
    pthread_join(caller->thread, NULL);
    redlock_cancel_free(caller->cancel);
    ck_assert_msg(ended, "the leader has not returned for %d ms", (int)(wait_now_ms() - begun_ms));
    CHECK_STATUS(caller->status, status);
}

/* The leader's call returns ECLOSED at once when another thread shuts the client down. */
START_TEST(shutdown_ends_the_call_of_the_leader)
{
    struct caller caller;
    start_leader(&caller);
    const uint64_t begun_ms = wait_now_ms();
    CHECK_STATUS(redlock_shutdown(live.client, 20), REDLOCK_ENOQUORUM); /* undos are pending */
    check_quick("shutdown", begun_ms);
    check_ended(&caller, REDLOCK_ECLOSED, begun_ms);
}
END_TEST

/* The leader's call returns ECANCELED at once when another thread cancels it. */
START_TEST(cancel_ends_the_call_of_the_leader)
{
    struct caller caller;
    start_leader(&caller);
    const uint64_t begun_ms = wait_now_ms();
    redlock_cancel_trigger(caller.cancel);
    check_ended(&caller, REDLOCK_ECANCELED, begun_ms);
}
END_TEST

/* The leader's call returns ECLOSED at once when another thread frees the client. */
START_TEST(free_ends_the_call_of_the_leader)
{
    struct caller caller;
    start_leader(&caller);
    const uint64_t begun_ms = wait_now_ms();
    live_disconnect();
    check_quick("free", begun_ms);
    check_ended(&caller, REDLOCK_ECLOSED, begun_ms);
}
END_TEST

/* A cancellation of the leader's thread waits until its call has returned, and the client works. */
START_TEST(a_cancelled_thread_finishes_its_call)
{
    struct caller caller;
    void *result = NULL;
    start_leader(&caller);
    ck_assert_int_eq(pthread_cancel(caller.thread), 0);
    live_resume_all();
    pthread_join(caller.thread, &result);
    ck_assert(result == PTHREAD_CANCELED);
    ck_assert(atomic_load(&caller.done));
    CHECK_STATUS(caller.status, REDLOCK_OK);
    redlock_cancel_free(caller.cancel);
    live_check_works();
}
END_TEST

static atomic_bool only_wakes;   /* epoll_wait() returns for wake-ups only */
static atomic_uint held_waits;   /* calls that have begun since */
static atomic_int extend_status; /* of extend(); 1: it has not returned */

/* Replaces epoll_wait() of libc for the whole program. While only_wakes is true, neither sockets
 * nor timers end it, but only a wake-up of the poller, whose data is 2 << 32
 * (lib/platform/poller.c). */
int epoll_wait(int epoll_fd, struct epoll_event *events, int max, int timeout_ms)
{
    int (*next)(int, struct epoll_event *, int, int);
    *(void **)&next = dlsym(RTLD_NEXT, "epoll_wait");
    atomic_fetch_add(&held_waits, atomic_load(&only_wakes));
    for (;;) {
        const int count = next(epoll_fd, events, max, timeout_ms);
        for (int i = 0; i < count; i++)
            if (events[i].data.u64 == UINT64_C(2) << 32)
                return count;
        if (!atomic_load(&only_wakes))
            return count;
        wait_pause();
    }
}

/* Thread function: extends the lock `userdata`, whose handle another thread frees meanwhile. */
static void *extend(void *userdata)
{
    atomic_store(&extend_status, redlock_extend(userdata, 0, NULL));
    return NULL;
}

/* The end of an operation wakes the leader that polls: no timer is needed for that. The leader
 * extends a lock, and another thread frees the handle. */
START_TEST(the_end_of_an_operation_wakes_the_leader)
{
    pthread_t thread;
    redlock_lock_t *lock = NULL;
    connect_patient();
    CHECK_STATUS(live_acquire("driven", LONG_TTL_MS, 0, &lock), REDLOCK_OK);
    become_leader();
    live_pause(0, QUORUM);
    atomic_store(&held_waits, 0);
    atomic_store(&extend_status, 1);
    atomic_store(&only_wakes, true);
    ck_assert_int_eq(pthread_create(&thread, NULL, extend, lock), 0);
    ck_assert(WAIT_UNTIL(atomic_load(&held_waits) > 0, TIME_LIMIT_MS));
    redlock_lock_free(lock);
    const bool ended = WAIT_UNTIL(atomic_load(&extend_status) != 1, TIME_LIMIT_MS);
    atomic_store(&only_wakes, false);
    pthread_join(thread, NULL);
    ck_assert(ended);
    CHECK_STATUS(atomic_load(&extend_status), REDLOCK_ECANCELED);
}
END_TEST

/* ---- a leader for a long time ---- */

#define WAITED_MS    1000 /* wait budget of the call that leads */
#define SWITCHES_MAX 200  /* of context: a thread that polls has far more */

/* Returns the number of voluntary context switches of this process. */
static long switches(void)
{
    struct rusage usage;
    ck_assert_int_eq(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_nvcsw;
}

/* While a caller drives the loop, the I/O thread has nothing to do and does not poll. */
START_TEST(the_io_thread_sleeps_while_a_caller_leads)
{
    redlock_lock_t *lock = NULL;
    connect_patient();
    cluster_command_all(live.cluster, "SET taken somebody PX 30000");
    become_leader();
    const long before = switches();
    CHECK_STATUS(live_acquire("taken", LONG_TTL_MS, WAITED_MS, &lock), REDLOCK_ECONTENDED);
    const long count = switches() - before;
    cluster_command_all(live.cluster, "DEL taken");
    ck_assert_msg(count < SWITCHES_MAX, "%ld switches", count);
    const uint64_t begun_ms = wait_now_ms();
    lock_and_unlock(0);
    check_quick("the next one", begun_ms);
}
END_TEST

/* Returns whether a lock with a short TTL that is acquired after a long drive is extended, not
 * lost, although no call follows. */
static bool is_extended_after_a_long_drive(void)
{
    redlock_lock_t *lock = NULL;
    CHECK_STATUS(live_acquire("taken", LONG_TTL_MS, WAITED_MS, &lock), REDLOCK_ECONTENDED);
    const uint64_t before = live_stats(live.client).extended;
    redlock_opts_t opts = redlock_opts(300);
    opts.flags = REDLOCK_FLAG_AUTO_EXTEND;
    CHECK_STATUS(redlock_acquire(live.client, "brief", &opts, &lock, NULL), REDLOCK_OK);
    ck_assert(WAIT_UNTIL(live_stats(live.client).extended > before ||
                             redlock_lock_check(lock, 0) != REDLOCK_OK,
                         TIME_LIMIT_MS));
    const bool extended = live_stats(live.client).extended > before;
    redlock_lock_free(lock);
    return extended;
}

/* After a drive of a second the I/O thread sleeps for long. It is woken when the caller stops
 * driving, and so extends a lock of 300 ms. A pause of the machine can lose such a lock: one of
 * five rounds must succeed. */
START_TEST(the_io_thread_is_recalled_after_a_long_drive)
{
    bool extended = false;
    connect_patient();
    cluster_command_all(live.cluster, "SET taken somebody PX 30000");
    for (unsigned i = 0; i < 5 && !extended; i++) {
        pass_us(UINT64_C(1200) * 1000); /* the I/O thread is in the poller after at most a second */
        become_leader();
        extended = is_extended_after_a_long_drive();
    }
    cluster_command_all(live.cluster, "DEL taken");
    ck_assert(extended);
}
END_TEST

/* ---- calls that end by the clock ---- */

/* redlock_shutdown() that drives the loop itself returns when its 20 ms have passed, although
 * undos are pending. */
START_TEST(shutdown_keeps_its_budget_as_leader)
{
    redlock_lock_t *lock = NULL;
    connect_patient();
    become_leader();
    live_pause(0, QUORUM);
    CHECK_STATUS(live_acquire("pending", LONG_TTL_MS, 30, &lock), REDLOCK_ENOQUORUM);
    const uint64_t begun_ms = wait_now_ms();
    CHECK_STATUS(redlock_shutdown(live.client, 20), REDLOCK_ENOQUORUM); /* undos are pending */
    check_quick("shutdown", begun_ms);
}
END_TEST

/* Creates a client while a majority of servers is stopped: it connects, but is never ready. */
static void connect_unready(void)
{
    live.connect_time_ms = NODE_TIMEOUT_MS;
    live_pause(0, QUORUM);
    redlock_config_t *config = live_config();
    ck_assert_int_eq(redlock_new(&live.client, config), REDLOCK_OK);
    redlock_config_free(config);
    ck_assert(WAIT_UNTIL(live_voters(live.client) == NODES - QUORUM, TIME_LIMIT_MS));
}

/* Waits for readiness with a short time limit, and checks that the call is not late. */
static void wait_ready_briefly(void)
{
    const uint64_t begun_ms = wait_now_ms();
    CHECK_STATUS(redlock_wait_ready(live.client, 10), REDLOCK_ENOQUORUM);
    check_quick("wait_ready", begun_ms);
}

/* redlock_wait_ready() that drives the loop itself returns when its budget has passed, STREAK
 * times. */
START_TEST(wait_ready_keeps_its_budget_as_leader)
{
    connect_unready();
    for (unsigned i = 0; i < STREAK; i++)
        wait_ready_briefly();
}
END_TEST

/* Thread function: waits without a time limit until the client is ready, and stores the status. */
static void *wait_ready(void *userdata)
{
    struct caller *caller = userdata;
    caller->status = redlock_wait_ready(live.client, REDLOCK_WAIT_FOREVER);
    atomic_store(&caller->done, true);
    return NULL;
}

/* Two callers wait, one of which drives the loop: both return in time. */
START_TEST(wait_ready_keeps_its_budget_beside_a_leader)
{
    struct caller caller = {.cancel = NULL};
    connect_unready();
    for (unsigned i = 0; i < STREAK; i++)
        wait_ready_briefly();
    atomic_init(&caller.done, false);
    ck_assert_int_eq(pthread_create(&caller.thread, NULL, wait_ready, &caller), 0);
    for (unsigned i = 0; i < STREAK; i++)
        wait_ready_briefly();
    const uint64_t begun_ms = wait_now_ms();
    if (_i == 0)
        live_disconnect();
    else
        CHECK_STATUS(redlock_shutdown(live.client, 20), REDLOCK_OK);
    check_quick("leaving", begun_ms);
    check_ended(&caller, REDLOCK_ECLOSED, begun_ms);
}
END_TEST

/* Returns the suite of all cases. The names are those of CK_RUN_CASE, which runs one group. */
static Suite *driving_loop_suite(void)
{
    Suite *suite = suite_create("live_driving_loop");
    live_add(suite, "bursts", bursts_with_pauses_are_never_late);
    live_add(suite, "shutdown", shutdown_ends_the_call_of_the_leader);
    live_add(suite, "cancel", cancel_ends_the_call_of_the_leader);
    live_add(suite, "free", free_ends_the_call_of_the_leader);
    live_add(suite, "long", the_io_thread_sleeps_while_a_caller_leads);
    live_add(suite, "shutdown leads", shutdown_keeps_its_budget_as_leader);
    live_add(suite, "wait_ready leads", wait_ready_keeps_its_budget_as_leader);
    live_add_each(suite, "two wait", wait_ready_keeps_its_budget_beside_a_leader, 2);
    live_add(suite, "thread cancelled", a_cancelled_thread_finishes_its_call);
    live_add(suite, "end", the_end_of_an_operation_wakes_the_leader);
    live_add(suite, "recall", the_io_thread_is_recalled_after_a_long_drive);
    return suite;
}

/* Starts the servers, runs all cases and stops the servers. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers();
    const int status = suite_run_nofork(driving_loop_suite());
    live_stop_servers();
    return status;
}
