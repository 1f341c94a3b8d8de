/* SPDX-License-Identifier: MIT
 * The real environment of engines: sockets, the poller, and the clocks of this machine. A client
 * has one poller and one engine for each shard; all engines make their ticks together. The thread
 * that drives the loop calls rl_io_wait(), rl_io_tick(), then rl_io_send() or rl_io_flush(), and
 * begins again. The functions require the client's mutex, unless they say otherwise. */
#ifndef RL_ENGINE_IO_H
#define RL_ENGINE_IO_H

#include "engine/engine.h"
#include "node/socket.h"
#include "platform/poller.h"

/* Most ready descriptors that one wait returns; the next wait returns further ones. */
#define RL_READY_MAX 64

struct rl_io;

/* One engine and its sockets. The caller of rl_io_add() provides the memory. Owner: io.c. */
struct rl_io_shard {
    struct rl_io *io;          /* the poller and engines of the client that the shard belongs to */
    struct rl_engine *engine;  /* owned by the caller of rl_io_add() */
    struct rl_sockets sockets; /* the connections of the engine's nodes */
};

/* The poller and the engines of one client. Owner: io.c. */
struct rl_io {
    struct rl_poller poller;                   /* waits for all sockets, the timer and wake-ups */
    unsigned count;                            /* engines, 0 to RL_SHARDS_MAX */
    struct rl_io_shard *shards[RL_SHARDS_MAX]; /* the first `count` are used; borrowed */
    struct rl_tls_context *tls; /* certificates for connections with TLS; NULL: none */
};

/* Opens the poller, without engines. Returns REDLOCK_OK or ESYS; on failure nothing is left open.
 */
int rl_io_open(struct rl_io *io);
/* Reads the files with certificates and keys that connections to the `count` servers of `specs`
 * need; blocks while it reads. Returns REDLOCK_OK; EINVAL with a reason in `error` (`size` bytes);
 * or ENOMEM. Borrows `mem` and `log` until rl_io_close(). */
int rl_io_load_tls(struct rl_io *io, const struct rl_mem *mem, const struct rl_log *log,
                   const struct rl_node_spec *specs, size_t count, char *error, size_t size);
/* Opens one more engine, on real sockets. Returns REDLOCK_OK or ENOMEM; on failure nothing has
 * changed. The next wait ends at once, and the tick after it starts the connections. */
int rl_io_add(struct rl_io *io, struct rl_io_shard *shard, struct rl_engine *engine,
              const struct rl_engine_params *params);
/* Closes the engines (rl_engine_close()), then the sockets and the poller. */
void rl_io_close(struct rl_io *io);
/* Abandons the engines in a forked child (rl_engine_abandon()) and closes the descriptors. The
 * servers do not notice, because the parent still has the connections. */
void rl_io_abandon(struct rl_io *io);
/* Closes the descriptors of the sockets and of the poller, and leaves the engines as they are. For
 * a forked child if a thread of the parent was changing the engines, because that thread does not
 * exist in the child. */
void rl_io_close_descriptors(struct rl_io *io);

/* Does rl_engine_refresh() for all engines, with one reading of the clocks. There must be an
 * engine.
 */
void rl_io_refresh(struct rl_io *io);
/* Returns whether a node has bytes to send. */
bool rl_io_is_dirty(const struct rl_io *io);
/* Does rl_engine_send() for all engines: sends what is queued. */
void rl_io_send(struct rl_io *io);
/* Does rl_engine_flush() for all engines: sends what is queued and sets the timer. */
void rl_io_flush(struct rl_io *io);

/* Returns a descriptor that is readable exactly when rl_io_wait() would return at once. */
int rl_io_fd(const struct rl_io *io);
/* Duplicates the descriptor that rl_io_wake() writes to, for a writer that may outlive the poller.
 * The caller closes it. -1: no more descriptors, with errno. */
int rl_io_copy_wake_fd(const struct rl_io *io);
/* Returns whether the program has closed the descriptors of an open poller. */
bool rl_io_is_lost(const struct rl_io *io);
/* Has the wait that is in progress, or the next one, end at this boot time at the latest. */
void rl_io_wake_at(struct rl_io *io, uint64_t boot_ns);

/* Waits until a descriptor is ready, the timer ends or rl_io_wake() is called, up to `timeout_ms`;
 * see rl_poller_wait(). Writes up to RL_READY_MAX ready descriptors and returns their number, or -1
 * if the program has closed the descriptors of the poller. The mutex is not needed. */
int rl_io_wait(struct rl_io *io, struct rl_ready *ret_ready, int timeout_ms);
/* Ends the wait that is in progress, or the next one. Any thread may call it, without the mutex. */
void rl_io_wake(struct rl_io *io);
/* Makes one tick of all engines: reads the clocks, receives from the `count` descriptors in
 * `ready` (-1: none are left), and does what is due. The caller then takes the announcements and
 * sends. */
void rl_io_tick(struct rl_io *io, const struct rl_ready *ready, int count);

#endif
