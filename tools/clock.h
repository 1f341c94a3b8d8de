/* SPDX-License-Identifier: MIT
 * The clocks of the command: CLOCK_BOOTTIME, which counts while the machine is suspended, for
 * deadlines; and the wall clock for people.
 */
#ifndef TOOLS_CLOCK_H
#define TOOLS_CLOCK_H

#include <stddef.h>
#include <stdint.h>

/* Nanoseconds in a millisecond. */
#define NS_PER_MS UINT64_C(1000000)
/* A time that never comes. */
#define NEVER_NS UINT64_MAX

/* Returns the time of CLOCK_BOOTTIME in ns. */
uint64_t boottime_ns(void);
/* Returns the wall clock in ms since 1970. */
uint64_t unix_ms(void);

/* Writes the wall clock time `ms` (ms since 1970) as RFC 3339 in UTC. Returns `buffer`. */
const char *rfc3339(uint64_t ms, char buffer[32]);

/* Returns the timeout for poll() from `now_ns` until `at_ns` (both ns of the same clock), in ms,
 * rounded up so that poll() does not return too early; -1 for NEVER_NS. */
int poll_timeout(uint64_t now_ns, uint64_t at_ns);

#endif
