/* SPDX-License-Identifier: MIT
 * The library in threaded mode: each thread blocks in acquire and release. The threads live for one
 * slice; their start and end are not measured. */
#include "client.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#define READY_WAIT_MS 10000 /* for a client to be ready */
#define SHUTDOWN_MS   2000  /* for a client to shut down */
#define CLIENTS_MAX   64    /* clients, if each thread has its own */

/* One thread. */
struct worker {
    struct threaded *threaded;
    redlock_t *client;
    struct holding *holding;   /* its resource */
    pthread_t thread;          /* valid during a slice */
    uint64_t start_ns, end_ns; /* of its work in the slice */
    struct result result;      /* of the slice; only this thread writes it */
};

/* The client or clients, and the threads. Lives for all runs. */
struct threaded {
    redlock_t *clients[CLIENTS_MAX]; /* one that all threads share, or one for each thread */
    unsigned clients_count;
    redlock_opts_t opts;
    struct client_settings settings; /* only its numbers are valid: it borrows its texts */
    struct holding *holdings;        /* one for each resource; owned */
    struct worker *workers;          /* `depth` of them; owned */
    unsigned depth;
    bool contended;          /* there are fewer resources than threads */
    pthread_barrier_t start; /* all workers and the thread that measures begin together */
    atomic_llong todo;       /* pairs of the slice that have not started; below 0: none */
};

/* Runs one pair of a worker and records it. */
static void one_pair(struct worker *worker)
{
    struct threaded *threaded = worker->threaded;
    redlock_lock_t *lock = NULL;
    uint64_t start_ns = result_now_ns();
    int status =
        redlock_acquire(worker->client, worker->holding->resource, &threaded->opts, &lock, NULL);
    if (status == REDLOCK_OK) {
        histogram_record(&worker->result.acquire, result_now_ns() - start_ns);
        holding_acquired(worker->holding, &worker->result);
        if (threaded->contended)
            (void)sched_yield(); /* gives a second holder, if there is one, time to be counted */
        holding_released(worker->holding);
        status = redlock_release(lock, NULL);
        redlock_lock_free(lock);
    }
    worker->result.pairs++;
    if (status == REDLOCK_OK) {
        histogram_record(&worker->result.pair, result_now_ns() - start_ns);
    } else {
        worker->result.failed++;
        worker->result.last_error = status;
    }
}

/* Runs pairs until none is left. */
static void *work(void *argument)
{
    struct worker *worker = argument;
    (void)pthread_barrier_wait(&worker->threaded->start);
    worker->start_ns = result_now_ns();
    while (atomic_fetch_sub(&worker->threaded->todo, 1) > 0)
        one_pair(worker);
    worker->end_ns = result_now_ns();
    return NULL;
}

/* Starts all threads, runs `pairs` pairs in them and adds their measurements to `result`. Returns
 * 0; ends the program if a thread cannot start. */
int threaded_run(void *state, uint64_t pairs, struct result *result)
{
    struct threaded *threaded = state;
    atomic_store(&threaded->todo, (long long)pairs);
    for (unsigned i = 0; i < threaded->clients_count; i++)
        client_add_stats(threaded->clients[i], -1, result);
    for (unsigned i = 0; i < threaded->depth; i++) {
        struct worker *worker = &threaded->workers[i];
        worker->result = (struct result){.pairs = 0};
        if (pthread_create(&worker->thread, NULL, work, worker) != 0) {
            /* The threads that run already wait at the barrier and cannot be stopped: end the
             * program. */
            fprintf(stderr, "redlock-bench: cannot start %u threads\n", threaded->depth);
            exit(71);
        }
    }
    (void)pthread_barrier_wait(&threaded->start);
    uint64_t start_ns = UINT64_MAX, end_ns = 0;
    for (unsigned i = 0; i < threaded->depth; i++) {
        struct worker *worker = &threaded->workers[i];
        (void)pthread_join(worker->thread, NULL);
        result_add(result, &worker->result);
        if (worker->start_ns < start_ns)
            start_ns = worker->start_ns;
        if (worker->end_ns > end_ns)
            end_ns = worker->end_ns;
    }
    result->elapsed_ns += end_ns - start_ns;
    for (unsigned i = 0; i < threaded->clients_count; i++)
        client_add_stats(threaded->clients[i], 1, result);
    return 0;
}

/* Creates the clients and waits until they are ready. Returns 0, or -1 and a text in `error`. */
static int connect_clients(struct threaded *threaded, const struct client_settings *settings,
                           char *error, size_t error_size)
{
    unsigned wanted = settings->separate ? settings->depth : 1;
    while (threaded->clients_count < wanted) {
        redlock_t *client = client_new(settings, REDLOCK_MODE_THREADED, error, error_size);
        if (client == NULL)
            return -1;
        threaded->clients[threaded->clients_count++] = client;
    }
    for (unsigned i = 0; i < wanted; i++) {
        int status = redlock_wait_ready(threaded->clients[i], READY_WAIT_MS);
        if (status != REDLOCK_OK) {
            snprintf(error, error_size, "the servers are not ready: %s", redlock_strerror(status));
            return -1;
        }
    }
    return 0;
}

/* Creates the clients and waits until they are ready. Returns NULL and a text in `error` on
 * failure.
 */
struct threaded *threaded_open(const struct client_settings *settings, char *error,
                               size_t error_size)
{
    if (settings->separate && settings->depth > CLIENTS_MAX) {
        snprintf(error, error_size, "at most %d separate clients", CLIENTS_MAX);
        return NULL;
    }
    struct threaded *threaded = calloc(1, sizeof *threaded);
    snprintf(error, error_size, "out of memory"); /* unless another text replaces it */
    if (threaded == NULL)
        return NULL;
    threaded->depth = settings->depth;
    threaded->settings = *settings;
    threaded->contended = settings->resources < settings->depth;
    threaded->opts = client_opts(settings);
    threaded->holdings = client_holdings(settings);
    threaded->workers = calloc(settings->depth, sizeof *threaded->workers);
    (void)pthread_barrier_init(&threaded->start, NULL, settings->depth + 1);
    if (threaded->holdings == NULL || threaded->workers == NULL ||
        connect_clients(threaded, settings, error, error_size) != 0) {
        threaded_close(threaded);
        return NULL;
    }
    for (unsigned i = 0; i < settings->depth; i++) {
        threaded->workers[i].threaded = threaded;
        threaded->workers[i].client = threaded->clients[i % threaded->clients_count];
        threaded->workers[i].holding = &threaded->holdings[i % settings->resources];
    }
    return threaded;
}

/* Shuts the clients down and frees everything. */
void threaded_close(struct threaded *threaded)
{
    for (unsigned i = 0; i < threaded->clients_count; i++) {
        int status = redlock_shutdown(threaded->clients[i], SHUTDOWN_MS);
        if (status != REDLOCK_OK)
            fprintf(stderr, "redlock-bench: shutdown: %s\n", redlock_strerror(status));
        (void)redlock_free(threaded->clients[i]);
    }
    (void)pthread_barrier_destroy(&threaded->start);
    free(threaded->workers);
    client_free_holdings(threaded->holdings, &threaded->settings);
    free(threaded);
}
