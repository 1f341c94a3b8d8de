/* SPDX-License-Identifier: MIT
 * The queue entries of a lock, one at each of its resources, and the decision which lock may begin.
 * The queue is that of one client: it orders the client's own locks, before any server is asked.
 *
 * One lock of a client acquires or holds a resource: the lock in front. The others wait in the
 * queue of that resource. Two kinds of locks are exceptions: a lock without a wait budget acquires
 * at once, even if another lock is in front, and a lock that holds a permit is not in front any
 * more. A resource is free if no lock is in front. It is vacant if its queue is empty, too.
 *
 * A lock of several resources enters all queues in one step, so that any two locks are in the same
 * order everywhere. It begins when all its resources are free at once. At times it reserves those
 * that are free, and later locks must wait; at other times later locks may overtake it
 * (core/reservation.h).
 *
 * resource.h keeps the lists of one resource; the functions here do the same for all resources of a
 * lock. RL_EVENT_TURN, which has a queued lock begin, is sent by rl_resources_turn(). */
#ifndef RL_ENGINE_QUEUE_H
#define RL_ENGINE_QUEUE_H

#include "core/wire.h"

struct rl_engine;
struct rl_lock;
struct rl_resource;

/* The entry of one lock at one of its resources. Part of struct rl_lock. Owner: queue.c; resource.c
 * links it into the queue. */
struct rl_queue_entry {
    struct rl_lock *lock;         /* the lock that the entry belongs to */
    struct rl_resource *resource; /* state of the resource that the entry is for; NULL: no entry */
    struct rl_queue_entry *next;  /* with lock->queued: the entry after this one; NULL: none */
    struct rl_queue_entry *prev;  /* with lock->queued: the entry before this one; NULL: none */
};

/* Enters a new lock at the resources with these `count` keys. If all of them are vacant, the lock
 * comes in front of all. Otherwise it is put into all their queues, and lock->queued is set. A lock
 * without a wait budget is never queued: it comes in front of those resources that are vacant, and
 * begins in any case. Returns REDLOCK_OK, or EQUEUEFULL if a queue has queue_max entries; then the
 * lock has no entry. Without memory the lock has no entry either, and REDLOCK_OK is returned: it
 * begins as if its resources were vacant. */
int rl_queue_enter(struct rl_engine *engine, struct rl_lock *lock, const struct rl_arg *keys,
                   unsigned count);
/* Returns whether the lock is in front of all its resources. False if it has no entries. */
bool rl_queue_is_in_front(const struct rl_lock *lock);
/* Puts the lock in front of those of its resources that have no lock in front. */
void rl_queue_move_to_front(struct rl_engine *engine, struct rl_lock *lock);
/* Takes the lock away from the front of its resources, so that the next lock can begin there. The
 * lock keeps its entries. */
void rl_queue_pass(struct rl_engine *engine, struct rl_lock *lock);
/* Notes that the lock is released: has other locks that are in front of its resources woken. The
 * servers do not notify a client of its own changes. */
void rl_queue_note_release(struct rl_engine *engine, const struct rl_lock *lock);
/* Ends all entries of the lock, because the lock ends: takes it out of the queues and away from the
 * front, and lets the next locks begin. */
void rl_queue_leave(struct rl_engine *engine, struct rl_lock *lock);
/* Has the next rl_resources_turn() look for a lock that may begin at the resources of this queued
 * lock, because others may overtake this lock from now on. Called with each TICK of the lock. */
void rl_queue_review(struct rl_engine *engine, struct rl_lock *lock);
/* Frees the entries of the lock without a change to its resources, which are freed next. For
 * rl_engine_abandon() only. */
void rl_queue_abandon(struct rl_engine *engine, struct rl_lock *lock);
/* Returns the resource whose key the lock probes; NULL if it has no entries. */
struct rl_resource *rl_queue_probed(const struct rl_lock *lock);
/* Returns the lock in front of the first of `lock`'s resources that has a lock in front; NULL: none
 * of them has one. */
struct rl_lock *rl_queue_lock_ahead(const struct rl_lock *lock);

/* Returns the queued lock that may begin now at a resource which has no lock in front; NULL: none
 * may. Takes that lock out of all queues and puts it in front of all its resources. */
struct rl_lock *rl_queue_next(struct rl_engine *engine, struct rl_resource *resource);

#endif
