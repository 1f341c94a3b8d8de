/* SPDX-License-Identifier: MIT
 * handler QUEUE_MAX: a request handler. Each line on stdin names a thing that is to be worked on;
 * whoever wants a thing that others are working on waits in line, and when the line is full, is
 * sent away at once ("busy, try later") instead of piling up threads and time-outs.
 *
 * Exit status: 0; each request has one line on stdout: done, busy, or why not. */
#include "client.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TTL_MS       10000
#define WAIT_MS      20000
#define REQUESTS_MAX 64
#define NAME_MAX     80

struct request {
    pthread_t thread;
    redlock_t *rl;
    char name[NAME_MAX];
};

static uint32_t queue_max;

static int limit_queue(redlock_config_t *config)
{
    return redlock_config_set_queue_max(config, queue_max);
}

static void answer(const struct request *request, const char *words)
{
    printf("%s: %s\n", request->name, words);
    fflush(stdout);
}

static void *handle(void *userdata)
{
    const struct request *request = userdata;
    redlock_opts_t opts = redlock_opts(TTL_MS);
    redlock_lock_t *lock = NULL;

    opts.wait_ms = WAIT_MS;
    int rc = redlock_acquire(request->rl, request->name, &opts, &lock, NULL);
    if (rc == REDLOCK_OK) {
        /* ... the work ... */
        rc = redlock_release(lock, NULL);
        redlock_lock_free(lock);
        answer(request, rc == REDLOCK_OK ? "done" : redlock_strerror(rc));
    } else {
        answer(request, rc == REDLOCK_EQUEUEFULL ? "busy, try later" : redlock_strerror(rc));
    }
    return NULL;
}

/* A thread for each request; how many wait in vain is bounded by the queue, not by threads. */
static void serve(redlock_t *rl)
{
    static struct request requests[REQUESTS_MAX];
    unsigned count = 0;

    while (count < REQUESTS_MAX && fgets(requests[count].name, NAME_MAX, stdin) != NULL) {
        struct request *request = &requests[count];
        request->rl = rl;
        request->name[strcspn(request->name, "\n")] = '\0';
        if (pthread_create(&request->thread, NULL, handle, request) != 0)
            answer(request, "no thread");
        else
            count++;
    }
    for (unsigned i = 0; i < count; i++)
        pthread_join(requests[i].thread, NULL);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fputs("usage: handler QUEUE_MAX <requests; the nodes come from REDLOCK_SERVERS\n", stderr);
        return EX_USAGE;
    }
    queue_max = (uint32_t)strtoul(argv[1], NULL, 10);
    redlock_t *rl = example_connect(limit_queue);
    if (rl == NULL)
        return EX_CONFIG;
    serve(rl);
    example_leave(rl);
    return 0;
}
