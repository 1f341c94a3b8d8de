/* SPDX-License-Identifier: MIT
 * The outside of an engine in real life: sockets, the poller, the clocks of this machine. */
#include "engine/io.h"

#include "platform/clock.h"
#include "redlock/redlock.h"

static struct rl_now now(void *ctx)
{
    struct rl_io *io = ctx;
    struct rl_now read = rl_clock_now();

    io->sockets.now_ns = read.boot_ns;
    return read;
}

static uint64_t wall_us(void *ctx)
{
    (void)ctx;
    return rl_clock_wall_us();
}

static void take_up(struct rl_io *io, const struct rl_ready *ready, int count)
{
    for (int i = 0; i < count; i++)
        rl_sockets_ready(&io->sockets, &ready[i]);
}

/* `ready` of the tick may be older than the time we had to wait for the client, and what its
 * servers have answered meanwhile lies in our own sockets. */
static void catch_up(void *ctx)
{
    struct rl_io *io = ctx;
    struct rl_ready ready[RL_READY_MAX];

    take_up(io, ready, rl_poller_look(&io->poller, ready, RL_READY_MAX));
}

static void wake_at(void *ctx, uint64_t boot_ns)
{
    struct rl_io *io = ctx;

    rl_poller_arm(&io->poller, boot_ns);
}

int rl_io_open(struct rl_io *io, struct rl_engine *engine, const struct rl_engine_params *params,
               const struct rl_engine_listener *listener)
{
    int error = rl_poller_open(&io->poller);

    if (error != REDLOCK_OK)
        return error;
    io->engine = engine;
    rl_sockets_init(&io->sockets, &io->poller);
    const struct rl_outside outside = {
        .transport = rl_sockets_transport(&io->sockets),
        .entropy = rl_entropy_kernel(),
        .now = now,
        .wall_us = wall_us,
        .catch_up = catch_up,
        .wake_at = wake_at,
        .ctx = io,
    };
    error = rl_engine_open(engine, params, &outside, listener);
    if (error != REDLOCK_OK) {
        rl_poller_close(&io->poller);
        return error;
    }
    for (unsigned i = 0; i < engine->count; i++)
        rl_sockets_add(&io->sockets, &params->specs[i], &engine->nodes[i]);
    rl_poller_wake(&io->poller);
    return REDLOCK_OK;
}

void rl_io_close_descriptors(struct rl_io *io)
{
    rl_sockets_abandon(&io->sockets);
    rl_poller_close(&io->poller);
}

void rl_io_close(struct rl_io *io)
{
    rl_engine_close(io->engine);
    rl_io_close_descriptors(io);
}

void rl_io_abandon(struct rl_io *io)
{
    rl_engine_abandon(io->engine);
    rl_io_close_descriptors(io);
}

int rl_io_wait(struct rl_io *io, struct rl_ready *ret_ready, int timeout_ms)
{
    return rl_poller_wait(&io->poller, ret_ready, RL_READY_MAX, timeout_ms);
}

void rl_io_wake(struct rl_io *io)
{
    rl_poller_wake(&io->poller);
}

void rl_io_tick(struct rl_io *io, const struct rl_ready *ready, int count)
{
    rl_engine_refresh(io->engine);
    take_up(io, ready, count);
    rl_sockets_tick(&io->sockets);
    rl_engine_tick(io->engine);
}
