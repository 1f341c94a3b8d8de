/* SPDX-License-Identifier: MIT
 * Threads with blocking calls, in threaded and in hybrid mode. In hybrid mode this thread runs the
 * loop for callbacks. */
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>

#include "wait.h"
#include "worker.h"

#define THREADS_MAX 8

/* A thread that acquires locks. */
struct thread {
    pthread_t thread;
    redlock_t *client;
    unsigned number; /* makes its random numbers different from those of other threads */
};

/* Logs the end of a turn, and releases the lock or only frees its handle (turn->drop). `held`:
 * false if an extension has failed; the lock is then released in any case. */
static void end_turn(struct turn *turn, bool held)
{
    turn_log_end(turn);
    if (!turn->drop || !held)
        redlock_release(turn->lock, NULL);
    redlock_lock_free(turn->lock);
}

/* Holds the lock until the turn ends, and extends it once if chosen. */
static void hold(struct turn *turn)
{
    bool held = true;
    while (turn_continue(turn)) {
        if (turn->extend && !turn->extended &&
            redlock_lock_remaining_ms(turn->lock) < turn->opts.ttl_ms * 2 / 3) {
            turn->extended = true;
            held = redlock_extend(turn->lock, 0, NULL) == REDLOCK_OK;
        }
        wait_pause();
    }
    end_turn(turn, held);
}

/* The function of a thread: runs one turn after the other until world.stop is set. `userdata`: its
 * struct thread. */
static void *work(void *userdata)
{
    struct thread *self = userdata;
    uint64_t random = random_of(self->number);
    struct turn turn;
    while (!atomic_load(&world.stop)) {
        redlock_lock_t *lock = NULL;
        turn_choose(&turn, &random);
        const int status =
            redlock_acquire(self->client, turn.workload.resource, &turn.opts, &lock, NULL);
        turn_begin(&turn, status, lock);
        if (lock != NULL)
            hold(&turn);
        for (unsigned pauses = draw(&random, 30); pauses > 0; pauses--)
            wait_pause();
    }
    return NULL;
}

/* Runs the loop of a hybrid client until world.stop is set. */
static void run_loop(redlock_t *client)
{
    struct pollfd ready = {.fd = redlock_get_fd(client), .events = POLLIN};
    while (!atomic_load(&world.stop)) {
        poll(&ready, 1, 50);
        redlock_process(client);
    }
}

/* Runs `threads` threads that acquire locks until world.stop is set. `hybrid`: this thread runs the
 * loop for callbacks meanwhile. */
void work_blocking(redlock_t *client, unsigned threads, bool hybrid)
{
    struct thread thread[THREADS_MAX];
    for (unsigned i = 0; i < threads; i++) {
        thread[i] = (struct thread){.client = client, .number = i};
        if (pthread_create(&thread[i].thread, NULL, work, &thread[i]) != 0)
            exit(70);
    }
    if (hybrid)
        run_loop(client);
    for (unsigned i = 0; i < threads; i++)
        pthread_join(thread[i].thread, NULL);
}
