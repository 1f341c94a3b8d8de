/* SPDX-License-Identifier: MIT
 * Implements the heap of pending undos: a binary tree in an array, in which the children of element
 * i are the elements 2 * i + 1 and 2 * i + 2. No child expires before its parent. */
#include "node/undo_heap.h"

#include <string.h>

#define HEAP_KEPT 512 /* undos; an empty heap with a larger capacity frees its memory */

/* Prepares an empty heap that uses its own array. */
void rl_undo_heap_init(struct rl_undo_heap *heap, const struct rl_mem *mem)
{
    heap->mem = mem;
    heap->list = heap->own;
    heap->count = 0;
    heap->cap = RL_UNDOS_INLINE;
}

/* Grows the heap to at least `count` elements, by doubling. Returns false without memory. */
bool rl_undo_heap_grow(struct rl_undo_heap *heap, size_t count)
{
    bool is_own = heap->list == heap->own;
    size_t cap = heap->cap;

    while (cap < count)
        cap *= 2;
    struct rl_undo *list =
        rl_realloc_array(heap->mem, is_own ? NULL : heap->list, cap, sizeof *list);
    if (list == NULL)
        return false;
    if (is_own)
        memcpy(list, heap->own, heap->count * sizeof *list);
    heap->list = list;
    heap->cap = cap;
    return true;
}

/* Stores `undo` at the free index `at`, or at one of its ancestors: moves ancestors that expire
 * later down to make room. */
static void sift_up(struct rl_undo_heap *heap, size_t at, struct rl_undo undo)
{
    while (at > 0 && heap->list[(at - 1) / 2].expires_ns > undo.expires_ns) {
        heap->list[at] = heap->list[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap->list[at] = undo;
}

/* Stores `undo` at the free index `at`, or at one of its descendants: moves descendants that expire
 * earlier up to make room. */
static void sift_down(struct rl_undo_heap *heap, size_t at, struct rl_undo undo)
{
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= heap->count)
            break;
        if (child + 1 < heap->count &&
            heap->list[child + 1].expires_ns < heap->list[child].expires_ns)
            child++;
        if (heap->list[child].expires_ns >= undo.expires_ns)
            break;
        heap->list[at] = heap->list[child];
        at = child;
    }
    heap->list[at] = undo;
}

/* Adds an undo, for which there must be room. The claim reference passes to the heap. */
void rl_undo_heap_push(struct rl_undo_heap *heap, struct rl_claim *claim, uint64_t expires_ns)
{
    RL_ASSERT(heap->count < heap->cap);
    sift_up(heap, heap->count++, (struct rl_undo){.claim = claim, .expires_ns = expires_ns});
}

/* Removes the undo whose key expires first, and returns its claim with the reference. */
struct rl_claim *rl_undo_heap_pop_first(struct rl_undo_heap *heap)
{
    RL_ASSERT(heap->count > 0);
    struct rl_claim *claim = heap->list[0].claim;
    struct rl_undo last = heap->list[--heap->count];
    if (heap->count > 0)
        sift_down(heap, 0, last);
    return claim;
}

/* Removes the last undo of the array, and returns its claim with the reference. */
struct rl_claim *rl_undo_heap_pop_last(struct rl_undo_heap *heap)
{
    RL_ASSERT(heap->count > 0);
    return heap->list[--heap->count].claim;
}

/* Restores the order after expiry times were changed. */
void rl_undo_heap_sort(struct rl_undo_heap *heap)
{
    for (size_t at = heap->count / 2; at > 0; at--)
        sift_down(heap, at - 1, heap->list[at - 1]);
}

/* Frees the memory of an empty heap that is larger than HEAP_KEPT. */
void rl_undo_heap_trim(struct rl_undo_heap *heap)
{
    RL_ASSERT(heap->count == 0);
    if (heap->cap > HEAP_KEPT)
        rl_undo_heap_free(heap);
}

/* Frees the memory and leaves the heap empty. Drops no claim reference. */
void rl_undo_heap_free(struct rl_undo_heap *heap)
{
    if (heap->list != heap->own)
        rl_free(heap->mem, heap->list);
    rl_undo_heap_init(heap, heap->mem);
}
