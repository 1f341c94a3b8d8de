/* SPDX-License-Identifier: MIT
 * Wake-ups of the poller: from threads, signal handlers and cancelled threads; none is lost, and
 * many cost as much as one.
 *
 * Uses poller_fixture.h: `poller`, an open poller; pair[0] to pair[2], connected pairs of sockets;
 * is_readable() waits until the poller's descriptor is readable. */
#include "platform/poller.h"

#include "platform/clock.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "poller_fixture.h"
#include "suite.h"
#include "wait.h"

START_TEST(wake_ups_coalesce)
{
    struct rl_ready ready[1];
    for (unsigned i = 0; i < 1000; i++)
        rl_poller_wake(&poller);
    uint64_t writes = 0;
    ck_assert_int_eq(read(poller.wake_fd, &writes, sizeof writes), sizeof writes);
    ck_assert_uint_eq(writes, 1);
    ck_assert_int_eq(write(poller.wake_fd, &writes, sizeof writes), sizeof writes);

    ck_assert(is_readable(0));
    ck_assert_int_eq(rl_poller_wait(&poller, ready, 1, 0), 0);
    ck_assert(!is_readable(0));
    rl_poller_wake(&poller); /* the next wake-up counts again */
    ck_assert(is_readable(0));
}
END_TEST

START_TEST(wake_keeps_errno)
{
    int wake_fd = poller.wake_fd;
    poller.wake_fd = -1; /* the write fails */
    errno = E2BIG;
    rl_poller_wake(&poller);
    ck_assert_int_eq(errno, E2BIG);
    poller.wake_fd = wake_fd;
}
END_TEST

/* Wakes the poller, in a signal handler. */
static void on_signal(int number)
{
    (void)number;
    rl_poller_wake(&poller);
}

START_TEST(wake_from_a_signal_handler)
{
    struct rl_ready ready[1];
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
    raise(SIGUSR1);
    ck_assert(is_readable(0));
    ck_assert_int_eq(rl_poller_wait(&poller, ready, 1, -1), 0);
    signal(SIGUSR1, SIG_DFL);
}
END_TEST

/* Does nothing: the signal only interrupts a system call. */
static void on_alarm(int number)
{
    (void)number;
}

START_TEST(a_signal_ends_a_wait)
{
    struct rl_ready ready[1];
    struct sigaction action = {.sa_handler = on_alarm};
    struct itimerval every = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    ck_assert_int_eq(sigaction(SIGALRM, &action, NULL), 0);
    /* Repeated, because the first signal may come before the wait has begun. */
    ck_assert_int_eq(setitimer(ITIMER_REAL, &every, NULL), 0);
    ck_assert_int_eq(rl_poller_wait(&poller, ready, 1, -1), 0);
    ck_assert_int_eq(setitimer(ITIMER_REAL, &never, NULL), 0);
    signal(SIGALRM, SIG_DFL);
}
END_TEST

/* When the poller is woken once: right before or right after it consumes its wake-up. */
static enum { QUIET, BEFORE, AFTER } waker;

/* Replaces read(): while the poller takes its wake-up, wakes it once more before or after that,
 * as `waker` says. */
ssize_t read(int fd, void *buffer, size_t size)
{
    bool taken = waker != QUIET && fd == poller.wake_fd;
    if (taken && waker == BEFORE)
        rl_poller_wake(&poller);
    ssize_t got = syscall(SYS_read, fd, buffer, size);
    if (taken && waker == AFTER)
        rl_poller_wake(&poller);
    if (taken)
        waker = QUIET;
    return got;
}

/* At these two moments a wake-up may merge with the running one, because its cause is seen after
 * the running wait. It must not suppress the next one. */
START_TEST(wake_while_a_wake_up_is_taken)
{
    struct rl_ready ready[1];
    rl_poller_wake(&poller);
    waker = _i == 0 ? BEFORE : AFTER;
    ck_assert_int_eq(rl_poller_wait(&poller, ready, 1, DEADLINE_MS), 0);
    ck_assert_int_eq(waker, QUIET);
    rl_poller_wait(&poller, ready, 1, 0);
    ck_assert(!is_readable(0));
    rl_poller_wake(&poller);
    ck_assert(is_readable(0));
}
END_TEST

#define WAKERS 3
#define WAKES  20000

/* Plain data that the wake-up itself has to publish; ThreadSanitizer detects a missing order. */
struct mailbox {
    pthread_mutex_t mutex;
    unsigned posted;
};
static struct mailbox mailbox = {PTHREAD_MUTEX_INITIALIZER, 0};

/* Posts WAKES times and wakes the poller after each post. */
static void *post_many(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < WAKES; i++) {
        pthread_mutex_lock(&mailbox.mutex);
        mailbox.posted++;
        pthread_mutex_unlock(&mailbox.mutex);
        rl_poller_wake(&poller);
    }
    return NULL;
}

/* Each post is seen after a wait that its wake-up ended. After a lost wake-up, the next wait would
 * last until its timeout. */
START_TEST(no_wake_up_is_lost)
{
    pthread_t wakers[WAKERS];
    struct rl_ready ready[1];
    unsigned taken = 0;

    mailbox.posted = 0;
    for (unsigned i = 0; i < WAKERS; i++)
        ck_assert_int_eq(pthread_create(&wakers[i], NULL, post_many, NULL), 0);
    while (taken < WAKERS * WAKES) {
        uint64_t start_ms = wait_now_ms();
        rl_poller_wait(&poller, ready, 1, (int)wait_scaled_ms(DEADLINE_MS));
        ck_assert_msg(wait_now_ms() - start_ms < wait_scaled_ms(DEADLINE_MS),
                      "a wake-up was lost after %u posts", taken);
        pthread_mutex_lock(&mailbox.mutex);
        taken += mailbox.posted;
        mailbox.posted = 0;
        pthread_mutex_unlock(&mailbox.mutex);
    }
    for (unsigned i = 0; i < WAKERS; i++)
        pthread_join(wakers[i], NULL);
    rl_poller_wait(&poller, ready, 1, 0); /* the last wake-ups may have come after their posts */
    ck_assert(!is_readable(0));
}
END_TEST

/* Arms the timer under the mutex, as an engine does, while another thread waits. */
static void *post_deadlines(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < WAKES; i++) {
        pthread_mutex_lock(&mailbox.mutex);
        mailbox.posted++;
        rl_poller_arm(&poller, rl_clock_now().boot_ns);
        pthread_mutex_unlock(&mailbox.mutex);
    }
    return NULL;
}

START_TEST(no_deadline_of_another_thread_is_lost)
{
    pthread_t thread;
    struct rl_ready ready[1];
    unsigned taken = 0;

    mailbox.posted = 0;
    ck_assert_int_eq(pthread_create(&thread, NULL, post_deadlines, NULL), 0);
    while (taken < WAKES) {
        uint64_t start_ms = wait_now_ms();
        rl_poller_wait(&poller, ready, 1, (int)wait_scaled_ms(DEADLINE_MS));
        ck_assert_msg(wait_now_ms() - start_ms < wait_scaled_ms(DEADLINE_MS),
                      "a deadline was lost after %u posts", taken);
        pthread_mutex_lock(&mailbox.mutex);
        taken += mailbox.posted;
        mailbox.posted = 0;
        pthread_mutex_unlock(&mailbox.mutex);
    }
    pthread_join(thread, NULL);
}
END_TEST

static unsigned published;

/* Stores a value and then wakes the poller; the main function of a thread. */
static void *publish(void *arg)
{
    (void)arg;
    published = 42;
    rl_poller_wake(&poller);
    return NULL;
}

/* Wakes the poller in a cancelled thread. rl_poller_wake() is no cancellation point, so the flag is
 * not left set without a write. */
static void *wake_cancelled(void *arg)
{
    (void)arg;
    pthread_cancel(pthread_self()); /* takes effect at the next cancellation point */
    rl_poller_wake(&poller);
    pthread_testcancel();
    return NULL;
}

START_TEST(wake_from_a_cancelled_thread)
{
    pthread_t thread;
    void *result;
    ck_assert_int_eq(pthread_create(&thread, NULL, wake_cancelled, NULL), 0);
    pthread_join(thread, &result);
    ck_assert_ptr_eq(result, PTHREAD_CANCELED);
    ck_assert(is_readable(0));
}
END_TEST

START_TEST(wake_publishes_what_was_written)
{
    pthread_t thread;
    struct rl_ready ready[1];
    published = 0;
    ck_assert_int_eq(pthread_create(&thread, NULL, publish, NULL), 0);
    ck_assert_int_eq(rl_poller_wait(&poller, ready, 1, -1), 0);
    ck_assert_uint_eq(published, 42);
    pthread_join(thread, NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("platform_poller_wakeups");
    TCase *tcase = tcase_create("wake");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, wake_ups_coalesce);
    tcase_add_test(tcase, wake_keeps_errno);
    tcase_add_test(tcase, wake_from_a_signal_handler);
    tcase_add_test(tcase, a_signal_ends_a_wait);
    tcase_add_loop_test(tcase, wake_while_a_wake_up_is_taken, 0, 2);
    tcase_add_test(tcase, no_wake_up_is_lost);
    tcase_add_test(tcase, no_deadline_of_another_thread_is_lost);
    tcase_add_test(tcase, wake_publishes_what_was_written);
    tcase_add_test(tcase, wake_from_a_cancelled_thread);
    return suite_run_nofork(suite);
}
