/* SPDX-License-Identifier: MIT
 * Adapter for libuv: a uv_loop_t drives a client in embedded or hybrid mode. Not part of redlock.h;
 * the program links libuv itself.
 *
 *     redlock_libuv_t adapter;
 *     int rc = redlock_libuv_attach(&adapter, rl, loop);
 *     uv_run(loop, UV_RUN_DEFAULT); // callbacks run in it
 *     redlock_libuv_detach(&adapter, closed); // before redlock_free(rl)
 *
 * Since 0.2.0. */
#ifndef REDLOCK_ADAPTERS_LIBUV_H
#define REDLOCK_ADAPTERS_LIBUV_H

#include <redlock/redlock.h>
#include <uv.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Connects one client with one loop. The memory is the caller's. */
typedef struct redlock_libuv {
    redlock_t *rl;  /* borrowed; NULL: not attached */
    uv_poll_t poll; /* polls the descriptor of the client. The caller may use uv_unref() on it, so
                     * that it does not keep uv_run() running, and must not change its `data` */
} redlock_libuv_t;

/* Is called by the loop when the descriptor of the client is readable: runs redlock_process().
 * Stops polling if that fails, which it does in a forked child. Not for other callers. */
static inline void redlock_libuv_ready(uv_poll_t *poll, int status, int events)
{
    redlock_libuv_t *adapter = (redlock_libuv_t *)poll->data;
    (void)status;
    (void)events;
    if (redlock_process(adapter->rl) != REDLOCK_OK)
        uv_poll_stop(poll);
}

/* Has a loop drive a client: from now on the loop polls the client's descriptor and runs
 * redlock_process(), so callbacks run in uv_run(). Never waits. After a failure there is nothing to
 * detach.
 *
 * adapter: its content does not matter; in use until it is detached and closed.
 * rl: in embedded or hybrid mode; borrowed until the adapter is detached.
 * loop: borrowed likewise.
 * EINVAL: an argument is NULL.
 * EMODE: threaded mode.
 * EFORKED.
 * ESYS: libuv cannot poll the descriptor.
 * Threads: the thread of the loop. */
static inline int redlock_libuv_attach(redlock_libuv_t *adapter, redlock_t *rl, uv_loop_t *loop)
{
    if (!adapter || !loop)
        return REDLOCK_EINVAL;
    adapter->rl = NULL;
    int fd = redlock_get_fd(rl);
    if (fd < 0)
        return fd;
    if (uv_poll_init(loop, &adapter->poll, fd) != 0)
        return REDLOCK_ESYS;
    adapter->poll.data = adapter;
    adapter->rl = rl;
    uv_poll_start(&adapter->poll, UV_READABLE, redlock_libuv_ready); /* fails for bad events only */
    return REDLOCK_OK;
}

/* Ends what redlock_libuv_attach() has begun: the loop does not poll the descriptor any more. To be
 * called before redlock_free(), which may follow at once. Never waits.
 *
 * adapter: NULL, or not attached: nothing is done. Its memory is in use until the loop has called
 *   `closed`.
 * closed: called by uv_run() with &adapter->poll; NULL: none.
 * Threads: the thread of the loop, also in a callback. */
static inline void redlock_libuv_detach(redlock_libuv_t *adapter, uv_close_cb closed)
{
    if (!adapter || !adapter->rl)
        return;
    adapter->rl = NULL;
    uv_close((uv_handle_t *)&adapter->poll, closed);
}

#ifdef __cplusplus
}
#endif
#endif
