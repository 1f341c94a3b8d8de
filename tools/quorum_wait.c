/* SPDX-License-Identifier: MIT
 * Counts for how long no quorum could be had. wait.c notes the state of the quorum after each
 * attempt, and between attempts twice a second: while another client holds the lock, the
 * next attempt may be a whole TTL away.
 */
#include "quorum_wait.h"

#include "clock.h"

/* Longest time between two notes of the state. */
#define INTERVAL_NS (500 * NS_PER_MS)
/* Most that counts between two notes. The process may have been suspended, and what the servers did
 * meanwhile is not known. */
#define STEP_NS_MAX (2000 * NS_PER_MS)

/* Begins to count at `now_ns`, with a limit of `limit_ms`, but at least QUORUM_WAIT_MS_MIN. */
void quorum_wait_start(struct quorum_wait *quorum, uint64_t limit_ms, uint64_t now_ns)
{
    uint64_t least_ms = limit_ms > QUORUM_WAIT_MS_MIN ? limit_ms : QUORUM_WAIT_MS_MIN;

    *quorum =
        (struct quorum_wait){.limit_ns = NEVER_NS, .noted_ns = now_ns, .state = QUORUM_MISSING};
    if (least_ms <= INT64_MAX / NS_PER_MS)
        quorum->limit_ns = least_ms * NS_PER_MS;
}

/* Adds the time since the last note, at most STEP_NS_MAX, if the quorum is missing. Sets the count
 * to 0 if it is there. */
void quorum_wait_note(struct quorum_wait *quorum, enum quorum_state state, uint64_t now_ns)
{
    uint64_t step_ns = now_ns - quorum->noted_ns;

    quorum->noted_ns = now_ns;
    quorum->state = state;
    if (state == QUORUM_THERE)
        quorum->spent_ns = 0;
    if (state == QUORUM_MISSING)
        quorum->spent_ns += step_ns < STEP_NS_MAX ? step_ns : STEP_NS_MAX;
}

/* Returns true if the count has reached the limit. */
bool quorum_wait_has_ended(const struct quorum_wait *quorum)
{
    return quorum->spent_ns >= quorum->limit_ns;
}

/* Returns how much of the limit is left, in ms, rounded up; UINT64_MAX if there is no limit. */
uint64_t quorum_wait_left_ms(const struct quorum_wait *quorum)
{
    if (quorum->limit_ns == NEVER_NS)
        return UINT64_MAX;
    if (quorum_wait_has_ended(quorum))
        return 0;
    return (quorum->limit_ns - quorum->spent_ns + NS_PER_MS - 1) / NS_PER_MS;
}

/* Returns when the state has to be noted next: after INTERVAL_NS, or at the limit if that comes
 * first. */
uint64_t quorum_wait_next_ns(const struct quorum_wait *quorum)
{
    uint64_t left_ns = quorum->limit_ns - quorum->spent_ns;
    bool limited = !quorum_wait_has_ended(quorum) && left_ns < INTERVAL_NS;

    return quorum->noted_ns + (limited ? left_ns : INTERVAL_NS);
}

/* Counts the eligible servers of the shard of `attempt` and those whose quarantine will end. If the
 * last attempt was denied (REDLOCK_ECONTENDED) and a quorum of servers is still eligible, returns
 * QUORUM_THERE. An attempt that failed with another status had no quorum, whatever its servers say
 * of themselves. */
enum quorum_state quorum_state_of(redlock_t *rl, const redlock_report_info_t *attempt, int status)
{
    redlock_node_stats_t node;
    uint32_t eligible = 0, quarantined = 0;

    for (uint32_t i = 0; i < attempt->nodes; i++) {
        if (redlock_get_node_stats(rl, attempt->node_first + i, &node, sizeof node) != REDLOCK_OK)
            continue;
        eligible += node.eligible != 0;
        quarantined += !node.eligible && node.quarantine_ms > 0;
    }
    if (attempt->nodes == 0)
        return QUORUM_MISSING;
    if (eligible >= attempt->quorum)
        return status == REDLOCK_ECONTENDED ? QUORUM_THERE : QUORUM_MISSING;
    return eligible + quarantined >= attempt->quorum ? QUORUM_QUARANTINE : QUORUM_MISSING;
}
