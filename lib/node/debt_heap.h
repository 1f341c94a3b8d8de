/* SPDX-License-Identifier: MIT
 * Undos that wait for a node, by the time at which they become pointless: a binary heap that grows
 * as far as there is memory, and gives it back after a crowd. */
#ifndef RL_NODE_DEBT_HEAP_H
#define RL_NODE_DEBT_HEAP_H

#include "node/claim.h"

struct rl_debt {
    struct rl_claim *claim;
    uint64_t expires_ns; /* boot clock; RL_NEVER: its key may be made at any later time */
};

/* So many need no memory of their own. */
#define RL_DEBTS_OWN 64

struct rl_debt_heap {
    const struct rl_mem *mem;
    struct rl_debt *list; /* `own`, or from the allocator */
    size_t count, cap;
    struct rl_debt own[RL_DEBTS_OWN];
};

/* It may not be moved afterwards. */
void rl_debt_heap_init(struct rl_debt_heap *heap, const struct rl_mem *mem);

bool rl_debt_heap_grow(struct rl_debt_heap *heap, size_t count);

/* Room for so many in all. false: no memory. */
static inline bool rl_debt_heap_reserve(struct rl_debt_heap *heap, size_t count)
{
    return count <= heap->cap || rl_debt_heap_grow(heap, count);
}

/* There must be room. The claim reference passes to the heap ... */
void rl_debt_heap_put(struct rl_debt_heap *heap, struct rl_claim *claim, uint64_t expires_ns);
/* ... and back to the caller: of what expires first, and of what is at hand without sorting. */
struct rl_claim *rl_debt_heap_take_first(struct rl_debt_heap *heap);
struct rl_claim *rl_debt_heap_take_last(struct rl_debt_heap *heap);

/* RL_NEVER: it is empty. */
static inline uint64_t rl_debt_heap_first_ns(const struct rl_debt_heap *heap)
{
    return heap->count != 0 ? heap->list[0].expires_ns : RL_NEVER;
}

/* After times in the list were changed. */
void rl_debt_heap_sort(struct rl_debt_heap *heap);

/* It is empty: gives back what only a crowd needed, or all. */
void rl_debt_heap_trim(struct rl_debt_heap *heap);
void rl_debt_heap_free(struct rl_debt_heap *heap);

#endif
