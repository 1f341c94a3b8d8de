/* SPDX-License-Identifier: MIT
 * Polls conditions with a deadline. */
#include "wait.h"

#include <stdlib.h>

#define SLOW_MAX 100

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

uint64_t wait_lived_ms(uint64_t ms)
{
    const uint64_t half_ms = wait_scaled_ms(ms) / 2;
    return half_ms > ms ? half_ms : ms;
}

uint64_t wait_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

uint64_t wait_now_ms(void)
{
    return wait_now_ns() / UINT64_C(1000000);
}

void wait_pause(void)
{
    const struct timespec pause = {0, 1000000};
    nanosleep(&pause, NULL);
}

bool wait_until(wait_condition_fn condition, void *userdata, uint64_t deadline_ms)
{
    return WAIT_UNTIL(condition(userdata), deadline_ms);
}
