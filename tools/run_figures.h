/* SPDX-License-Identifier: MIT
 * The figures of one `redlock run` in a file (--metrics-file), for node_exporter's textfile
 * collector. A thread of its own writes the file, because a slow disk must not delay the loop of
 * the command. It writes when the state changes, and every FIGURES_INTERVAL_MS. The state is set by
 * the main thread. All functions accept NULL, which means that there is no file.
 */
#ifndef TOOLS_RUN_FIGURES_H
#define TOOLS_RUN_FIGURES_H

#include <stdbool.h>

#include "redlock/redlock.h"

/* Longest time between two updates of the file, in ms. */
#define FIGURES_INTERVAL_MS 10000

/* The figures of one run; opaque. */
struct run_figures;

/* How a run has ended. */
enum run_result {
    RUN_SUCCESS = 0, /* the command has ended with 0, under its lock */
    RUN_FAILED,      /* the command has ended with another code */
    RUN_SIGNALED,    /* a signal to redlock has ended the wait or the command */
    RUN_LOST,        /* the lock was lost, or about to be lost, so that the command was stopped */
    RUN_MAX_HOLD,    /* the command was stopped because of --max-hold */
    RUN_HELD,        /* not acquired: another client holds the lock */
    RUN_NO_QUORUM,   /* not acquired: too few servers granted it */
    RUN_REFUSED,     /* not acquired: the servers refuse the user */
    RUN_ERROR        /* any other reason; the command was not started, or its end is not known */
};

/* What is known at the end of a run. */
struct run_ending {
    enum run_result result;
    int exit_code; /* of redlock */
    bool lost;     /* the lock was lost */
    bool kept;     /* the lock was left to expire (--keep) */
};

/* Writes the first figures to the file `path` (NULL: there is none). `name`: of the lock. Returns
 * -1 with *ret_figures (NULL without a file), or EXIT_OUTPUT after a message if the file cannot be
 * written. run_figures_end() frees the figures. */
int run_figures_begin(const char *path, const char *name, struct run_figures **ret_figures);

/* Starts the thread, which also writes the figures of the client from now on. The caller has forked
 * its child processes before. */
void run_figures_watch(struct run_figures *figures, redlock_t *rl);
/* Notes that the lock is held. */
void run_figures_held(struct run_figures *figures, redlock_lock_t *lock);
/* Notes that the lock is lost. */
void run_figures_lost(struct run_figures *figures);
/* Reads the client for the last time. Neither client nor lock are used after that. */
void run_figures_leave(struct run_figures *figures);
/* Writes the last figures, waits for a few seconds until they are written, and frees `figures`.
 * Warns if that failed. */
void run_figures_end(struct run_figures *figures, const struct run_ending *ending);

#endif
