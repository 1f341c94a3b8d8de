/* SPDX-License-Identifier: MIT
 * The limit of --quorum-wait: for how long a wait for a lock goes on without a quorum of servers.
 * Such a wait differs from a wait for a lock that another client holds, which has no limit but -w.
 */
#ifndef TOOLS_QUORUM_WAIT_H
#define TOOLS_QUORUM_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "redlock/redlock.h"

/* The default of --quorum-wait. */
#define QUORUM_WAIT_DEFAULT "30s"
/* Shortest limit, in ms, whatever --quorum-wait says. Servers that do not reply at once are tried
 * for this time, also if the wait is 0. */
#define QUORUM_WAIT_MS_MIN 500

/* Whether a quorum can be had now. */
enum quorum_state {
    QUORUM_THERE,      /* a quorum of servers has said that another client holds the lock */
    QUORUM_QUARANTINE, /* it will be there when the quarantine of some servers has ended */
    QUORUM_MISSING     /* neither, for any other cause */
};

/* How long no quorum could be had. Times are ns of CLOCK_BOOTTIME. */
struct quorum_wait {
    uint64_t limit_ns; /* when `spent_ns` reaches it, the wait ends; NEVER_NS: no limit */
    uint64_t spent_ns; /* how long a quorum has been missing in a row; quarantines do not count */
    uint64_t noted_ns; /* when the state was noted last */
    enum quorum_state state; /* as noted last; QUORUM_MISSING before */
};

/* Begins to count at `now_ns`. `limit_ms` may be UINT64_MAX: no limit. */
void quorum_wait_start(struct quorum_wait *quorum, uint64_t limit_ms, uint64_t now_ns);

/* Counts the time since the last call, in which `state` was found at its end. A quorum sets the
 * count to 0, and a quarantine leaves it as it is. */
void quorum_wait_note(struct quorum_wait *quorum, enum quorum_state state, uint64_t now_ns);

/* Returns true if no quorum could be had for as long as the limit allows. */
bool quorum_wait_has_ended(const struct quorum_wait *quorum);
/* Returns how much of the limit is left, in ms, rounded up; UINT64_MAX if there is no limit. */
uint64_t quorum_wait_left_ms(const struct quorum_wait *quorum);
/* Returns when the state has to be noted next. */
uint64_t quorum_wait_next_ns(const struct quorum_wait *quorum);

/* Returns the state for an acquisition whose last attempt has failed with `status`. `attempt` is
 * that of its report; all zero if no attempt has ended yet. Sends no request. */
enum quorum_state quorum_state_of(redlock_t *rl, const redlock_report_info_t *attempt, int status);

#endif
