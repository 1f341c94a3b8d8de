/* SPDX-License-Identifier: MIT
 * The adapter for GLib, in the cases of adapter_cases.h. */
#include "adapter_cases.h"

#include <redlock/adapters/glib.h>

static GMainContext *context;
static GMainLoop *loop;
static redlock_glib_t adapter;

/* Creates the loop. */
static void loop_open(void)
{
    context = g_main_context_new();
    loop = g_main_loop_new(context, FALSE);
}

static int loop_attach(redlock_t *rl)
{
    return redlock_glib_attach(&adapter, rl, context);
}

static void loop_detach(void)
{
    redlock_glib_detach(&adapter);
}

/* Ends run() at its time limit. */
static gboolean on_timer(gpointer userdata)
{
    (void)userdata;
    g_main_loop_quit(loop);
    return G_SOURCE_REMOVE;
}

static void loop_run(uint64_t limit_ms)
{
    GSource *timer = g_timeout_source_new((guint)limit_ms);
    g_source_set_callback(timer, on_timer, NULL, NULL);
    g_source_attach(timer, context);
    g_main_loop_run(loop);
    g_source_destroy(timer);
    g_source_unref(timer);
}

static void loop_stop(void)
{
    g_main_loop_quit(loop);
}

static void loop_close(void)
{
    g_main_loop_unref(loop);
    g_main_context_unref(context);
}

const struct adapter_loop adapter_loop = {"glib",   loop_open, loop_attach, loop_detach,
                                          loop_run, loop_stop, loop_close};

int main(void)
{
    return adapter_main();
}
