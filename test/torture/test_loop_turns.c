/* SPDX-License-Identifier: MIT
 * One caller in blocking calls, which drives the loop by turns with the client's own thread. The
 * scheduler is as bad as it can be: between the wake-up of a polling thread and its next step time
 * passes, in which the other thread may have handled the event. A lost wake-up would leave the
 * caller asleep for ever. */
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "call_fail.h"
#include "cluster.h"
#include "rig.h"

#define ROUNDS      400  /* number of locks per mode */
#define DELAY_US    3000 /* longest delay of a wake-up */
#define SECONDS_MAX 60   /* a quarter of it is the limit per mode */

static atomic_bool delays;   /* each wake-up is delayed at random */
static atomic_uint seed = 1; /* state of random_below() */

/* Returns the time of CLOCK_MONOTONIC in µs. */
static uint64_t now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* Returns a random number below `limit`. */
static unsigned random_below(unsigned limit)
{
    unsigned word = atomic_fetch_add(&seed, 2654435769u);

    word = (word ^ word >> 15) * 2246822519u;
    return (word >> 9) % limit;
}

/* Delays the thread, as a busy processor would. */
static void lose_time(void)
{
    const uint64_t end = now_us() + (random_below(2) == 0 ? 0 : random_below(DELAY_US));

    while (now_us() < end)
        sched_yield();
}

/* Replaces epoll_wait(): with `delays`, time passes between the wake-up and the reading of events.
 */
static int wait_with_delays(epoll_wait_fn next, int epoll_fd, struct epoll_event *events, int max,
                            int timeout)
{
    struct pollfd ready = {.fd = epoll_fd, .events = POLLIN};
    int count;

    do {
        if (timeout != 0) {
            (void)poll(&ready, 1, 20);
            lose_time();
        }
        count = next(epoll_fd, events, max, 0);
    } while (count == 0 && timeout < 0 && atomic_load(&delays));
    return count;
}

/* Acquires and releases a lock in blocking calls. */
static void acquire_and_release(void)
{
    redlock_opts_t opts = redlock_opts(RIG_TTL_MS);
    redlock_lock_t *lock = NULL;

    opts.wait_ms = wait_scaled_ms(5000);
    const int error = redlock_acquire(rig.client, "resource", &opts, &lock, NULL);
    ck_assert_msg(error == REDLOCK_OK, "acquire: %s", redlock_error_name(error));
    (void)redlock_release(lock, NULL);
    redlock_lock_free(lock);
}

/* Acquires and releases locks with delayed wake-ups, for ROUNDS rounds or a quarter of SECONDS_MAX.
 */
static void acquire_many_times(int mode)
{
    const uint64_t end = wait_now_ms() + SECONDS_MAX * 1000 / 4;

    rig_new_config(mode);
    /* Replies are often late: each tick must read once more before a node becomes suspect. */
    ck_assert_int_eq(redlock_config_set_node_timeout_ms(rig.config, 2), REDLOCK_OK);
    ck_assert_int_eq(redlock_new(&rig.client, rig.config), REDLOCK_OK);
    redlock_config_free(rig.config);
    ck_assert_int_eq(redlock_wait_ready(rig.client, wait_scaled_ms(5000)), REDLOCK_OK);
    atomic_store(&delays, true);
    call_fail_hook_epoll_wait(wait_with_delays);
    unsigned i = 0;
    for (; i < ROUNDS && wait_now_ms() < end; i++) {
        rig_note_text("driving", "a call does not end");
        acquire_and_release();
    }
    atomic_store(&delays, false);
    call_fail_hook_epoll_wait(NULL);
    rig_end_note();
    ck_assert_int_eq(redlock_free(rig.client), REDLOCK_OK);
    printf("# %u locks\n", i);
    ck_assert_uint_gt(i, 10);
    memset(&rig.call, 0, sizeof rig.call);
}

START_TEST(no_wake_up_is_lost_in_a_threaded_client)
{
    acquire_many_times(REDLOCK_MODE_THREADED);
}
END_TEST

START_TEST(no_wake_up_is_lost_in_a_hybrid_client)
{
    acquire_many_times(REDLOCK_MODE_HYBRID);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("torture_loop_turns");
    TCase *tcase = tcase_create("turns");
    rig_add_fixtures(tcase);
    tcase_add_test(tcase, no_wake_up_is_lost_in_a_threaded_client);
    tcase_add_test(tcase, no_wake_up_is_lost_in_a_hybrid_client);
    suite_add_tcase(suite, tcase);
    return rig_main(suite);
}
