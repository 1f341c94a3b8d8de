/* SPDX-License-Identifier: MIT
 * The clock that also counts while the machine is suspended, and the wall clock for people.
 */
#ifndef TOOLS_CLOCK_H
#define TOOLS_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#define NS_PER_MS UINT64_C(1000000)
#define NEVER_NS  UINT64_MAX

uint64_t boottime_ns(void);
uint64_t unix_ms(void);

/* Wall clock as RFC 3339 in UTC with milliseconds; `buffer` holds at least 32 bytes. */
const char *rfc3339(uint64_t ms, char buffer[32]);

/* Timeout for poll() until `at_ns`, rounded up so that the wake-up is never too early; -1: never.
 */
int poll_timeout(uint64_t now_ns, uint64_t at_ns);

#endif
