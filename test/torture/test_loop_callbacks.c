/* SPDX-License-Identifier: MIT
 * A caller that drives the loop, and callbacks, which only the client's own thread may run. If both
 * threads poll, the kernel wakes either of them. Here it is always the caller, because the other
 * thread reacts too late. That thread must run its callbacks all the same, and not only after the
 * caller's call has returned. */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "call_fail.h"
#include "cluster.h"
#include "rig.h"

#define STREAK  24   /* enough blocking calls for the caller to become the leader */
#define LATE_MS 100  /* delay of the thread after each wake-up */
#define CALL_MS 1500 /* how long the caller drives the loop */

static pthread_t caller;          /* the thread that makes the blocking calls */
static atomic_bool delays;        /* the client's own thread is delayed after each wake-up */
static atomic_bool is_polling;    /* the client's own thread is polling */
static atomic_uint callbacks_run; /* number of callbacks of the client's thread */
static atomic_uint turns;         /* how often the caller has polled */

/* Returns whether the descriptor stays ready for LATE_MS, or until `delays` ends, because no other
 * thread reads it. */
static bool stays_ready(int epoll_fd)
{
    struct pollfd ready = {.fd = epoll_fd, .events = POLLIN};
    const uint64_t end_ns = wait_now_ns() + LATE_MS * UINT64_C(1000000);

    if (poll(&ready, 1, 10) <= 0)
        return false;
    while (atomic_load(&delays) && wait_now_ns() < end_ns) {
        if (poll(&ready, 1, 0) <= 0)
            return false;
    }
    return true;
}

/* Replaces epoll_wait(): with `delays`, the client's own thread reacts after the caller. */
static int wait_with_delay(epoll_wait_fn next, int epoll_fd, struct epoll_event *events, int max,
                           int timeout)
{
    int count = 0;

    if (timeout == 0)
        return next(epoll_fd, events, max, timeout);
    if (pthread_equal(pthread_self(), caller)) {
        atomic_fetch_add(&turns, 1);
        return next(epoll_fd, events, max, timeout);
    }
    atomic_store(&is_polling, true);
    while (count == 0) {
        if (stays_ready(epoll_fd))
            count = next(epoll_fd, events, max, 0);
    }
    atomic_store(&is_polling, false);
    return count;
}

/* Counts a callback and frees the lock. */
static void count_callback(redlock_t *client, int status, redlock_lock_t *lock,
                           const redlock_report_t *report, void *unused)
{
    (void)client;
    (void)status;
    (void)report;
    (void)unused;
    redlock_lock_free(lock);
    atomic_fetch_add(&callbacks_run, 1);
}

/* Checks that a callback runs while the caller drives the loop in a blocking call. */
static void check_callback_in_time(void)
{
    redlock_opts_t opts = redlock_opts(RIG_TTL_MS);
    redlock_lock_t *lock = NULL;

    for (unsigned i = 0; i < STREAK; i++)
        ck_assert_int_eq(redlock_inspect(rig.client, "streak", NULL), REDLOCK_OK);
    ck_assert(WAIT_UNTIL(atomic_load(&is_polling), 10000)); /* its thread drives the loop again */
    atomic_store(&turns, 0);
    atomic_store(&delays, true);
    ck_assert_int_eq(redlock_acquire_start(rig.client, "free", &opts, count_callback, NULL),
                     REDLOCK_OK);
    opts.wait_ms = wait_scaled_ms(CALL_MS);
    ck_assert_int_eq(redlock_acquire(rig.client, "taken", &opts, &lock, NULL), REDLOCK_ECONTENDED);
    const unsigned in_time = atomic_load(&callbacks_run);
    atomic_store(&delays, false);
    ck_assert_uint_gt(atomic_load(&turns), 0); /* the caller has driven the loop */
    ck_assert_msg(in_time == 1, "the callback had to wait until the caller was done");
}

START_TEST(callbacks_do_not_wait_for_the_driver)
{
    atomic_store(&callbacks_run, 0);
    caller = pthread_self();
    rig_new_config(REDLOCK_MODE_THREADED);
    ck_assert_int_eq(redlock_config_set_heartbeat_ms(rig.config, 60000), REDLOCK_OK);
    ck_assert_int_eq(redlock_config_set_node_timeout_ms(rig.config, 10000), REDLOCK_OK);
    ck_assert_int_eq(redlock_config_set_retry_ms(rig.config, 200, 300), REDLOCK_OK);
    ck_assert_int_eq(redlock_new(&rig.client, rig.config), REDLOCK_OK);
    redlock_config_free(rig.config);
    ck_assert_int_eq(redlock_wait_ready(rig.client, wait_scaled_ms(5000)), REDLOCK_OK);
    cluster_command_all(rig.cluster, "SET taken somebody PX 60000");
    call_fail_hook_epoll_wait(wait_with_delay);
    check_callback_in_time();
    call_fail_hook_epoll_wait(NULL);
    cluster_command_all(rig.cluster, "DEL taken");
    ck_assert_int_eq(redlock_shutdown(rig.client, wait_scaled_ms(5000)), REDLOCK_OK);
    ck_assert_int_eq(redlock_free(rig.client), REDLOCK_OK);
    memset(&rig.call, 0, sizeof rig.call);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("torture_loop_callbacks");
    TCase *tcase = tcase_create("callbacks");
    rig_add_fixtures(tcase);
    tcase_add_test(tcase, callbacks_do_not_wait_for_the_driver);
    suite_add_tcase(suite, tcase);
    return rig_main(suite);
}
