/* SPDX-License-Identifier: MIT
 * Acquires a lock for `redlock run` and `redlock acquire`, and waits for it as long as the user
 * wants. Prints the reason for waiting from time to time, and at the end why the lock was not
 * acquired. A signal ends the wait, and so does the lack of a quorum for too long. After a long
 * wait it inspects the key, which may never expire.
 */
#ifndef TOOLS_WAIT_H
#define TOOLS_WAIT_H

#include "events.h"
#include "names.h"
#include "session.h"

/* Parameters and results of one wait. The caller fills in the parameters and owns the results. */
struct wait {
    struct session *session;   /* the open session that acquires */
    struct events *events;     /* where the events "waiting" and "not_acquired" go */
    const struct names *names; /* the names of the lock */
    uint64_t max_ttl_ms;       /* a key with more time left than this is stuck */
    uint64_t quorum_wait_ms;   /* longest wait in a row without a quorum; see quorum_wait.h */
    int conflict_code;         /* exit code if another client holds the lock */
    unsigned permits;          /* number of permits of which one is acquired; 0: the lock itself */
    int signal_fd;             /* from signals_open() */
    /* the wait ends with an error when it becomes readable: the guardian has ended; -1: none */
    int watch_fd;
    /* Results; all zero before the call. */
    redlock_lock_t *lock;     /* NULL unless it was acquired */
    redlock_report_t *report; /* of the last attempt, to be freed by the caller; may be NULL */
    uint64_t waited_ms;       /* how long the whole wait has taken */
};

/* Acquires the lock of wait->names, which `opts` does not name. opts.wait_ms is the longest wait;
 * 0: do not wait. Returns -1 with the lock in wait->lock, or an exit code after a message. The exit
 * code may be 0, because of -E 0. */
int wait_for_lock(struct wait *wait, redlock_opts_t opts);

#endif
