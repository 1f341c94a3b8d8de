/* SPDX-License-Identifier: MIT
 * Waiting in tests: poll a condition until a deadline. A test never sleeps a fixed time. */
#ifndef TEST_WAIT_H
#define TEST_WAIT_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Returns `ms` times REDLOCK_TEST_SLOW (1 to 100; 1 if it is unset or out of range), which
 * stretches deadlines under sanitizers and valgrind. */
uint64_t wait_scaled_ms(uint64_t ms);

/* Returns `ms` stretched by half of REDLOCK_TEST_SLOW, but not below `ms`: for durations that a
 * test lives through in full. A slow program needs longer ones, but the servers that it talks to do
 * not. */
uint64_t wait_lived_ms(uint64_t ms);

/* Return the present time of CLOCK_MONOTONIC. */
uint64_t wait_now_ms(void);
uint64_t wait_now_ns(void);

/* Sleeps for about a millisecond, between two checks of a condition. */
void wait_pause(void);

typedef bool (*wait_condition_fn)(void *userdata);

/* Checks condition(userdata) every millisecond. Returns true as soon as it holds, or false after
 * `deadline_ms` (scaled by REDLOCK_TEST_SLOW). */
bool wait_until(wait_condition_fn condition, void *userdata, uint64_t deadline_ms);

/* Does the same for an expression: WAIT_UNTIL(atomic_load(&done), 1000). */
#define WAIT_UNTIL(expression, deadline_ms)                                                        \
    __extension__({                                                                                \
        const uint64_t wait_end_ = wait_now_ms() + wait_scaled_ms(deadline_ms);                    \
        bool wait_true_ = (expression);                                                            \
        while (!wait_true_ && wait_now_ms() < wait_end_) {                                         \
            wait_pause();                                                                          \
            wait_true_ = (expression);                                                             \
        }                                                                                          \
        wait_true_;                                                                                \
    })

#endif
