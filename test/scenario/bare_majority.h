/* SPDX-License-Identifier: MIT
 * The setting in which one server is enough to break exclusion: a lock whose key is on a bare
 * majority, nodes 0 to 2, and another client that already runs. If node 2 loses the key, a majority
 * of servers has no key any more. */
#ifndef SCENARIO_BARE_MAJORITY_H
#define SCENARIO_BARE_MAJORITY_H

#include "live.h"

#define NAME       "bare_majority"
#define MAX_TTL_MS 4000  /* of all clients, and the TTL of all locks, unless a case sets another */
#define VICTIM     2     /* number of the server that loses the key */
#define BEAT_MS    20    /* interval of a client's heartbeats */
#define NO_BEAT_MS 60000 /* longer than a case: the client sends no heartbeat */

/* The running case. It sets the fields up to holder_beats before it calls bare_majority_hold(),
 * which sets the rest. */
struct bare_majority {
    uint64_t max_ttl_ms;  /* 0: MAX_TTL_MS */
    uint32_t flags;       /* of all locks: 0 or REDLOCK_FLAG_FENCE */
    int admission;        /* of all clients; 0: the default */
    bool idle;            /* the other client holds no lock and therefore sends no heartbeats */
    bool holder_beats;    /* the holder sends heartbeats as often as the other client; by default it
                           * does not */
    redlock_lock_t *held; /* the lock on the bare majority, of live.client */
    redlock_t *other;     /* holds another lock, and so sends heartbeats */
    redlock_lock_t *other_lock; /* the lock that `other` holds */
};
extern struct bare_majority bare_majority;

/* Opens live.client and acquires the lock. A case calls it first. */
void bare_majority_hold(void);

/* Checks that node 2 has lost the key and that a client without protection would get the lock now.
 */
void bare_majority_check_free(void);

/* Checks that the other client is refused with that cause for node 2, and that it gets the lock at
 * last, but not before the first holder's deadline. */
void bare_majority_check_refused(int cause);
/* Checks the same for a client that starts only now, with addresses that do not attest that node 2
 * is new. */
void bare_majority_check_refused_anew(int cause);

/* Checks that the other client gets the lock while it is still held, which plain clients cannot
 * prevent. */
void bare_majority_check_two_at_once(void);

/* Releases the locks, frees the other client and resets the options. */
void bare_majority_end(void);

#endif
