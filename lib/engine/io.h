/* SPDX-License-Identifier: MIT
 * The outside of engines in real life: sockets, the poller, the clocks of this machine. A client
 * has one poller and as many engines as it has sets of nodes; they are turned together. */
#ifndef RL_ENGINE_IO_H
#define RL_ENGINE_IO_H

#include "engine/engine.h"
#include "node/socket.h"
#include "platform/poller.h"

#define RL_READY_MAX 64

struct rl_io;

/* One engine and its sockets. */
struct rl_io_shard {
    struct rl_io *io;
    struct rl_engine *engine;
    struct rl_sockets sockets;
};

struct rl_io {
    struct rl_poller poller;
    unsigned count; /* one at least from the first rl_io_add() on */
    struct rl_io_shard *shards[RL_SHARDS_MAX];
};

/* The poller alone. 0 or ESYS, and then nothing is left. */
int rl_io_open(struct rl_io *io);
/* Opens one more engine, on top of real sockets. 0, ENOMEM or ESYS, and then it is as before. The
 * next wait ends at once, its tick starts the connections. */
int rl_io_add(struct rl_io *io, struct rl_io_shard *shard, struct rl_engine *engine,
              const struct rl_engine_params *params);
/* Closes the engines, then what they stood on. */
void rl_io_close(struct rl_io *io);
/* In a forked child: rl_engine_abandon(), and descriptors are closed unseen by the peers. */
void rl_io_abandon(struct rl_io *io);
/* The same, but leaves the engines alone: whoever was changing them does not exist here. */
void rl_io_close_descriptors(struct rl_io *io);

/* rl_engine_refresh() of all, with one reading of the clocks. */
void rl_io_refresh(struct rl_io *io);
/* Something waits to be sent. */
bool rl_io_is_dirty(const struct rl_io *io);
/* rl_engine_send() of all. */
void rl_io_send(struct rl_io *io);
/* rl_engine_flush() of all. */
void rl_io_flush(struct rl_io *io);

/* Returns a descriptor that is readable when rl_io_wait() would return. */
int rl_io_fd(const struct rl_io *io);
/* Duplicates the descriptor that rl_io_wake() writes to, for a writer that may outlive the poller.
 * The caller closes it. -1: no descriptor. */
int rl_io_copy_wake_fd(const struct rl_io *io);
/* Has the wait end at this boot time at the latest. */
void rl_io_wake_at(struct rl_io *io, uint64_t boot_ns);

/* Waits until something is ready, due or woken. No mutex. */
int rl_io_wait(struct rl_io *io, struct rl_ready *ret_ready, int timeout_ms);
/* Ends the wait that runs, or the next one. No mutex. */
void rl_io_wake(struct rl_io *io);
/* One tick: reads what is ready, and does what is due. */
void rl_io_tick(struct rl_io *io, const struct rl_ready *ready, int count);

#endif
