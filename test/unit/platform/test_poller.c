/* SPDX-License-Identifier: MIT
 * The poller inside another poll(): readable when, and only when, something is due. Covers its
 * sockets and its timer; test_poller_wakeups.c covers the wake-ups.
 *
 * Uses poller_fixture.h: `poller`, an open poller; pair[0] to pair[2], connected pairs of sockets;
 * is_readable() waits until the poller's descriptor is readable. */
#include "platform/poller.h"

#include <redlock/redlock.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "fdcheck.h"
#include "platform/clock.h"
#include "poller_fixture.h"
#include "suite.h"

/* Makes pair `i` readable. */
static void send_byte(unsigned i)
{
    ck_assert_int_eq(write(pair[i][1], "x", 1), 1);
}

/* Reads the byte of pair `i`. */
static void take_byte(unsigned i)
{
    char byte;
    ck_assert_int_eq(read(pair[i][0], &byte, 1), 1);
}

START_TEST(descriptors_are_closed_and_not_inherited)
{
    struct fdcheck before;
    struct rl_poller other;
    fdcheck_begin(&before);
    ck_assert_int_eq(rl_poller_open(&other), 0);
    const char *inherited = fdcheck_inherited(&before);
    ck_assert_msg(inherited == NULL, "%s", inherited);
    ck_assert_int_eq(rl_poller_add(&other, pair[0][0], 1, true), 0);
    rl_poller_arm(&other, 1);
    rl_poller_wake(&other);
    rl_poller_close(&other);
    const char *leaked = fdcheck_leaked(&before, 0);
    ck_assert_msg(leaked == NULL, "%s", leaked);
    rl_poller_close(&other); /* a second close does nothing */
}
END_TEST

START_TEST(an_idle_poller_is_not_readable)
{
    struct rl_ready ready[4];
    ck_assert(!is_readable(0));
    ck_assert_int_eq(rl_poller_wait(&poller, ready, 4, 0), 0);
}
END_TEST

START_TEST(readable_while_unread)
{
    struct rl_ready ready[4];
    ck_assert_int_eq(rl_poller_add(&poller, pair[0][0], UINT32_MAX, false), 0);
    ck_assert(!is_readable(0));
    send_byte(0);
    for (unsigned i = 0; i < 2; i++) { /* level triggered */
        ck_assert(is_readable(DEADLINE_MS));
        ck_assert_int_eq(rl_poller_wait(&poller, ready, 4, 0), 1);
        ck_assert_uint_eq(ready[0].tag, UINT32_MAX);
        ck_assert(ready[0].readable && !ready[0].writable && !ready[0].broken);
    }
    take_byte(0);
    ck_assert(!is_readable(0));
    ck_assert_int_eq(rl_poller_wait(&poller, ready, 4, 0), 0);
}
END_TEST

START_TEST(writable_if_wanted)
{
    struct rl_ready ready[4];
    ck_assert_int_eq(rl_poller_add(&poller, pair[0][0], 7, true), 0);
    ck_assert_int_eq(rl_poller_wait(&poller, ready, 4, DEADLINE_MS), 1);
    ck_assert_uint_eq(ready[0].tag, 7);
    ck_assert(!ready[0].readable && ready[0].writable && !ready[0].broken);

    ck_assert_int_eq(rl_poller_change(&poller, pair[0][0], 8, false), 0);
    ck_assert(!is_readable(0));
    send_byte(0);
    ck_assert_int_eq(rl_poller_change(&poller, pair[0][0], 9, true), 0);
    ck_assert_int_eq(rl_poller_wait(&poller, ready, 4, DEADLINE_MS), 1);
    ck_assert_uint_eq(ready[0].tag, 9);
    ck_assert(ready[0].readable && ready[0].writable);
}
END_TEST

START_TEST(broken_when_the_peer_is_gone)
{
    struct rl_ready ready[4];
    ck_assert_int_eq(rl_poller_add(&poller, pair[0][0], 1, false), 0);
    close(pair[0][1]);
    pair[0][1] = -1;
    ck_assert_int_eq(rl_poller_wait(&poller, ready, 4, DEADLINE_MS), 1);
    ck_assert(ready[0].broken);
    rl_poller_remove(&poller, pair[0][0]);
    ck_assert(!is_readable(0));
}
END_TEST

START_TEST(misuse_is_an_error)
{
    ck_assert_int_eq(rl_poller_add(&poller, pair[0][0], 1, false), 0);
    ck_assert_int_eq(rl_poller_add(&poller, pair[0][0], 1, false), REDLOCK_ESYS); /* twice */
    ck_assert_int_eq(rl_poller_change(&poller, pair[1][0], 1, false), REDLOCK_ESYS);
    ck_assert_int_eq(rl_poller_add(&poller, -1, 1, false), REDLOCK_ESYS);
    rl_poller_remove(&poller, pair[2][0]); /* never added: does nothing */
}
END_TEST

/* With room for few results, every ready descriptor is reported after some waits. */
START_TEST(no_descriptor_starves)
{
    struct rl_ready ready[1];
    unsigned seen[3] = {0};
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(rl_poller_add(&poller, pair[i][0], i, false), 0);
        send_byte(i);
    }
    rl_poller_wake(&poller);
    for (unsigned round = 0; round < 12; round++) {
        int count = rl_poller_wait(&poller, ready, 1, 0);
        ck_assert_int_le(count, 1);
        if (count == 1)
            seen[ready[0].tag]++;
    }
    for (unsigned i = 0; i < 3; i++)
        ck_assert_uint_gt(seen[i], 0);
    ck_assert(!atomic_load(&poller.woken)); /* the wake-up does not starve either */
}
END_TEST

START_TEST(past_deadline_is_due_at_once)
{
    static const uint64_t past[] = {0, 1, RL_SECOND};
    struct rl_ready ready[1];
    rl_poller_arm(&poller, past[_i]);
    ck_assert(is_readable(DEADLINE_MS));
    ck_assert_int_eq(rl_poller_wait(&poller, ready, 1, 0), 0);
    ck_assert(!is_readable(0));
}
END_TEST

START_TEST(deadline_ends_a_wait_and_not_before)
{
    struct rl_ready ready[1];
    uint64_t deadline_ns = rl_clock_now().boot_ns + 30 * RL_MS;
    rl_poller_arm(&poller, deadline_ns);
    ck_assert_int_eq(rl_poller_wait(&poller, ready, 1, -1), 0);
    ck_assert_uint_ge(rl_clock_now().boot_ns, deadline_ns);
    ck_assert(!is_readable(0));
}
END_TEST

/* Only a deadline that is earlier than the armed one sets the kernel's timer. */
START_TEST(only_earlier_deadlines_set_the_timer)
{
    struct rl_ready ready[1];
    uint64_t now_ns = rl_clock_now().boot_ns;
    uint64_t soon_ns = now_ns + 1000 * RL_SECOND;

    rl_poller_arm(&poller, RL_NEVER);
    ck_assert_uint_eq(poller.armed_boot_ns, RL_NEVER);
    rl_poller_arm(&poller, soon_ns);
    ck_assert_uint_eq(poller.armed_boot_ns, soon_ns);
    rl_poller_arm(&poller, soon_ns + 1);
    rl_poller_arm(&poller, RL_NEVER);
    ck_assert_uint_eq(poller.armed_boot_ns, soon_ns);
    rl_poller_arm(&poller, soon_ns - 1);
    ck_assert_uint_eq(poller.armed_boot_ns, soon_ns - 1);
    ck_assert(!is_readable(0));

    rl_poller_arm(&poller, now_ns); /* earlier than all: fires */
    ck_assert_int_eq(rl_poller_wait(&poller, ready, 1, DEADLINE_MS), 0);
    ck_assert_uint_eq(poller.armed_boot_ns, RL_NEVER); /* consumed */
    rl_poller_arm(&poller, soon_ns);                   /* a later deadline is set again */
    ck_assert_uint_eq(poller.armed_boot_ns, soon_ns);
    rl_poller_arm(&poller, rl_clock_now().boot_ns + RL_MS);
    ck_assert(is_readable(DEADLINE_MS));
}
END_TEST

/* If true, the next timerfd_settime() also waits, as another thread might do at that moment. */
static bool consume_at_once;

/* Replaces the function of libc, see consume_at_once. */
int timerfd_settime(int fd, int flags, const struct itimerspec *when, struct itimerspec *old)
{
    int rc = (int)syscall(SYS_timerfd_settime, fd, flags, when, old);
    if (consume_at_once) {
        struct rl_ready ready[1];
        consume_at_once = false;
        rl_poller_wait(&poller, ready, 1, DEADLINE_MS);
    }
    return rc;
}

START_TEST(a_timer_consumed_while_it_is_set_can_be_set_again)
{
    consume_at_once = true;
    rl_poller_arm(&poller, 1); /* in the past */
    ck_assert(!consume_at_once);
    ck_assert(!is_readable(0));
    rl_poller_arm(&poller, 2); /* later, and also in the past */
    ck_assert(is_readable(DEADLINE_MS));
}
END_TEST

/* A deadline that has passed and was not consumed keeps the poller readable, even if a later one is
 * armed. */
START_TEST(fired_deadline_is_not_lost)
{
    struct rl_ready ready[1];
    uint64_t fired_ns = rl_clock_now().boot_ns - RL_MS;
    rl_poller_arm(&poller, fired_ns);
    ck_assert(is_readable(DEADLINE_MS));
    rl_poller_arm(&poller, rl_clock_now().boot_ns + 1000 * RL_SECOND);
    ck_assert(is_readable(0));
    rl_poller_arm(&poller, fired_ns - 1);
    ck_assert(is_readable(DEADLINE_MS));
    ck_assert_int_eq(rl_poller_wait(&poller, ready, 1, 0), 0);
    ck_assert(!is_readable(0));
}
END_TEST

START_TEST(timer_and_sockets_together)
{
    struct rl_ready ready[4];
    ck_assert_int_eq(rl_poller_add(&poller, pair[0][0], 5, false), 0);
    send_byte(0);
    rl_poller_wake(&poller);
    rl_poller_arm(&poller, 1);
    ck_assert(is_readable(DEADLINE_MS));
    ck_assert_int_eq(rl_poller_wait(&poller, ready, 4, DEADLINE_MS), 1);
    ck_assert_uint_eq(ready[0].tag, 5);
    take_byte(0);
    ck_assert(!is_readable(0));
}
END_TEST

/* With room for 0, 1 or 2 descriptors, opening fails and leaves none behind. */
START_TEST(opening_without_descriptors_leaks_none)
{
    struct rl_poller other;
    struct rlimit old, tight;
    struct fdcheck now;
    fdcheck_begin(&now);
    int first_free = dup(0);
    close(first_free);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
    tight = old;
    tight.rlim_cur = (rlim_t)first_free + (rlim_t)_i;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &tight), 0);
    int rc = rl_poller_open(&other);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
    ck_assert_int_eq(rc, REDLOCK_ESYS);
    const char *leaked = fdcheck_leaked(&now, 0);
    ck_assert_msg(leaked == NULL, "%s", leaked);
    rl_poller_close(&other); /* allowed */
}
END_TEST

/* Adds the cases about the timer. */
static void add_timer(Suite *suite)
{
    TCase *tcase = tcase_create("timer");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, past_deadline_is_due_at_once, 0, 3);
    tcase_add_test(tcase, deadline_ends_a_wait_and_not_before);
    tcase_add_test(tcase, only_earlier_deadlines_set_the_timer);
    tcase_add_test(tcase, fired_deadline_is_not_lost);
    tcase_add_test(tcase, a_timer_consumed_while_it_is_set_can_be_set_again);
    tcase_add_test(tcase, timer_and_sockets_together);
}

int main(void)
{
    Suite *suite = suite_create("platform_poller");
    TCase *tcase = tcase_create("descriptors");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, descriptors_are_closed_and_not_inherited);
    tcase_add_test(tcase, an_idle_poller_is_not_readable);
    tcase_add_test(tcase, readable_while_unread);
    tcase_add_test(tcase, writable_if_wanted);
    tcase_add_test(tcase, broken_when_the_peer_is_gone);
    tcase_add_test(tcase, misuse_is_an_error);
    tcase_add_test(tcase, no_descriptor_starves);
    tcase_add_loop_test(tcase, opening_without_descriptors_leaks_none, 0, 3);
    add_timer(suite);
    return suite_run_nofork(suite);
}
