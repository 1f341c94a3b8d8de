/* SPDX-License-Identifier: MIT
 * The engine of one shard: owns its nodes and timers, and works on its locks. It opens no socket
 * and reads no clock: all it needs from outside comes through struct rl_env, so that a simulation
 * can drive it as well as engine/io.h.
 *
 * One pass of the engine is a tick. First rl_engine_refresh() reads the clocks, and the bytes that
 * have arrived are passed to the nodes. Then rl_engine_tick() handles the timers that have ended.
 * Then the api layer takes the announcements, and rl_engine_send() or rl_engine_flush() sends the
 * requests that were queued meanwhile. Whenever a function of a node was called, rl_engine_drain()
 * processes what the node has reported.
 *
 * All functions require the client's mutex. None calls the api layer: what happened is in the
 * announcements, which the caller takes after each call that works on locks or nodes. */
#ifndef RL_ENGINE_ENGINE_H
#define RL_ENGINE_ENGINE_H

#include "engine/announcements.h"
#include "engine/heap.h"
#include "engine/lock.h"
#include "engine/params.h"
#include "engine/record.h"
#include "engine/resource.h"
#include "node/node.h"
#include "platform/token.h"

/* Longest token in bytes that a caller may choose for a lock: the longest value of a key that the
 * decoder accepts in a reply. */
#define RL_CALLER_TOKEN_MAX RL_BULK_MAX

/* The environment of an engine: network, randomness and clocks, real (engine/io.h) or simulated.
 * Filled by the caller of rl_engine_open(), constant afterwards. */
struct rl_env {
    struct rl_transport transport; /* the network: connects, sends and closes for the nodes */
    struct rl_entropy entropy;     /* randomness for tokens and pauses */
    /* Returns both clocks that deadlines are kept on, as they are now. */
    struct rl_now (*now)(void *ctx);
    /* Returns the wall clock in microseconds since 1970. */
    uint64_t (*wall_us)(void *ctx);
    /* Passes all bytes that have arrived to the nodes. The engine calls it before it decides that
     * a node's reply is late. */
    void (*catch_up)(void *ctx);
    /* Has rl_engine_tick() called at this boot time at the latest. RL_NEVER: no timer is set. */
    void (*wake_at)(void *ctx, uint64_t boot_ns);
    void *ctx; /* first argument of the four functions above */
};

/* Statistics of the locks of one engine: counters since it was opened, and gauges, which are values
 * of the moment. Each file of lib/engine counts what it does. */
struct rl_engine_stats {
    uint64_t attempts;       /* attempts of all acquisitions */
    uint64_t split_votes;    /* attempts that got some grants and failed with ECONTENDED */
    uint64_t extended;       /* extensions that have won */
    uint64_t extend_failed;  /* rounds of extensions that have failed */
    uint64_t endangered;     /* times that the margin before the deadline of a lock has begun */
    uint64_t lost;           /* locks that were lost */
    uint64_t released;       /* releases that a quorum has confirmed */
    uint64_t release_failed; /* releases that ended with an error */
    uint64_t undone;         /* undos that a server has executed */
    uint64_t undo_expired;   /* undos whose key expired before the server confirmed the undo */
    uint64_t undo_dropped;   /* undos that found no memory: the key stays until it expires */
    uint64_t acquired;       /* acquisitions that have succeeded; adopted locks do not count */
    uint64_t contended;      /* acquisitions that failed with ECONTENDED */
    uint64_t no_quorum;      /* acquisitions that failed with ENOQUORUM */
    uint64_t too_slow;       /* acquisitions that failed with ETOOSLOW */
    uint64_t refused;        /* acquisitions that failed with EEXCLUDED, EAUTH or EDUPLICATE */
    uint64_t canceled;       /* acquisitions that failed with ECANCELED or ECLOSED */
    uint64_t queue_full;     /* acquisitions that a full queue has refused; they count only here */
    uint64_t wakeups;        /* pauses of waiters that a notification has ended or shortened */
    uint64_t line_joins;     /* times that an acquisition has asked to join a line */
    uint64_t line_turns;     /* notifications of a turn that have arrived */
    uint64_t line_missed;    /* requests to remove a head that has missed its turn */
    uint64_t
        line_fallbacks; /* acquisitions that have waited without a line although lines are on */
    uint64_t held;      /* gauge: locks that are held */
    uint64_t waiting;   /* gauge: acquisitions, adoptions, inspections and verifications without a
                           result */
    uint64_t queued;    /* gauge: of `waiting`, those in the queue of this client */
    uint64_t wait_us_hist[RL_BUCKETS]; /* durations of acquisitions, also of failed ones; see
                                        * rl_count_us() */
    uint64_t wait_us_sum;              /* sum of these durations */
    uint64_t fence_one_round;          /* of `acquired`, with a fence: one round has chosen it */
    uint64_t fence_two_rounds; /* of `acquired`, with a fence: a second round has written it */
};

/* One engine. It may not be moved once it is open, because its nodes point into it. Owner:
 * engine.c, except for the parts that name another file.
 *
 * Invariants:
 *   - `locks` has exactly the active locks; `lock_count` is their number, and common.active is true
 *     if there are any;
 *   - `timers` has exactly the active locks whose lease.wake_ns is not RL_NEVER, and room for all;
 *   - only rl_engine_drain_all() takes what the nodes have reported out of common.inbox. */
struct rl_engine {
    const struct rl_mem *mem;              /* borrowed from the parameters */
    const struct rl_log *log;              /* borrowed from the parameters */
    struct rl_engine_params params;        /* copy of the parameter of rl_engine_open() */
    struct rl_announcements announcements; /* announcements.c: what the api layer has not taken */
    struct rl_env env;                     /* copy of the parameter of rl_engine_open() */
    struct rl_reply_text text;             /* text of the one reply that is being processed */
    struct rl_node_common common;          /* what all nodes share, with the inbox in which they
                                            * report to the engine */
    struct rl_node *nodes;                 /* `count` elements; NULL: the engine is closed */
    unsigned count;                        /* nodes of the shard, 1 to RL_NODES_MAX; 0: closed */
    unsigned quorum;         /* votes that a decision needs: more than half of the nodes */
    struct rl_view view;     /* clocks as they were read last, and the state of the nodes */
    int64_t wall_seen_us;    /* view.wall_us when all locks were last checked for a jump of the
                              * wall clock, or a lower value that was read since */
    struct rl_random random; /* for tokens and random choices */
    struct rl_heap timers;   /* heap.c: timers of the active locks */
    struct rl_resources resources;      /* resource.c: queues and contention */
    uint64_t node_hashes[RL_NODES_MAX]; /* hash of each node's id, to rank nodes per resource */
    struct rl_records *records;         /* record.c; NULL until a lock uses fences or
                                         * an operator initializes the records */
    struct rl_lock *locks;              /* lock.c: list of the active locks, the newest first */
    uint32_t lock_count;                /* lock.c: number of active locks */
    bool wake_active;                   /* common.active when common.wake_ns was computed */
    uint64_t times_ns;                  /* boot clock: when the view's round trips were computed */
    struct rl_engine_stats stats;
};

/* Opens an engine. Its nodes begin to connect with the first tick. `params` is copied, what it
 * points to is borrowed until the engine is closed. Returns REDLOCK_OK or ENOMEM; on failure
 * nothing is left to close. */
int rl_engine_open(struct rl_engine *engine, const struct rl_engine_params *params,
                   const struct rl_env *env);
/* Returns what the engine announces. The caller takes all of it after each call below that works on
 * locks or nodes, and after each such call of engine/lock.h. */
static inline struct rl_announcements *rl_engine_announcements(struct rl_engine *engine)
{
    return &engine->announcements;
}
/* Ends all locks and sends the releases: a held lock is released, any other operation ends with
 * ECLOSED. */
void rl_engine_end_locks(struct rl_engine *engine);
/* Ends all locks, closes the connections so that releases and undos are still delivered, and frees
 * all memory. The announcements of locks can be taken afterwards. */
void rl_engine_close(struct rl_engine *engine);
/* Frees all memory in a forked child and sends nothing. Announces the end of each active lock. */
void rl_engine_abandon(struct rl_engine *engine);

/* Reads the clocks and draws a random word for the view. Call it before anything that depends on
 * the time. */
void rl_engine_refresh(struct rl_engine *engine);
/* Does the same as rl_engine_refresh(), but copies the clocks that the engine `other` has just
 * read, so that all shards of a client have the same time. */
void rl_engine_refresh_from(struct rl_engine *engine, const struct rl_engine *other);

/* Processes all that the nodes have reported, one entry of the inbox after the other, and has them
 * decode the bytes that they have received. Call it after each event of the transport that was
 * passed to a node: opened, received, closed, writable. */
void rl_engine_drain_all(struct rl_engine *engine);
/* Does the same as rl_engine_drain_all(); cheap if nothing was reported. */
static inline void rl_engine_drain(struct rl_engine *engine)
{
    if (engine->common.inbox.waiting != 0)
        rl_engine_drain_all(engine);
}

/* Has the servers whose address has no login of its own use this one from their next connection on.
 * Borrows both texts; NULL as in struct rl_engine_params. */
void rl_engine_set_login(struct rl_engine *engine, const char *user, const char *password);

/* Does what is due. Before it, call rl_engine_refresh() and pass on the bytes that have arrived.
 * After it, take the announcements, then call rl_engine_send(): so a loss is published before the
 * undos are sent. Only large bursts of requests are written within a tick. */
void rl_engine_tick(struct rl_engine *engine);
/* Lets the next locks of the queues begin, and sends what is queued. Does not set the timer: call
 * rl_engine_flush() before the caller waits. */
void rl_engine_send(struct rl_engine *engine);
/* Processes the inbox, does the same as rl_engine_send(), and sets the timer by env.wake_at(). */
void rl_engine_flush(struct rl_engine *engine);

/* Returns whether a timer of a node, of a lock or of the fence records ends at the boot time
 * `by_ns` or earlier. */
bool rl_engine_is_due(struct rl_engine *engine, uint64_t by_ns);

/* Returns boot clock and raw clock as they were read last. */
static inline struct rl_now rl_engine_now(const struct rl_engine *engine)
{
    return engine->view.now;
}

/* Returns the number of votes that a decision needs. */
static inline unsigned rl_engine_quorum(const struct rl_engine *engine)
{
    return engine->quorum;
}

/* Returns the statistics of the locks. */
static inline const struct rl_engine_stats *rl_engine_stats(const struct rl_engine *engine)
{
    return &engine->stats;
}

/* Returns the first active lock; NULL: there is none. */
static inline struct rl_lock *rl_engine_first_lock(const struct rl_engine *engine)
{
    return engine->locks;
}

/* Returns the active lock after `lock`, which is active; NULL: it was the last one. */
static inline struct rl_lock *rl_engine_next_lock(const struct rl_lock *lock)
{
    return lock->next;
}

/* Sets the terms of a lease that the engine decides: number of nodes, quorum, bounds of pauses. */
void rl_engine_set_terms(const struct rl_engine *engine, struct rl_lease_terms *terms);

/* Returns whether a quorum of nodes is connected and greeted, can be asked now, and is eligible. */
bool rl_engine_is_ready(const struct rl_engine *engine);

/* Returns whether nothing is left to do that can be done now: no lock is active, and no undo or
 * request to leave a line waits for a server that can be reached. A server that has stopped
 * replying executes what it has received when it goes on, even if the client has ended. */
bool rl_engine_is_settled(const struct rl_engine *engine);
/* Returns whether a key may be left whose undo found no memory. */
bool rl_engine_has_dropped(const struct rl_engine *engine);

#endif
