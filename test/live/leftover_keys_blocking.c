/* SPDX-License-Identifier: MIT
 * Threads with blocking calls: each acquires a lock, extends it and ends it in one of four ways.
 * Another thread cancels their calls at any moment. */
#include "leftover_keys.h"

#include <poll.h>
#include <stdlib.h>

/* One thread. */
struct blocker {
    struct blockers *all;
    pthread_t thread;
    pthread_mutex_t mutex; /* guards the cancel object, which is replaced after each use */
    redlock_cancel_t *cancel;
    uint64_t random; /* state of its random numbers */
};

/* All threads of one client. */
struct blockers {
    redlock_t *client;
    unsigned count;
    struct blocker list[BLOCKERS];
};

/* Replaces the cancel object of the thread, which was triggered. */
static void renew_cancel(struct blocker *self)
{
    redlock_cancel_t *fresh = NULL;
    const int status = redlock_cancel_new(&fresh, self->all->client);
    if (status != REDLOCK_OK)
        abort();
    pthread_mutex_lock(&self->mutex);
    redlock_cancel_free(self->cancel);
    self->cancel = fresh;
    pthread_mutex_unlock(&self->mutex);
}

/* Ends a lock in one of four ways: release_after, freeing the handle, release_start, release. */
static void end_lock(struct blocker *self, redlock_lock_t *lock)
{
    int status = REDLOCK_OK;
    switch (draw(&self->random, 5)) {
    case 0:
        status = redlock_release_after(lock, 1 + draw(&self->random, 40), NULL);
        count_one(RELEASED_AFTER);
        break;
    case 1:
        count_one(FREED_HELD);
        break;
    case 2:
        if (redlock_release_start(lock, NULL, NULL) == REDLOCK_OK)
            count_one(RELEASED);
        break;
    default:
        status = redlock_release(lock, NULL);
        count_one(status == REDLOCK_OK ? RELEASED : RELEASE_UNSURE);
        break;
    }
    redlock_lock_free(lock);
    atomic_fetch_add(&leftovers->operations, 1);
}

/* Holds a lock for a while, extends it up to twice, and ends it. */
static void use(struct blocker *self, unsigned resource, redlock_lock_t *lock)
{
    enter(resource);
    for (unsigned i = draw(&self->random, 3); i > 0; i--) {
        atomic_fetch_add(&leftovers->operations, 1);
        if (redlock_extend(lock, 0, NULL) == REDLOCK_OK)
            count_one(EXTENDED);
    }
    if (draw(&self->random, 4) == 0)
        poll(NULL, 0, (int)draw(&self->random, 4));
    leave(resource);
    end_lock(self, lock);
}

/* Acquires and ends locks until `stop`. */
static void *run_thread(void *userdata)
{
    static const uint64_t budgets_ms[] = {0, 1, 1, 5, 40};
    struct blocker *self = userdata;
    while (!atomic_load(&leftovers->stop)) {
        redlock_lock_t *lock = NULL;
        const unsigned resource = draw(&self->random, RESOURCES);
        redlock_opts_t opts = redlock_opts(KEEP_TTL_MS);
        opts.wait_ms = budgets_ms[draw(&self->random, 5)];
        opts.cancel = self->cancel;
        const int status =
            redlock_acquire(self->all->client, resource_name(resource), &opts, &lock, NULL);
        count_acquire(status, opts.wait_ms);
        if (status == REDLOCK_OK)
            use(self, resource, lock);
        if (status == REDLOCK_ECANCELED)
            renew_cancel(self);
    }
    return NULL;
}

/* Starts `threads` threads with the numbers first_actor and up, which share the client. Returns
 * their list. */
struct blockers *blockers_start(redlock_t *client, unsigned threads, unsigned first_actor)
{
    struct blockers *all = calloc(1, sizeof *all);
    if (all == NULL || threads > BLOCKERS)
        abort();
    all->client = client;
    all->count = threads;
    for (unsigned i = 0; i < threads; i++) {
        struct blocker *self = &all->list[i];
        self->all = all;
        self->random = random_of(first_actor + i);
        pthread_mutex_init(&self->mutex, NULL);
        renew_cancel(self);
        if (pthread_create(&self->thread, NULL, run_thread, self) != 0)
            abort();
    }
    return all;
}

/* Cancels the call that this thread waits for at the moment, if there is one. */
void blockers_cancel(struct blockers *blockers, unsigned which)
{
    struct blocker *victim = &blockers->list[which % blockers->count];
    pthread_mutex_lock(&victim->mutex);
    redlock_cancel_trigger(victim->cancel);
    pthread_mutex_unlock(&victim->mutex);
}

/* Waits until all threads have ended, and frees the list. */
void blockers_join(struct blockers *blockers)
{
    for (unsigned i = 0; i < blockers->count; i++) {
        struct blocker *self = &blockers->list[i];
        pthread_join(self->thread, NULL);
        redlock_cancel_free(self->cancel);
        pthread_mutex_destroy(&self->mutex);
    }
    free(blockers);
}
