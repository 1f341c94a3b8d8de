/* SPDX-License-Identifier: MIT
 * The engine of a client: owns nodes and timers, and works on locks. It touches no socket and reads
 * no clock itself: what it needs of the outside comes as an argument, so that a simulated world can
 * drive it as well as engine/io.h. All of it belongs to whoever holds the client's mutex. */
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

/* The longest token that a caller may bring. */
#define RL_TOKEN_GIVEN_MAX RL_BULK_MAX

/* Downwards: sockets, clocks and randomness (engine/io.h), or a model of them. */
struct rl_env {
    struct rl_transport transport;
    struct rl_entropy entropy;
    struct rl_now (*now)(void *ctx);
    uint64_t (*wall_us)(void *ctx);
    /* Hands over all bytes that have arrived: called before a node is called late. */
    void (*catch_up)(void *ctx);
    /* The next tick is due at this boot time at the latest; RL_NEVER: nothing is due. */
    void (*wake_at)(void *ctx, uint64_t boot_ns);
    void *ctx;
};

struct rl_engine_stats {
    uint64_t attempts, split_votes, extended, extend_failed, lost, released, release_failed, undone;
    uint64_t undo_expired, undo_dropped;
    uint64_t acquired, contended, no_quorum, too_slow, refused, canceled;
    uint64_t queue_full, wakeups;
    uint64_t held, waiting, queued, wait_us_hist[RL_BUCKETS];
    uint64_t fence_one_round, fence_two_rounds;
};

struct rl_engine {
    const struct rl_mem *mem;
    const struct rl_log *log;
    struct rl_engine_params params;
    struct rl_announcements announcements;
    struct rl_env env;
    struct rl_reply_text text;
    struct rl_node_common common;
    struct rl_node *nodes;
    unsigned count, quorum;
    struct rl_view view;
    int64_t wall_seen_us; /* view.wall_us when all locks looked at it last, or less */
    struct rl_random random;
    struct rl_heap timers;
    struct rl_resources resources;
    uint64_t node_hashes[RL_NODES_MAX]; /* hashes of their names, for their ranks at a resource */
    struct rl_records *records;         /* NULL until fences are used */
    struct rl_lock *locks;              /* all active ones */
    uint32_t lock_count;
    bool wake_active;  /* common.wanted when common.wake_ns was found out */
    uint64_t times_ns; /* when round trips were looked at last */
    struct rl_engine_stats stats;
};

/* 0 or ENOMEM; on failure nothing is left. Connections start with the first tick. */
int rl_engine_open(struct rl_engine *engine, const struct rl_engine_params *params,
                   const struct rl_env *env);
/* Returns what the engine announces. The caller takes it after each call below that works on locks
 * or nodes, and after each call of engine/lock.h that does. */
static inline struct rl_announcements *rl_engine_announcements(struct rl_engine *engine)
{
    return &engine->announcements;
}
/* Ends all locks: what is held is released, what waits fails with ECLOSED. */
void rl_engine_end_locks(struct rl_engine *engine);
/* The same, then closes connections after their rules and frees everything. The announcements of
 * locks can still be taken. */
void rl_engine_close(struct rl_engine *engine);
/* Frees everything in a forked child, without a byte on the wire. Announces the end of each lock.
 */
void rl_engine_abandon(struct rl_engine *engine);

/* Reads the clocks; before anything that depends on time. */
void rl_engine_refresh(struct rl_engine *engine);
/* The same, but takes what another engine has just read. */
void rl_engine_refresh_from(struct rl_engine *engine, const struct rl_engine *other);

/* Empties the inbox of the nodes, and takes the replies that they have not read yet, until nothing
 * is left. Follows every event of the transport that a node was told of: opened, received, closed,
 * writable. */
void rl_engine_drain_all(struct rl_engine *engine);
static inline void rl_engine_drain(struct rl_engine *engine)
{
    if (engine->common.inbox.waiting != 0)
        rl_engine_drain_all(engine);
}

/* Does what is due. The caller has read the clocks and handed over what arrived. It takes the
 * announcements before it sends, so that the loss of a lock is published before its undos leave.
 * Only a burst of requests is written earlier (node.c). */
void rl_engine_tick(struct rl_engine *engine);
/* Sends what is queued. The timer is as it was: rl_engine_flush() follows before the caller waits
 * for it. */
void rl_engine_send(struct rl_engine *engine);
/* Sends what is queued, and sets the timer. */
void rl_engine_flush(struct rl_engine *engine);

/* A timer runs out by then. */
bool rl_engine_is_due(struct rl_engine *engine, uint64_t by_ns);

/* Returns the clocks as they were read last. */
static inline struct rl_now rl_engine_now(const struct rl_engine *engine)
{
    return engine->view.now;
}

static inline unsigned rl_engine_quorum(const struct rl_engine *engine)
{
    return engine->quorum;
}

static inline const struct rl_engine_stats *rl_engine_stats(const struct rl_engine *engine)
{
    return &engine->stats;
}

/* Returns the first of all locks that the engine works on; NULL: none. */
static inline struct rl_lock *rl_engine_first_lock(const struct rl_engine *engine)
{
    return engine->locks;
}

/* Returns the next one; NULL: it was the last. */
static inline struct rl_lock *rl_engine_next_lock(const struct rl_lock *lock)
{
    return lock->next;
}

/* Sets what the engine decides of the terms of its locks: nodes, quorum, pauses. */
void rl_engine_set_terms(const struct rl_engine *engine, struct rl_lease_terms *terms);

/* A quorum of nodes has completed its greeting and may vote. */
bool rl_engine_is_ready(const struct rl_engine *engine);

/* Nothing is left to do that can be done now: no lock is worked on, and no undo waits for a node
 * that can be reached. What a stopped server has in its queue will be executed without us. */
bool rl_engine_is_settled(const struct rl_engine *engine);
/* There was no memory to keep an undo, and its key may still be there. */
bool rl_engine_has_dropped(const struct rl_engine *engine);

#endif
