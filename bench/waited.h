/* SPDX-License-Identifier: MIT
 * How an asynchronous call of the library ended, for loops that turn until it has. */
#ifndef BENCH_WAITED_H
#define BENCH_WAITED_H

#include <redlock/redlock.h>
#include <stdbool.h>

struct wait {
    bool done;
    int status;
};

/* The function that is called at the end; `userdata` is the wait. */
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
