/* SPDX-License-Identifier: MIT
 * The only place where time is read. */
#ifndef RL_PLATFORM_CLOCK_H
#define RL_PLATFORM_CLOCK_H

#include "core/types.h"

/* Both clocks that validity is judged by. */
struct rl_now rl_clock_now(void);

/* Microseconds since 1970, for people only: this clock may jump. */
uint64_t rl_clock_wall_us(void);

#endif
