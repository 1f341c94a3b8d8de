/* SPDX-License-Identifier: MIT
 * The real environment of engines: sockets, the poller, and the clocks of this machine.
 *
 * A tick (rl_io_tick()) reads the clocks, receives from the sockets that the poller has reported as
 * ready, and has each engine do what is due. The poller reports a socket by a tag: the number of
 * its shard times RL_SOCKET_TAGS, plus the number of the connection. Functions whose comment begins
 * with "Implements" are passed to the engine in struct rl_env; their `ctx` is a struct rl_io_shard.
 */
#include "engine/io.h"

#include "platform/clock.h"
#include "redlock/redlock.h"

#include <fcntl.h>

/* Implements rl_env.now: reads boot clock and raw clock. Also sets the time of the sockets. */
static struct rl_now now(void *ctx)
{
    struct rl_io_shard *shard = ctx;
    struct rl_now read = rl_clock_now();

    shard->sockets.now_ns = read.boot_ns;
    return read;
}

/* Implements rl_env.wall_us: reads the wall clock, in microseconds since 1970. */
static uint64_t wall_us(void *ctx)
{
    (void)ctx;
    return rl_clock_wall_us();
}

/* Handles one socket that is ready: receives until nothing is left, or as much as one socket may in
 * a tick, and lets the engine process the bytes after each time. */
static void receive(struct rl_io_shard *shard, const struct rl_ready *ready)
{
    bool more = true;

    for (unsigned turn = 0; more; turn++) {
        more = rl_sockets_ready(&shard->sockets, ready, turn);
        rl_engine_drain(shard->engine);
    }
}

/* Handles `count` sockets that are ready. The tag of a socket selects its shard. */
static void handle_ready(struct rl_io *io, const struct rl_ready *ready, int count)
{
    for (int i = 0; i < count; i++)
        receive(io->shards[ready[i].tag / RL_SOCKET_TAGS], &ready[i]);
}

/* Implements rl_env.catch_up: receives replies that have arrived since the wait for sockets ended.
 * The thread may have waited for the mutex since then. */
static void catch_up(void *ctx)
{
    struct rl_io *io = ((struct rl_io_shard *)ctx)->io;
    struct rl_ready ready[RL_READY_MAX];

    handle_ready(io, ready, rl_poller_poll(&io->poller, ready, RL_READY_MAX));
}

/* Implements rl_env.wake_at: sets the timer that the wait for sockets ends at. All engines share
 * it; the earliest time counts. */
static void wake_at(void *ctx, uint64_t boot_ns)
{
    struct rl_io *io = ((struct rl_io_shard *)ctx)->io;

    rl_poller_arm(&io->poller, boot_ns);
}

/* Opens the poller, without engines. Returns REDLOCK_OK or ESYS. */
int rl_io_open(struct rl_io *io)
{
    io->count = 0;
    io->tls = NULL;
    return rl_poller_open(&io->poller);
}

/* Reads the certificates that connections to these servers need. Returns REDLOCK_OK; EINVAL with a
 * reason in `error` (`size` bytes); or ENOMEM. */
int rl_io_load_tls(struct rl_io *io, const struct rl_mem *mem, const struct rl_log *log,
                   const struct rl_node_spec *specs, size_t count, char *error, size_t size)
{
    int result = REDLOCK_OK;

    for (size_t i = 0; result == REDLOCK_OK && i < count; i++)
        if (specs[i].tls)
            result = rl_tls_contexts_add(&io->tls, mem, log, &specs[i].tls_settings, error, size);
    return result;
}

/* Opens one more engine on real sockets, and ends the running wait so that a tick connects its
 * nodes. Returns REDLOCK_OK or ENOMEM; on failure nothing has changed. */
int rl_io_add(struct rl_io *io, struct rl_io_shard *shard, struct rl_engine *engine,
              const struct rl_engine_params *params)
{
    RL_ASSERT(io->count < RL_SHARDS_MAX);
    shard->io = io;
    shard->engine = engine;
    rl_sockets_init(&shard->sockets, &io->poller, io->count * RL_SOCKET_TAGS, params->keepalive_s);
    const struct rl_env env = {
        .transport = rl_sockets_transport(&shard->sockets),
        .entropy = rl_entropy_kernel(),
        .now = now,
        .wall_us = wall_us,
        .catch_up = catch_up,
        .wake_at = wake_at,
        .ctx = shard,
    };
    int error = rl_engine_open(engine, params, &env);
    if (error != REDLOCK_OK)
        return error;
    for (unsigned i = 0; i < engine->count; i++) {
        const struct rl_node_spec *spec = &params->specs[i];
        struct rl_tls_context *context =
            spec->tls ? rl_tls_contexts_find(io->tls, &spec->tls_settings) : NULL;
        rl_sockets_add(&shard->sockets, spec, &engine->nodes[i], context);
    }
    io->shards[io->count++] = shard;
    rl_poller_wake(&io->poller);
    return REDLOCK_OK;
}

/* Closes the descriptors of the sockets and of the poller. Frees the TLS states if `frees`. */
static void close_descriptors(struct rl_io *io, bool frees)
{
    for (unsigned i = 0; i < io->count; i++)
        rl_sockets_abandon(&io->shards[i]->sockets, frees);
    rl_poller_close(&io->poller);
}

/* Closes the descriptors of the sockets and of the poller, and leaves the engines as they are. */
void rl_io_close_descriptors(struct rl_io *io)
{
    close_descriptors(io, false);
}

/* Closes the engines, which sends their releases and undos, then the sockets and the poller. */
void rl_io_close(struct rl_io *io)
{
    for (unsigned i = 0; i < io->count; i++) {
        rl_engine_close(io->shards[i]->engine);
        rl_sockets_done(&io->shards[i]->sockets);
    }
    close_descriptors(io, true);
    rl_tls_contexts_free(io->tls, false);
    io->tls = NULL;
}

/* Frees the memory of the engines in a forked child, sends nothing, and closes the descriptors. */
void rl_io_abandon(struct rl_io *io)
{
    for (unsigned i = 0; i < io->count; i++)
        rl_engine_abandon(io->shards[i]->engine);
    close_descriptors(io, true);
    rl_tls_contexts_free(io->tls, true);
    io->tls = NULL;
}

/* Reads the clocks once for all engines. At least one engine must have been added. */
void rl_io_refresh(struct rl_io *io)
{
    const struct rl_engine *first = io->shards[0]->engine;

    rl_engine_refresh(io->shards[0]->engine);
    for (unsigned i = 1; i < io->count; i++) {
        rl_engine_refresh_from(io->shards[i]->engine, first);
        io->shards[i]->sockets.now_ns = first->view.now.boot_ns;
    }
}

/* Returns whether a node of any engine has bytes to send. */
bool rl_io_is_dirty(const struct rl_io *io)
{
    bool dirty = false;

    for (unsigned i = 0; i < io->count; i++)
        dirty |= io->shards[i]->engine->common.inbox.dirty != 0;
    return dirty;
}

/* Has all engines send what is queued; does not set the timer. */
void rl_io_send(struct rl_io *io)
{
    for (unsigned i = 0; i < io->count; i++)
        rl_engine_send(io->shards[i]->engine);
}

/* Has all engines send what is queued and set the timer. */
void rl_io_flush(struct rl_io *io)
{
    for (unsigned i = 0; i < io->count; i++)
        rl_engine_flush(io->shards[i]->engine);
}

/* Waits until a descriptor is ready, the timer ends or rl_io_wake() is called, up to `timeout_ms`.
 * Writes up to RL_READY_MAX ready sockets to `ret_ready` and returns their number. */
int rl_io_wait(struct rl_io *io, struct rl_ready *ret_ready, int timeout_ms)
{
    return rl_poller_wait(&io->poller, ret_ready, RL_READY_MAX, timeout_ms);
}

/* Ends the wait that is in progress, or the next one. Needs no mutex. */
void rl_io_wake(struct rl_io *io)
{
    rl_poller_wake(&io->poller);
}

/* Makes one tick of all engines, after a wait that has reported `count` sockets in `ready`. */
void rl_io_tick(struct rl_io *io, const struct rl_ready *ready, int count)
{
    rl_io_refresh(io);
    if (count < 0)
        rl_poller_forget(&io->poller);
    handle_ready(io, ready, count);
    for (unsigned i = 0; i < io->count; i++) {
        if (rl_poller_is_lost(&io->poller))
            rl_sockets_forget(&io->shards[i]->sockets);
        rl_sockets_tick(&io->shards[i]->sockets);
        rl_engine_tick(io->shards[i]->engine);
    }
}

/* Returns the poller's descriptor, which is readable when rl_io_wait() would return at once. */
int rl_io_fd(const struct rl_io *io)
{
    return rl_poller_fd(&io->poller);
}

/* Returns a duplicate of the eventfd that ends a wait when it is written to; the caller closes it.
 * -1: no more descriptors, with errno. */
int rl_io_copy_wake_fd(const struct rl_io *io)
{
    return fcntl(io->poller.wake_fd, F_DUPFD_CLOEXEC, 0);
}

bool rl_io_is_lost(const struct rl_io *io)
{
    return rl_poller_is_lost(&io->poller);
}

/* Has the wait that is in progress, or the next one, end at this boot time at the latest. */
void rl_io_wake_at(struct rl_io *io, uint64_t boot_ns)
{
    rl_poller_arm(&io->poller, boot_ns);
}
