/* SPDX-License-Identifier: MIT
 * Runs one contender of DRIVER_REDLOCK: the library in its default mode, with blocking calls. */
#include "contended.h"
#include "result.h"

#include <redlock/redlock.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define READY_MS    10000             /* for the client to be ready */
#define SHUTDOWN_MS 3000              /* for the client to shut down */
#define MS_NS       UINT64_C(1000000) /* nanoseconds of a millisecond */

/* Returns the processor time of this process. */
static uint64_t cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* Creates a client and waits until it is ready. NULL on failure. */
static redlock_t *make_client(const struct contender_task *task)
{
    redlock_config_t *config = NULL;
    redlock_t *client = NULL;
    int status = redlock_config_new(&config, NULL);
    if (status == REDLOCK_OK)
        status = redlock_config_add_nodes(config, task->servers);
    if (status == REDLOCK_OK && task->no_notifications)
        status = redlock_config_set_notifications(config, 0);
    if (status == REDLOCK_OK)
        status = redlock_new(&client, config);
    redlock_config_free(config);
    if (status == REDLOCK_OK && redlock_wait_ready(client, READY_MS) != REDLOCK_OK) {
        (void)redlock_free(client);
        client = NULL;
    }
    return client;
}

/* Sleeps while the lock is held. */
static void hold_for(uint64_t us)
{
    const struct timespec time = {.tv_sec = (time_t)(us / 1000000),
                                  .tv_nsec = (long)(us % 1000000 * 1000)};
    if (us != 0)
        (void)nanosleep(&time, NULL);
}

/* Appends a hold to the record, or marks the record as full. */
static void note(struct contender *self, const struct hold *hold)
{
    if (self->count < HOLDS_MAX)
        self->holds[self->count++] = *hold;
    else
        self->full = true;
}

/* Acquires, holds and releases the lock once. Returns false at the end of the measurement. */
static bool one_pair(redlock_t *client, const struct contender_task *task, struct contender *self)
{
    struct hold hold = {.want_ns = result_now_ns(), .contender = task->number};
    uint64_t end_ns = *task->end_ns;
    if (hold.want_ns + MS_NS >= end_ns)
        return false;
    redlock_opts_t opts = redlock_opts(task->ttl_ms);
    redlock_lock_t *lock = NULL;
    opts.wait_ms = (end_ns - hold.want_ns) / MS_NS;
    int status = redlock_acquire(client, task->resource, &opts, &lock, NULL);
    hold.grant_ns = result_now_ns();
    if (status == REDLOCK_OK) {
        uint64_t until_ns = hold.grant_ns + redlock_lock_remaining_ms(lock) * MS_NS;
        hold_for(task->hold_us);
        hold.release_ns = result_now_ns();
        if (hold.release_ns > until_ns)
            hold.release_ns = until_ns;
        status = redlock_release(lock, NULL);
        if (status != REDLOCK_OK)
            fprintf(stderr, "redlock-contended: release: %s\n", redlock_strerror(status));
        self->errors += status != REDLOCK_OK;
        note(self, &hold);
    } else if (status == REDLOCK_ECONTENDED ||
               (status == REDLOCK_ENOQUORUM && hold.grant_ns + 2 * MS_NS >= end_ns)) {
        /* The end of the measurement has cut the wait short. An attempt that began just before the
         * end may not have had time for replies from a majority. */
        self->waiting_ns = hold.want_ns;
    } else {
        fprintf(stderr, "redlock-contended: acquire: %s\n", redlock_strerror(status));
        self->errors++;
    }
    redlock_lock_free(lock);
    return true;
}

/* Connects, reports that on task->ready, waits for the start signal, and runs pairs until
 * *task->end_ns. Writes all that happened to `self`. */
void contender_work(const struct contender_task *task, struct contender *self)
{
    redlock_t *client = make_client(task);
    redlock_stats_t stats = {.acquired = 0};
    char byte = client != NULL ? 'r' : 'x';
    self->failed = client == NULL;
    if (write(task->ready, &byte, 1) != 1 || client == NULL || read(task->go, &byte, 1) != 0)
        return;
    uint64_t before_ns = cpu_ns();
    while (one_pair(client, task, self)) {
    }
    self->cpu_ns = cpu_ns() - before_ns;
    if (redlock_get_stats(client, &stats, sizeof stats) == REDLOCK_OK) {
        self->acquired = stats.acquired;
        self->attempts = stats.attempts;
        self->split_votes = stats.split_votes;
    }
    for (size_t i = 0; i < redlock_node_count(client); i++) {
        redlock_node_stats_t node;
        if (redlock_get_node_stats(client, i, &node, sizeof node) != REDLOCK_OK)
            continue;
        self->requests += node.requests;
        self->notifications += node.notifications;
    }
    if (redlock_shutdown(client, SHUTDOWN_MS) != REDLOCK_OK)
        self->errors++;
    (void)redlock_free(client);
}
