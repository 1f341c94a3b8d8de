/* SPDX-License-Identifier: MIT
 * Puts threads to sleep in blocking calls and wakes them. A wake-up here is that of a thread on a
 * futex. Wake-ups are noted while the mutex is held, and sent when it is released. The client's
 * mutex is held in all functions except rl_wake_init() and rl_wake_free().
 *
 * The client has no condition variable: in a forked child, pthread_cond_destroy() would wait for
 * sleepers that exist in the parent only. A futex has no state of its sleepers. */
#ifndef RL_API_WAKE_H
#define RL_API_WAKE_H

#include "platform/memory.h"

#include <pthread.h>
#include <stdatomic.h>

#define RL_WAKES_MAX 64 /* most wake-ups that are noted until the mutex is released */

/* A futex on which a thread sleeps. It belongs to the client and not to the sleeper's stack, so
 * that a wake-up after the sleeper has returned still finds valid memory. */
struct rl_futex {
    atomic_uint value;          /* changes with each wake-up */
    struct rl_futex *free_next; /* next in rl_wakes.futexes_free */
    struct rl_futex *all_next;  /* next in rl_wakes.futexes_all */
};

/* A thread that sleeps: a caller in a blocking call until its operation is done, or a thread of the
 * client until there is work. That of a caller is on its stack, and is valid until the call
 * returns.
 */
struct rl_waiter {
    struct rl_futex *futex; /* the thread sleeps on it; NULL: the thread does not sleep */
    bool done;              /* the operation has ended with `status` */
    int status;             /* enum redlock_error, with `done` */
};

/* The futexes of one client. Owned by wake.c; part of struct redlock_client. */
struct rl_wakes {
    const struct rl_mem *mem;
    pthread_mutex_t *mutex;               /* the client's */
    struct rl_futex *noted[RL_WAKES_MAX]; /* to be woken when the mutex is released */
    unsigned count;                       /* of `noted` */
    struct rl_futex *futexes_free;        /* not in use, linked by free_next */
    struct rl_futex *futexes_all;         /* all that were allocated, linked by all_next */
    struct rl_futex shared; /* for all sleepers for which no futex could be allocated */
};

/* Prepares the futexes of a new client. `mem` and `mutex` are the client's. */
void rl_wake_init(struct rl_wakes *wakes, const struct rl_mem *mem, pthread_mutex_t *mutex);
/* Frees the futexes. No thread may sleep any more. */
void rl_wake_free(struct rl_wakes *wakes);

/* Notes that the waiter's thread must be woken when the mutex is released. */
void rl_wake_note(struct rl_wakes *wakes, struct rl_waiter *waiter);
/* Releases the mutex, then wakes the noted threads. */
void rl_wake_unlock(struct rl_wakes *wakes);
/* Releases the mutex, wakes the noted threads, sleeps until the waiter is woken, at most `ns`
 * nanoseconds (RL_NEVER: no limit), and locks the mutex again. It may return without a wake-up: the
 * caller checks its condition in a loop. */
void rl_wake_sleep(struct rl_wakes *wakes, struct rl_waiter *waiter, uint64_t ns);

#endif
