/* SPDX-License-Identifier: MIT
 * The seats of a lock: its places in the queues of its resources, one for each. It takes all of
 * them in one step, so that any two locks meet in the same order everywhere; it begins when all its
 * resources are free at once, and keeps what others wait for only for a while (core/reservation.h).
 */
#ifndef RL_ENGINE_QUEUE_H
#define RL_ENGINE_QUEUE_H

#include "core/wire.h"

struct rl_engine;
struct rl_lock;
struct rl_resource;

struct rl_queue_entry {
    struct rl_lock *lock;
    struct rl_resource *resource;       /* NULL: none */
    struct rl_queue_entry *next, *prev; /* in the queue of the place */
};

/* At its resources, in front or in the queue; sets lock->queued. 0, or EQUEUEFULL: no seat was
 * taken. Without memory the lock has none, and does without. */
int rl_queue_enter(struct rl_engine *engine, struct rl_lock *lock, const struct rl_arg *keys,
                   unsigned count);
/* In front at all of its resources. */
bool rl_queue_is_in_front(const struct rl_lock *lock);
/* The lock is held: where nobody is in front, it is. */
void rl_queue_move_to_front(struct rl_engine *engine, struct rl_lock *lock);
/* It is not in front any more, but has not ended. */
void rl_queue_pass(struct rl_engine *engine, struct rl_lock *lock);
/* It lets go: no server will tell those in front of it what we do ourselves. */
void rl_queue_note_release(struct rl_engine *engine, const struct rl_lock *lock);
/* It is over. */
void rl_queue_leave(struct rl_engine *engine, struct rl_lock *lock);
/* Time has passed: whom does it let pass now? */
void rl_queue_review(struct rl_engine *engine, struct rl_lock *lock);
/* Frees what is left of them; in a forked child. */
void rl_queue_abandon(struct rl_engine *engine, struct rl_lock *lock);
/* Where the key is that it has asked a node about. */
struct rl_resource *rl_queue_probed(const struct rl_lock *lock);
/* A lock in front at one of its resources, or NULL. */
struct rl_lock *rl_queue_rival(const struct rl_lock *lock);

/* resource.c: the lock whose turn it is at a place where nobody is in front; it is in front of all
 * its resources then, and out of the queues. NULL: none. */
struct rl_lock *rl_queue_next(struct rl_engine *engine, struct rl_resource *resource);

#endif
