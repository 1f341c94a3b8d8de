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

#define TTL_MS         10000
#define WAIT_MS        20000
#define QUEUE_MAX_MOST 1000000

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t all_done = PTHREAD_COND_INITIALIZER;
static unsigned running;

struct request {
    redlock_t *rl;
    char name[];
};

static uint64_t queue_max;

static int limit_queue(redlock_config_t *config)
{
    return redlock_config_set_queue_max(config, (uint32_t)queue_max);
}

static void answer(const char *name, const char *words)
{
    printf("%s: %s\n", name, words);
    fflush(stdout);
}

static void *handle(void *userdata)
{
    struct request *request = userdata;
    redlock_opts_t opts = redlock_opts(TTL_MS);
    redlock_lock_t *lock = NULL;

    opts.wait_ms = WAIT_MS;
    int rc = redlock_acquire(request->rl, request->name, &opts, &lock, NULL);
    if (rc == REDLOCK_OK) {
        /* ... the work ... */
        rc = redlock_release(lock, NULL);
        redlock_lock_free(lock);
        answer(request->name, rc == REDLOCK_OK ? "done" : redlock_strerror(rc));
    } else {
        answer(request->name, rc == REDLOCK_EQUEUEFULL ? "busy, try later" : redlock_strerror(rc));
    }
    free(request);
    pthread_mutex_lock(&mutex);
    if (--running == 0)
        pthread_cond_signal(&all_done);
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static bool begin(redlock_t *rl, const char *name)
{
    struct request *request = malloc(sizeof *request + strlen(name) + 1);
    pthread_t thread;

    if (request == NULL)
        return false;
    request->rl = rl;
    strcpy(request->name, name);
    pthread_mutex_lock(&mutex);
    running++;
    pthread_mutex_unlock(&mutex);
    if (pthread_create(&thread, NULL, handle, request) == 0) {
        pthread_detach(thread);
        return true;
    }
    free(request);
    pthread_mutex_lock(&mutex);
    running--;
    pthread_mutex_unlock(&mutex);
    return false;
}

/* A thread for each request; how many of them wait for one thing is bounded by the queue. */
static void serve(redlock_t *rl)
{
    char *line = NULL;
    size_t size = 0;

    while (getline(&line, &size, stdin) >= 0) {
        line[strcspn(line, "\n")] = '\0';
        if (!begin(rl, line))
            answer(line, "no thread, try later");
    }
    free(line);
    pthread_mutex_lock(&mutex);
    while (running > 0)
        pthread_cond_wait(&all_done, &mutex);
    pthread_mutex_unlock(&mutex);
}

int main(int argc, char **argv)
{
    if (argc < 2 || !example_number(argv[1], QUEUE_MAX_MOST, &queue_max)) {
        fputs("usage: handler QUEUE_MAX <requests; the nodes come from REDLOCK_SERVERS\n", stderr);
        return EX_USAGE;
    }
    redlock_t *rl = example_connect(limit_queue);
    if (rl == NULL)
        return EX_CONFIG;
    serve(rl);
    example_leave(rl);
    return 0;
}
