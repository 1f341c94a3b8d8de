/* SPDX-License-Identifier: MIT
 * One lease with its claim and its timer: where the effects of the core become requests, and the
 * answers of the nodes become events of the core. */
#ifndef RL_ENGINE_LOCK_H
#define RL_ENGINE_LOCK_H

#include "core/lease.h"
#include "engine/announcements.h"
#include "engine/queue.h"
#include "engine/storage.h"
#include "node/claim.h"

#define RL_HEAP_NONE UINT32_MAX

struct rl_engine;

/* What an inspection or a verification saw on one node. */
struct rl_seen {
    bool present;
    bool foreign_kind; /* of an inspection: the key is not a string */
    bool ours;         /* of a verification: the key has the token; of several keys: all have */
    char *value;       /* of an inspection; allocated; NULL: none */
    size_t len;
    int64_t pttl_ms; /* -1: no expiry; -2: no key */
};

/* No node was asked for the lock: of what it waited for, this is known. */
enum rl_queue_end {
    RL_QUEUE_END_NONE = 0,
    RL_QUEUE_END_HOLDER = 1, /* a lock of this client that held */
    RL_QUEUE_END_WAITER = 2  /* one that asked: the round is the other's */
};

struct rl_lock {
    struct rl_lease lease;
    struct rl_claim *claim;      /* of the present attempt, or of what is or was held */
    struct rl_lock *next, *prev; /* all locks that the engine works on */
    uint64_t due_ns;             /* place in the timer heap */
    uint32_t heap_at;
    bool active;
    bool queued;       /* behind other locks of this client */
    bool own_token;    /* the token is the caller's: there is one attempt with it */
    uint8_t queue_end; /* enum rl_queue_end: what went first when it ended in the queue */
    uint8_t more;      /* resources beside the first */
    struct rl_queue_entry
        queue_entry; /* at the first; without a place: not an acquisition, or over */
    struct rl_queue_entry *more_entries; /* at the others */
    struct rl_seen *seen;                /* inspections, verifications: one for each node */
    struct rl_claim **probes; /* permits: to ask about slots; NULL: none was needed yet */
    struct rl_pending_announcement pending;
};

/* Starts to work on a lock, which is zero before that: `storage` of rl_storage_for() these
 * parameters; `key` with its prefix; `token` for leases that bring their own, else {NULL, 0}. An
 * acquisition that brings its own has no wait budget and is for no permit: it makes one attempt. 0,
 * ENOMEM, or EQUEUEFULL (nothing was started). */
int rl_lock_start(struct rl_engine *engine, struct rl_lock *lock,
                  const struct rl_lease_params *params, const struct rl_storage *storage,
                  struct rl_arg key, struct rl_arg token);
/* On 1 to RL_KEYS_MAX keys, in ascending order: who shares the first shares the order in which
 * nodes are asked. */
int rl_lock_start_multi(struct rl_engine *engine, struct rl_lock *lock,
                        const struct rl_lease_params *params, const struct rl_storage *storage,
                        const struct rl_arg *keys, unsigned count, struct rl_arg token);

/* Starts a verification of `held`, which is held, on its keys and with its token. */
int rl_lock_start_verify(struct rl_engine *engine, struct rl_lock *lock,
                         const struct rl_lease_params *params, const struct rl_storage *storage,
                         const struct rl_lock *held);

/* Not a fenced lock that must wait until the nodes' records were looked at. */
bool rl_lock_may_start(const struct rl_engine *engine, const struct rl_lock *lock);

/* A node tells that `key` has changed there; an empty key: any may have. */
void rl_lock_wake(struct rl_engine *engine, unsigned node, struct rl_arg key);

/* Another lock of this client has let go what this one waits for, or that slot of it. */
void rl_lock_wake_local(struct rl_engine *engine, struct rl_lock *lock, uint16_t slot);

/* Starts the fenced locks that waited until the nodes' records were looked at. */
void rl_lock_start_deferred(struct rl_engine *engine);

/* An event of the caller: EXTEND, RELEASE, SHORTEN, DETACH, CANCEL, CONFIRM. */
void rl_lock_event(struct rl_engine *engine, struct rl_lock *lock, uint8_t kind, uint64_t ttl_ns,
                   int status);

/* These nodes have shown that a held lock is not there any more. It is lost, and announced, if so
 * few others back its validity that another client can have a majority. */
void rl_lock_note_absent(struct rl_engine *engine, struct rl_lock *lock, rl_nodes nodes);

/* The lock's wake time has come. */
void rl_lock_tick(struct rl_engine *engine, struct rl_lock *lock);

/* What these nodes said before now is in doubt: all locks look again at what they rest on. */
void rl_lock_invalidate(struct rl_engine *engine, rl_nodes nodes);

/* Counts a vote of a node; `reply` is the raw reply, or NULL. */
void rl_lock_vote(struct rl_engine *engine, struct rl_lock *lock, const struct rl_ballot *ballot,
                  const struct rl_reply *reply);

/* What the floor above asks of a lock. */

/* Until when a lock is valid. */
struct rl_validity {
    bool held;              /* granted, and not released, lost or ended since */
    struct rl_now deadline; /* with `held` */
    int64_t wall_us;        /* wall clock minus boot clock when the lock was requested */
};

static inline struct rl_validity rl_lock_validity(const struct rl_lock *lock)
{
    const struct rl_lease *lease = &lock->lease;

    return (struct rl_validity){rl_lease_is_held(lease), lease->deadline, lease->wall_us};
}

static inline bool rl_lock_is_held(const struct rl_lock *lock)
{
    return rl_lease_is_held(&lock->lease);
}

/* Returns the time until the deadline of what is held; 0: nothing is. */
static inline uint64_t rl_lock_remaining_ns(const struct rl_lock *lock, struct rl_now now)
{
    return rl_lease_remaining_ns(&lock->lease, now);
}

/* Returns whether the engine works on the lock. */
static inline bool rl_lock_is_active(const struct rl_lock *lock)
{
    return lock->active;
}

static inline bool rl_lock_is_lost(const struct rl_lock *lock)
{
    return lock->lease.lost;
}

/* Returns whether an attempt failed and another one follows. */
static inline bool rl_lock_is_between_attempts(const struct rl_lock *lock)
{
    return lock->lease.state == RL_STATE_WAITING;
}

/* Returns whether the lock is to be acquired and was not granted yet. */
static inline bool rl_lock_is_wanted(const struct rl_lock *lock)
{
    uint8_t state = lock->lease.state;

    return state == RL_STATE_NEW || state == RL_STATE_ACQUIRING || state == RL_STATE_WAITING ||
           state == RL_STATE_QUEUED;
}

/* Returns why the last attempt or extension failed, or how the release ended. */
static inline int rl_lock_status(const struct rl_lock *lock)
{
    return lock->lease.status;
}

static inline const struct rl_lease_terms *rl_lock_terms(const struct rl_lock *lock)
{
    return lock->lease.terms;
}

/* Returns the round that ran last. */
static inline const struct rl_round *rl_lock_round(const struct rl_lock *lock)
{
    return &lock->lease.round;
}

/* Returns the round that shows why the last operation came out as it did. */
static inline const struct rl_round *rl_lock_evidence(const struct rl_lock *lock)
{
    return rl_lease_evidence(&lock->lease);
}

/* Returns what an inspection or a verification saw, one element for each node; NULL: the lock is
 * for neither. */
static inline const struct rl_seen *rl_lock_seen(const struct rl_lock *lock)
{
    return lock->seen;
}

/* Returns what went first when the lock ended in the client's queue: enum rl_queue_end. */
static inline uint8_t rl_lock_behind(const struct rl_lock *lock)
{
    return lock->queue_end;
}

/* Returns which of several keys was taken when the last attempt failed, from 1 on; 0: unknown. */
static inline unsigned rl_lock_taken(const struct rl_lock *lock)
{
    return lock->lease.taken;
}

/* Returns the fencing token; 0: none. */
static inline uint64_t rl_lock_fence(const struct rl_lock *lock)
{
    return rl_lease_fence_chosen(&lock->lease);
}

/* Returns the slot of a permit that is held or was tried last; 0 for other locks. */
static inline uint16_t rl_lock_slot(const struct rl_lock *lock)
{
    return rl_lease_slot(&lock->lease);
}

/* Two nodes showed the same value, byte for byte; false if either showed none. */
bool rl_seen_same(const struct rl_seen *a, const struct rl_seen *b);
/* Frees what an inspection saw. */
void rl_lock_free_seen(struct rl_engine *engine, struct rl_lock *lock);
/* The token of its last attempt, with a NUL behind it; stays as it is from the grant on. */
const char *rl_lock_token(const struct rl_lock *lock);
/* A lock that the engine works on has this token, or a node may still be asked to do something with
 * it. */
bool rl_lock_token_is_used(const struct rl_engine *engine, struct rl_arg token);
/* Frees what the lock has allocated. The engine is done with it: its end was taken, or it was never
 * started. */
void rl_lock_dispose(struct rl_engine *engine, struct rl_lock *lock);

#endif
