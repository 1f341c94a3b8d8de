/* SPDX-License-Identifier: MIT
 * The seats of a lock: its places in the queues of its resources, one for each. It takes all of
 * them in one step, so that any two locks meet in the same order everywhere; it begins when all its
 * resources are free at once, and keeps what others wait for only for a while (core/patience.h). */
#ifndef RL_ENGINE_SEAT_H
#define RL_ENGINE_SEAT_H

#include "core/wire.h"

struct rl_engine;
struct rl_lock;
struct rl_place;

struct rl_seat {
    struct rl_lock *lock;
    struct rl_place *place;      /* NULL: none */
    struct rl_seat *next, *prev; /* in the queue of the place */
};

/* At its resources, in front or in the queue; sets lock->queued. 0, or EQUEUEFULL: no seat was
 * taken. Without memory the lock has none, and does without. */
int rl_seats_enter(struct rl_engine *engine, struct rl_lock *lock, const struct rl_arg *keys,
                   unsigned count);
/* In front at all of its resources. */
bool rl_seats_in_front(const struct rl_lock *lock);
/* The lock is held: where nobody is in front, it is. */
void rl_seats_take(struct rl_engine *engine, struct rl_lock *lock);
/* It is not in front any more, but has not ended. */
void rl_seats_pass(struct rl_engine *engine, struct rl_lock *lock);
/* It lets go: no server will tell those in front of it what we do ourselves. */
void rl_seats_nudge(struct rl_engine *engine, const struct rl_lock *lock);
/* It is over. */
void rl_seats_leave(struct rl_engine *engine, struct rl_lock *lock);
/* Time has passed: whom does it let pass now? */
void rl_seats_review(struct rl_engine *engine, struct rl_lock *lock);
/* Frees what is left of them; in a forked child. */
void rl_seats_abandon(struct rl_engine *engine, struct rl_lock *lock);
/* Where the key is that it has asked a node about. */
struct rl_place *rl_seats_watched(const struct rl_lock *lock);
/* A lock in front at one of its resources, or NULL. */
struct rl_lock *rl_seats_rival(const struct rl_lock *lock);

/* place.c: the lock whose turn it is at a place where nobody is in front; it is in front of all its
 * resources then, and out of the queues. NULL: none. */
struct rl_lock *rl_seats_next(struct rl_engine *engine, struct rl_place *place);

#endif
