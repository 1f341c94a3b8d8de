/* SPDX-License-Identifier: MIT
 * The outside of an engine in real life: sockets, the poller, the clocks of this machine. */
#ifndef RL_ENGINE_IO_H
#define RL_ENGINE_IO_H

#include "engine/engine.h"
#include "node/socket.h"
#include "platform/poller.h"

#define RL_READY_MAX 64

struct rl_io {
    struct rl_engine *engine;
    struct rl_poller poller;
    struct rl_sockets sockets;
};

/* Opens the engine on top of real sockets. 0, ENOMEM or ESYS; on failure nothing is left. The first
 * wait ends at once, its tick starts the connections. */
int rl_io_open(struct rl_io *io, struct rl_engine *engine, const struct rl_engine_params *params,
               const struct rl_engine_listener *listener);
/* Closes the engine, then what it stood on. */
void rl_io_close(struct rl_io *io);
/* In a forked child: rl_engine_abandon(), and descriptors are closed unseen by the peers. */
void rl_io_abandon(struct rl_io *io);
/* The same, but leaves the engine alone: whoever was changing it does not exist here. */
void rl_io_close_descriptors(struct rl_io *io);

/* Waits until something is ready, due or woken. No mutex. */
int rl_io_wait(struct rl_io *io, struct rl_ready *ret_ready, int timeout_ms);
/* Ends the wait that runs, or the next one. No mutex. */
void rl_io_wake(struct rl_io *io);
/* One tick: reads what is ready, does what is due, sends. */
void rl_io_tick(struct rl_io *io, const struct rl_ready *ready, int count);

#endif
