/* SPDX-License-Identifier: MIT
 * One turn of the loop, and the I/O thread that turns it in threaded and hybrid mode. */
#ifndef RL_API_LOOP_H
#define RL_API_LOOP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct redlock;

/* Owned by loop.c. */
struct rl_loop {
    pthread_t thread; /* with `runs` */
    bool runs;        /* there is an I/O thread */
    bool turning;     /* a turn runs that ends with a flush: what starts need not wake the loop */
    atomic_bool stop; /* the I/O thread is to end */
};

/* Starts the I/O thread: 0 or ESYS. */
int rl_loop_start(struct redlock *rl);
/* Ends the I/O thread and joins it. The mutex is not held. */
void rl_loop_stop(struct redlock *rl);
bool rl_loop_has_thread(const struct redlock *rl);
bool rl_loop_is_stopping(const struct redlock *rl);

/* Mutex held: makes one turn without waiting for anything. */
void rl_loop_poll(struct redlock *rl);
/* Mutex held: finishes what a tick has brought. Callbacks run here unless the user's own loop runs
 * them (hybrid). */
void rl_loop_settle(struct redlock *rl);

#endif
