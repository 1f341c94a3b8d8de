/* SPDX-License-Identifier: MIT
 * Starts the threads of the library. */
#ifndef RL_PLATFORM_THREAD_H
#define RL_PLATFORM_THREAD_H

#include <pthread.h>

/* Starts a thread that runs fn(arg), with all signals blocked, because signals are for the threads
 * of the program. `attr` may be NULL. Returns 0, or an errno value if there is no thread. */
int rl_thread_start(pthread_t *ret_thread, const pthread_attr_t *attr, void *(*fn)(void *),
                    void *arg);

/* Has a cancellation (pthread_cancel()) of the calling thread wait until rl_thread_allow_cancel(),
 * because a thread that ends with a mutex locked, or while it drives the loop, blocks all others.
 * Returns the former state, which the other function restores. Calls nest. */
int rl_thread_hold_cancel(void);
void rl_thread_allow_cancel(int state);

#endif
