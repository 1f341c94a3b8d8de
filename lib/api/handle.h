/* SPDX-License-Identifier: MIT
 * Handles: the user's objects for locks. Inspections, verifications, breaks and releases by token
 * use a handle as well, which the user does not see. */
#ifndef RL_API_HANDLE_H
#define RL_API_HANDLE_H

#include "api/client.h"
#include "api/operation.h"

/* One handle (redlock_lock_t). Owned by handle.c; `op` belongs to start.c and dispatch.c, the
 * pending events to dispatch.c, `breaking` and `part` to break.c, the lock to the engine.
 *
 * It is freed when the user, the engine and the operation that runs on it have dropped their
 * references. Invariants: the client's mutex guards every field that is not atomic; a handle has at
 * most one operation at a time. */
struct redlock_lock {
    struct rl_lock lock;    /* first, so that a pointer to it is also a pointer to the handle */
    struct rl_shard *shard; /* the shard of the names; its client is referenced */
    atomic_uint
        refs; /* references: of the user, the engine, the operation, a queue, a verification */
    atomic_int lost_fd; /* eventfd of redlock_lock_fd(), readable once lost; -1: none yet */
    /* A copy of rl_lock_validity() for redlock_lock_check(), which takes no mutex. */
    atomic_uint_fast64_t deadline_boot_ns, deadline_raw_ns; /* on both clocks, with `held` */
    atomic_int_fast64_t wall_us; /* wall clock minus boot clock at the request, in microseconds */
    atomic_bool held;            /* the lock is held; the three fields above are valid */
    bool queued;                 /* linked in rl_pending_events.first */
    bool received;               /* the user has received the handle, and may have freed it */
    bool owned_by_user;          /* the user has received the handle and not freed it */
    uint8_t names;               /* number of names in `bytes`, 1 to RL_KEYS_MAX */
    uint32_t retained;           /* users beside the first: as many releases leave the lock held */
    struct rl_op op;    /* the operation that runs or was not reported yet; kind RL_OP_NONE: none */
    uint32_t pending;   /* set of RL_FX_* and RL_PENDING_*: what is to be reported to the user */
    int pending_status; /* enum redlock_error that the pending event reports */
    struct redlock_lock *next_pending; /* next in rl_pending_events.first, if `queued` */
    redlock_event_fn event_fn;         /* receives the events of the lock; NULL: none */
    redlock_event_end_fn event_end_fn; /* runs after the last event; NULL: none, or it has run */
    void *event_userdata;              /* passed to both functions */
    struct rl_break *breaking;         /* shared by a break and its parts; NULL: this is neither */
    struct redlock_lock
        *subject;       /* verification: the lock that is verified, referenced; else NULL */
    uint16_t names_len; /* bytes of all names with their NULs */
    uint8_t part; /* part of a break: the node on which its value was seen, below RL_NODES_MAX */
    char bytes[]; /* the names, each with its NUL; then the storage of the lock */
};

/* Creates a handle with one reference for a lock on `names`, which are copied. Behind the names it
 * has storage->size bytes for the engine; storage->at receives their address. Returns NULL without
 * memory. */
struct redlock_lock *rl_handle_new(struct rl_shard *shard, const struct rl_names *names,
                                   struct rl_storage *storage);
/* Adds a reference. */
void rl_handle_ref(struct redlock_lock *handle);
/* Drops a reference; the last one frees the handle and drops its reference to the client. */
void rl_handle_drop(struct redlock_lock *handle);
/* Copies the validity of the lock to the atomic fields, for threads that read it without the mutex.
 * Called after each change of the deadline or of the state. */
void rl_handle_publish(struct redlock_lock *handle);
/* Makes the descriptor of redlock_lock_fd() readable, if there is one. */
void rl_handle_signal_lost(struct redlock_lock *handle);
/* Drops the user's reference to the handle in a forked child. Leaks it if a thread of the parent
 * held the mutex during the fork, because the engine may be inconsistent then. */
void rl_handle_drop_in_child(struct redlock_lock *handle);
/* Drops the references of the handle's operation, and of the thread that waited for it, in a forked
 * child. No thread of the child ends the operation. */
void rl_handle_forget_op(struct redlock_lock *handle);

#endif
