/* SPDX-License-Identifier: MIT
 * News: what the engine announces, on its way to callbacks and waiting threads. The client's mutex
 * is held in all functions; callbacks run without it. */
#ifndef RL_API_DISPATCH_H
#define RL_API_DISPATCH_H

#include "core/types.h"
#include "engine/engine.h"

#include <pthread.h>

struct redlock;
struct redlock_lock;
struct rl_client_op;
struct rl_ready;
struct rl_shard;

/* What a handle has to announce, beside RL_FX_*. */
#define RL_PENDING_END      (1u << 29) /* no event of the lock follows */
#define RL_PENDING_ACQUIRED (1u << 30)
#define RL_PENDING_RELEASED (1u << 31)

/* Callbacks of a client that wait, and the one that runs. Owned by dispatch.c. */
struct rl_pending_events {
    struct redlock_lock *first, *last; /* handles with news, linked by next_news; referenced */
    struct rl_client_op *client_done;  /* operations of the client that are over */
    bool has_node_events;              /* some set has news of nodes */
    int fd;                            /* hybrid: readable when callbacks wait; else -1 */
    bool in_callback;
    pthread_t callback_thread; /* with `in_callback` */
};

/* What was and is to be announced of the nodes of one set. Owned by dispatch.c. */
struct rl_pending_node_events {
    uint8_t kind[RL_NODES_MAX];       /* enum redlock_event_kind to be announced; 0: none */
    uint8_t last_cause[RL_NODES_MAX]; /* enum redlock_cause that was announced last */
    bool was_up[RL_NODES_MAX];
};

void rl_dispatch_init(struct redlock *rl);
/* Makes the descriptor of hybrid mode: 0 or ESYS. */
int rl_dispatch_open(struct redlock *rl);
/* Closes it. No mutex. */
void rl_dispatch_close(struct redlock *rl);
/* Returns the descriptor of hybrid mode. No mutex. */
int rl_dispatch_fd(const struct redlock *rl);
/* Makes the descriptor unreadable again. No mutex. */
void rl_dispatch_clear(struct redlock *rl);
/* In a forked child, after rl_io_abandon(): drops what waits, and the references of the engines and
 * of all operations. */
void rl_dispatch_abandon(struct redlock *rl);

/* Takes what the engines have announced, until nothing is left: publishes deadlines, ends
 * operations and queues events. Follows each call into an engine that works on locks, before the
 * mutex is released and before any code looks at what the call did. Runs no callback. Starts the
 * second half of a break, so what it leaves must be sent. Returns whether there was anything. */
bool rl_dispatch_take(struct redlock *rl);
/* Turns the loop once: reads what is ready, does what is due, and sends. rl_dispatch_flush()
 * follows before the next wait. */
void rl_dispatch_tick(struct redlock *rl, const struct rl_ready *ready, int count);
/* Sends what is queued and takes what is announced, until neither is left. Sets the timer. */
void rl_dispatch_flush(struct redlock *rl);
/* Gives a lock an event of the caller: rl_lock_event(), and takes what it announces. */
void rl_dispatch_event(struct redlock_lock *handle, uint8_t kind, uint64_t ttl_ns, int status);
/* Tells the engine that these nodes do not have the lock, and takes what it announces of this lock.
 * May be called by what rl_dispatch_take() calls. */
void rl_dispatch_note_absent(struct redlock_lock *handle, rl_nodes nodes);

/* Runs callbacks; the mutex is held on entry and exit, free while a callback runs. */
void rl_dispatch(struct redlock *rl);
bool rl_dispatch_has_pending(const struct redlock *rl);
/* Returns whether this thread runs a callback of the client. */
bool rl_dispatch_is_own_callback(const struct redlock *rl);

/* Ends the operation of the handle: tells the waiter, or queues the callback. */
void rl_dispatch_done(struct redlock *rl, struct redlock_lock *handle, int status);
/* A grant is about to be told: still good? false: it was not, and the next attempt follows. */
bool rl_dispatch_confirm(struct redlock *rl, struct redlock_lock *handle);
/* Takes back a grant that is done, not told, and not held any more. */
void rl_dispatch_disown(const struct redlock *rl, struct redlock_lock *handle);
/* Queues the ACQUIRED event of a blocking call. */
void rl_dispatch_acquired(struct redlock *rl, struct redlock_lock *handle);
/* Queues the notice that no event of the lock follows, unless there is none or it has run. */
void rl_dispatch_end(struct redlock *rl, struct redlock_lock *handle);
/* Queues the callback of an operation of the client that is over, and takes the item. */
void rl_dispatch_client_op(struct redlock *rl, struct rl_client_op *item);

#endif
