/* SPDX-License-Identifier: MIT
 * Clients that are freed with operations in flight, in all three modes. They use database 1, whose
 * connections are not cut: redlock_free() does not wait for the network, and a delete on a
 * connection that is being cut may be lost. */
#include "leftover_keys.h"

#include <stdio.h>
#include <stdlib.h>

#define ASKED_MAX 6

struct freed {
    pthread_mutex_t mutex; /* callbacks may run on the client's thread */
    bool closing;
    unsigned asked, told;
    unsigned resource[ASKED_MAX];
    redlock_lock_t *lock[ASKED_MAX];
};

struct question {
    struct freed *freed;
    unsigned index;
};

static void on_acquired(redlock_t *rl, int status, redlock_lock_t *lock,
                        const redlock_report_t *report, void *userdata)
{
    const struct question *question = userdata;
    struct freed *freed = question->freed;
    (void)rl;
    (void)report;
    pthread_mutex_lock(&freed->mutex);
    freed->told++;
    count_acquire(status, 0);
    if (status == REDLOCK_ECLOSED)
        happen(CLOSED);
    if (status == REDLOCK_OK) {
        freed->lock[question->index] = lock;
        if (!freed->closing)
            enter(freed->resource[question->index]);
        else
            freed->resource[question->index] = UINT32_MAX;
    }
    pthread_mutex_unlock(&freed->mutex);
}

static void leave_all(struct freed *freed)
{
    pthread_mutex_lock(&freed->mutex);
    freed->closing = true;
    for (unsigned i = 0; i < freed->asked; i++)
        if (freed->lock[i] != NULL)
            leave(freed->resource[i]);
    pthread_mutex_unlock(&freed->mutex);
}

static void check_freed(struct freed *freed)
{
    if (freed->told != freed->asked) {
        printf("# %u callbacks of %u before redlock_free() returned\n", freed->told, freed->asked);
        abort();
    }
    for (unsigned i = 0; i < freed->asked; i++) {
        if (freed->lock[i] != NULL && redlock_lock_check(freed->lock[i], 0) != REDLOCK_ELOST)
            abort();
        redlock_lock_free(freed->lock[i]);
    }
}

static void live_and_die(const char *urls, uint64_t *random)
{
    static const int modes[] = {REDLOCK_MODE_THREADED, REDLOCK_MODE_EMBEDDED, REDLOCK_MODE_HYBRID};
    struct freed freed = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    struct question questions[ASKED_MAX];
    redlock_t *client = leftovers_client(urls, modes[draw(random, 3)]);
    freed.asked = 1 + draw(random, ASKED_MAX);
    for (unsigned i = 0; i < freed.asked; i++) {
        redlock_opts_t opts = redlock_opts(KEEP_TTL_MS);
        opts.wait_ms = REDLOCK_WAIT_FOREVER;
        questions[i] = (struct question){&freed, i};
        freed.resource[i] = RESOURCES + draw(random, RESOURCES);
        if (redlock_acquire_start(client, resource_name(freed.resource[i]), &opts, on_acquired,
                                  &questions[i]) != REDLOCK_OK)
            abort();
    }
    for (unsigned turns = draw(random, 12); turns > 0; turns--)
        live_turn(client, 1);
    leave_all(&freed);
    count_client(client);
    if (redlock_free(client) != REDLOCK_OK)
        abort();
    check_freed(&freed);
    happen(CLIENT_FREED);
}

void *run_freed(void *userdata)
{
    uint64_t random = random_of(200);
    while (!atomic_load(&leftovers->stop))
        live_and_die(userdata, &random);
    return NULL;
}
