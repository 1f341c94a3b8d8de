/* SPDX-License-Identifier: MIT
 * The arithmetic of stopping a command in time. The validity of a lock is its TTL minus the drift.
 * The library extends the lock `renew_ms` after each success. If that fails, there is time for one
 * more try, then for the grace between stop signal and KILL, all before the deadline.
 */
#include "timing.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "clock.h"
#include "durations.h"
#include "redlock/redlock.h"

/* Returns the difference of TTL and validity, in ms. */
uint64_t timing_drift_ms(const struct timing *timing)
{
    return timing->ttl_ms - timing->validity_ms;
}

/* Writes the reason, made with printf() formats, to `why` of `size` bytes. Returns false, so that a
 * check can return the result. */
static bool refuse(char *why, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static bool refuse(char *why, size_t size, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(why, size, format, args);
    va_end(args);
    return false;
}

/* Returns true if the TTL is at least the shortest one of the library and at most max_ttl. Else
 * writes the reason to `why`. */
bool timing_check_ttl(const struct timing *timing, char *why, size_t size)
{
    char ttl[DURATION_TEXT], max[DURATION_TEXT];

    if (timing->ttl_ms < 1)
        return refuse(why, size, "ttl 0: a lock must have a TTL; use -t 30s");
    if (timing->ttl_ms < REDLOCK_TTL_MS_MIN)
        return refuse(why, size, "ttl %s is below %d ms, the shortest TTL; use -t 30s",
                      duration_text(timing->ttl_ms, ttl), REDLOCK_TTL_MS_MIN);
    if (timing->ttl_ms > timing->max_ttl_ms)
        return refuse(
            why, size,
            "ttl %s is above max_ttl %s; use a shorter -t (the lock is extended anyway), or "
            "raise max_ttl, which must be equal in all clients of these servers",
            duration_text(timing->ttl_ms, ttl), duration_text(timing->max_ttl_ms, max));
    return true;
}

/* Checks that one extension, one more try, the grace and the drift fit into the TTL. A grace below
 * KILL_RESERVE_MS counts as that. Returns false after writing the reason to `why`. */
static bool check_sum(const struct timing *timing, char *why, size_t size)
{
    char ttl[DURATION_TEXT], renew[DURATION_TEXT], once[DURATION_TEXT], end[DURATION_TEXT];
    char drift[DURATION_TEXT], sum[DURATION_TEXT];
    uint64_t end_ms = timing->grace_ms > KILL_RESERVE_MS ? timing->grace_ms : KILL_RESERVE_MS;
    uint64_t drift_ms = timing_drift_ms(timing);
    uint64_t try_ms = timing->renew_ms ? timing->try_ms : 0;
    uint64_t sum_ms = timing->renew_ms + try_ms + end_ms + drift_ms;

    if (sum_ms < timing->ttl_ms)
        return true;
    duration_text(timing->ttl_ms, ttl);
    duration_text(end_ms, end);
    duration_text(drift_ms, drift);
    duration_text(sum_ms, sum);
    if (!timing->renew_ms)
        return refuse(
            why, size,
            "ttl %s leaves no time for the command: grace %s + drift %s = %s must be less; raise "
            "-t or lower -k",
            ttl, end, drift, sum);
    return refuse(why, size,
                  "ttl %s leaves no time to extend: renew %s + one more try %s + grace %s + drift "
                  "%s = %s must be less; raise -t, or lower --renew or -k",
                  ttl, duration_text(timing->renew_ms, renew), duration_text(try_ms, once), end,
                  drift, sum);
}

/* Checks --min-hold and --max-hold against the other durations. Returns false after writing the
 * reason to `why`. */
static bool check_holds(const struct timing *timing, char *why, size_t size)
{
    char hold[DURATION_TEXT], other[DURATION_TEXT];
    uint64_t least = timing->grace_ms > KILL_RESERVE_MS ? timing->grace_ms : KILL_RESERVE_MS;

    if (timing->min_hold_ms > timing->max_ttl_ms)
        return refuse(why, size,
                      "min-hold %s is above max_ttl %s; lower it, or raise max_ttl, which must be "
                      "equal in all clients of these servers",
                      duration_text(timing->min_hold_ms, hold),
                      duration_text(timing->max_ttl_ms, other));
    if (!timing->renew_ms && timing->min_hold_ms > timing->ttl_ms)
        return refuse(why, size, "min-hold %s is above ttl %s, and --no-renew is given; raise -t",
                      duration_text(timing->min_hold_ms, hold),
                      duration_text(timing->ttl_ms, other));
    if (timing->max_hold_ms && timing->max_hold_ms <= least)
        return refuse(why, size,
                      "max-hold %s is not longer than grace %s: the command would be stopped at "
                      "once; raise --max-hold or lower -k",
                      duration_text(timing->max_hold_ms, hold), duration_text(least, other));
    if (timing->max_hold_ms && timing->min_hold_ms > timing->max_hold_ms)
        return refuse(why, size, "min-hold %s is longer than max-hold %s; lower --min-hold",
                      duration_text(timing->min_hold_ms, hold),
                      duration_text(timing->max_hold_ms, other));
    return true;
}

/* Checks the TTL, the sum of the durations, and --min-hold and --max-hold. Returns false after
 * writing the reason to `why`. */
bool timing_check(const struct timing *timing, char *why, size_t size)
{
    return timing_check_ttl(timing, why, size) && check_sum(timing, why, size) &&
           check_holds(timing, why, size);
}

/* Returns the remaining validity, in ms, at which the library starts to extend, so that `renew_ms`
 * have passed since the last success; at least 1. */
uint64_t timing_extend_at_ms(const struct timing *timing)
{
    /* The validity begins as ttl - drift. This much is left of it when `renew` has passed. */
    uint64_t spent_ms = timing_drift_ms(timing) + timing->renew_ms;

    return spent_ms < timing->ttl_ms ? timing->ttl_ms - spent_ms : 1;
}

/* Returns the kill time: KILL_RESERVE_MS before the deadline, or the grace after the stop signal
 * (`stopped_ns`; 0: none was sent) if that is earlier. All times are ns of CLOCK_BOOTTIME. */
uint64_t timing_kill_ns(uint64_t deadline_ns, uint64_t stopped_ns, uint64_t grace_ms)
{
    uint64_t reserve_ns = KILL_RESERVE_MS * NS_PER_MS;
    uint64_t kill_ns = deadline_ns > reserve_ns ? deadline_ns - reserve_ns : 1;

    if (stopped_ns && stopped_ns + grace_ms * NS_PER_MS < kill_ns)
        kill_ns = stopped_ns + grace_ms * NS_PER_MS;
    return kill_ns;
}
