/* SPDX-License-Identifier: MIT
 * The timers of the active locks: a binary heap, the earliest timer first. */
#ifndef RL_ENGINE_HEAP_H
#define RL_ENGINE_HEAP_H

#include "engine/lock.h"
#include "platform/memory.h"

/* The heap. All zero but `mem`: empty. Owner: heap.c, which also keeps rl_lock.due_ns and
 * rl_lock.heap_at. Invariants: list[i] has heap_at i, and its due_ns is not smaller than that of
 * list[(i - 1) / 2]; a lock that is not in the heap has heap_at RL_HEAP_NONE. */
struct rl_heap {
    const struct rl_mem *mem;
    struct rl_lock **list; /* `cap` elements, of which the first `count` are used; NULL: cap is 0 */
    uint32_t count, cap;
};

/* Makes room for `count` locks altogether, so that rl_heap_set() cannot fail. Returns false without
 * memory. */
bool rl_heap_reserve(struct rl_heap *heap, uint32_t count);

/* Sets the lock's timer to lock->lease.wake_ns, boot clock; RL_NEVER removes it from the heap. */
void rl_heap_set(struct rl_heap *heap, struct rl_lock *lock);

/* Returns the lock with the earliest timer; NULL: no lock has one. */
struct rl_lock *rl_heap_first(const struct rl_heap *heap);

/* Frees the memory. The locks in the heap are not changed. */
void rl_heap_free(struct rl_heap *heap);

#endif
