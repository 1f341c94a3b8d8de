/* SPDX-License-Identifier: MIT
 * Deletes the key of a lock, and inspects the lock before and after to count the servers.
 */
#include "breaking.h"

#include <poll.h>
#include <string.h>

#include "clock.h"
#include "inspect.h"

/* How long, and with what pause, servers that reply late are waited for. */
#define TIME_LIMIT_MS 1000
#define PAUSE_MS      10

/* Compares a server's reports from before, of the break and from after. */
bool breaking_has_deleted(const struct breaking *breaking, size_t index)
{
    redlock_node_report_t before, broken, after;

    if (report_node(breaking->broken, index, &broken) && broken.vote == REDLOCK_VOTE_GRANTED)
        return true;
    return report_node(breaking->before, index, &before) && before.vote == REDLOCK_VOTE_GRANTED &&
           report_node(breaking->after, index, &after) && after.vote == REDLOCK_VOTE_DENIED;
}

/* Returns true if a server that had a key may still have it: it has not said that the key is gone.
 * A key with another label is that of a client that acquired the lock meanwhile. */
static bool is_left(const struct breaking *breaking, size_t index)
{
    redlock_node_report_t before, after;

    return !breaking_has_deleted(breaking, index) &&
           report_node(breaking->before, index, &before) && before.vote == REDLOCK_VOTE_GRANTED &&
           report_node(breaking->after, index, &after) &&
           (after.vote != REDLOCK_VOTE_GRANTED || strcmp(before.owner, after.owner) == 0);
}

/* Inspects the lock until no server has the key that it had before, at most for TIME_LIMIT_MS. */
static void inspect_after(redlock_t *rl, const char *name, struct breaking *breaking)
{
    uint64_t give_up_ns = boottime_ns() + TIME_LIMIT_MS * NS_PER_MS;
    redlock_node_report_t node;
    bool left;
    int error;

    for (;;) {
        breaking->after = inspect_one(rl, name, &error);
        left = false;
        for (size_t i = 0; report_node(breaking->after, i, &node); i++)
            left = left || is_left(breaking, i);
        if (!left || boottime_ns() >= give_up_ns)
            return;
        redlock_report_free(breaking->after);
        poll(NULL, 0, PAUSE_MS);
    }
}

/* Calls redlock_break(), and after a success inspects the lock. */
int breaking_run(redlock_t *rl, const char *name, struct breaking *breaking)
{
    int error = redlock_break(rl, name, &breaking->broken);

    if (error == REDLOCK_OK)
        inspect_after(rl, name, breaking);
    return error;
}

/* Counts the servers for which breaking_has_deleted() is true. */
unsigned breaking_count(const struct breaking *breaking)
{
    redlock_node_report_t node;
    unsigned deleted = 0;

    for (size_t i = 0; report_node(breaking->broken, i, &node); i++)
        deleted += breaking_has_deleted(breaking, i);
    return deleted;
}

/* Frees the three reports. */
void breaking_free(struct breaking *breaking)
{
    redlock_report_free(breaking->before);
    redlock_report_free(breaking->broken);
    redlock_report_free(breaking->after);
}
