/* SPDX-License-Identifier: MIT
 * A client of a chaos run: acquires and releases locks until SIGTERM, and logs which locks it
 * believes to hold.
 *
 *     chaos-client MODE NAME LOG SEED MAX_TTL_MS plain|fenced URLS */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "history.h"
#include "worker.h"

#define THREADS     3    /* number of threads with blocking calls */
#define SLOTS       4    /* number of locks in flight of an embedded client */
#define SHUTDOWN_MS 5000 /* time limit of the shutdown */

/* Handles SIGTERM: no new locks from now on. */
static void on_signal(int number)
{
    (void)number;
    atomic_store(&world.stop, true);
}

/* Sets the flag `userdata` when the shutdown has ended. */
static void on_shut_down(redlock_t *client, int status, redlock_lock_t *lock,
                         const redlock_report_t *report, void *userdata)
{
    (void)client;
    (void)status;
    (void)lock;
    (void)report;
    *(bool *)userdata = true;
}

/* Shuts the client down. An embedded client runs its loop meanwhile. */
static void shut_down(redlock_t *client, int mode)
{
    bool done = false;
    if (mode != REDLOCK_MODE_EMBEDDED) {
        redlock_shutdown(client, SHUTDOWN_MS);
        return;
    }
    struct pollfd ready = {.fd = redlock_get_fd(client), .events = POLLIN};
    if (redlock_shutdown_start(client, SHUTDOWN_MS, on_shut_down, &done) != REDLOCK_OK)
        exit(70);
    while (!done) {
        poll(&ready, 1, 50);
        redlock_process(client);
    }
}

/* Returns the REDLOCK_MODE_* for the argument threaded, embedded or hybrid. */
static int mode_of(const char *word)
{
    if (strcmp(word, "threaded") == 0)
        return REDLOCK_MODE_THREADED;
    return strcmp(word, "embedded") == 0 ? REDLOCK_MODE_EMBEDDED : REDLOCK_MODE_HYBRID;
}

int main(int argc, char **argv)
{
    const struct sigaction action = {.sa_handler = on_signal};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (argc != 8 || !history_open(argv[3]))
        return 64;
    world.name = argv[2];
    world.seed = strtoull(argv[4], NULL, 10);
    world.max_ttl_ms = strtoull(argv[5], NULL, 10);
    world.fences = strcmp(argv[6], "fenced") == 0;
    world.urls = argv[7];
    sigaction(SIGTERM, &action, NULL);
    const int mode = mode_of(argv[1]);
    redlock_t *client = worker_client(mode);
    if (mode == REDLOCK_MODE_EMBEDDED)
        work_embedded(client, SLOTS);
    else
        work_blocking(client, THREADS, mode == REDLOCK_MODE_HYBRID);
    shut_down(client, mode);
    return redlock_free(client) == REDLOCK_OK ? 0 : 70;
}
