/* SPDX-License-Identifier: MIT
 * The program that `redlock run` starts in a chaos run: it runs for HOLD_MS and logs that it runs.
 * It does not know the deadline of the lock: `redlock run` promises to end it in time.
 *
 *     chaos-hold LOG RESOURCES ID HOLD_MS
 *
 * RESOURCES: as in the log; of a semaphore its name, and the slot is in the environment. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "history.h"
#include "wait.h"

#define NS_PER_MS UINT64_C(1000000) /* nanoseconds of a millisecond */

/* Logs "hold", then "alive" again and again for HOLD_MS, then "end". Returns 0, or 64 for wrong
 * arguments. */
int main(int argc, char **argv)
{
    char resource[64];
    if (argc != 5 || !history_open(argv[1]))
        return 64;
    const char *id = argv[3], *fence = getenv("REDLOCK_FENCE"), *slot = getenv("REDLOCK_SLOT");
    if (slot != NULL)
        snprintf(resource, sizeof resource, "%s{#%s}", argv[2], slot);
    else
        snprintf(resource, sizeof resource, "%s", argv[2]);
    const uint64_t since_ns = history_now_ns();
    const uint64_t end_ns = since_ns + strtoull(argv[4], NULL, 10) * NS_PER_MS;
    history_write(since_ns, "hold %s %s %" PRIu64 " %s", resource, id, since_ns,
                  fence != NULL ? fence : "0");
    for (;;) {
        const uint64_t now_ns = history_now_ns();
        if (now_ns >= end_ns)
            break;
        history_write(now_ns, "alive %s %s", resource, id);
        for (int i = 0; i < 4; i++)
            wait_pause();
    }
    history_write(history_now_ns(), "end %s %s", resource, id);
    return 0;
}
