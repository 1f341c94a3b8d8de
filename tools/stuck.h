/* SPDX-License-Identifier: MIT
 * A key that no client with our max_ttl makes: it ends late or never, and all wait for it.
 */
#ifndef TOOLS_STUCK_H
#define TOOLS_STUCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "reports.h"

#define STUCK_TEXT_MAX 256

/* What an inspection found, and what to do; false and "" if all keys end in time. */
bool stuck_text(const redlock_report_t *report, uint64_t max_ttl_ms, char *text, size_t size);

#endif
