/* SPDX-License-Identifier: MIT
 * Reads the clocks of the machine. No other file of the library reads a clock. struct rl_now has an
 * instant on two clocks, in nanoseconds: the boot clock (CLOCK_BOOTTIME) and the raw clock
 * (CLOCK_MONOTONIC_RAW). */
#ifndef RL_PLATFORM_CLOCK_H
#define RL_PLATFORM_CLOCK_H

#include "core/types.h"

#include <time.h>

/* Reads the two clocks by which validity is measured and returns both times; CLOCK_BOOTTIME is read
 * first. */
struct rl_now rl_clock_now(void);

/* Reads the wall clock (CLOCK_REALTIME) and returns it in microseconds since 1970. The wall clock
 * may jump, so validity never follows from it alone. */
uint64_t rl_clock_wall_us(void);

/* Reads the wall clock, then the boot clock and the raw clock into `*ret_now`. Returns wall clock
 * minus boot clock in microseconds. If the process is stopped between the readings, the result is
 * too small, never too large. */
int64_t rl_clock_now_and_wall(struct rl_now *ret_now);

#endif
