/* SPDX-License-Identifier: MIT
 * When a command under a lock is told to stop, when it is killed, and whether the given durations
 * leave room for that.
 */
#ifndef TOOLS_TIMING_H
#define TOOLS_TIMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Killing and reaping must be over before another client can get the lock. */
#define KILL_RESERVE_MS 250

struct timing {
    uint64_t ttl_ms, max_ttl_ms;
    uint64_t validity_ms; /* of a lock with this TTL that is granted at once */
    uint64_t renew_ms;    /* renewed so long after the last success; 0: never */
    uint64_t grace_ms;
    uint64_t min_hold_ms, max_hold_ms; /* 0: none */
    uint64_t try_ms;                   /* room for one more renewal if the first one fails */
};

/* Returns what drift and loss margin take from the TTL. */
uint64_t timing_drift_ms(const struct timing *timing);

/* The TTL alone: long enough for the library, at most max_ttl. */
bool timing_check_ttl(const struct timing *timing, char *why, size_t size);

/* False, with the sum spelled out in `why`, if the durations contradict each other. */
bool timing_check(const struct timing *timing, char *why, size_t size);

/* Validity left at which the library starts to renew. */
uint64_t timing_extend_at_ms(const struct timing *timing);

/* The earliest of the kill times: deadline minus the reserve, and each stop plus the grace.
 * `stopped_ns` is 0 while nobody has told the command to stop. */
uint64_t timing_kill_ns(uint64_t deadline_ns, uint64_t stopped_ns, uint64_t grace_ms);

#endif
