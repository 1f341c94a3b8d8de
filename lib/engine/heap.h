/* SPDX-License-Identifier: MIT
 * The timers of the active locks: a binary heap, the earliest timer first. The timer of a lock is a
 * boot time, at which the lock gets a TICK. */
#ifndef RL_ENGINE_HEAP_H
#define RL_ENGINE_HEAP_H

#include "engine/lock.h"
#include "platform/memory.h"

/* The heap. If all but `mem` is zero, it is empty. Owner: heap.c, which also keeps rl_lock.due_ns,
 * the time of the timer, and rl_lock.heap_at, the lock's index in `list`. Invariants: list[i] has
 * heap_at i, and its due_ns is not smaller than that of list[(i - 1) / 2]; a lock that is not in
 * the heap has heap_at RL_HEAP_NONE. */
struct rl_heap {
    const struct rl_mem *mem; /* borrowed; for `list` */
    struct rl_lock **list; /* `cap` elements, of which the first `count` are used; NULL: cap is 0 */
    uint32_t count;        /* locks in the heap, at most `cap` */
    uint32_t cap;          /* elements that `list` has room for */
};

/* Makes room for `count` locks altogether, so that rl_heap_set() needs no memory. Returns false
 * without memory; then the heap is unchanged. */
bool rl_heap_reserve(struct rl_heap *heap, uint32_t count);

/* Sets the lock's timer to lock->lease.wake_ns, a boot time. If that is RL_NEVER, removes the lock
 * from the heap. Room for the lock must have been made. */
void rl_heap_set(struct rl_heap *heap, struct rl_lock *lock);

/* Returns the lock with the earliest timer; NULL: no lock has one. */
struct rl_lock *rl_heap_first(const struct rl_heap *heap);

/* Frees the memory. The locks in the heap are not changed. */
void rl_heap_free(struct rl_heap *heap);

#endif
