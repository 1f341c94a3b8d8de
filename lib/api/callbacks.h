/* SPDX-License-Identifier: MIT
 * The callback thread, on which the callbacks of a client in threaded mode run, and its log lines
 * are written. It is a thread of its own, because the I/O thread extends locks: a slow callback may
 * delay other callbacks, and nothing else. In embedded and hybrid mode redlock_process() runs the
 * callbacks, and there is no callback thread. The client's mutex is held unless a function says
 * otherwise. */
#ifndef RL_API_CALLBACKS_H
#define RL_API_CALLBACKS_H

#include "api/wake.h"

#include <pthread.h>
#include <stdbool.h>

struct redlock_client;

/* The callback thread of one client. Owned by callbacks.c; part of struct redlock_client. */
struct rl_callbacks {
    pthread_t thread;         /* with `runs` */
    bool runs;                /* the thread was started and not joined */
    bool stop;                /* the thread must end */
    bool woken;               /* the thread was woken and has not looked for work since */
    struct rl_waiter sleeper; /* the thread, while there is no callback to run */
};

/* Starts the callback thread in threaded mode, unless it runs. Called for each function of the user
 * that may have to run. Returns REDLOCK_OK; or REDLOCK_ESYS if no thread can be created. */
int rl_callbacks_start(struct redlock_client *rl);
/* Has the callback thread woken if it sleeps and there is work. Called before the mutex is
 * released. */
void rl_callbacks_wake(struct redlock_client *rl);
/* Waits for the callback that runs, ends the thread and joins it; pending callbacks stay pending.
 * Does nothing if there is no thread. The mutex is not held. */
void rl_callbacks_stop(struct redlock_client *rl);

#endif
