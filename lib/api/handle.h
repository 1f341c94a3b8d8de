/* SPDX-License-Identifier: MIT
 * Handles: what the user has of a lock. A handle is also made for each question (inspection,
 * verification, release by token), which no user sees. */
#ifndef RL_API_HANDLE_H
#define RL_API_HANDLE_H

#include "api/client.h"
#include "api/operation.h"

/* Lives until its user, the engine and the operation that runs on it have let go. The client's
 * mutex guards all that is not atomic. */
struct redlock_lock {
    struct rl_lock lock;    /* first: the engine's pointer to it is ours */
    struct rl_shard *shard; /* where all of this happens; its client is referenced */
    atomic_uint refs;
    atomic_int lost_fd; /* -1: none yet */
    atomic_uint_fast64_t deadline_boot_ns, deadline_raw_ns;
    atomic_int_fast64_t wall_us; /* rl_validity.wall_us */
    atomic_bool held;            /* with both deadlines: what redlock_lock_check() reads */
    bool queued;                 /* in rl_pending_events.first */
    bool owned_by_user;          /* the handle was given out and not freed */
    uint8_t names;
    uint32_t retained; /* so many releases do not end it yet */
    struct rl_op op;
    uint32_t pending; /* RL_FX_* to be announced, plus RL_NEWS_* */
    int pending_status;
    struct redlock_lock *next_pending;
    redlock_event_fn event_fn;
    redlock_event_end_fn event_end_fn; /* NULL: none, or it has run */
    void *event_userdata;
    struct rl_break *breaking;    /* of a break and of its parts */
    struct redlock_lock *subject; /* of a verification: the lock it is about, referenced */
    uint16_t names_len;           /* with their NULs */
    uint8_t part;                 /* of a break: which node's value it releases */
    char bytes[];                 /* each name, NUL */
};

/* Makes a handle with one reference, and what `storage` needs behind it. NULL: no memory. */
struct redlock_lock *rl_handle_new(struct rl_shard *shard, const struct rl_names *names,
                                   struct rl_storage *storage);
void rl_handle_ref(struct redlock_lock *handle);
void rl_handle_drop(struct redlock_lock *handle);
/* Publishes the deadline to threads that read it without the mutex. */
void rl_handle_publish(struct redlock_lock *handle);
/* Makes the descriptor of redlock_lock_fd() readable. */
void rl_handle_signal_lost(struct redlock_lock *handle);
/* Drops, in a forked child, the references of the handle's operation and of the thread that slept
 * in it. No thread of the child finishes the operation. */
void rl_handle_forget_op(struct redlock_lock *handle);

#endif
