/* SPDX-License-Identifier: MIT
 * The library's driver in embedded mode: one thread with a poll loop around the client. The
 * callback that ends a caller's pair starts the next one. */
#include "driver_redlock.h"
#include "waited.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define READY_MS    10000 /* for the client to be ready */
#define SHUTDOWN_MS 5000  /* for the client to shut down */
#define REST_MS     1000  /* longest wait of one turn of the loop */

/* The client and its callers. Lives for all slices. */
struct loop {
    const struct driver_task *task;
    redlock_t *client;
    struct slot *slots;    /* one for each caller; owned */
    uint64_t end_ns;       /* of the current slice */
    unsigned running;      /* callers with an operation in flight */
    int broken;            /* status of the call that made the client unusable; 0: none */
    redlock_stats_t stats; /* the client's, at the end of the last slice */
};

/* One caller. */
struct slot {
    struct loop *loop;
    char resource[160];
    struct driver_note note;   /* the current pair; want_ns 0: no acquisition has been tried */
    uint64_t called_ns;        /* call of release */
    struct driver_notes notes; /* finished pairs of the slice */
};

static void acquired(redlock_t *client, int status, redlock_lock_t *lock,
                     const redlock_report_t *report, void *userdata);

/* Starts an acquisition of the caller, unless the slice has ended. */
static void start(struct slot *slot)
{
    struct loop *loop = slot->loop;
    uint64_t now_ns = result_now_ns();
    if (now_ns >= loop->end_ns)
        return;
    if (slot->note.want_ns == 0)
        slot->note.want_ns = now_ns;
    redlock_opts_t opts = driver_opts(loop->task, now_ns, loop->end_ns);
    int status = redlock_acquire_start(loop->client, slot->resource, &opts, acquired, slot);
    if (status == REDLOCK_OK)
        loop->running++;
    else
        loop->broken = status;
}

/* Records a failed call that began at want_ns. */
static void note_failure(struct slot *slot, uint64_t want_ns, int status)
{
    const struct driver_note note = {
        .want_ns = want_ns, .done_ns = result_now_ns(), .status = status};
    driver_note(&slot->notes, &note);
}

/* Ends the pair of a caller, records it and starts the next one. */
static void released(redlock_t *client, int status, redlock_lock_t *lock,
                     const redlock_report_t *report, void *userdata)
{
    struct slot *slot = userdata;
    (void)client;
    (void)report;
    redlock_lock_free(lock);
    slot->note.done_ns = result_now_ns();
    driver_note(&slot->notes, &slot->note);
    if (status != REDLOCK_OK)
        note_failure(slot, slot->called_ns, status);
    slot->note = (struct driver_note){.want_ns = 0};
    slot->loop->running--;
    start(slot);
}

/* Ends an acquisition: starts the release, or records the failure and starts the next one. */
static void acquired(redlock_t *client, int status, redlock_lock_t *lock,
                     const redlock_report_t *report, void *userdata)
{
    struct slot *slot = userdata;
    (void)client;
    (void)report;
    if (status != REDLOCK_OK) {
        note_failure(slot, slot->note.want_ns,
                     driver_status(slot->loop->task, status, slot->loop->end_ns));
        slot->loop->running--;
        start(slot);
        return;
    }
    slot->note.grant_ns = slot->called_ns = result_now_ns();
    slot->note.release_ns = slot->called_ns;
    status = redlock_release_start(lock, released, slot);
    if (status != REDLOCK_OK) {
        redlock_lock_free(lock);
        slot->loop->broken = status;
        slot->loop->running--;
    }
}

/* Runs the loop once: waits up to timeout_ms and processes what the client has received. Returns 1
 * if `listen` and standard input has data, 0 otherwise. */
static int turn(struct loop *loop, bool listen, int timeout_ms)
{
    struct pollfd items[] = {{.fd = redlock_get_fd(loop->client), .events = POLLIN},
                             {.fd = STDIN_FILENO, .events = POLLIN}};
    if (poll(items, listen ? 2 : 1, timeout_ms) <= 0)
        return 0;
    int status = items[0].revents != 0 ? redlock_process(loop->client) : REDLOCK_OK;
    if (status != REDLOCK_OK)
        loop->broken = status;
    return listen && items[1].revents != 0;
}

/* Runs the loop until an operation has ended. `started` is the status of its start. Returns the
 * status of the operation. */
static int wait_for(struct loop *loop, const struct wait *wait, int started)
{
    while (started == REDLOCK_OK && !wait->done && loop->broken == 0)
        (void)turn(loop, false, REST_MS);
    return started != REDLOCK_OK ? started : wait->status;
}

/* Runs all callers until the end of the slice, and prints their records. */
static void run_slice(struct loop *loop)
{
    for (unsigned i = 0; i < loop->task->count; i++)
        start(&loop->slots[i]);
    while (loop->running > 0 && loop->broken == 0)
        (void)turn(loop, false, REST_MS);
    for (unsigned i = 0; i < loop->task->count; i++) {
        loop->slots[i].note = (struct driver_note){.want_ns = 0};
        driver_print(&loop->slots[i].notes, loop->task->first + i, driver_word);
    }
    driver_sums(loop->task, loop->client, &loop->stats);
    driver_over();
}

/* Waits until the client is ready, runs all slices and shuts the client down. Returns 0, or -1
 * after a line on stderr. */
static int run_all(struct loop *loop)
{
    struct wait ready = {.done = false}, stop = {.done = false};
    int status = wait_for(loop, &ready,
                          redlock_wait_ready_start(loop->client, READY_MS, NULL, waited, &ready));
    if (status == REDLOCK_OK)
        driver_ready();
    while (status == REDLOCK_OK) {
        while (loop->broken == 0 && turn(loop, true, REST_MS) == 0) {
        }
        status = loop->broken;
        if (status != REDLOCK_OK || !driver_next(&loop->end_ns))
            break;
        run_slice(loop);
        status = loop->broken;
    }
    int ended =
        wait_for(loop, &stop, redlock_shutdown_start(loop->client, SHUTDOWN_MS, waited, &stop));
    if (status == REDLOCK_OK)
        status = ended;
    if (status != REDLOCK_OK)
        fprintf(stderr, "redlock-driver: %s\n", redlock_strerror(status));
    return status == REDLOCK_OK ? 0 : -1;
}

/* Runs all slices in one poll loop and shuts the client down. Returns 0, or -1 after a line on
 * stderr; HOLD_US must be 0, because a loop does not sleep. */
int driver_run_embedded(const struct driver_task *task, redlock_t *client)
{
    struct loop loop = {.task = task, .client = client};
    if (task->hold_us != 0) {
        fputs("redlock-driver: embedded: HOLD_US must be 0\n", stderr);
        return -1;
    }
    loop.slots = calloc(task->count, sizeof *loop.slots);
    if (loop.slots == NULL)
        return -1;
    for (unsigned i = 0; i < task->count; i++) {
        loop.slots[i].loop = &loop;
        driver_name(task, i, loop.slots[i].resource, sizeof loop.slots[i].resource);
    }
    int failed = run_all(&loop);
    for (unsigned i = 0; i < task->count; i++)
        free(loop.slots[i].notes.list);
    free(loop.slots);
    return failed;
}
