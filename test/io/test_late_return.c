/* SPDX-License-Identifier: MIT
 * The clocks jump between the turn that reads the deciding vote and the return of the call that
 * waits for it, as if the process had been stopped. The result must be true when the call returns.
 *
 * Uses three_servers.h: three fake servers on threads of this process (three_servers.fake[]) and
 * one threaded client. fake_redis_rule() makes a server misbehave, fake_redis_count() counts
 * commands in its log. three_servers_acquire() and the like make one call and keep its report for
 * the checks. */
#include "api/client.h"
#include "fake_tls.h"
#include "suite.h"
#include "three_servers.h"
#include "wait.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STREAK     20 /* number of blocking calls after which the caller drives the loop itself */
#define BRIEF_MS   2000
#define HEADER_LEN 5            /* bytes before each record of TLS */
#define VOTE_LEN   (5 + 1 + 16) /* "+OK" with the end of its line, type and tag in TLS 1.3 */
#define JUMP_S     3 /* longer than BRIEF_MS; the kernel's timers are then late by as much */

static atomic_bool reported; /* the callback of the operation has run, with: */
static int reported_status;
static redlock_lock_t *reported_lock;

static atomic_int votes_left; /* number of votes until the jump; 0: no jump */
static atomic_uint jumped_s;  /* number of seconds by which the two clocks of locks are ahead */

static atomic_bool frozen; /* both clocks show `frozen_at` */
static struct timespec frozen_at[2];

/* Replaces the function of libc: the clocks of locks can be frozen and can jump. */
int clock_gettime(clockid_t clock, struct timespec *ret)
{
    int result = (int)syscall(SYS_clock_gettime, clock, ret);

    if (clock == CLOCK_BOOTTIME || clock == CLOCK_MONOTONIC_RAW) {
        if (atomic_load(&frozen))
            *ret = frozen_at[clock == CLOCK_BOOTTIME];
        ret->tv_sec += (time_t)atomic_load(&jumped_s);
    }
    return result;
}

/* Returns whether a record of TLS in these bytes has the length of a vote. After arm_jump() no
 * other reply has it. */
static bool has_vote_record(const unsigned char *bytes, size_t len)
{
    for (size_t at = 0; at + HEADER_LEN <= len;) {
        const size_t record = (size_t)bytes[at + 3] << 8 | bytes[at + 4];
        if (record == VOTE_LEN)
            return true;
        at += HEADER_LEN + record;
    }
    return false;
}

/* Returns whether these bytes contain a vote. */
static bool has_vote(const void *bytes, ssize_t len)
{
    if (len <= 0)
        return false;
    return fake_tls_is_wanted() ? has_vote_record(bytes, (size_t)len)
                                : memmem(bytes, (size_t)len, "+OK\r\n", 5) != NULL;
}

/* Replaces the function of libc: the clocks jump when the last expected vote was read. */
ssize_t recv(int fd, void *bytes, size_t len, int flags)
{
    ssize_t got = recvfrom(fd, bytes, len, flags, NULL, NULL);

    if (has_vote(bytes, got) && atomic_load(&votes_left) > 0 &&
        atomic_fetch_sub(&votes_left, 1) == 1)
        atomic_fetch_add(&jumped_s, JUMP_S);
    return got;
}

/* Lets the clocks jump with the second of three votes. The third server does not reply. */
static void arm_jump(void)
{
    fake_redis_rule(three_servers.fake[2],
                    (struct fake_rule){.command = "SET", .fault = FAKE_GATE});
    atomic_store(&votes_left, 2);
}

/* Connects with time limits that no pause of a busy machine exceeds. */
static void connect_with_long_limits(void)
{
    three_servers.node_time_ms = 10000;
    atomic_store(&reported, false); /* cases may share a process */
    three_servers_connect();
    ck_assert(three_servers_wait_all_vote());
}

/* Connects, acquires and releases so many locks, and arms the jump. */
static void connect_and_acquire(unsigned times)
{
    connect_with_long_limits();
    for (unsigned i = 0; i < times; i++)
        three_servers_check_all_work();
    arm_jump();
}

/* Checks that the acquisition was too slow, and leaves no key. */
static void check_too_slow(int status, const redlock_lock_t *lock)
{
    ck_assert_msg(status == REDLOCK_ETOOSLOW, "%s, %d votes missing", redlock_error_name(status),
                  atomic_load(&votes_left));
    ck_assert_ptr_null(lock);
    fake_redis_open_gate(three_servers.fake[2]);
    ck_assert(three_servers_wait_no_keys());
}

/* The I/O thread drives the loop (0), or the caller does (1). */
START_TEST(a_blocking_acquisition_is_too_slow)
{
    redlock_lock_t *lock = NULL;
    redlock_opts_t opts = redlock_opts(BRIEF_MS);

    connect_and_acquire(_i == 0 ? 1 : STREAK);
    int status = redlock_acquire(three_servers.client, "resource", &opts, &lock, NULL);
    check_too_slow(status, lock);
}
END_TEST

/* Records the end of the operation. */
static void on_done(redlock_t *rl, int status, redlock_lock_t *lock, const redlock_report_t *report,
                    void *userdata)
{
    (void)rl, (void)report, (void)userdata;
    reported_status = status;
    reported_lock = lock;
    atomic_store(&reported, true);
}

START_TEST(an_acquisition_with_a_callback_is_too_slow)
{
    redlock_opts_t opts = redlock_opts(BRIEF_MS);

    connect_and_acquire(1);
    int status = redlock_acquire_start(three_servers.client, "resource", &opts, on_done, NULL);
    ck_assert_int_eq(status, REDLOCK_OK);
    ck_assert(WAIT_UNTIL(atomic_load(&reported), TIME_LIMIT_MS));
    check_too_slow(reported_status, reported_lock);
}
END_TEST

/* Lets the clocks jump in the callback of the event ACQUIRED. */
static void on_event(redlock_t *rl, const redlock_event_t *event, void *userdata)
{
    (void)rl, (void)userdata;
    if (event->kind == REDLOCK_EVENT_ACQUIRED)
        atomic_fetch_add(&jumped_s, JUMP_S);
}

/* The callback of an event runs before that of the operation and takes longer than the TTL. */
START_TEST(a_slow_event_callback_makes_the_acquisition_too_slow)
{
    redlock_opts_t opts = redlock_opts(BRIEF_MS);

    opts.event_fn = on_event;
    connect_with_long_limits();
    int status = redlock_acquire_start(three_servers.client, "resource", &opts, on_done, NULL);
    ck_assert_int_eq(status, REDLOCK_OK);
    ck_assert(WAIT_UNTIL(atomic_load(&reported), TIME_LIMIT_MS));
    check_too_slow(reported_status, reported_lock);
}
END_TEST

/* A validity of exactly the margin is enough, and a millisecond less is not. */
START_TEST(a_check_needs_exactly_its_margin)
{
    redlock_lock_t *lock = NULL;

    connect_with_long_limits();
    ck_assert_int_eq(three_servers_acquire(&lock, wait_scaled_ms(TIME_LIMIT_MS)), REDLOCK_OK);
    clock_gettime(CLOCK_MONOTONIC_RAW, &frozen_at[0]);
    clock_gettime(CLOCK_BOOTTIME, &frozen_at[1]);
    atomic_store(&frozen, true);
    const uint64_t left_ms = redlock_lock_remaining_ms(lock);
    const int enough = redlock_lock_check(lock, left_ms);
    const int too_little = redlock_lock_check(lock, left_ms + 1);
    atomic_store(&frozen, false);
    ck_assert_uint_gt(left_ms, 0);
    ck_assert_int_eq(enough, REDLOCK_OK);
    ck_assert_int_eq(too_little, REDLOCK_ELOST);
    ck_assert_int_eq(three_servers_release(lock), REDLOCK_OK);
}
END_TEST

/* Returns the time that the client's engine has read last. */
static uint64_t clients_now_ns(void)
{
    pthread_mutex_lock(&three_servers.client->mutex);
    uint64_t now_ns =
        three_servers.client->pending.in_callback ? 0 : rl_client_now(three_servers.client).boot_ns;
    pthread_mutex_unlock(&three_servers.client->mutex);
    return now_ns;
}

/* Lets the clocks jump in the callback of an operation. */
static void jump_in_callback(redlock_t *rl, int status, redlock_lock_t *lock,
                             const redlock_report_t *report, void *userdata)
{
    atomic_fetch_add(&jumped_s, JUMP_S);
    on_done(rl, status, lock, report, userdata);
}

/* Lets the clocks jump and enters the client. */
static void enter_and_leave(redlock_lock_t *unused)
{
    (void)unused;
    atomic_fetch_add(&jumped_s, JUMP_S);
    ck_assert_int_eq(rl_client_enter(three_servers.client), REDLOCK_OK);
    rl_client_leave(three_servers.client);
}

/* Lets the clocks jump and enters the client for reading. */
static void enter_readonly(redlock_lock_t *unused)
{
    (void)unused;
    atomic_fetch_add(&jumped_s, JUMP_S);
    ck_assert_int_eq(rl_client_enter_readonly(three_servers.client), REDLOCK_OK);
    rl_client_unlock(three_servers.client);
}

/* Lets the clocks jump and frees the lock. */
static void free_lock(redlock_lock_t *lock)
{
    atomic_fetch_add(&jumped_s, JUMP_S);
    redlock_lock_free(lock);
}

/* Releases the lock with a callback in which the clocks jump. */
static void release_with_a_callback(redlock_lock_t *lock)
{
    ck_assert_int_eq(redlock_release_start(lock, jump_in_callback, NULL), REDLOCK_OK);
    ck_assert(WAIT_UNTIL(atomic_load(&reported), TIME_LIMIT_MS));
    ck_assert(WAIT_UNTIL(clients_now_ns() != 0, TIME_LIMIT_MS));
}

/* A call reads the clocks when it is made, and again after a callback. No server replies meanwhile,
 * so no turn of the loop reads the clocks. */
START_TEST(calls_and_callbacks_read_the_clocks)
{
    static void (*const calls[])(redlock_lock_t * lock) = {enter_and_leave, enter_readonly,
                                                           free_lock, release_with_a_callback};
    redlock_lock_t *lock = NULL;

    connect_with_long_limits();
    ck_assert_int_eq(three_servers_acquire(&lock, wait_scaled_ms(TIME_LIMIT_MS)), REDLOCK_OK);
    for (size_t i = 0; i < THREE_SERVERS; i++)
        ck_assert(fake_redis_wait_keys(three_servers.fake[i], 1, TIME_LIMIT_MS));
    for (size_t i = 0; i < THREE_SERVERS && calls[_i] != release_with_a_callback; i++)
        fake_redis_rule(three_servers.fake[i], (struct fake_rule){.fault = FAKE_GATE});
    const uint64_t before_ns = clients_now_ns();
    calls[_i](lock);
    ck_assert_uint_ge(clients_now_ns(), before_ns + JUMP_S * RL_SECOND);
    for (size_t i = 0; i < THREE_SERVERS; i++)
        fake_redis_open_gate(three_servers.fake[i]);
    three_servers_behave();
    if (calls[_i] != free_lock)
        redlock_lock_free(lock);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("io_late_return");
    TCase *tcase = three_servers_add_case(suite, "late");
    tcase_add_loop_test(tcase, a_blocking_acquisition_is_too_slow, 0, 2);
    tcase_add_test(tcase, an_acquisition_with_a_callback_is_too_slow);
    tcase_add_test(tcase, a_slow_event_callback_makes_the_acquisition_too_slow);
    tcase_add_test(tcase, a_check_needs_exactly_its_margin);
    tcase_add_loop_test(tcase, calls_and_callbacks_read_the_clocks, 0, 4);
    return suite_run(suite);
}
