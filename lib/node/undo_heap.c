/* SPDX-License-Identifier: MIT
 * Implements the heap of pending undos. */
#include "node/undo_heap.h"

#include <string.h>

#define HEAP_KEPT 512 /* capacity up to which an empty heap keeps its memory */

void rl_undo_heap_init(struct rl_undo_heap *heap, const struct rl_mem *mem)
{
    heap->mem = mem;
    heap->list = heap->own;
    heap->count = 0;
    heap->cap = RL_UNDOS_INLINE;
}

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

/* Stores `undo` at the free index `at`, or above it where the order requires. */
static void sift_up(struct rl_undo_heap *heap, size_t at, struct rl_undo undo)
{
    while (at > 0 && heap->list[(at - 1) / 2].expires_ns > undo.expires_ns) {
        heap->list[at] = heap->list[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap->list[at] = undo;
}

/* Stores `undo` at the free index `at`, or below it where the order requires. */
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

void rl_undo_heap_push(struct rl_undo_heap *heap, struct rl_claim *claim, uint64_t expires_ns)
{
    RL_ASSERT(heap->count < heap->cap);
    sift_up(heap, heap->count++, (struct rl_undo){.claim = claim, .expires_ns = expires_ns});
}

struct rl_claim *rl_undo_heap_pop_first(struct rl_undo_heap *heap)
{
    RL_ASSERT(heap->count > 0);
    struct rl_claim *claim = heap->list[0].claim;
    struct rl_undo last = heap->list[--heap->count];
    if (heap->count > 0)
        sift_down(heap, 0, last);
    return claim;
}

struct rl_claim *rl_undo_heap_pop_last(struct rl_undo_heap *heap)
{
    RL_ASSERT(heap->count > 0);
    return heap->list[--heap->count].claim;
}

void rl_undo_heap_sort(struct rl_undo_heap *heap)
{
    for (size_t at = heap->count / 2; at > 0; at--)
        sift_down(heap, at - 1, heap->list[at - 1]);
}

void rl_undo_heap_trim(struct rl_undo_heap *heap)
{
    RL_ASSERT(heap->count == 0);
    if (heap->cap > HEAP_KEPT)
        rl_undo_heap_free(heap);
}

void rl_undo_heap_free(struct rl_undo_heap *heap)
{
    if (heap->list != heap->own)
        rl_free(heap->mem, heap->list);
    rl_undo_heap_init(heap, heap->mem);
}
