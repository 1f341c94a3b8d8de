/* SPDX-License-Identifier: MIT
 * Clients that are freed with operations in flight, in all three modes. They use database 1, whose
 * connections are not cut: redlock_free() does not wait for the network, and a delete on a
 * connection that is being cut may be lost. */
#include "leftover_keys.h"

#include <stdio.h>
#include <stdlib.h>

#define STARTED_MAX 6

/* One client with its acquisitions. */
struct freed {
    pthread_mutex_t mutex;   /* guards the other fields: callbacks may run on the client's thread */
    bool closing;            /* the client is about to be freed: grants do not count any more */
    unsigned started, ended; /* acquisitions that were started, whose callback has run */
    unsigned resource[STARTED_MAX];    /* UINT32_MAX: granted while closing */
    redlock_lock_t *lock[STARTED_MAX]; /* NULL: not granted */
};

/* Userdata of one acquisition. */
struct operation {
    struct freed *freed;
    unsigned index;
};

/* Callback of an acquisition: counts how it ended, and keeps the lock of a grant. The resource
 * counts as held, unless leave_all() has run: then its number becomes UINT32_MAX. */
static void on_acquired(redlock_t *rl, int status, redlock_lock_t *lock,
                        const redlock_report_t *report, void *userdata)
{
    const struct operation *operation = userdata;
    struct freed *freed = operation->freed;
    (void)rl;
    (void)report;
    pthread_mutex_lock(&freed->mutex);
    freed->ended++;
    count_acquire(status, 0);
    if (status == REDLOCK_ECLOSED)
        count_one(CLOSED);
    if (status == REDLOCK_OK) {
        freed->lock[operation->index] = lock;
        if (!freed->closing)
            enter(freed->resource[operation->index]);
        else
            freed->resource[operation->index] = UINT32_MAX;
    }
    pthread_mutex_unlock(&freed->mutex);
}

/* Notes that no lock of the client is held any more, before the client is freed. */
static void leave_all(struct freed *freed)
{
    pthread_mutex_lock(&freed->mutex);
    freed->closing = true;
    for (unsigned i = 0; i < freed->started; i++)
        if (freed->lock[i] != NULL)
            leave(freed->resource[i]);
    pthread_mutex_unlock(&freed->mutex);
}

/* Checks after redlock_free() that all callbacks have run and that no lock is held. */
static void check_freed(struct freed *freed)
{
    if (freed->ended != freed->started) {
        printf("# %u callbacks of %u before redlock_free() returned\n", freed->ended,
               freed->started);
        abort();
    }
    for (unsigned i = 0; i < freed->started; i++) {
        if (freed->lock[i] != NULL && redlock_lock_check(freed->lock[i], 0) != REDLOCK_ELOST)
            abort();
        redlock_lock_free(freed->lock[i]);
    }
}

/* Creates a client, starts acquisitions, runs its loop for some turns and frees the client. */
static void use_and_free(const char *urls, uint64_t *random)
{
    static const int modes[] = {REDLOCK_MODE_THREADED, REDLOCK_MODE_EMBEDDED, REDLOCK_MODE_HYBRID};
    struct freed freed = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    struct operation operations[STARTED_MAX];
    redlock_t *client = leftovers_client(urls, modes[draw(random, 3)], "freed");
    freed.started = 1 + draw(random, STARTED_MAX);
    for (unsigned i = 0; i < freed.started; i++) {
        redlock_opts_t opts = redlock_opts(KEEP_TTL_MS);
        opts.wait_ms = REDLOCK_WAIT_FOREVER;
        operations[i] = (struct operation){&freed, i};
        freed.resource[i] = RESOURCES + draw(random, RESOURCES);
        if (redlock_acquire_start(client, resource_name(freed.resource[i]), &opts, on_acquired,
                                  &operations[i]) != REDLOCK_OK)
            abort();
    }
    for (unsigned turns = draw(random, 12); turns > 0; turns--)
        live_turn(client, 1);
    leave_all(&freed);
    count_client(client);
    if (redlock_free(client) != REDLOCK_OK)
        abort();
    check_freed(&freed);
    count_one(CLIENT_FREED);
}

/* Thread function: creates a client, starts operations, frees the client while they are in
 * flight, and begins again, until `stop`. `userdata` are the addresses of the nodes. */
void *run_freed(void *userdata)
{
    uint64_t random = random_of(200);
    while (!atomic_load(&leftovers->stop))
        use_and_free(userdata, &random);
    return NULL;
}
