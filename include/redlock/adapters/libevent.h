/* SPDX-License-Identifier: MIT
 * Adapter for libevent 2: an event_base drives a client in embedded or hybrid mode. Not part of
 * redlock.h; the program links libevent (libevent_core is enough) itself.
 *
 *     redlock_libevent_t adapter;
 *     int rc = redlock_libevent_attach(&adapter, rl, base);
 *     event_base_dispatch(base); // callbacks run in it
 *     redlock_libevent_detach(&adapter); // before redlock_free(rl)
 *
 * Since 0.2.0. */
#ifndef REDLOCK_ADAPTERS_LIBEVENT_H
#define REDLOCK_ADAPTERS_LIBEVENT_H

#include <event2/event.h>
#include <redlock/redlock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Connects one client with one event base. The memory is the caller's. */
typedef struct redlock_libevent {
    redlock_t *rl;       /* borrowed */
    struct event *event; /* owned; NULL: not attached. The caller may set its priority */
} redlock_libevent_t;

/* Is called by the event base when the descriptor of the client is readable: runs
 * redlock_process(). Stops polling if that fails, which it does in a forked child. Not for other
 * callers. */
static inline void redlock_libevent_ready(evutil_socket_t fd, short events, void *userdata)
{
    redlock_libevent_t *adapter = (redlock_libevent_t *)userdata;
    (void)fd;
    (void)events;
    if (redlock_process(adapter->rl) != REDLOCK_OK)
        event_del(adapter->event);
}

/* Has an event base drive a client: from now on it polls the client's descriptor and runs
 * redlock_process(), so callbacks run in event_base_dispatch(). Never waits. After a failure there
 * is nothing to detach.
 *
 * adapter: its content does not matter; in use until it is detached.
 * rl: in embedded or hybrid mode; borrowed until the adapter is detached.
 * base: borrowed likewise.
 * EINVAL: an argument is NULL.
 * EMODE: threaded mode.
 * EFORKED, ENOMEM.
 * ESYS: libevent cannot poll the descriptor.
 * Threads: the thread of the event base. */
static inline int redlock_libevent_attach(redlock_libevent_t *adapter, redlock_t *rl,
                                          struct event_base *base)
{
    if (!adapter || !base)
        return REDLOCK_EINVAL;
    adapter->rl = rl;
    adapter->event = NULL;
    int fd = redlock_get_fd(rl);
    if (fd < 0)
        return fd;
    struct event *event =
        event_new(base, fd, EV_READ | EV_PERSIST, redlock_libevent_ready, adapter);
    if (!event)
        return REDLOCK_ENOMEM;
    if (event_add(event, NULL) != 0) {
        event_free(event);
        return REDLOCK_ESYS;
    }
    adapter->event = event;
    return REDLOCK_OK;
}

/* Ends what redlock_libevent_attach() has begun. To be called before redlock_free() and
 * event_base_free(). Never waits.
 *
 * adapter: NULL, or not attached: nothing is done.
 * Threads: the thread of the event base, also in a callback. */
static inline void redlock_libevent_detach(redlock_libevent_t *adapter)
{
    if (!adapter || !adapter->event)
        return;
    event_free(adapter->event);
    adapter->event = NULL;
}

#ifdef __cplusplus
}
#endif
#endif
