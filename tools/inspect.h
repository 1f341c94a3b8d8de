/* SPDX-License-Identifier: MIT
 * Inspects several locks at once, so that a thousand locks take a few round trips.
 */
#ifndef TOOLS_INSPECT_H
#define TOOLS_INSPECT_H

#include "reports.h"

/* One lock to inspect, and the result. The caller owns it and sets `name`. */
struct inspection {
    char *name;               /* the resource, not freed here */
    redlock_report_t *report; /* what was found, to be freed by the caller; may be NULL */
    int error;                /* REDLOCK_OK, or why nothing is known */
};

/* Inspects all `count` locks once and fills in their results. Blocks. */
void inspect_once(redlock_t *rl, struct inspection *inspections, size_t count);

/* Inspects all `count` locks and fills in their results. Repeats, for half a second, inspections to
 * which too few servers replied. Blocks. */
void inspect_all(redlock_t *rl, struct inspection *inspections, size_t count);

/* Inspects one lock in the same way. Returns the report, to be freed by the caller; NULL if there
 * is none. Sets *ret_error to the error code of the inspection. */
redlock_report_t *inspect_one(redlock_t *rl, const char *name, int *ret_error);

#endif
