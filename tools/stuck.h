/* SPDX-License-Identifier: MIT
 * Recognises keys that no client with our max_ttl sets: they expire late or never, and block all
 * waiters.
 */
#ifndef TOOLS_STUCK_H
#define TOOLS_STUCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "reports.h"

/* Size of the buffer that stuck_text() needs. */
#define STUCK_TEXT_MAX 256

/* Writes to `text` (of `size` bytes) whether the report of an inspection shows a stuck key, and
 * what to do about it. `report` may be NULL. Returns false, and writes "", if all keys expire
 * within `max_ttl_ms`. */
bool stuck_text(const redlock_report_t *report, uint64_t max_ttl_ms, char *text, size_t size);

#endif
