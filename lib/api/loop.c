/* SPDX-License-Identifier: MIT
 * One turn of the loop, and the thread that turns it in threaded and hybrid mode. */
#include "api/loop.h"

#include "api/client.h"
#include "api/review.h"

#include <signal.h>

void rl_loop_settle(struct redlock *rl)
{
    do {
        rl_review(rl);
        if (rl->mode != REDLOCK_MODE_HYBRID && rl_dispatch_has_pending(rl))
            rl_dispatch(rl);
        rl_leader_flush(rl); /* also sets the timer, for what callbacks started, too */
    } while (rl->mode != REDLOCK_MODE_HYBRID && rl_dispatch_has_pending(rl));
    rl_review_arm(rl);
}

static void turn(struct redlock *rl, const struct rl_ready *ready, int count)
{
    rl->loop.turning = true;
    rl_io_tick(&rl->io, ready, count);
    rl_loop_settle(rl);
    rl->loop.turning = false;
}

void rl_loop_poll(struct redlock *rl)
{
    struct rl_ready ready[RL_READY_MAX];

    turn(rl, ready, rl_io_wait(&rl->io, ready, 0));
}

static void wait_and_turn(struct redlock *rl)
{
    struct rl_ready ready[RL_READY_MAX];

    int count = rl_io_wait(&rl->io, ready, -1);
    pthread_mutex_lock(&rl->mutex);
    rl_leader_returned(rl);
    turn(rl, ready, count);
    rl_client_unlock(rl);
}

static void *run(void *arg)
{
    struct redlock *rl = arg;

    while (!atomic_load(&rl->loop.stop)) {
        wait_and_turn(rl);
        rl_leader_yield(rl);
    }
    return NULL;
}

int rl_loop_start(struct redlock *rl)
{
    sigset_t all, before;

    /* Signals are the host's business: none is delivered to our thread. */
    rl_leader_begin(rl);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&rl->loop.thread, NULL, run, rl);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    rl->loop.runs = error == 0;
    return error == 0 ? REDLOCK_OK : REDLOCK_ESYS;
}

bool rl_loop_has_thread(const struct redlock *rl)
{
    return rl->loop.runs;
}

bool rl_loop_is_stopping(const struct redlock *rl)
{
    return atomic_load(&rl->loop.stop);
}

void rl_loop_stop(struct redlock *rl)
{
    if (!rl->loop.runs)
        return;
    atomic_store(&rl->loop.stop, true);
    rl_io_wake(&rl->io);
    pthread_mutex_lock(&rl->mutex);
    rl_leader_recall(rl);
    rl_client_unlock(rl);
    pthread_join(rl->loop.thread, NULL);
    rl->loop.runs = false;
}
