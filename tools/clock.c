/* SPDX-License-Identifier: MIT
 * Reads clocks. No other file of the command does.
 */
#include "clock.h"

#include <limits.h>
#include <stdio.h>
#include <time.h>

/* Returns the time of the given clock in ns. */
static uint64_t read_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* Returns the time of CLOCK_BOOTTIME in ns. */
uint64_t boottime_ns(void)
{
    return read_ns(CLOCK_BOOTTIME);
}

/* Returns the wall clock in ms since 1970. */
uint64_t unix_ms(void)
{
    return read_ns(CLOCK_REALTIME) / NS_PER_MS;
}

/* Writes the wall-clock time `ms` (ms since 1970) in UTC, such as "2026-01-31T12:00:00.123Z".
 * Returns `buffer`. */
const char *rfc3339(uint64_t ms, char buffer[32])
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm utc;
    char date[24] = "";

    if (gmtime_r(&seconds, &utc))
        strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(buffer, 32, "%s.%03uZ", date, (unsigned)(ms % 1000));
    return buffer;
}

/* Returns the time from `now_ns` to `at_ns` in ms, rounded up, as timeout for poll(): 0 if `at_ns`
 * has passed, -1 for NEVER_NS. */
int poll_timeout(uint64_t now_ns, uint64_t at_ns)
{
    if (at_ns == NEVER_NS)
        return -1;
    if (at_ns <= now_ns)
        return 0;
    uint64_t ms = (at_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS;
    return ms > INT_MAX ? INT_MAX : (int)ms;
}
