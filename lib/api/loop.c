/* SPDX-License-Identifier: MIT
 * One turn of the loop, and the I/O thread that drives it in threaded and hybrid mode.
 *
 * The I/O thread repeats three steps: it waits in the poller without the mutex, it makes a turn
 * with the mutex, and it calls rl_leader_yield(), which keeps it out of the poller while callers
 * drive (leader.c). A turn is a tick of the engines followed by settle(), and it ends with a flush.
 * In embedded mode redlock_process() makes the turns.
 *
 * Lock order: the client's mutex is the only lock. Callbacks run without it, so a turn may meet
 * state that other threads have changed in between. */
#include "api/loop.h"

#include "api/client.h"
#include "api/review.h"
#include "platform/thread.h"

/* Finishes a turn: ends operations that were cancelled or are out of time, sends requests, and sets
 * the timer. In embedded mode also runs callbacks, until none is pending. Mutex held, but released
 * while a callback runs. */
static void settle(struct redlock_client *rl)
{
    bool runs_callbacks = rl->mode == REDLOCK_MODE_EMBEDDED;

    do {
        rl_review(rl);
        if (runs_callbacks && rl_dispatch_has_pending(rl))
            rl_dispatch(rl);
        rl_leader_flush(rl); /* also sets the timer, so it follows the callbacks */
    } while (runs_callbacks && rl_dispatch_has_pending(rl));
    rl_review_arm(rl);
}

/* Makes one turn with the `count` events in `ready`, which the poller has returned. Mutex held, but
 * released while a callback runs. */
static void turn(struct redlock_client *rl, const struct rl_ready *ready, int count)
{
    rl->loop.turning = true;
    rl_dispatch_tick(rl, ready, count);
    settle(rl);
    rl->loop.turning = false;
}

/* Makes one turn with the events that the poller has at this moment, without waiting for one. Mutex
 * held, but released while a callback runs. */
void rl_loop_poll(struct redlock_client *rl)
{
    struct rl_ready ready[RL_READY_MAX];

    turn(rl, ready, rl_io_wait(&rl->io, ready, 0));
}

/* Waits in the poller, without a time limit other than the timer of the poller, and makes one turn.
 * The mutex is not held on entry or on return. */
static void wait_and_turn(struct redlock_client *rl)
{
    struct rl_ready ready[RL_READY_MAX];

    int count = rl_io_wait(&rl->io, ready, -1);
    pthread_mutex_lock(&rl->mutex);
    rl_leader_returned(rl);
    turn(rl, ready, count);
    rl_client_unlock(rl);
}

/* The I/O thread: waits and makes turns until rl_loop_stop() is called. `arg` is the client.
 * Returns NULL. */
static void *run(void *arg)
{
    struct redlock_client *rl = arg;

    while (!atomic_load(&rl->loop.stop)) {
        wait_and_turn(rl);
        rl_leader_yield(rl);
    }
    return NULL;
}

/* Starts the I/O thread. Returns REDLOCK_OK, or REDLOCK_ESYS if no thread can be created. */
int rl_loop_start(struct redlock_client *rl)
{
    rl_leader_begin(rl);
    rl->loop.runs = rl_thread_start(&rl->loop.thread, NULL, run, rl) == 0;
    return rl->loop.runs ? REDLOCK_OK : REDLOCK_ESYS;
}

/* Returns whether the I/O thread was started and not joined yet; false in embedded mode. */
bool rl_loop_has_thread(const struct redlock_client *rl)
{
    return rl->loop.runs;
}

/* Returns whether rl_loop_stop() was called, so that the I/O thread must end. */
bool rl_loop_is_stopping(const struct redlock_client *rl)
{
    return atomic_load(&rl->loop.stop);
}

/* Has the I/O thread end, whether it is in the poller or parked, and joins it. Does nothing if
 * there is none. The mutex is not held. */
void rl_loop_stop(struct redlock_client *rl)
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
