/* SPDX-License-Identifier: MIT
 * Delivers what the engines announce (a lock or a node has changed, an operation has ended): to the
 * threads that wait in blocking calls, and to the user's callbacks. "To take announcements" means
 * to read them, to end operations and to queue callbacks, which rl_dispatch() runs. The client's
 * mutex is held in all functions, unless their comments say otherwise. Callbacks run without it. */
#ifndef RL_API_DISPATCH_H
#define RL_API_DISPATCH_H

#include "core/types.h"
#include "engine/engine.h"

#include <pthread.h>

struct redlock_client;
struct redlock_lock;
struct rl_client_op;
struct rl_ready;
struct rl_shard;

/* Bits of redlock_lock.pending, the set of what is to be reported to the user. The other bits are
 * RL_FX_*, with which an engine announces what happened to a lock. */
#define RL_PENDING_END      (1u << 29) /* run `event_end_fn`: no event of the lock follows */
#define RL_PENDING_ACQUIRED (1u << 30) /* report REDLOCK_EVENT_ACQUIRED */
#define RL_PENDING_RELEASED (1u << 31) /* report REDLOCK_EVENT_RELEASED */

/* The callbacks of one client that have not run yet. Owned by dispatch.c; part of struct
 * redlock_client.
 */
struct rl_pending_events {
    struct redlock_lock *first, *last; /* queue of handles whose `pending` is not 0, linked by
                                        * next_pending; each is referenced */
    struct rl_client_op *client_done;  /* client operations that have ended, linked; owned */
    bool has_node_events;              /* some element of rl_pending_node_events.kind is not 0 */
    int fd;                    /* hybrid mode: eventfd, readable while callbacks are pending;
                                * else -1 */
    bool in_callback;          /* a callback is running */
    pthread_t callback_thread; /* the thread that runs it, with `in_callback` */
};

/* The events of one shard's nodes, indexed by node. Owned by dispatch.c; part of struct rl_shard.
 */
struct rl_pending_node_events {
    uint8_t kind[RL_NODES_MAX];       /* enum redlock_event_kind to report; 0: none */
    uint8_t last_cause[RL_NODES_MAX]; /* enum redlock_cause of the node when it changed last */
    bool was_up[RL_NODES_MAX];        /* the node was eligible when it changed last */
};

/* Prepares the pending callbacks of a new client. No mutex. */
void rl_dispatch_init(struct redlock_client *rl);
/* Creates the descriptor of hybrid mode; other modes have none. Returns 0 or REDLOCK_ESYS. No
 * mutex.
 */
int rl_dispatch_open(struct redlock_client *rl);
/* Closes the descriptor, if there is one. No mutex. */
void rl_dispatch_close(struct redlock_client *rl);
/* Returns the descriptor of hybrid mode, -1 in other modes. No mutex. */
int rl_dispatch_fd(const struct redlock_client *rl);
/* Makes the descriptor unreadable again. No mutex. */
void rl_dispatch_clear(struct redlock_client *rl);
/* Drops all pending callbacks, and the references of the engines and of all operations. For a
 * forked child, after rl_io_abandon(). */
void rl_dispatch_abandon(struct redlock_client *rl);

/* Takes the announcements of all engines, until none is left: publishes deadlines, ends operations
 * and queues events. Runs no callback. Call it after each call into an engine that works on locks,
 * before the mutex is released and before the results of that call are used. It may start the
 * second half of a break, so the caller must send afterwards. Returns whether there was an
 * announcement. */
bool rl_dispatch_take(struct redlock_client *rl);
/* Runs one turn of the loop: reads from the `count` sockets of `ready`, does what is due, and
 * sends. Call rl_dispatch_flush() before the next wait. */
void rl_dispatch_tick(struct redlock_client *rl, const struct rl_ready *ready, int count);
/* Sends queued requests and takes announcements, until there are none of either. Arms the timer. */
void rl_dispatch_flush(struct redlock_client *rl);
/* Passes an event to a lock with rl_lock_event(), and takes the announcements. */
void rl_dispatch_event(struct redlock_lock *handle, uint8_t kind, uint64_t ttl_ns, int status);
/* Returns whether the lock is held. In embedded mode, a lock whose deadline has passed is lost now.
 * Not within rl_dispatch_take(). */
bool rl_dispatch_is_held(struct redlock_lock *handle);
/* Notes in the engine that these nodes do not have the lock, and takes the announcement of this
 * lock only. May be called from within rl_dispatch_take(). */
void rl_dispatch_note_absent(struct redlock_lock *handle, rl_nodes nodes);

/* Runs the pending callbacks: log lines, handles, nodes, client operations. Releases the mutex
 * while each of them runs. Callbacks of handles that are queued meanwhile stay pending, and so do
 * client operations that end meanwhile while rl_callbacks_stop() waits. */
void rl_dispatch(struct redlock_client *rl);
/* Returns whether callbacks are pending. */
bool rl_dispatch_has_pending(const struct redlock_client *rl);
/* Returns whether this thread runs a callback of the client. */
bool rl_dispatch_is_own_callback(const struct redlock_client *rl);

/* Ends the operation of the handle with `status`: wakes its waiter, or queues its callback. Does
 * nothing if there is no operation, or if it has ended. */
void rl_dispatch_done(struct redlock_client *rl, struct redlock_lock *handle, int status);
/* Confirms in the engine that a grant, whose operation has ended, is about to be reported. Returns
 * true if the result can be reported: the lock is still held, or the operation has failed. Returns
 * false if the lock is not held any more and the next attempt follows. */
bool rl_dispatch_confirm(struct redlock_client *rl, struct redlock_lock *handle);
/* Turns the result of the operation into an error, if it is a grant that was not reported yet and
 * whose lock is not held any more: REDLOCK_ECLOSED in a shutdown, else REDLOCK_ETOOSLOW. */
void rl_dispatch_disown(const struct redlock_client *rl, struct redlock_lock *handle);
/* Queues the ACQUIRED event of a blocking call, if there is an event callback. */
void rl_dispatch_acquired(struct redlock_client *rl, struct redlock_lock *handle);
/* Queues the end callback of the lock, if it has one that has not run. */
void rl_dispatch_end(struct redlock_client *rl, struct redlock_lock *handle);
/* Queues the callback of a client operation that has ended. Takes ownership of `item`. */
void rl_dispatch_client_op(struct redlock_client *rl, struct rl_client_op *item);

#endif
