/* SPDX-License-Identifier: MIT
 * One turn of the loop, and the thread that turns it in threaded and hybrid mode. */
#include "api/client.h"

#include <signal.h>

/* Mutex held: finish what a tick has brought. Callbacks run here unless the user's own loop runs
 * them (hybrid). */
void rl_loop_settle(struct redlock *rl)
{
    do {
        rl_review(rl);
        if (rl->mode != REDLOCK_MODE_HYBRID && rl_dispatch_has_news(rl))
            rl_dispatch(rl);
        rl->flush_owed = false;
        rl_io_flush(&rl->io); /* also sets the timer, for what callbacks started, too */
    } while (rl->mode != REDLOCK_MODE_HYBRID && rl_dispatch_has_news(rl));
    if (rl->client_ops != NULL)
        rl_poller_arm(&rl->io.poller, rl_review_wake_ns(rl));
}

static void turn(struct redlock *rl, const struct rl_ready *ready, int count)
{
    rl->in_process = true;
    rl_io_tick(&rl->io, ready, count);
    rl_loop_settle(rl);
    rl->in_process = false;
}

void rl_loop_look(struct redlock *rl)
{
    struct rl_ready ready[RL_READY_MAX];

    turn(rl, ready, rl_io_wait(&rl->io, ready, 0));
}

static void wait_and_turn(struct redlock *rl)
{
    struct rl_ready ready[RL_READY_MAX];

    int count = rl_io_wait(&rl->io, ready, -1);
    pthread_mutex_lock(&rl->mutex);
    rl_drive_arrived(rl);
    turn(rl, ready, count);
    rl_client_unlock(rl);
}

static void *run(void *arg)
{
    struct redlock *rl = arg;

    while (!atomic_load(&rl->stop)) {
        wait_and_turn(rl);
        rl_drive_yield(rl);
    }
    return NULL;
}

int rl_loop_start(struct redlock *rl)
{
    sigset_t all, before;

    /* Signals are the host's business: none is delivered to our thread. */
    rl->polls = true;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&rl->thread, NULL, run, rl);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    rl->thread_runs = error == 0;
    return error == 0 ? REDLOCK_OK : REDLOCK_ESYS;
}

void rl_loop_stop(struct redlock *rl)
{
    if (!rl->thread_runs)
        return;
    atomic_store(&rl->stop, true);
    rl_io_wake(&rl->io);
    pthread_mutex_lock(&rl->mutex);
    rl_drive_recall(rl);
    rl_client_unlock(rl);
    pthread_join(rl->thread, NULL);
    rl->thread_runs = false;
}
