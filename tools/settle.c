/* SPDX-License-Identifier: MIT
 * Decides how long a command waits for the first reply of each server. */
#include "settle.h"

bool settle_naps_on(struct settle *settle, size_t replied, size_t count)
{
    bool majority = replied > count / 2;
    unsigned most = SETTLE_NAPS_MAX;

    if (!majority)
        settle->majority = settle->naps + 1;
    else if (2 * settle->majority + SETTLE_NAPS_MORE < most)
        most = 2 * settle->majority + SETTLE_NAPS_MORE;
    return replied < count && settle->naps++ < most;
}
