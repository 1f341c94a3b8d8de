/* SPDX-License-Identifier: MIT
 * Shows who waits in the line of a lock or of a semaphore, from the report of an inspection: of the
 * lock, or of the semaphore's first slot.
 */
#ifndef TOOLS_WAITERS_H
#define TOOLS_WAITERS_H

#include <jansson.h>
#include <stdbool.h>

#include "redlock/redlock.h"

/* Returns whether a server has said who is in the line. */
bool waiters_known(const redlock_report_t *report);

/* Returns the number of waiters in the report. Others may wait that were not read. */
size_t waiters_count(const redlock_report_t *report);

/* Adds the waiters to the JSON object of a lock or semaphore: their number as "waiting", and the
 * first `most` of them in order as "waiters". Adds nothing if no server has said who waits. */
void waiters_to_json(json_t *object, const redlock_report_t *report, size_t most);

/* Prints a line for each waiter, in order, up to a bound. Prints nothing if there is none. */
void waiters_print(const redlock_report_t *report);

/* Returns the first `most` waiters as one text, which differs if they do, and is empty if no server
 * has said who waits. To be freed. */
char *waiters_text(const redlock_report_t *report, size_t most);

#endif
