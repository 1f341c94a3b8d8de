/* SPDX-License-Identifier: MIT
 * Reads the clocks of the machine. No other file of the library reads a clock. */
#include "platform/clock.h"

#include <time.h>

/* Returns the time of one clock in nanoseconds. */
static uint64_t read_ns(clockid_t clock)
{
    struct timespec time;
    int rc = clock_gettime(clock, &time);
    RL_ASSERT(rc == 0); /* Linux has BOOTTIME, MONOTONIC_RAW and REALTIME since 2.6.39 */
    (void)rc;
    return (uint64_t)time.tv_sec * RL_SECOND + (uint64_t)time.tv_nsec;
}

/* Returns the boot clock and the raw clock, both in nanoseconds. */
struct rl_now rl_clock_now(void)
{
    struct rl_now now = {
        .boot_ns = read_ns(CLOCK_BOOTTIME),
        .raw_ns = read_ns(CLOCK_MONOTONIC_RAW),
    };
    return now;
}

/* Returns the wall clock in microseconds since 1970. */
uint64_t rl_clock_wall_us(void)
{
    return read_ns(CLOCK_REALTIME) / RL_US;
}

/* Reads the wall clock, then the boot clock and the raw clock into `*ret_now`. Returns wall clock
 * minus boot clock in microseconds; too small, never too large, if the process is stopped in
 * between. */
int64_t rl_clock_now_and_wall(struct rl_now *ret_now)
{
    uint64_t wall_us = rl_clock_wall_us();

    *ret_now = rl_clock_now();
    return (int64_t)wall_us - (int64_t)(ret_now->boot_ns / RL_US);
}
