/* SPDX-License-Identifier: MIT
 * One embedded client with many operations in flight. Each slot has one lock, which it acquires,
 * extends and releases independently of the others, from inside and outside of callbacks. Some
 * acquisitions are canceled. */
#include "leftover_keys.h"

#include <stdlib.h>

#define SLOTS 10

/* What a slot does. BUSY: its lock is being extended, released or freed. */
enum slot_state { IDLE, ACQUIRING, HOLDING, BUSY };

/* One of the locks of the client. */
struct slot {
    struct embedded *all;
    enum slot_state state;
    unsigned resource;
    uint64_t budget_ms;       /* wait budget of the acquisition */
    redlock_lock_t *lock;     /* NULL: not held */
    redlock_cancel_t *cancel; /* of the acquisition; NULL: idle */
};

/* The client and its slots. */
struct embedded {
    redlock_t *client;
    uint64_t random;    /* state of the random numbers */
    unsigned in_flight; /* operations whose callback has not run */
    struct slot slot[SLOTS];
};

static void start_next(struct slot *slot);

/* Counts one operation of the embedded client. */
static void count_operation(void)
{
    atomic_fetch_add(&leftovers->operations, 1);
    count_one(EMBEDDED);
}

/* Frees the objects of the slot. A lock that is still held is then released by the library in the
 * background, because its handle is freed. */
static void become_idle(struct slot *slot)
{
    redlock_lock_free(slot->lock);
    slot->lock = NULL;
    redlock_cancel_free(slot->cancel);
    slot->cancel = NULL;
    slot->state = IDLE;
}

/* Callback of a release: makes the slot idle. */
static void on_released(redlock_t *rl, int status, redlock_lock_t *lock,
                        const redlock_report_t *report, void *userdata)
{
    struct slot *slot = userdata;
    (void)rl;
    (void)lock;
    (void)report;
    slot->all->in_flight--;
    count_one(status == REDLOCK_OK ? RELEASED : RELEASE_UNSURE);
    become_idle(slot);
}

/* Callback of an extension: the slot holds its lock again, also after a failed extension. */
static void on_extended(redlock_t *rl, int status, redlock_lock_t *lock,
                        const redlock_report_t *report, void *userdata)
{
    struct slot *slot = userdata;
    (void)rl;
    (void)lock;
    (void)report;
    slot->all->in_flight--;
    if (status == REDLOCK_OK)
        count_one(EXTENDED);
    slot->state = HOLDING;
}

/* Callback of an acquisition: the slot becomes idle after a failure. Otherwise it holds the
 * lock, and in one of three cases starts its next operation from within the callback. */
static void on_acquired(redlock_t *rl, int status, redlock_lock_t *lock,
                        const redlock_report_t *report, void *userdata)
{
    struct slot *slot = userdata;
    (void)rl;
    (void)report;
    slot->all->in_flight--;
    count_acquire(status, slot->budget_ms);
    if (status != REDLOCK_OK) {
        become_idle(slot);
        return;
    }
    slot->lock = lock;
    slot->state = HOLDING;
    enter(slot->resource);
    if (draw(&slot->all->random, 3) == 0)
        start_next(slot); /* inside of this callback */
}

/* Starts an acquisition of a random resource. */
static void start_acquire(struct slot *slot)
{
    static const uint64_t budgets_ms[] = {0, 1, 1, 10, 60};
    struct embedded *all = slot->all;
    redlock_opts_t opts = redlock_opts(KEEP_TTL_MS);
    slot->resource = draw(&all->random, RESOURCES);
    slot->budget_ms = opts.wait_ms = budgets_ms[draw(&all->random, 5)];
    if (redlock_cancel_new(&slot->cancel, all->client) != REDLOCK_OK)
        abort();
    opts.cancel = slot->cancel;
    slot->state = ACQUIRING;
    all->in_flight++;
    if (redlock_acquire_start(all->client, resource_name(slot->resource), &opts, on_acquired,
                              slot) != REDLOCK_OK)
        abort();
}

/* Ends the lock of a slot: starts a release, or only frees the handle, after which the library
 * releases the lock in the background. */
static void end_lock(struct slot *slot)
{
    struct embedded *all = slot->all;
    int status = REDLOCK_OK;
    leave(slot->resource);
    slot->state = BUSY;
    switch (draw(&all->random, 4)) {
    case 0:
        count_one(FREED_HELD);
        become_idle(slot);
        return;
    case 1:
        count_one(RELEASED_AFTER);
        status =
            redlock_release_after_start(slot->lock, 1 + draw(&all->random, 40), on_released, slot);
        break;
    default:
        status = redlock_release_start(slot->lock, on_released, slot);
        break;
    }
    if (status == REDLOCK_OK)
        all->in_flight++;
    else
        become_idle(slot); /* the lock was lost */
}

/* Starts the next operation of a slot that holds a lock: extends the lock or ends it. */
static void start_next(struct slot *slot)
{
    count_operation();
    if (draw(&slot->all->random, 3) != 0) {
        end_lock(slot);
        return;
    }
    if (redlock_extend_start(slot->lock, 0, on_extended, slot) != REDLOCK_OK) {
        end_lock(slot);
        return;
    }
    slot->state = BUSY;
    slot->all->in_flight++;
}

/* Lets the slot do its next step at random: acquire when idle, go on when holding, cancel an
 * acquisition in flight. Does nothing while the slot is BUSY. */
static void advance(struct embedded *all, struct slot *slot)
{
    if (slot->state == IDLE) {
        count_operation();
        start_acquire(slot);
    } else if (slot->state == HOLDING && draw(&all->random, 2) == 0) {
        start_next(slot);
    } else if (slot->state == ACQUIRING && draw(&all->random, 40) == 0) {
        redlock_cancel_trigger(slot->cancel);
    }
}

/* Callback of the shutdown, the last operation in flight. */
static void on_shut_down(redlock_t *rl, int status, redlock_lock_t *lock,
                         const redlock_report_t *report, void *userdata)
{
    struct embedded *all = userdata;
    (void)rl;
    (void)status;
    (void)lock;
    (void)report;
    all->in_flight--;
}

/* Ends all locks, shuts the client down and frees it. */
static void finish(struct embedded *all)
{
    if (!LOOP_UNTIL(all->client, all->in_flight == 0, TIME_LIMIT_MS))
        abort();
    for (unsigned i = 0; i < SLOTS; i++) {
        if (all->slot[i].state == HOLDING)
            end_lock(&all->slot[i]);
    }
    if (!LOOP_UNTIL(all->client, all->in_flight == 0, TIME_LIMIT_MS))
        abort();
    await_servers(all->client);
    all->in_flight = 1;
    if (redlock_shutdown_start(all->client, wait_scaled_ms(TIME_LIMIT_MS), on_shut_down, all) !=
        REDLOCK_OK)
        abort();
    if (!LOOP_UNTIL(all->client, all->in_flight == 0, 2 * TIME_LIMIT_MS))
        abort();
    count_client(all->client);
    redlock_free(all->client);
}

/* Thread function: runs one embedded client with many operations in flight until `stop`, then
 * ends it. `userdata` are the addresses of the nodes. */
void *run_embedded(void *userdata)
{
    const char *urls = userdata;
    struct embedded *all = calloc(1, sizeof *all);
    if (all == NULL)
        abort();
    all->client = leftovers_client(urls, REDLOCK_MODE_EMBEDDED, "embedded");
    all->random = random_of(100);
    for (unsigned i = 0; i < SLOTS; i++)
        all->slot[i].all = all;
    while (!atomic_load(&leftovers->stop)) {
        advance(all, &all->slot[draw(&all->random, SLOTS)]);
        live_turn(all->client, 1);
    }
    finish(all);
    free(all);
    return NULL;
}
