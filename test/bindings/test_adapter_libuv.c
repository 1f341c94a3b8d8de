/* SPDX-License-Identifier: MIT
 * The adapter for libuv, in the cases of adapter_cases.h. */
#include "adapter_cases.h"

#include <redlock/adapters/libuv.h>
#include <stdio.h>
#include <stdlib.h>

#define ADAPTERS_MAX 4 /* attachments of one case */

static uv_loop_t loop;
static uv_timer_t timer; /* ends run() */

/* A detached adapter is in use until the loop has turned, so each attachment gets its own. */
static redlock_libuv_t adapters[ADAPTERS_MAX];
static unsigned used;  /* adapters that were attached */
static unsigned alive; /* adapters whose memory is in use */

/* Aborts with the text of an error of libuv; 0 is none. */
static void must(int error)
{
    if (error == 0)
        return;
    fprintf(stderr, "libuv: %s\n", uv_strerror(error));
    abort();
}

/* Creates the loop and its timer. */
static void loop_open(void)
{
    used = alive = 0;
    must(uv_loop_init(&loop));
    must(uv_timer_init(&loop, &timer));
}

/* Attaches the client with the next adapter. */
static int loop_attach(redlock_t *rl)
{
    int rc = redlock_libuv_attach(&adapters[used], rl, &loop);
    if (rc != REDLOCK_OK)
        return rc;
    used++;
    alive++;
    return REDLOCK_OK;
}

/* Counts an adapter whose memory is not in use any more. */
static void on_closed(uv_handle_t *handle)
{
    (void)handle;
    alive--;
}

/* Detaches the adapter that was attached last, if any. */
static void loop_detach(void)
{
    if (used > 0)
        redlock_libuv_detach(&adapters[used - 1], on_closed);
}

/* Ends run() at its time limit. */
static void on_timer(uv_timer_t *handle)
{
    uv_stop(handle->loop);
}

static void loop_run(uint64_t limit_ms)
{
    must(uv_timer_start(&timer, on_timer, limit_ms, 0));
    uv_run(&loop, UV_RUN_DEFAULT);
    must(uv_timer_stop(&timer));
}

static void loop_stop(void)
{
    uv_stop(&loop);
}

/* Frees the loop. Aborts if an adapter is not closed, or a handle is left. */
static void loop_close(void)
{
    uv_close((uv_handle_t *)&timer, NULL);
    must(uv_run(&loop, UV_RUN_DEFAULT));
    must(uv_loop_close(&loop));
    if (alive != 0)
        abort();
}

const struct adapter_loop adapter_loop = {"libuv",  loop_open, loop_attach, loop_detach,
                                          loop_run, loop_stop, loop_close};

/* Runs the cases. The first loop of a process opens descriptors that stay open, which a case would
 * report as left open. */
int main(void)
{
    must(uv_loop_init(&loop));
    must(uv_loop_close(&loop));
    int status = adapter_main();
    uv_library_shutdown();
    return status;
}
