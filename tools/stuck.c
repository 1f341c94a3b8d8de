/* SPDX-License-Identifier: MIT
 * Finds stuck keys in what an inspection saw.
 */
#include "stuck.h"

#include <stdio.h>
#include <string.h>

#include "durations.h"
#include "redlock/redlock.h"

bool stuck_text(const struct evidence *evidence, uint64_t max_ttl_ms, char *text, size_t size)
{
    char max[DURATION_TEXT];
    unsigned endless = 0, late = 0;

    text[0] = '\0';
    for (size_t i = 0; evidence && i < evidence->count; i++) {
        const struct evidence_node *node = &evidence->nodes[i];
        if (node->vote != REDLOCK_VOTE_GRANTED)
            continue;
        if (strstr(node->text, "never expires"))
            endless++;
        else if (node->pttl_ms != UINT64_MAX && node->pttl_ms > max_ttl_ms)
            late++;
    }
    if (endless > 0)
        snprintf(text, size,
                 "never expires on %u servers: no lock does that; if it is nobody's: redlock break "
                 "--yes",
                 endless);
    else if (late > 0)
        snprintf(text, size,
                 "lives longer than max_ttl %s: a server's clock was set back, or another client's "
                 "max_ttl is larger (it must be equal); if its holder is dead: redlock break --yes",
                 duration_text(max_ttl_ms, max));
    return endless > 0 || late > 0;
}
