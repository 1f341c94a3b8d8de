/* SPDX-License-Identifier: MIT
 * Waiting in tests: poll a condition until a deadline. A test never sleeps a fixed time. */
#ifndef TEST_WAIT_H
#define TEST_WAIT_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* REDLOCK_TEST_SLOW (1 to 100) stretches deadlines under sanitizers and valgrind. */
uint64_t wait_scaled_ms(uint64_t ms);

/* Stretched by half of that: for times that are lived through each time. A slow program needs more
 * of them, the servers that it talks to do not. */
uint64_t wait_lived_ms(uint64_t ms);

/* CLOCK_MONOTONIC. */
uint64_t wait_now_ms(void);
uint64_t wait_now_ns(void);

/* Gives the processor away for about a millisecond, between two looks at a condition. */
void wait_pause(void);

typedef bool (*wait_condition_fn)(void *userdata);

/* True as soon as condition(userdata) is, false after deadline_ms (scaled). */
bool wait_until(wait_condition_fn condition, void *userdata, uint64_t deadline_ms);

/* The same for an expression: WAIT_UNTIL(atomic_load(&done), 1000). */
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
