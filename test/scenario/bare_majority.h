/* SPDX-License-Identifier: MIT
 * The setting in which one server is enough to break exclusion: a lock on a bare majority, nodes 0
 * to 2, and another client that is there already. Whatever happens to node 2 then, a majority has
 * no key any more. */
#ifndef SCENARIO_BARE_MAJORITY_H
#define SCENARIO_BARE_MAJORITY_H

#include "live.h"

#define NAME       "bare_majority"
#define MAX_TTL_MS 4000 /* all of a case but its end takes place within */
#define VICTIM     2
#define BEAT_MS    20
#define NO_BEAT_MS 60000

struct bare_majority {
    uint64_t max_ttl_ms; /* 0: MAX_TTL_MS */
    uint32_t flags;      /* of all locks: 0 or REDLOCK_FLAG_FENCE */
    int admission;       /* of all clients; 0: the default */
    bool idle;           /* the other client holds nothing, and does not look at its servers */
    bool holder_looks;   /* at its servers, as often as the other client; usually it does not */
    redlock_lock_t *held;
    redlock_t *other;       /* it holds another lock, and so looks at its servers */
    redlock_lock_t *beside; /* that one */
};
extern struct bare_majority bare_majority;

/* To be called first in a case: opens live.client and takes the lock. */
void bare_majority_hold(void);

/* Node 2 has lost the key: who knows nothing of that would grant it by now. */
void bare_majority_check_free(void);

/* The other client refuses, and names that cause for node 2; in the end it gets the lock, but not
 * before ours is over. */
void bare_majority_check_refused(int cause);
/* The same for a client that comes only now, and to which nobody attests that node 2 is fresh. */
void bare_majority_check_refused_anew(int cause);

/* The other one gets it while ours is still held: what this table says of plain clients. */
void bare_majority_check_two_at_once(void);

void bare_majority_end(void);

#endif
