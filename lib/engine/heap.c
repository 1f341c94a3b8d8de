/* SPDX-License-Identifier: MIT
 * A binary heap of pointers to locks, ordered by rl_lock.due_ns. The parent of index i is (i - 1) /
 * 2, its children are 2 i + 1 and 2 i + 2; no lock is due before its parent. */
#include "engine/heap.h"

#define HEAP_MIN 64 /* elements of the first allocation */

/* Makes room for `count` locks altogether, by doubling the list. Returns false without memory; then
 * the heap is unchanged. */
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

/* Stores a lock at index `at`, and notes that index in the lock. */
static void put(struct rl_heap *heap, uint32_t at, struct rl_lock *lock)
{
    heap->list[at] = lock;
    lock->heap_at = at;
}

/* Stores a lock at index `at`, or, as long as the parent is due later than the lock, moves the
 * parent down and goes on at the parent's index. */
static void rise(struct rl_heap *heap, uint32_t at, struct rl_lock *lock)
{
    while (at > 0 && heap->list[(at - 1) / 2]->due_ns > lock->due_ns) {
        put(heap, at, heap->list[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    put(heap, at, lock);
}

/* Stores a lock at index `at`, or, as long as a child is due earlier than the lock, moves the
 * earlier child up and goes on at that child's index. */
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

/* Removes a lock from the heap. The last lock of the list is moved to its index, and from there up
 * or down to where it belongs. */
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

/* Sets the lock's timer to lock->lease.wake_ns; RL_NEVER removes the lock from the heap. due_ns
 * keeps its last value then. */
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

/* Returns the lock with the earliest timer; NULL: no lock has one. */
struct rl_lock *rl_heap_first(const struct rl_heap *heap)
{
    return heap->count > 0 ? heap->list[0] : NULL;
}

/* Frees the list. The locks in the heap are not changed. */
void rl_heap_free(struct rl_heap *heap)
{
    rl_free(heap->mem, heap->list);
    heap->list = NULL;
    heap->count = heap->cap = 0;
}
