/* SPDX-License-Identifier: MIT
 * Taking a lock with patience: says at once and every ten seconds why it waits; a signal ends it.
 * Who waits for long looks whether the key will ever end.
 */
#ifndef TOOLS_WAIT_H
#define TOOLS_WAIT_H

#include "events.h"
#include "names.h"
#include "session.h"

struct wait {
    struct session *session;
    struct events *events;
    const struct names *names;
    uint64_t max_ttl_ms; /* a key that outlives it is stuck */
    int conflict_code;
    unsigned slots; /* permits of which one is wanted; 0: the lock itself */
    int signal_fd;
    int watch_fd; /* readable: somebody whom the lock is for has gone; -1: none */
    /* results */
    redlock_lock_t *lock;
    redlock_report_t *report;
    uint64_t waited_ms;
};

/* -1 and wait->lock, or the exit code (0 is possible: -E 0); the reason was said. The report is
 * the caller's to free. */
int wait_for_lock(struct wait *wait, redlock_opts_t opts);

#endif
