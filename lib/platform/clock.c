/* SPDX-License-Identifier: MIT
 * Reads the clocks of the machine. No other file of the library does. */
#include "platform/clock.h"

#include <time.h>

/* Reads one clock, in nanoseconds. */
static uint64_t read_ns(clockid_t clock)
{
    struct timespec time;
    int rc = clock_gettime(clock, &time);
    RL_ASSERT(rc == 0); /* Linux has all three clocks since 2.6.39 */
    (void)rc;
    return (uint64_t)time.tv_sec * RL_SECOND + (uint64_t)time.tv_nsec;
}

struct rl_now rl_clock_now(void)
{
    struct rl_now now = {
        .boot_ns = read_ns(CLOCK_BOOTTIME),
        .raw_ns = read_ns(CLOCK_MONOTONIC_RAW),
    };
    return now;
}

uint64_t rl_clock_wall_us(void)
{
    return read_ns(CLOCK_REALTIME) / RL_US;
}

int64_t rl_clock_now_and_wall(struct rl_now *ret_now)
{
    uint64_t wall_us = rl_clock_wall_us();

    *ret_now = rl_clock_now();
    return (int64_t)wall_us - (int64_t)(ret_now->boot_ns / RL_US);
}

void rl_clock_wait_until(struct timespec *ret, uint64_t ns)
{
    clock_gettime(CLOCK_MONOTONIC, ret);
    ns += (uint64_t)ret->tv_nsec;
    ret->tv_sec += (time_t)(ns / RL_SECOND);
    ret->tv_nsec = (long)(ns % RL_SECOND);
}
