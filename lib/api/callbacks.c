/* SPDX-License-Identifier: MIT
 * The callback thread of threaded mode: sleeps until callbacks or log lines are pending, and runs
 * them, one at a time. In a forked child it does not exist, and nothing waits for it. */
#include "api/callbacks.h"

#include "api/client.h"
#include "platform/thread.h"

/* Runs pending callbacks until rl_callbacks_stop() is called. `arg` is the client. Returns NULL. */
static void *run(void *arg)
{
    struct redlock_client *rl = arg;
    struct rl_callbacks *callbacks = &rl->callbacks;

    pthread_mutex_lock(&rl->mutex);
    while (!callbacks->stop) {
        callbacks->woken = false;
        if (!rl_dispatch_has_pending(rl)) {
            rl_wake_sleep(&rl->wakes, &callbacks->sleeper, RL_NEVER);
            continue;
        }
        rl_io_refresh(&rl->io);
        rl_dispatch(rl);
        rl_client_send(rl); /* undoes of grants that did not last */
    }
    rl_client_unlock(rl);
    return NULL;
}

int rl_callbacks_start(struct redlock_client *rl)
{
    struct rl_callbacks *callbacks = &rl->callbacks;

    if (rl->mode != REDLOCK_MODE_THREADED || callbacks->runs)
        return REDLOCK_OK;
    callbacks->runs = rl_thread_start(&callbacks->thread, NULL, run, rl) == 0;
    return callbacks->runs ? REDLOCK_OK : REDLOCK_ESYS;
}

void rl_callbacks_wake(struct redlock_client *rl)
{
    struct rl_callbacks *callbacks = &rl->callbacks;

    if (!callbacks->runs || callbacks->woken || !rl_dispatch_has_pending(rl))
        return;
    callbacks->woken = true;
    rl_wake_note(&rl->wakes, &callbacks->sleeper);
}

void rl_callbacks_stop(struct redlock_client *rl)
{
    struct rl_callbacks *callbacks = &rl->callbacks;

    pthread_mutex_lock(&rl->mutex);
    bool runs = callbacks->runs;
    callbacks->stop = true;
    rl_wake_note(&rl->wakes, &callbacks->sleeper);
    rl_client_unlock(rl);
    if (runs)
        pthread_join(callbacks->thread, NULL);
    pthread_mutex_lock(&rl->mutex);
    callbacks->runs = false;
    callbacks->stop = false;
    rl_client_unlock(rl);
}
