/* SPDX-License-Identifier: MIT
 * The only place where time is read. */
#ifndef RL_PLATFORM_CLOCK_H
#define RL_PLATFORM_CLOCK_H

#include "core/types.h"

#include <time.h>

/* Both clocks that validity is judged by. */
struct rl_now rl_clock_now(void);

/* Microseconds since 1970, for people only: this clock may jump. */
uint64_t rl_clock_wall_us(void);

/* Reads both clocks; the wall clock minus the boot clock, in microseconds, as it was at some moment
 * not after that: however long the process was stopped in between, it is not too large. */
int64_t rl_clock_now_and_wall(struct rl_now *ret_now);

/* `ns` from now on CLOCK_MONOTONIC: how long to wait for a condition variable of that clock. */
void rl_clock_wait_until(struct timespec *ret, uint64_t ns);

#endif
