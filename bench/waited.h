/* SPDX-License-Identifier: MIT
 * Waiting for an asynchronous call of the library: a completion callback that stores its status,
 * for loops that run until `done`. */
#ifndef BENCH_WAITED_H
#define BENCH_WAITED_H

#include <redlock/redlock.h>
#include <stdbool.h>

/* The state of one asynchronous call. It must live until the callback has run. */
struct wait {
    bool done;  /* the callback has run */
    int status; /* of the call, valid when done: REDLOCK_OK or an error */
};

/* Stores the status of the call that has ended. `userdata` is its struct wait. */
static inline void waited(redlock_t *client, int status, redlock_lock_t *lock,
                          const redlock_report_t *report, void *userdata)
{
    struct wait *wait = userdata;
    (void)client;
    (void)lock;
    (void)report;
    wait->done = true;
    wait->status = status;
}

#endif
