/* SPDX-License-Identifier: MIT
 * Reads processor time with getrusage(). */
#include "usage.h"

#include <sys/resource.h>

/* Returns a time of getrusage() in microseconds. */
static uint64_t microseconds(const struct timeval *time)
{
    return (uint64_t)time->tv_sec * 1000000 + (uint64_t)time->tv_usec;
}

/* Adds this process's user and system time until now to `result`, or subtracts them if `sign` is
 * negative. */
void usage_add(struct result *result, int sign)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0)
        return;
    uint64_t user_us = microseconds(&usage.ru_utime), sys_us = microseconds(&usage.ru_stime);
    result->user_us += sign > 0 ? user_us : -user_us;
    result->sys_us += sign > 0 ? sys_us : -sys_us;
}
