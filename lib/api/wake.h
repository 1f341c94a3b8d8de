/* SPDX-License-Identifier: MIT
 * Threads that sleep in a blocking call, and how they are woken. The client's mutex is held in all
 * functions but rl_wake_unlock(), which releases it. */
#ifndef RL_API_WAKE_H
#define RL_API_WAKE_H

#include "platform/memory.h"

#include <pthread.h>
#include <stdatomic.h>

#define RL_WAKES_MAX 64

/* A futex that a thread sleeps on. It belongs to the client, not to the sleeper's stack: a wake-up
 * that comes after the sleeper has gone still finds valid memory. */
struct rl_futex {
    atomic_uint value; /* changes with each wake-up */
    struct rl_futex *free_next;
    struct rl_futex *all_next;
};

/* A thread that waits until its operation is done; on its stack. */
struct rl_waiter {
    struct rl_futex *futex; /* while it sleeps; else NULL */
    bool done;
    int status; /* with `done` */
};

/* The futexes of one client. Owned by wake.c. */
struct rl_wakes {
    const struct rl_mem *mem;
    pthread_mutex_t *mutex;               /* the client's */
    struct rl_futex *noted[RL_WAKES_MAX]; /* woken when the mutex is released */
    unsigned count;                       /* of these */
    struct rl_futex *futexes_free;        /* not in use */
    struct rl_futex *futexes_all;         /* all that were allocated */
    struct rl_futex shared;               /* of sleepers for which there was no memory */
};

void rl_wake_init(struct rl_wakes *wakes, const struct rl_mem *mem, pthread_mutex_t *mutex);
/* Frees the futexes. No thread sleeps any more. */
void rl_wake_free(struct rl_wakes *wakes);

/* Has the waiter woken when the mutex is released by rl_wake_unlock(). */
void rl_wake_note(struct rl_wakes *wakes, struct rl_waiter *waiter);
/* Wakes at once whoever was noted: the mutex is about to be released in another way. */
void rl_wake_noted(struct rl_wakes *wakes);
/* Releases the mutex, then wakes the waiters that were noted. */
void rl_wake_unlock(struct rl_wakes *wakes);
/* Sleeps, without the mutex, until the waiter is woken. It may be woken without a reason. */
void rl_wake_sleep(struct rl_wakes *wakes, struct rl_waiter *waiter);

#endif
