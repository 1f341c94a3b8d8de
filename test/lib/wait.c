/* SPDX-License-Identifier: MIT
 * Polls conditions with a deadline. */
#include "wait.h"

#include <stdlib.h>

#define SLOW_MAX 100

/* Returns `ms` times REDLOCK_TEST_SLOW (1 to 100; 1 if it is unset or out of range), which
 * stretches deadlines under sanitizers and valgrind. */
uint64_t wait_scaled_ms(uint64_t ms)
{
    const char *text = getenv("REDLOCK_TEST_SLOW");
    if (text == NULL)
        return ms;
    const unsigned long factor = strtoul(text, NULL, 10);
    if (factor < 1 || factor > SLOW_MAX)
        return ms;
    return ms * factor;
}

/* Returns `ms` stretched by half of REDLOCK_TEST_SLOW, but not below `ms`: for durations that a
 * test lives through in full. A slow program needs longer ones, but the servers that it talks
 * to do not. */
uint64_t wait_lived_ms(uint64_t ms)
{
    const uint64_t half_ms = wait_scaled_ms(ms) / 2;
    return half_ms > ms ? half_ms : ms;
}

/* Returns the present time of CLOCK_MONOTONIC in ns. */
uint64_t wait_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* Returns the present time of CLOCK_MONOTONIC in ms. */
uint64_t wait_now_ms(void)
{
    return wait_now_ns() / UINT64_C(1000000);
}

/* Sleeps for about a millisecond, between two checks of a condition. */
void wait_pause(void)
{
    const struct timespec pause = {0, 1000000};
    nanosleep(&pause, NULL);
}

/* Checks condition(userdata) every millisecond. Returns true as soon as it holds, or false
 * after `deadline_ms` (scaled by REDLOCK_TEST_SLOW). */
bool wait_until(wait_condition_fn condition, void *userdata, uint64_t deadline_ms)
{
    return WAIT_UNTIL(condition(userdata), deadline_ms);
}
