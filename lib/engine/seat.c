/* SPDX-License-Identifier: MIT
 * Who begins, who waits, who may pass. */
#include "engine/seat.h"

#include "core/patience.h"
#include "engine/engine.h"
#include "redlock/redlock.h"

static struct rl_seat *seat_at(const struct rl_lock *lock, unsigned at)
{
    return at == 0 ? (struct rl_seat *)&lock->seat : &lock->more_seats[at - 1];
}

static struct rl_place *place_at(const struct rl_lock *lock, unsigned at)
{
    return seat_at(lock, at)->place;
}

static void give_up_seats(struct rl_engine *engine, struct rl_lock *lock)
{
    rl_free(engine->mem, lock->more_seats);
    lock->more_seats = NULL;
    lock->more = 0;
    lock->seat.place = NULL;
    lock->lease.contest = NULL;
}

/* false: no memory, and no seat. */
static bool find_places(struct rl_engine *engine, struct rl_lock *lock, const struct rl_arg *keys,
                        unsigned count)
{
    lock->more = (uint8_t)(count - 1);
    if (lock->more != 0)
        lock->more_seats = rl_alloc(engine->mem, lock->more * sizeof *lock->more_seats);
    bool found = lock->more == 0 || lock->more_seats != NULL;
    unsigned at = 0;
    for (; found && at < count; at++) {
        struct rl_seat *seat = seat_at(lock, at);
        seat->lock = lock;
        seat->place = rl_place_enter(engine, keys[at]);
        found = seat->place != NULL;
    }
    if (found)
        return true;
    while (at-- > 0) {
        if (place_at(lock, at) != NULL)
            rl_place_leave(engine, place_at(lock, at));
    }
    give_up_seats(engine, lock);
    return false;
}

static bool is_full(const struct rl_engine *engine, const struct rl_lock *lock)
{
    uint32_t queue_max = engine->params.queue_max;
    bool full = false;

    for (unsigned i = 0; queue_max != 0 && i <= lock->more; i++)
        full = full || place_at(lock, i)->queued >= queue_max;
    return full;
}

static bool is_idle(const struct rl_place *place)
{
    return place->front == NULL && place->queue_first == NULL;
}

int rl_seats_enter(struct rl_engine *engine, struct rl_lock *lock, const struct rl_arg *keys,
                   unsigned count)
{
    bool never_waits = lock->lease.wait_ns == 0, idle = true;

    if (!find_places(engine, lock, keys, count))
        return REDLOCK_OK; /* no memory for good manners */
    lock->lease.contest = &lock->seat.place->contest;
    for (unsigned i = 0; i <= lock->more; i++)
        idle = idle && is_idle(place_at(lock, i));
    for (unsigned i = 0; i <= lock->more && (idle || never_waits); i++) {
        if (is_idle(place_at(lock, i)))
            place_at(lock, i)->front = lock;
    }
    if (idle || never_waits)
        return REDLOCK_OK;
    if (is_full(engine, lock)) {
        rl_seats_leave(engine, lock);
        engine->stats.queue_full++;
        return REDLOCK_EQUEUEFULL;
    }
    lock->queued = true;
    for (unsigned i = 0; i <= lock->more; i++)
        rl_place_queue(engine, seat_at(lock, i));
    return REDLOCK_OK;
}

bool rl_seats_in_front(const struct rl_lock *lock)
{
    for (unsigned i = 0; i <= lock->more; i++) {
        if (place_at(lock, i) == NULL || place_at(lock, i)->front != lock)
            return false;
    }
    return true;
}

/* Whoever waits for this place and others cannot begin now, and may let others pass there. */
static void look_again(struct rl_engine *engine, const struct rl_place *place)
{
    unsigned left = place->queued_many;

    for (struct rl_seat *seat = place->queue_first; left > 0 && seat != NULL; seat = seat->next) {
        if (seat->lock->more == 0)
            continue;
        rl_seats_review(engine, seat->lock);
        left--;
    }
}

void rl_seats_take(struct rl_engine *engine, struct rl_lock *lock)
{
    for (unsigned i = 0; i <= lock->more; i++) {
        struct rl_place *place = place_at(lock, i);
        if (place == NULL || place->front != NULL)
            continue;
        place->front = lock;
        look_again(engine, place);
    }
}

void rl_seats_pass(struct rl_engine *engine, struct rl_lock *lock)
{
    for (unsigned i = 0; i <= lock->more; i++) {
        if (place_at(lock, i) != NULL)
            rl_place_pass(engine, place_at(lock, i), lock);
    }
}

void rl_seats_nudge(struct rl_engine *engine, const struct rl_lock *lock)
{
    for (unsigned i = 0; i <= lock->more; i++) {
        struct rl_place *place = place_at(lock, i);
        if (place != NULL && place->front != lock)
            rl_place_nudge(engine, place, rl_lease_slot(&lock->lease));
    }
}

static void leave_queues(struct rl_engine *engine, struct rl_lock *lock)
{
    for (unsigned i = 0; lock->queued && i <= lock->more; i++)
        rl_place_unqueue(engine, seat_at(lock, i));
    lock->queued = false;
}

void rl_seats_leave(struct rl_engine *engine, struct rl_lock *lock)
{
    if (lock->seat.place == NULL)
        return;
    leave_queues(engine, lock);
    rl_seats_pass(engine, lock);
    for (unsigned i = 0; i <= lock->more; i++)
        rl_place_leave(engine, place_at(lock, i));
    give_up_seats(engine, lock);
}

void rl_seats_review(struct rl_engine *engine, struct rl_lock *lock)
{
    for (unsigned i = 0; lock->queued && i <= lock->more; i++)
        rl_place_look(engine, place_at(lock, i));
}

void rl_seats_abandon(struct rl_engine *engine, struct rl_lock *lock)
{
    give_up_seats(engine, lock);
}

struct rl_lock *rl_seats_rival(const struct rl_lock *lock)
{
    for (unsigned i = 0; i <= lock->more; i++) {
        if (place_at(lock, i) != NULL && place_at(lock, i)->front != NULL)
            return place_at(lock, i)->front;
    }
    return NULL;
}

struct rl_place *rl_seats_watched(const struct rl_lock *lock)
{
    return place_at(lock, lock->lease.wait.key);
}

static bool are_free(const struct rl_lock *lock)
{
    bool are = true;

    for (unsigned i = 0; are && i <= lock->more; i++)
        are = place_at(lock, i)->front == NULL;
    return are;
}

/* It cannot begin, and does not keep what it could have. */
static bool lets_pass(const struct rl_engine *engine, const struct rl_lock *lock)
{
    return lock->more != 0 && !are_free(lock) &&
           !rl_patience_keeps(rl_elapsed_ns(lock->lease.begun, engine->view.now));
}

static bool is_next(const struct rl_engine *engine, const struct rl_lock *lock)
{
    if (!are_free(lock))
        return false;
    for (unsigned i = 0; i <= lock->more; i++) {
        const struct rl_seat *before = seat_at(lock, i)->prev;
        for (; before != NULL; before = before->prev) {
            if (!lets_pass(engine, before->lock))
                return false;
        }
    }
    return true;
}

struct rl_lock *rl_seats_next(struct rl_engine *engine, struct rl_place *place)
{
    struct rl_seat *seat = place->queue_first;

    while (seat != NULL && !is_next(engine, seat->lock)) {
        if (!lets_pass(engine, seat->lock))
            return NULL;
        seat = seat->next;
    }
    if (seat == NULL)
        return NULL;
    struct rl_lock *lock = seat->lock;
    leave_queues(engine, lock);
    rl_seats_take(engine, lock);
    return lock;
}
