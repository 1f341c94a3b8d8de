/* SPDX-License-Identifier: MIT
 * One turn of the loop, and the I/O thread that drives it in threaded and hybrid mode. In a turn a
 * thread reads what the sockets have received, does what is due and sends. Between
 * two turns the I/O thread waits in the poller (struct rl_io). In embedded mode redlock_process()
 * makes the turns. */
#ifndef RL_API_LOOP_H
#define RL_API_LOOP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct redlock_client;

/* The I/O thread of one client. Owned by loop.c; part of struct redlock_client. */
struct rl_loop {
    pthread_t thread; /* with `runs` */
    bool runs;        /* the I/O thread was started and not joined; false in embedded mode */
    bool turning;     /* rl_loop_poll() or the I/O thread is in a turn, which ends with a flush:
                       * what starts meanwhile need not wake the loop */
    atomic_bool stop; /* the I/O thread must end */
};

/* Starts the I/O thread. Returns REDLOCK_OK or REDLOCK_ESYS. */
int rl_loop_start(struct redlock_client *rl);
/* Ends the I/O thread and joins it. Does nothing if there is none. The mutex is not held. */
void rl_loop_stop(struct redlock_client *rl);
/* Returns whether there is an I/O thread. */
bool rl_loop_has_thread(const struct redlock_client *rl);
/* Returns whether rl_loop_stop() was called. */
bool rl_loop_is_stopping(const struct redlock_client *rl);

/* Makes one turn without waiting for events. The mutex is held; callbacks run without it. */
void rl_loop_poll(struct redlock_client *rl);

#endif
