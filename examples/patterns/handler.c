/* SPDX-License-Identifier: MIT
 * handler QUEUE_MAX: a request handler. Each line on stdin names an object to work on, which is
 * locked meanwhile. If the client's queue for an object is full, a request fails at once ("busy,
 * try later"), so that threads and timeouts do not pile up.
 *
 * Exit status: 0. Each request prints one line on stdout: done, busy, or the error. */
#include "client.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TTL_MS         10000   /* of each lock */
#define WAIT_MS        20000   /* longest wait of a request for its lock */
#define QUEUE_MAX_MOST 1000000 /* largest QUEUE_MAX that is accepted */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;  /* protects `running` */
static pthread_cond_t all_done = PTHREAD_COND_INITIALIZER; /* signalled when `running` is 0 */
static unsigned running; /* requests in progress; protected by `mutex` */

/* One request; its thread owns it. */
struct request {
    redlock_t *rl;
    char name[]; /* of the object */
};

static uint64_t queue_max; /* acquisitions that may wait for one object */

/* Limits the queue of each resource in this client to `queue_max`. Returns REDLOCK_OK or an error.
 */
static int limit_queue(redlock_config_t *config)
{
    return redlock_config_set_queue_max(config, (uint32_t)queue_max);
}

/* Prints the result of a request. */
static void answer(const char *name, const char *words)
{
    printf("%s: %s\n", name, words);
    fflush(stdout);
}

/* Handles one request in a thread of its own. */
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

/* Starts the thread of a request. Returns false if that fails. */
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

/* Handles each line of stdin in a thread of its own. The client's queue bounds how many threads
 * wait for one object. Returns when all requests have ended. */
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

/* Parses the arguments, handles all requests and returns the exit status. */
int main(int argc, char **argv)
{
    if (argc < 2 || !example_number(argv[1], QUEUE_MAX_MOST, &queue_max)) {
        fputs("usage: handler QUEUE_MAX <requests; the servers come from REDLOCK_SERVERS\n",
              stderr);
        return EX_USAGE;
    }
    redlock_t *rl = example_connect(limit_queue);
    if (rl == NULL)
        return EX_CONFIG;
    serve(rl);
    example_leave(rl);
    return 0;
}
