/* SPDX-License-Identifier: MIT
 * Durations as the user writes them: 250ms, 30s, 5m, 2h, 1d, or a bare number of seconds.
 */
#ifndef TOOLS_DURATIONS_H
#define TOOLS_DURATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a message says about the form of a duration. */
#define DURATION_HELP                                                                              \
    "write 250ms, 30s, 5m, 2h or 1d (whole milliseconds, at most 1000 days); a bare number is "    \
    "seconds"
/* What a user writes for a wait without limit. */
#define WAIT_FOREVER "forever"
/* Size of the buffer that duration_text() needs. */
#define DURATION_TEXT 32

/* Parses a duration into *ret_ms. Returns false if `text` is none, is finer than a millisecond or
 * exceeds 1000 days. */
bool duration_parse(const char *text, uint64_t *ret_ms);

/* Parses a wait into *ret_ms: a duration, or WAIT_FOREVER, which gives UINT64_MAX. Returns false if
 * `text` is neither. */
bool wait_parse(const char *text, uint64_t *ret_ms);

/* Writes `ms` milliseconds as people read them on a clock: "12s", "1m40s", "2h03m". What is finer
 * is cut off. Returns `buffer`. */
const char *duration_brief(uint64_t ms, char buffer[DURATION_TEXT]);

/* Writes `ms` milliseconds with the largest unit of which they are a whole number, such as "1500ms"
 * or "30s". Returns `buffer`. */
const char *duration_text(uint64_t ms, char buffer[DURATION_TEXT]);

#endif
