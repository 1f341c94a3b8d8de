/* SPDX-License-Identifier: MIT
 * The library as a driver, through its public interface: redlock-driver MODE, then the arguments of
 * all drivers. Mode "threads": callers that block, with one client for all of them. Mode
 * "embedded": see driver_embedded.c. */
#include "driver_redlock.h"
#include "client.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define READY_MS    10000 /* for the client to be ready */
#define SHUTDOWN_MS 5000  /* for the client to shut down */
/* Longest wait of an acquisition without contenders: a busy machine may delay replies. */
#define UNCONTENDED_MS 1000

/* One thread of mode "threads". */
struct caller {
    const struct driver_task *task;
    redlock_t *client; /* shared by all callers */
    char resource[160];
    unsigned number;           /* of the caller, in all processes */
    uint64_t end_ns;           /* of the slice */
    pthread_t thread;          /* lives for one slice */
    struct driver_notes notes; /* owned */
};

/* Returns the options of an acquisition: with contenders it waits until end_ns, without them for
 * UNCONTENDED_MS. */
redlock_opts_t driver_opts(const struct driver_task *task, uint64_t now_ns, uint64_t end_ns)
{
    redlock_opts_t opts = redlock_opts(task->ttl_ms);
    opts.wait_ms = task->own ? UNCONTENDED_MS : now_ns >= end_ns ? 0 : (end_ns - now_ns) / MS_NS;
    return opts;
}

/* Returns the status to record for an acquisition that failed with `status`. */
int driver_status(const struct driver_task *task, int status, uint64_t end_ns)
{
    /* The end of the slice has cut the wait short. An attempt that began just before the end may
     * not have had time for replies from a majority. */
    if (!task->own && status == REDLOCK_ENOQUORUM && result_now_ns() + 2 * MS_NS >= end_ns)
        return REDLOCK_ECONTENDED;
    return status;
}

/* Returns "taken" for REDLOCK_ECONTENDED, otherwise "error NAME" in a static buffer. */
const char *driver_word(int status)
{
    static char text[64];
    if (status == REDLOCK_ECONTENDED)
        return "taken";
    snprintf(text, sizeof text, "error %s", redlock_error_name(status));
    return text;
}

/* Prints the line "sums" with the client's counts since `before`, and stores the present ones
 * there. */
void driver_sums(const struct driver_task *task, redlock_t *client, redlock_stats_t *before)
{
    redlock_stats_t now;
    if (redlock_get_stats(client, &now, sizeof now) != REDLOCK_OK)
        return;
    printf("sums %u %" PRIu64 " %" PRIu64 " %" PRIu64 " 0\n", task->first,
           now.acquired - before->acquired, now.attempts - before->attempts,
           now.split_votes - before->split_votes);
    *before = now;
}

/* Sleeps while the lock is held. */
static void hold_for(uint64_t us)
{
    const struct timespec time = {.tv_sec = (time_t)(us / 1000000),
                                  .tv_nsec = (long)(us % 1000000 * 1000)};
    if (us != 0)
        (void)nanosleep(&time, NULL);
}

/* Acquires, holds and releases the lock once, and records it. Returns true if the lock was
 * acquired. */
static bool one_pair(struct caller *caller, uint64_t want_ns)
{
    struct driver_note note = {.want_ns = want_ns};
    redlock_lock_t *lock = NULL;
    redlock_opts_t opts = driver_opts(caller->task, result_now_ns(), caller->end_ns);
    int status = redlock_acquire(caller->client, caller->resource, &opts, &lock, NULL);
    note.grant_ns = result_now_ns();
    if (status != REDLOCK_OK) {
        note.status = driver_status(caller->task, status, caller->end_ns);
        note.done_ns = note.grant_ns;
        driver_note(&caller->notes, &note);
        return false;
    }
    uint64_t until_ns = note.grant_ns + redlock_lock_remaining_ms(lock) * MS_NS;
    hold_for(caller->task->hold_us);
    uint64_t called_ns = result_now_ns();
    note.release_ns = called_ns < until_ns ? called_ns : until_ns;
    status = redlock_release(lock, NULL);
    note.done_ns = result_now_ns();
    redlock_lock_free(lock);
    driver_note(&caller->notes, &note);
    if (status != REDLOCK_OK)
        driver_note(
            &caller->notes,
            &(struct driver_note){.want_ns = called_ns, .done_ns = note.done_ns, .status = status});
    return true;
}

/* Runs one caller until the end of the slice. */
static void *work(void *argument)
{
    struct caller *caller = argument;
    uint64_t want_ns = 0, now_ns;
    while ((now_ns = result_now_ns()) < caller->end_ns) {
        want_ns = want_ns == 0 ? now_ns : want_ns;
        if (one_pair(caller, want_ns))
            want_ns = 0;
    }
    return NULL;
}

/* Runs all slices with a thread for each caller. Returns 0 or -1. */
static int run_threads(const struct driver_task *task, redlock_t *client)
{
    struct caller *callers = calloc(task->count, sizeof *callers);
    redlock_stats_t stats = {.attempts = 0};
    uint64_t end_ns;
    if (callers == NULL || redlock_wait_ready(client, READY_MS) != REDLOCK_OK) {
        free(callers);
        return -1;
    }
    driver_ready();
    while (driver_next(&end_ns)) {
        for (unsigned i = 0; i < task->count; i++) {
            struct caller *caller = &callers[i];
            caller->task = task;
            caller->client = client;
            caller->number = task->first + i;
            caller->end_ns = end_ns;
            driver_name(task, i, caller->resource, sizeof caller->resource);
            if (pthread_create(&caller->thread, NULL, work, caller) != 0)
                abort();
        }
        for (unsigned i = 0; i < task->count; i++)
            (void)pthread_join(callers[i].thread, NULL);
        for (unsigned i = 0; i < task->count; i++)
            driver_print(&callers[i].notes, callers[i].number, driver_word);
        driver_sums(task, client, &stats);
        driver_over();
    }
    for (unsigned i = 0; i < task->count; i++)
        free(callers[i].notes.list);
    free(callers);
    return redlock_shutdown(client, SHUTDOWN_MS) == REDLOCK_OK ? 0 : -1;
}

/* Parses the arguments, opens the client and runs the mode. Exit codes: 0 success, 64 wrong
 * arguments, 69 a server or the client failed. */
int main(int argc, char **argv)
{
    struct driver_task task;
    bool embedded = argc > 1 && strcmp(argv[1], "embedded") == 0;
    if (argc < 3 || (!embedded && strcmp(argv[1], "threads") != 0) ||
        !driver_parse(&task, argc - 2, argv + 2)) {
        fputs("usage: redlock-driver embedded|threads SERVERS RESOURCE TTL_MS HOLD_US FIRST COUNT"
              " [own]\n",
              stderr);
        return 64;
    }
    char error[256];
    redlock_t *client =
        client_new(&(struct client_settings){.servers = task.servers},
                   embedded ? REDLOCK_MODE_EMBEDDED : REDLOCK_MODE_THREADED, error, sizeof error);
    if (client == NULL) {
        fprintf(stderr, "redlock-driver: %s\n", error);
        return 64;
    }
    int failed = embedded ? driver_run_embedded(&task, client) : run_threads(&task, client);
    (void)redlock_free(client);
    return failed == 0 ? 0 : 69;
}
