/* SPDX-License-Identifier: MIT
 * Adapter for GLib: a GMainContext drives a client in embedded or hybrid mode, and so does every
 * program with a GLib main loop, such as GTK. Not part of redlock.h; the program links GLib itself.
 *
 *     redlock_glib_t adapter;
 *     int rc = redlock_glib_attach(&adapter, rl, NULL);
 *     g_main_loop_run(loop); // callbacks run in it
 *     redlock_glib_detach(&adapter); // before redlock_free(rl)
 *
 * Since 0.2.0. */
#ifndef REDLOCK_ADAPTERS_GLIB_H
#define REDLOCK_ADAPTERS_GLIB_H

#include <glib-unix.h>
#include <redlock/redlock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Connects one client with one main context. The memory is the caller's. */
typedef struct redlock_glib {
    redlock_t *rl;   /* borrowed */
    GSource *source; /* owned; NULL: not attached. The caller may set its priority and its name */
} redlock_glib_t;

/* Is called by the main context when the descriptor of the client is readable: runs
 * redlock_process(). Stops polling if that fails, which it does in a forked child. Not for other
 * callers. */
static inline gboolean redlock_glib_ready(gint fd, GIOCondition condition, gpointer userdata)
{
    (void)fd;
    (void)condition;
    return redlock_process((redlock_t *)userdata) == REDLOCK_OK ? G_SOURCE_CONTINUE
                                                                : G_SOURCE_REMOVE;
}

/* Has a main context drive a client: from now on it polls the client's descriptor and runs
 * redlock_process(), so callbacks run in g_main_loop_run(). Never waits. After a failure there is
 * nothing to detach.
 *
 * adapter: its content does not matter; in use until it is detached.
 * rl: in embedded or hybrid mode; borrowed until the adapter is detached.
 * context: NULL: the default one.
 * EINVAL: adapter or rl is NULL.
 * EMODE: threaded mode.
 * EFORKED.
 * Threads: the thread that runs the context. */
static inline int redlock_glib_attach(redlock_glib_t *adapter, redlock_t *rl, GMainContext *context)
{
    if (!adapter)
        return REDLOCK_EINVAL;
    adapter->rl = rl;
    adapter->source = NULL;
    int fd = redlock_get_fd(rl);
    if (fd < 0)
        return fd;
    adapter->source = g_unix_fd_source_new(fd, G_IO_IN);
    g_source_set_callback(adapter->source, G_SOURCE_FUNC(redlock_glib_ready), rl, NULL);
    g_source_attach(adapter->source, context);
    return REDLOCK_OK;
}

/* Ends what redlock_glib_attach() has begun. To be called before redlock_free(). Never
 * waits.
 *
 * adapter: NULL, or not attached: nothing is done.
 * Threads: the thread that runs the context, also in a callback. */
static inline void redlock_glib_detach(redlock_glib_t *adapter)
{
    if (!adapter || !adapter->source)
        return;
    g_source_destroy(adapter->source);
    g_source_unref(adapter->source);
    adapter->source = NULL;
}

#ifdef __cplusplus
}
#endif
#endif
