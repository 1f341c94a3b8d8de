/* SPDX-License-Identifier: MIT
 * A binary heap of pointers to locks. */
#include "engine/heap.h"

#define HEAP_MIN 64 /* elements of the first allocation */

bool rl_heap_reserve(struct rl_heap *heap, uint32_t count)
{
    uint32_t cap = heap->cap != 0 ? heap->cap : HEAP_MIN;

    while (cap < count)
        cap *= 2;
    if (cap == heap->cap)
        return true;
    struct rl_lock **list = rl_realloc_array(heap->mem, heap->list, cap, sizeof(void *));
    if (list == NULL)
        return false;
    heap->list = list;
    heap->cap = cap;
    return true;
}

/* Puts a lock at an index. */
static void put(struct rl_heap *heap, uint32_t at, struct rl_lock *lock)
{
    heap->list[at] = lock;
    lock->heap_at = at;
}

/* Puts a lock at index `at` or, while its parent there is later, further up. */
static void rise(struct rl_heap *heap, uint32_t at, struct rl_lock *lock)
{
    while (at > 0 && heap->list[(at - 1) / 2]->due_ns > lock->due_ns) {
        put(heap, at, heap->list[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    put(heap, at, lock);
}

/* Puts a lock at index `at` or, while a child there is earlier, further down. */
static void sink(struct rl_heap *heap, uint32_t at, struct rl_lock *lock)
{
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= heap->count)
            break;
        if (child + 1 < heap->count && heap->list[child + 1]->due_ns < heap->list[child]->due_ns)
            child++;
        if (heap->list[child]->due_ns >= lock->due_ns)
            break;
        put(heap, at, heap->list[child]);
        at = child;
    }
    put(heap, at, lock);
}

/* Removes a lock; the last one takes its place. */
static void take_out(struct rl_heap *heap, struct rl_lock *lock)
{
    uint32_t at = lock->heap_at;
    struct rl_lock *last = heap->list[--heap->count];

    lock->heap_at = RL_HEAP_NONE;
    if (last == lock)
        return;
    if (at > 0 && heap->list[(at - 1) / 2]->due_ns > last->due_ns)
        rise(heap, at, last);
    else
        sink(heap, at, last);
}

void rl_heap_set(struct rl_heap *heap, struct rl_lock *lock)
{
    uint64_t wake_ns = lock->lease.wake_ns;

    if (wake_ns == RL_NEVER) {
        if (lock->heap_at != RL_HEAP_NONE)
            take_out(heap, lock);
        return;
    }
    if (lock->heap_at == RL_HEAP_NONE) {
        RL_ASSERT(heap->count < heap->cap);
        lock->due_ns = wake_ns;
        rise(heap, heap->count++, lock);
        return;
    }
    uint64_t before = lock->due_ns;
    lock->due_ns = wake_ns;
    if (wake_ns < before)
        rise(heap, lock->heap_at, lock);
    else if (wake_ns > before)
        sink(heap, lock->heap_at, lock);
}

struct rl_lock *rl_heap_first(const struct rl_heap *heap)
{
    return heap->count > 0 ? heap->list[0] : NULL;
}

void rl_heap_free(struct rl_heap *heap)
{
    rl_free(heap->mem, heap->list);
    heap->list = NULL;
    heap->count = heap->cap = 0;
}
