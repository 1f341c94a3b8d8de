/* SPDX-License-Identifier: MIT
 * Runs work that may block for long on a thread of its own: look-ups of host names, and reading of
 * certificates. The thread may outlive the client, because what it does cannot be interrupted. */
#ifndef RL_NODE_BACKGROUND_H
#define RL_NODE_BACKGROUND_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

/* One piece of work. It is the first member of a struct with the arguments and the results, which
 * the caller allocates with calloc() of libc: the allocator of the client may be gone when the work
 * ends. The caller and the thread share that struct; the one that drops it last frees it. The
 * thread writes the results before `done` is set; the caller reads them only after
 * rl_background_is_done(). Owner: background.c; the caller sets `run` and `destroy`. */
struct rl_background {
    void (*run)(struct rl_background *work);     /* does the work, on the thread */
    void (*destroy)(struct rl_background *work); /* frees the struct; in any thread */
    atomic_int refs;                             /* 2: caller and thread; 1: one of them */
    atomic_bool done;                            /* run() has returned */
    pid_t pid;   /* process in which the thread runs; not that of a forked child */
    int wake_fd; /* owned duplicate of the caller's eventfd */
};

/* Starts a thread that calls work->run(), then writes to a duplicate of the eventfd `wake_fd`. The
 * thread is detached and has all signals blocked. On success the caller drops the work with
 * rl_background_drop(). Returns false if threads or descriptors are exhausted: the work has then
 * been destroyed. */
bool rl_background_start(struct rl_background *work, int wake_fd);

/* Returns true after run() has returned. */
bool rl_background_is_done(const struct rl_background *work);

/* Ends the use of the work by its caller, at any time. A thread that still runs continues, and then
 * frees the work. In a forked child, which has no such thread, frees the work at once; `destroy`
 * must then not touch results that the thread may have been writing. */
void rl_background_drop(struct rl_background *work);

#endif
