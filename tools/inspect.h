/* SPDX-License-Identifier: MIT
 * Who holds each of several locks: many are asked about at once, so that a thousand take a few
 * round trips.
 */
#ifndef TOOLS_INSPECT_H
#define TOOLS_INSPECT_H

#include "reports.h"

struct inspection {
    char *name;               /* the caller's */
    redlock_report_t *report; /* what was seen, to be freed; may be NULL */
    int error;
};

/* Looks at all of them. Servers that are slow for once are asked again. */
void inspect_all(redlock_t *rl, struct inspection *inspections, size_t count);

#endif
