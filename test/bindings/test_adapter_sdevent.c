/* SPDX-License-Identifier: MIT
 * The adapter for sd-event, in the cases of adapter_cases.h. */
#include "adapter_cases.h"

#include <redlock/adapters/sdevent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static sd_event *event;
static redlock_sdevent_t adapter;
static bool stopped; /* run() returns */

/* Aborts with the text of an error of sd-event, which is negative. */
static void must(int result)
{
    if (result >= 0)
        return;
    fprintf(stderr, "sd-event: %s\n", strerror(-result));
    abort();
}

/* Creates the loop. */
static void loop_open(void)
{
    must(sd_event_new(&event));
}

static int loop_attach(redlock_t *rl)
{
    return redlock_sdevent_attach(&adapter, rl, event);
}

static void loop_detach(void)
{
    redlock_sdevent_detach(&adapter);
}

static void loop_stop(void)
{
    stopped = true;
}

/* Ends run() at its time limit. */
static int on_timer(sd_event_source *source, uint64_t now_us, void *userdata)
{
    (void)source;
    (void)now_us;
    (void)userdata;
    loop_stop();
    return 0;
}

/* Turns the loop, because one that has ended by sd_event_exit() cannot run again. */
static void loop_run(uint64_t limit_ms)
{
    sd_event_source *timer = NULL;
    must(sd_event_add_time_relative(event, &timer, CLOCK_MONOTONIC, limit_ms * 1000, 1000, on_timer,
                                    NULL));
    stopped = false;
    while (!stopped)
        must(sd_event_run(event, UINT64_MAX));
    sd_event_source_disable_unref(timer);
}

static void loop_close(void)
{
    sd_event_unref(event);
}

const struct adapter_loop adapter_loop = {"sdevent", loop_open, loop_attach, loop_detach,
                                          loop_run,  loop_stop, loop_close};

int main(void)
{
    return adapter_main();
}
