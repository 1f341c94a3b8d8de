/* SPDX-License-Identifier: MIT
 * Locks by their next deadline: a binary heap whose members know their place. */
#ifndef RL_ENGINE_HEAP_H
#define RL_ENGINE_HEAP_H

#include "engine/lock.h"
#include "platform/memory.h"

struct rl_heap {
    const struct rl_mem *mem;
    struct rl_lock **list;
    uint32_t count, cap;
};

/* Room for one more member, so that rl_heap_set() cannot fail later. false: no memory. */
bool rl_heap_reserve(struct rl_heap *heap, uint32_t count);

/* Puts the lock at its wake time lock->lease.wake_ns; RL_NEVER takes it out. */
void rl_heap_set(struct rl_heap *heap, struct rl_lock *lock);

/* The lock that is due first; NULL if none. */
struct rl_lock *rl_heap_first(const struct rl_heap *heap);

void rl_heap_free(struct rl_heap *heap);

#endif
