/* SPDX-License-Identifier: MIT
 * One thread with its own loop and several locks in flight. */
#include <poll.h>
#include <stdlib.h>

#include "wait.h"
#include "worker.h"

#define SLOTS_MAX 8 /* largest number of locks in flight */
#define POLL_MS   2 /* length of a turn of the loop without events */

/* What a slot does: nothing; waits for its acquisition; holds the lock; waits for its extension;
 * waits for its release. */
enum state { IDLE, CALLED, HELD, EXTENDING, ENDING };

/* One of the locks in flight. */
struct slot {
    enum state state;
    unsigned idle;    /* number of turns of the loop until the next acquisition */
    uint64_t random;  /* state of draw() */
    struct turn turn; /* of the lock; valid unless IDLE */
};

/* Records the end of an acquisition: the slot holds the lock, or is idle for a while. */
static void on_acquired(redlock_t *client, int status, redlock_lock_t *lock,
                        const redlock_report_t *report, void *userdata)
{
    struct slot *slot = userdata;
    (void)client;
    (void)report;
    turn_begin(&slot->turn, status, lock);
    slot->state = lock != NULL ? HELD : IDLE;
    slot->idle = draw(&slot->random, 20);
}

/* Records the end of an extension: the slot goes on holding, whatever the status. */
static void on_extended(redlock_t *client, int status, redlock_lock_t *lock,
                        const redlock_report_t *report, void *userdata)
{
    struct slot *slot = userdata;
    (void)client;
    (void)status;
    (void)lock;
    (void)report;
    slot->state = HELD;
}

/* Frees the handle after a release; the slot is idle for a while. */
static void on_released(redlock_t *client, int status, redlock_lock_t *lock,
                        const redlock_report_t *report, void *userdata)
{
    struct slot *slot = userdata;
    (void)client;
    (void)status;
    (void)report;
    redlock_lock_free(lock);
    slot->state = IDLE;
    slot->idle = draw(&slot->random, 20);
}

/* Logs the end of a turn, and releases the lock or only frees its handle. */
static void end_turn(struct slot *slot)
{
    turn_log_end(&slot->turn);
    if (!slot->turn.drop &&
        redlock_release_start(slot->turn.lock, on_released, slot) == REDLOCK_OK) {
        slot->state = ENDING;
        return;
    }
    redlock_lock_free(slot->turn.lock);
    slot->state = IDLE;
}

/* Checks a held lock: ends its turn when that has ended or the lock is lost, and extends it once if
 * chosen. */
static void check_held(struct slot *slot)
{
    struct turn *turn = &slot->turn;
    if (!turn_continue(turn)) {
        end_turn(slot);
    } else if (turn->extend && !turn->extended &&
               redlock_lock_remaining_ms(turn->lock) < turn->opts.ttl_ms * 2 / 3) {
        turn->extended = true;
        if (redlock_extend_start(turn->lock, 0, on_extended, slot) == REDLOCK_OK)
            slot->state = EXTENDING;
    }
}

/* Does what is due for the slot in this turn of the loop. */
static void step(redlock_t *client, struct slot *slot)
{
    if (slot->state == HELD) {
        check_held(slot);
    } else if (slot->state == IDLE && slot->idle > 0) {
        slot->idle--;
    } else if (slot->state == IDLE && !atomic_load(&world.stop)) {
        turn_choose(&slot->turn, &slot->random);
        slot->state = CALLED;
        if (redlock_acquire_start(client, slot->turn.workload.resource, &slot->turn.opts,
                                  on_acquired, slot) != REDLOCK_OK)
            exit(70);
    }
}

/* Runs `slots` locks in flight in one loop until world.stop is set and all have ended. */
void work_embedded(redlock_t *client, unsigned slots)
{
    struct slot slot[SLOTS_MAX] = {{.state = IDLE}};
    struct pollfd ready = {.fd = redlock_get_fd(client), .events = POLLIN};
    unsigned busy = 1;
    for (unsigned i = 0; i < slots; i++)
        slot[i].random = random_of(i);
    while (busy > 0 || !atomic_load(&world.stop)) {
        busy = 0;
        for (unsigned i = 0; i < slots; i++) {
            step(client, &slot[i]);
            busy += slot[i].state != IDLE;
        }
        poll(&ready, 1, POLL_MS);
        redlock_process(client);
    }
}
