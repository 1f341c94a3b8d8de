/* SPDX-License-Identifier: MIT
 * Starts the threads of the library. */
#include "platform/thread.h"

#include <signal.h>

int rl_thread_start(pthread_t *ret_thread, const pthread_attr_t *attr, void *(*fn)(void *),
                    void *arg)
{
    sigset_t all, before;

    /* The new thread inherits the mask. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(ret_thread, attr, fn, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

int rl_thread_hold_cancel(void)
{
    int before;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

void rl_thread_allow_cancel(int state)
{
    int before;

    pthread_setcancelstate(state, &before);
}
