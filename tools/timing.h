/* SPDX-License-Identifier: MIT
 * Computes when a command under a lock gets its stop signal and when it is killed, and checks
 * whether the configured durations leave room for that. Pure functions.
 */
#ifndef TOOLS_TIMING_H
#define TOOLS_TIMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Time, in ms, before the deadline at which the command and all that it started are killed, so that
 * killing and reaping have ended before another client can get the lock. */
#define KILL_RESERVE_MS 250

/* The durations of one `redlock run`, filled in by the caller. */
struct timing {
    uint64_t ttl_ms, max_ttl_ms; /* TTL of the lock, and the longest that is allowed */
    uint64_t validity_ms;        /* validity of a lock with this TTL that is granted at once */
    uint64_t renew_ms;           /* time from one success to the next extension; 0: none */
    uint64_t grace_ms;           /* time between the stop signal and KILL */
    /* how long the lock is held at least, and how long the command may run; 0: no limit */
    uint64_t min_hold_ms, max_hold_ms;
    uint64_t try_ms; /* time for one more extension if the first one fails */
};

/* Returns the part of the TTL that drift takes from the validity, in ms. */
uint64_t timing_drift_ms(const struct timing *timing);

/* Returns true if the TTL is long enough for the library and at most max_ttl. Else writes the
 * reason to `why`. */
bool timing_check_ttl(const struct timing *timing, char *why, size_t size);

/* Returns true if the durations fit together. Else writes the reason, with the sum, to `why`. */
bool timing_check(const struct timing *timing, char *why, size_t size);

/* Returns the remaining validity, in ms, at which the library starts to extend. */
uint64_t timing_extend_at_ms(const struct timing *timing);

/* Returns the kill time: the deadline minus the reserve, or the stop plus the grace if that is
 * earlier. `stopped_ns` is 0 if the command has had no stop signal. Times are ns of
 * CLOCK_BOOTTIME. */
uint64_t timing_kill_ns(uint64_t deadline_ns, uint64_t stopped_ns, uint64_t grace_ms);

#endif
