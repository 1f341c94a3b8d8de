/* SPDX-License-Identifier: MIT
 * The adapter for libevent, in the cases of adapter_cases.h. */
#include "adapter_cases.h"

#include <redlock/adapters/libevent.h>
#include <stdlib.h>

static struct event_base *base;
static redlock_libevent_t adapter;

/* Creates the loop. */
static void loop_open(void)
{
    base = event_base_new();
    if (!base)
        abort();
}

static int loop_attach(redlock_t *rl)
{
    return redlock_libevent_attach(&adapter, rl, base);
}

static void loop_detach(void)
{
    redlock_libevent_detach(&adapter);
}

/* Ends run() at its time limit. */
static void on_timer(evutil_socket_t fd, short events, void *userdata)
{
    (void)fd;
    (void)events;
    (void)userdata;
    event_base_loopbreak(base);
}

static void loop_run(uint64_t limit_ms)
{
    const struct timeval limit = {.tv_sec = (time_t)(limit_ms / 1000),
                                  .tv_usec = (suseconds_t)(limit_ms % 1000 * 1000)};
    struct event *timer = evtimer_new(base, on_timer, NULL);
    if (!timer || evtimer_add(timer, &limit) != 0 || event_base_dispatch(base) < 0)
        abort();
    event_free(timer);
}

static void loop_stop(void)
{
    event_base_loopbreak(base);
}

static void loop_close(void)
{
    event_base_free(base);
}

const struct adapter_loop adapter_loop = {"libevent", loop_open, loop_attach, loop_detach,
                                          loop_run,   loop_stop, loop_close};

int main(void)
{
    int status = adapter_main();
    libevent_global_shutdown();
    return status;
}
