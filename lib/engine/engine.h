/* SPDX-License-Identifier: MIT
 * The engine of a client: owns nodes, connections and timers, and works on locks. All of it
 * belongs to whoever holds the client's mutex; only rl_engine_wait() and rl_engine_wake() need no
 * mutex. */
#ifndef RL_ENGINE_ENGINE_H
#define RL_ENGINE_ENGINE_H

#include "engine/heap.h"
#include "engine/lock.h"
#include "node/node.h"
#include "node/socket.h"
#include "platform/clock.h"
#include "platform/token.h"

#define RL_READY_MAX 64

struct rl_engine_params {
    const struct rl_mem *mem;
    const struct rl_log *log;
    const struct rl_node_spec *specs;
    unsigned nodes;
    const char *user, *password; /* for specs without their own */
    const char *owner;           /* label in tokens */
    size_t owner_len;
    struct rl_drift drift;
    struct rl_backoff backoff;
    uint64_t connect_timeout_ns, node_timeout_ns;
};

/* Upwards: called with the mutex held. */
struct rl_engine_listener {
    /* RL_FX_* announcements of a lock (DONE, HELD, WAITING, EXTENDED, ...). With ENDED the engine
     * has let go of the lock: it may be freed, but not from inside the call. */
    void (*lock)(void *ctx, struct rl_lock *lock, uint32_t flags, int status);
    void (*node)(void *ctx, unsigned node);
    void *ctx;
};

struct rl_engine_stats {
    uint64_t attempts, split_votes, extended, extend_failed, lost, released, release_failed, undone;
    uint64_t acquired, contended, no_quorum, too_slow, refused, canceled;
    uint64_t held, waiting, wait_us_hist[RL_BUCKETS];
};

struct rl_engine {
    const struct rl_mem *mem;
    const struct rl_log *log;
    struct rl_engine_params params;
    struct rl_engine_listener listener;
    struct rl_poller poller;
    struct rl_sockets sockets;
    struct rl_reply_text text;
    struct rl_node_common common;
    struct rl_node *nodes;
    unsigned count, quorum;
    struct rl_view view;
    struct rl_random random;
    struct rl_heap timers;
    struct rl_lock *locks; /* all active ones */
    uint32_t lock_count;
    rl_nodes dirty;
    uint64_t nodes_wake_ns;
    struct rl_engine_stats stats;
};

/* 0, ENOMEM or ESYS; on failure nothing is left. Connections start with the first tick. */
int rl_engine_open(struct rl_engine *engine, const struct rl_engine_params *params,
                   const struct rl_engine_listener *listener);
/* Ends all locks: what is held is released, what waits fails with ECLOSED. */
void rl_engine_end_locks(struct rl_engine *engine);
/* The same, then closes connections after their rules and frees everything. */
void rl_engine_close(struct rl_engine *engine);
/* In a forked child: memory and descriptors, not a byte on the wire, no announcements. */
void rl_engine_abandon(struct rl_engine *engine);

/* Reads the clocks; before anything that depends on time. */
void rl_engine_refresh(struct rl_engine *engine);

/* Waits until something is ready, due or woken. No mutex. */
int rl_engine_wait(struct rl_engine *engine, struct rl_ready *ret_ready, int timeout_ms);
/* Does what is ready and due, then sends. */
void rl_engine_tick(struct rl_engine *engine, const struct rl_ready *ready, int count);
/* Sends what was queued outside of a tick, and sets the timer. */
void rl_engine_flush(struct rl_engine *engine);
void rl_engine_wake(struct rl_engine *engine);

/* A quorum of nodes has completed its greeting and may vote. */
bool rl_engine_is_ready(const struct rl_engine *engine);
/* Undos that are owed to nodes or in flight. */
unsigned rl_engine_undos_pending(const struct rl_engine *engine);

/* Nothing is left to do that can be done now: no lock is worked on, and no undo waits for a node
 * that can be reached. What a stopped server has in its queue will be executed without us. */
bool rl_engine_is_settled(const struct rl_engine *engine);

#endif
