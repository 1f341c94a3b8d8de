/* SPDX-License-Identifier: MIT
 * Finds stuck keys, which never expire or expire later than max_ttl allows, in the report of an
 * inspection.
 */
#include "stuck.h"

#include <stdio.h>

#include "durations.h"
#include "redlock/redlock.h"

/* Writes to `text` whether the report of an inspection shows keys that never expire, or expire
 * later than `max_ttl_ms` allows, and what to do. Returns false, and writes "", if there are none.
 */
bool stuck_text(const redlock_report_t *report, uint64_t max_ttl_ms, char *text, size_t size)
{
    char max[DURATION_TEXT];
    redlock_node_report_t node;
    unsigned endless = 0, late = 0; /* numbers of servers whose key never expires, or too late */

    text[0] = '\0';
    for (size_t i = 0; report_node(report, i, &node); i++) {
        if (node.vote != REDLOCK_VOTE_GRANTED)
            continue;
        if (node.key == REDLOCK_KEY_PERSISTENT)
            endless++;
        else if (node.pttl_ms != UINT64_MAX && node.pttl_ms > max_ttl_ms)
            late++;
    }
    if (endless > 0)
        snprintf(
            text, size,
            "never expires on %u servers, so it is not a lock; if no program needs it: redlock "
            "break --yes",
            endless);
    else if (late > 0)
        snprintf(text, size,
                 "expires later than max_ttl %s allows: a server's clock was set back, or another "
                 "client's max_ttl is larger (it must be equal); if its holder is dead: redlock "
                 "break --yes",
                 duration_text(max_ttl_ms, max));
    return endless > 0 || late > 0;
}
