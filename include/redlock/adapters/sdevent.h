/* SPDX-License-Identifier: MIT
 * Adapter for sd-event, the event loop of libsystemd: an sd_event drives a client in embedded or
 * hybrid mode. Not part of redlock.h; the program links libsystemd (243 or later) itself.
 *
 *     redlock_sdevent_t adapter;
 *     int rc = redlock_sdevent_attach(&adapter, rl, event);
 *     sd_event_loop(event); // callbacks run in it
 *     redlock_sdevent_detach(&adapter); // before redlock_free(rl)
 *
 * Since 0.2.0. */
#ifndef REDLOCK_ADAPTERS_SDEVENT_H
#define REDLOCK_ADAPTERS_SDEVENT_H

#include <errno.h>
#include <redlock/redlock.h>
#include <sys/epoll.h>
#include <systemd/sd-event.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Connects one client with one loop. The memory is the caller's. */
typedef struct redlock_sdevent {
    redlock_t *rl;           /* borrowed */
    sd_event_source *source; /* owned; NULL: not attached. The caller may set its priority and its
                              * description */
} redlock_sdevent_t;

/* Is called by the loop when the descriptor of the client is readable: runs redlock_process().
 * Stops polling if that fails, which it does in a forked child. Returns 0. Not for other callers.
 */
static inline int redlock_sdevent_ready(sd_event_source *source, int fd, uint32_t events,
                                        void *userdata)
{
    (void)fd;
    (void)events;
    if (redlock_process((redlock_t *)userdata) != REDLOCK_OK)
        sd_event_source_set_enabled(source, SD_EVENT_OFF);
    return 0;
}

/* Has a loop drive a client: from now on it polls the client's descriptor and runs
 * redlock_process(), so callbacks run in sd_event_loop(). Never waits. After a failure there is
 * nothing to detach.
 *
 * adapter: its content does not matter; in use until it is detached.
 * rl: in embedded or hybrid mode; borrowed until the adapter is detached.
 * event: the adapter takes a reference.
 * EINVAL: an argument is NULL.
 * EMODE: threaded mode.
 * EFORKED, ENOMEM.
 * ESYS: sd-event cannot poll the descriptor.
 * Threads: the thread of the loop. */
static inline int redlock_sdevent_attach(redlock_sdevent_t *adapter, redlock_t *rl, sd_event *event)
{
    if (!adapter || !event)
        return REDLOCK_EINVAL;
    adapter->rl = rl;
    adapter->source = NULL;
    int fd = redlock_get_fd(rl);
    if (fd < 0)
        return fd;
    int rc = sd_event_add_io(event, &adapter->source, fd, EPOLLIN, redlock_sdevent_ready, rl);
    if (rc < 0)
        return rc == -ENOMEM ? REDLOCK_ENOMEM : REDLOCK_ESYS;
    return REDLOCK_OK;
}

/* Ends what redlock_sdevent_attach() has begun. To be called before redlock_free(). Never
 * waits.
 *
 * adapter: NULL, or not attached: nothing is done.
 * Threads: the thread of the loop, also in a callback. */
static inline void redlock_sdevent_detach(redlock_sdevent_t *adapter)
{
    if (!adapter || !adapter->source)
        return;
    adapter->source = sd_event_source_disable_unref(adapter->source);
}

#ifdef __cplusplus
}
#endif
#endif
