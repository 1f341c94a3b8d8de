/* SPDX-License-Identifier: MIT
 * A binary heap of undos. */
#include "node/debt_heap.h"

#define HEAP_MIN  64
#define HEAP_KEPT 512

bool rl_debt_heap_grow(struct rl_debt_heap *heap, size_t count)
{
    size_t cap = heap->cap != 0 ? heap->cap : HEAP_MIN;

    while (cap < count)
        cap *= 2;
    struct rl_debt *list = rl_realloc_array(heap->mem, heap->list, cap, sizeof *list);
    if (list == NULL)
        return false;
    heap->list = list;
    heap->cap = cap;
    return true;
}

static void rise(struct rl_debt_heap *heap, size_t at, struct rl_debt debt)
{
    while (at > 0 && heap->list[(at - 1) / 2].expires_ns > debt.expires_ns) {
        heap->list[at] = heap->list[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap->list[at] = debt;
}

static void sink(struct rl_debt_heap *heap, size_t at, struct rl_debt debt)
{
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= heap->count)
            break;
        if (child + 1 < heap->count &&
            heap->list[child + 1].expires_ns < heap->list[child].expires_ns)
            child++;
        if (heap->list[child].expires_ns >= debt.expires_ns)
            break;
        heap->list[at] = heap->list[child];
        at = child;
    }
    heap->list[at] = debt;
}

void rl_debt_heap_put(struct rl_debt_heap *heap, struct rl_claim *claim, uint64_t expires_ns)
{
    RL_ASSERT(heap->count < heap->cap);
    rise(heap, heap->count++, (struct rl_debt){.claim = claim, .expires_ns = expires_ns});
}

struct rl_claim *rl_debt_heap_take_first(struct rl_debt_heap *heap)
{
    RL_ASSERT(heap->count > 0);
    struct rl_claim *claim = heap->list[0].claim;
    struct rl_debt last = heap->list[--heap->count];
    if (heap->count > 0)
        sink(heap, 0, last);
    return claim;
}

struct rl_claim *rl_debt_heap_take_last(struct rl_debt_heap *heap)
{
    RL_ASSERT(heap->count > 0);
    return heap->list[--heap->count].claim;
}

void rl_debt_heap_sort(struct rl_debt_heap *heap)
{
    for (size_t at = heap->count / 2; at > 0; at--)
        sink(heap, at - 1, heap->list[at - 1]);
}

void rl_debt_heap_trim(struct rl_debt_heap *heap)
{
    RL_ASSERT(heap->count == 0);
    if (heap->cap > HEAP_KEPT)
        rl_debt_heap_free(heap);
}

void rl_debt_heap_free(struct rl_debt_heap *heap)
{
    rl_free(heap->mem, heap->list);
    heap->list = NULL;
    heap->count = heap->cap = 0;
}
