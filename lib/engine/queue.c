/* SPDX-License-Identifier: MIT
 * Decides which lock of a client may begin at a resource, and which waits in the queue. queue.h
 * explains the queue and its terms: a lock in front acquires or holds the resource; a free resource
 * has no lock in front; a vacant one has an empty queue, too. A lock has lock->more + 1 resources,
 * with an entry at each. */
#include "engine/queue.h"

#include "core/reservation.h"
#include "engine/engine.h"
#include "redlock/redlock.h"

/* Returns the lock's entry at its resource number `at`, from 0 to lock->more. */
static struct rl_queue_entry *entry_at(const struct rl_lock *lock, unsigned at)
{
    return at == 0 ? (struct rl_queue_entry *)&lock->queue_entry : &lock->more_entries[at - 1];
}

/* Returns the state of the lock's resource number `at`, from 0 to lock->more; NULL: the lock has no
 * entries. */
static struct rl_resource *resource_at(const struct rl_lock *lock, unsigned at)
{
    return entry_at(lock, at)->resource;
}

/* Frees the lock's entries, which are not in any queue any more. The lock has no resources then. */
static void free_entries(struct rl_engine *engine, struct rl_lock *lock)
{
    rl_free(engine->mem, lock->more_entries);
    rl_free(engine->mem, lock->lease.memories);
    lock->more_entries = NULL;
    lock->lease.memories = NULL;
    lock->more = 0;
    lock->queue_entry.resource = NULL;
    lock->lease.contention = NULL;
}

/* Makes an entry of the lock at the resource of each of the `count` keys. The entries are not in
 * the queues yet. Returns false without memory; then the lock has no entry. */
static bool make_entries(struct rl_engine *engine, struct rl_lock *lock, const struct rl_arg *keys,
                         unsigned count)
{
    lock->more = (uint8_t)(count - 1);
    if (lock->more != 0) {
        lock->more_entries = rl_alloc(engine->mem, lock->more * sizeof *lock->more_entries);
        lock->lease.memories = rl_alloc(engine->mem, count * sizeof *lock->lease.memories);
    }
    bool found = lock->more == 0 || (lock->more_entries != NULL && lock->lease.memories != NULL);
    unsigned at = 0;
    for (; found && at < count; at++) {
        struct rl_queue_entry *entry = entry_at(lock, at);
        entry->lock = lock;
        entry->resource = rl_resource_enter(engine, keys[at]);
        found = entry->resource != NULL;
        if (found && lock->more != 0)
            lock->lease.memories[at] = &entry->resource->contention;
    }
    if (found)
        return true;
    while (at-- > 0) {
        if (resource_at(lock, at) != NULL)
            rl_resource_leave(engine, resource_at(lock, at));
    }
    free_entries(engine, lock);
    return false;
}

/* Returns whether the queue of one of the lock's resources is full. */
static bool is_full(const struct rl_engine *engine, const struct rl_lock *lock)
{
    uint32_t queue_max = engine->params.queue_max;
    bool full = false;

    for (unsigned i = 0; queue_max != 0 && i <= lock->more; i++)
        full = full || resource_at(lock, i)->queued >= queue_max;
    return full;
}

/* Returns whether the resource is vacant: no lock is in front of it or in its queue. */
static bool is_vacant(const struct rl_resource *resource)
{
    return resource->front == NULL && resource->queue_first == NULL;
}

/* Enters a new lock at its resources: in front if all are vacant, otherwise in their queues
 * (lock->queued). A lock without a wait budget is not queued; it comes in front of those resources
 * that are vacant. Returns REDLOCK_OK or EQUEUEFULL; without memory REDLOCK_OK, and the lock has no
 * entries. */
int rl_queue_enter(struct rl_engine *engine, struct rl_lock *lock, const struct rl_arg *keys,
                   unsigned count)
{
    bool never_waits = lock->lease.wait_ns == 0, vacant = true;

    if (!make_entries(engine, lock, keys, count))
        return REDLOCK_OK; /* no memory: the lock begins without the queue */
    lock->lease.contention = &lock->queue_entry.resource->contention;
    for (unsigned i = 0; i <= lock->more; i++)
        vacant = vacant && is_vacant(resource_at(lock, i));
    for (unsigned i = 0; i <= lock->more && (vacant || never_waits); i++) {
        if (is_vacant(resource_at(lock, i)))
            resource_at(lock, i)->front = lock;
    }
    if (vacant || never_waits)
        return REDLOCK_OK;
    if (is_full(engine, lock)) {
        rl_queue_leave(engine, lock);
        engine->stats.queue_full++;
        return REDLOCK_EQUEUEFULL;
    }
    lock->queued = true;
    for (unsigned i = 0; i <= lock->more; i++)
        rl_resource_queue(engine, entry_at(lock, i));
    return REDLOCK_OK;
}

/* Returns whether the lock is in front of all its resources; false if it has no entries. */
bool rl_queue_is_in_front(const struct rl_lock *lock)
{
    for (unsigned i = 0; i <= lock->more; i++) {
        if (resource_at(lock, i) == NULL || resource_at(lock, i)->front != lock)
            return false;
    }
    return true;
}

/* Has the next rl_resources_turn() look at all resources of those locks of several resources that
 * are in the queue of this `resource`. These locks cannot begin now, so later locks may overtake
 * them at their other resources. */
static void review_locks_of_several(struct rl_engine *engine, const struct rl_resource *resource)
{
    unsigned left = resource->queued_many;

    for (struct rl_queue_entry *entry = resource->queue_first; left > 0 && entry != NULL;
         entry = entry->next) {
        if (entry->lock->more == 0)
            continue;
        rl_queue_review(engine, entry->lock);
        left--;
    }
}

/* Puts the lock in front of those of its resources that have no lock in front. */
void rl_queue_move_to_front(struct rl_engine *engine, struct rl_lock *lock)
{
    for (unsigned i = 0; i <= lock->more; i++) {
        struct rl_resource *resource = resource_at(lock, i);
        if (resource == NULL || resource->front != NULL)
            continue;
        resource->front = lock;
        review_locks_of_several(engine, resource);
    }
}

/* Takes the lock away from the front of its resources, so that the next lock can begin there. The
 * lock keeps its entries. */
void rl_queue_pass(struct rl_engine *engine, struct rl_lock *lock)
{
    for (unsigned i = 0; i <= lock->more; i++) {
        if (resource_at(lock, i) != NULL)
            rl_resource_pass(engine, resource_at(lock, i), lock);
    }
}

/* Has the locks in front of the lock's resources woken, because this lock is released. Does nothing
 * at a resource where this lock is in front: there, rl_queue_pass() lets the next lock begin. */
void rl_queue_note_release(struct rl_engine *engine, const struct rl_lock *lock)
{
    for (unsigned i = 0; i <= lock->more; i++) {
        struct rl_resource *resource = resource_at(lock, i);
        if (resource != NULL && resource->front != lock)
            rl_resource_note_release(engine, resource, rl_lease_slot(&lock->lease));
    }
}

/* Takes the lock out of all queues; its entries stay. */
static void leave_queues(struct rl_engine *engine, struct rl_lock *lock)
{
    for (unsigned i = 0; lock->queued && i <= lock->more; i++)
        rl_resource_unqueue(engine, entry_at(lock, i));
    lock->queued = false;
}

/* Ends all entries of the lock, because the lock ends: takes it out of the queues and away from the
 * front. */
void rl_queue_leave(struct rl_engine *engine, struct rl_lock *lock)
{
    if (lock->queue_entry.resource == NULL)
        return;
    leave_queues(engine, lock);
    rl_queue_pass(engine, lock);
    for (unsigned i = 0; i <= lock->more; i++)
        rl_resource_leave(engine, resource_at(lock, i));
    free_entries(engine, lock);
}

/* Has the next rl_resources_turn() look at the resources of a queued lock, because others may
 * overtake this lock from now on. Does nothing for a lock that is not queued. */
void rl_queue_review(struct rl_engine *engine, struct rl_lock *lock)
{
    for (unsigned i = 0; lock->queued && i <= lock->more; i++)
        rl_resource_review(engine, resource_at(lock, i));
}

/* Frees the entries of the lock without a change to its resources. */
void rl_queue_abandon(struct rl_engine *engine, struct rl_lock *lock)
{
    free_entries(engine, lock);
}

/* Returns the lock in front of the first of this lock's resources that has one; NULL: none has. */
struct rl_lock *rl_queue_lock_ahead(const struct rl_lock *lock)
{
    for (unsigned i = 0; i <= lock->more; i++) {
        if (resource_at(lock, i) != NULL && resource_at(lock, i)->front != NULL)
            return resource_at(lock, i)->front;
    }
    return NULL;
}

/* Returns the state of the resource whose key the lock probes while it waits; NULL if it has no
 * entries. */
struct rl_resource *rl_queue_probed(const struct rl_lock *lock)
{
    return resource_at(lock, lock->lease.wait.key);
}

/* Returns whether all of the lock's resources are free, that is, without a lock in front. */
static bool are_free(const struct rl_lock *lock)
{
    bool are = true;

    for (unsigned i = 0; are && i <= lock->more; i++)
        are = resource_at(lock, i)->front == NULL;
    return are;
}

/* Returns whether later locks of the queue may begin before this lock. They may if this lock needs
 * several resources, cannot begin because one of them is not free, and does not reserve the free
 * ones at present. */
static bool may_be_overtaken(const struct rl_engine *engine, const struct rl_lock *lock)
{
    return lock->more != 0 && !are_free(lock) &&
           !rl_reservation_is_on(rl_elapsed_ns(lock->lease.begun, engine->view.now));
}

/* Returns whether a queued lock may begin: all its resources are free, and all locks before it in
 * the queues of its resources may be overtaken. */
static bool is_next(const struct rl_engine *engine, const struct rl_lock *lock)
{
    if (!are_free(lock))
        return false;
    for (unsigned i = 0; i <= lock->more; i++) {
        const struct rl_queue_entry *before = entry_at(lock, i)->prev;
        for (; before != NULL; before = before->prev) {
            if (!may_be_overtaken(engine, before->lock))
                return false;
        }
    }
    return true;
}

/* Returns the first lock in the queue of this resource that may begin, takes it out of all queues,
 * and puts it in front of all its resources; NULL: none may begin. The search ends at the first
 * lock that may not begin and may not be overtaken either. */
struct rl_lock *rl_queue_next(struct rl_engine *engine, struct rl_resource *resource)
{
    struct rl_queue_entry *entry = resource->queue_first;

    while (entry != NULL && !is_next(engine, entry->lock)) {
        if (!may_be_overtaken(engine, entry->lock))
            return NULL;
        entry = entry->next;
    }
    if (entry == NULL)
        return NULL;
    struct rl_lock *lock = entry->lock;
    leave_queues(engine, lock);
    rl_queue_move_to_front(engine, lock);
    return lock;
}
