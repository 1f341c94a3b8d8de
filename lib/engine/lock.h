/* SPDX-License-Identifier: MIT
 * One lock as the engine sees it: a lease with its claim, its timer and its queue entries. Turns
 * the effects of the lease into requests and announcements, and the votes of the nodes into events
 * of the lease.
 *
 * The api layer starts a lock with one of the rl_lock_start functions, passes its calls on with
 * rl_lock_event(), and takes the results from the announcements. Inspections and verifications are
 * locks, too, which are never held. The end of this header has what the api layer may read of a
 * lock.
 *
 * All functions require the client's mutex. Those that change a lock may announce something about
 * it (engine/announcements.h). Keys and tokens are passed as struct rl_arg: bytes and their length.
 * A key has the configured prefix. */
#ifndef RL_ENGINE_LOCK_H
#define RL_ENGINE_LOCK_H

#include "core/lease.h"
#include "engine/announcements.h"
#include "engine/queue.h"
#include "engine/storage.h"
#include "node/claim.h"

#define RL_HEAP_NONE UINT32_MAX /* as rl_lock.heap_at: the lock has no timer */

struct rl_engine;
struct rl_seen;

/* Why a lock that ended in the client's queue, before any node was asked for it, had to wait: the
 * kind of the lock that was in front of its resource. */
enum rl_queue_end {
    RL_QUEUE_END_NONE = 0,   /* the lock did not end in the queue, or no lock was in front */
    RL_QUEUE_END_HOLDER = 1, /* a lock of this client that was held */
    RL_QUEUE_END_WAITER = 2  /* a lock of this client that was acquiring; lease.round is a copy of
                              * that lock's round */
};

/* One lock. It is part of a handle, and the api layer owns its memory. The engine works on it from
 * rl_lock_start() until the step with RL_FX_ENDED: meanwhile it is active. The memory must stay
 * valid until the announcement with RL_FX_ENDED was taken. Owner: lock.c, except for the parts that
 * name another file.
 *
 * Invariants:
 *   - an active lock is in the engine's list, and has a claim;
 *   - while a lock is active, claim->owner points to it; afterwards the claim has no owner, so that
 *     the lock gets no votes;
 *   - a lock with queue entries has one at each of its resources; they end with the lock. */
struct rl_lock {
    struct rl_lease lease;       /* state, deadline and votes; changed by rl_lease_step() */
    struct rl_claim *claim;      /* claim of the present attempt, or of the lock that is or was
                                  * held; referenced. NULL: the lock was never started */
    struct rl_lock *next, *prev; /* while active: neighbours in the engine's list; NULL: none */
    uint64_t due_ns;   /* heap.c: boot time of the timer, or of the last one; RL_NEVER: there
                        * was none yet */
    uint32_t heap_at;  /* heap.c: index in the timer heap; RL_HEAP_NONE: no timer */
    bool active;       /* the engine works on the lock */
    bool alone;        /* acquisition: it has waited without a line although lines are on */
    bool queued;       /* queue.c: waits in the queues of its resources */
    bool own_token;    /* acquisition: the caller chose the token; there is only one attempt */
    uint8_t queue_end; /* enum rl_queue_end */
    uint64_t since_ms; /* lock_send.c: when the acquisition began, in ms of Unix time; 0: no request
                        * to a line was sent yet */
    uint8_t more;      /* queue.c: elements of more_entries; 0: one resource */
    struct rl_queue_entry queue_entry;   /* queue.c: at the first resource; its `resource` is NULL
                                          * if the lock has no entries */
    struct rl_queue_entry *more_entries; /* queue.c: at the other resources; NULL: one resource */
    struct rl_seen *seen;     /* inspection, verification: one element for each node; else NULL */
    struct rl_claim **probes; /* slot.c: claims for probes of slots; NULL: none was needed yet */
    struct rl_pending_announcement pending; /* announcements.c: not taken by the api layer yet */
};

/* Starts to work on a lock. All bytes of the lock are zero before. `storage` has the size that
 * rl_storage_for() returns for these parameters, and stays in place as long as the lock. `key` has
 * its prefix; `token` is {NULL, 0} if the engine makes the tokens. An acquisition with a token of
 * the caller must have no wait budget and no permits. Copies key, token and parameters.
 *
 * Returns REDLOCK_OK, ENOMEM or EQUEUEFULL. On failure the lock is not active and announces
 * nothing. */
int rl_lock_start(struct rl_engine *engine, struct rl_lock *lock,
                  const struct rl_lease_params *params, const struct rl_storage *storage,
                  struct rl_arg key, struct rl_arg token);
/* Starts to work on a lock of `count` keys, 1 to RL_KEYS_MAX, in ascending order; otherwise as
 * rl_lock_start(). The first key decides which nodes are preferred. */
int rl_lock_start_multi(struct rl_engine *engine, struct rl_lock *lock,
                        const struct rl_lease_params *params, const struct rl_storage *storage,
                        const struct rl_arg *keys, unsigned count, struct rl_arg token);

/* Starts a verification of the held lock `held`: the new lock `lock` reads the keys of `held` and
 * compares them with its token. Otherwise as rl_lock_start(). */
int rl_lock_start_verify(struct rl_engine *engine, struct rl_lock *lock,
                         const struct rl_lease_params *params, const struct rl_storage *storage,
                         const struct rl_lock *held);

/* Returns whether the lock may make its first attempt. A lock with a fence may not before the fence
 * records of the nodes were read. */
bool rl_lock_may_start(const struct rl_engine *engine, const struct rl_lock *lock);

/* Processes the notification that `key` has changed on the node with this index: wakes the waiter
 * that probes that key. An empty key: any key may have changed, and all waiters are woken. */
void rl_lock_wake(struct rl_engine *engine, unsigned node, struct rl_arg key, bool turn);

/* Wakes a waiter because another lock of this client has released the resource. `slot`: semaphore:
 * the slot that was released, RL_SLOT_ANY: several; 0 for other locks. */
void rl_lock_wake_local(struct rl_engine *engine, struct rl_lock *lock, uint16_t slot);

/* Starts the locks with fences that wait for the fence records to be read. The time that they have
 * waited counts against their wait budgets. */
void rl_lock_start_deferred(struct rl_engine *engine);

/* Passes an event to an active lock: RL_EVENT_EXTEND, RELEASE, SHORTEN, DETACH, CANCEL, CONFIRM (a
 * grant is about to be reported) or TURN (a queued lock may begin). `ttl_ns`: EXTEND: the TTL to
 * ask for, 0: that of the terms; SHORTEN: the delay until the keys expire. `status`: CANCEL: enum
 * redlock_error, the result of the operation. */
void rl_lock_event(struct rl_engine *engine, struct rl_lock *lock, uint8_t kind, uint64_t ttl_ns,
                   int status);

/* Loses a held lock if its deadline has passed by the clocks of the engine, before the timer does.
 * Called before a call of the user works on the lock. */
void rl_lock_expire(struct rl_engine *engine, struct rl_lock *lock);
/* Notes that a verification has found no key of a held lock on these nodes. The lock is lost if
 * fewer than a quorum of nodes still back its deadline. */
void rl_lock_note_absent(struct rl_engine *engine, struct rl_lock *lock, rl_nodes nodes);

/* Sends a TICK to an active lock, because its timer has ended or the wall clock has jumped. */
void rl_lock_tick(struct rl_engine *engine, struct rl_lock *lock);

/* Sends INVALIDATE to all active locks: keys that these nodes have set before now may be lost, or
 * expire too early. */
void rl_lock_invalidate(struct rl_engine *engine, rl_nodes nodes);

/* Passes a vote to the lease. Ignores it if the lock has ended or the vote belongs to an earlier
 * round. `reply`: the reply itself, for inspections and verifications; NULL if there is none. */
void rl_lock_vote(struct rl_engine *engine, struct rl_lock *lock, const struct rl_ballot *ballot,
                  const struct rl_reply *reply);

/* ---- What the api layer reads of a lock ---- */

/* Until when a lock is valid: a copy, which is not updated when the lock changes. */
struct rl_validity {
    bool held;              /* granted, and not released, lost or detached since */
    struct rl_now deadline; /* with `held`: when the lock must not be relied on any more */
    int64_t wall_us;        /* with `held`: wall clock minus boot clock in microseconds, at the
                             * start of the round that set the deadline */
};

/* Returns until when the lock is valid. */
static inline struct rl_validity rl_lock_validity(const struct rl_lock *lock)
{
    const struct rl_lease *lease = &lock->lease;

    return (struct rl_validity){rl_lease_is_held(lease), lease->deadline, lease->wall_us};
}

/* Returns whether the caller holds the lock. */
static inline bool rl_lock_is_held(const struct rl_lock *lock)
{
    return rl_lease_is_held(&lock->lease);
}

/* Returns the time until the deadline in nanoseconds; 0 if the lock is not held. */
static inline uint64_t rl_lock_remaining_ns(const struct rl_lock *lock, struct rl_now now)
{
    return rl_lease_remaining_ns(&lock->lease, now);
}

/* Returns whether the engine works on the lock: started and not ended. */
static inline bool rl_lock_is_active(const struct rl_lock *lock)
{
    return lock->active;
}

/* Returns whether the lock was held and has been lost. */
static inline bool rl_lock_is_lost(const struct rl_lock *lock)
{
    return lock->lease.lost;
}

/* Returns whether an attempt has failed and another one follows. */
static inline bool rl_lock_is_between_attempts(const struct rl_lock *lock)
{
    return lock->lease.state == RL_STATE_WAITING;
}

/* Returns whether the operation has not come to a result yet: the lock was not granted, or the
 * inspection or verification has not ended. */
static inline bool rl_lock_is_unacquired(const struct rl_lock *lock)
{
    uint8_t state = lock->lease.state;

    return state == RL_STATE_NEW || state == RL_STATE_ACQUIRING || state == RL_STATE_WAITING ||
           state == RL_STATE_QUEUED;
}

/* Returns enum redlock_error: why the last attempt or extension failed, or how the operation has
 * ended. */
static inline int rl_lock_status(const struct rl_lock *lock)
{
    return lock->lease.status;
}

/* Returns the settings of the lock. */
static inline const struct rl_lease_terms *rl_lock_terms(const struct rl_lock *lock)
{
    return lock->lease.terms;
}

/* Returns the last round of the lock, which may still be in progress. */
static inline const struct rl_round *rl_lock_round(const struct rl_lock *lock)
{
    return &lock->lease.round;
}

/* Returns the round that explains the result of the last operation. */
static inline const struct rl_round *rl_lock_evidence(const struct rl_lock *lock)
{
    return rl_lease_evidence(&lock->lease);
}

/* Returns what an inspection or a verification saw, one element for each node. NULL: the lock is
 * for neither. */
static inline const struct rl_seen *rl_lock_seen(const struct rl_lock *lock)
{
    return lock->seen;
}

/* Returns enum rl_queue_end: what was in front of the lock when it ended in the client's queue. */
static inline uint8_t rl_lock_queue_end(const struct rl_lock *lock)
{
    return lock->queue_end;
}

/* Returns which of several keys existed when the last attempt failed, counted from 1; 0: unknown.
 */
static inline unsigned rl_lock_taken(const struct rl_lock *lock)
{
    return lock->lease.taken;
}

/* Returns the fencing token; 0: none, or none chosen yet. */
static inline uint64_t rl_lock_fence(const struct rl_lock *lock)
{
    return rl_lease_fence_chosen(&lock->lease);
}

/* Returns the slot of the permit that is held or was tried last; 0 for other locks. */
static inline uint16_t rl_lock_slot(const struct rl_lock *lock)
{
    return rl_lease_slot(&lock->lease);
}

/* Returns the token of the last attempt, with a NUL after it; "" if there is none. The
 * token does not change any more once the lock was granted. The text belongs to the lock. */
const char *rl_lock_token(const struct rl_lock *lock);
/* Returns whether an active lock has this token, or a request or pending undo with it exists. */
bool rl_lock_token_is_used(const struct rl_engine *engine, struct rl_arg token);
/* Frees what the lock has allocated. Requires that the announcement of its end was taken, or that
 * the lock was never started. */
void rl_lock_dispose(struct rl_engine *engine, struct rl_lock *lock);

#endif
