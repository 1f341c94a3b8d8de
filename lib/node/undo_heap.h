/* SPDX-License-Identifier: MIT
 * Undos that wait for a node, by the time at which they become pointless: a binary heap that grows
 * as far as there is memory, and gives it back after a crowd. */
#ifndef RL_NODE_UNDO_HEAP_H
#define RL_NODE_UNDO_HEAP_H

#include "node/claim.h"

struct rl_undo {
    struct rl_claim *claim;
    uint64_t expires_ns; /* boot clock; RL_NEVER: its key may be made at any later time */
};

/* So many need no memory of their own. */
#define RL_UNDOS_INLINE 64

struct rl_undo_heap {
    const struct rl_mem *mem;
    struct rl_undo *list; /* `own`, or from the allocator */
    size_t count, cap;
    struct rl_undo own[RL_UNDOS_INLINE];
};

/* It may not be moved afterwards. */
void rl_undo_heap_init(struct rl_undo_heap *heap, const struct rl_mem *mem);

bool rl_undo_heap_grow(struct rl_undo_heap *heap, size_t count);

/* Room for so many in all. false: no memory. */
static inline bool rl_undo_heap_reserve(struct rl_undo_heap *heap, size_t count)
{
    return count <= heap->cap || rl_undo_heap_grow(heap, count);
}

/* There must be room. The claim reference passes to the heap ... */
void rl_undo_heap_push(struct rl_undo_heap *heap, struct rl_claim *claim, uint64_t expires_ns);
/* ... and back to the caller: of what expires first, and of what is at hand without sorting. */
struct rl_claim *rl_undo_heap_pop_first(struct rl_undo_heap *heap);
struct rl_claim *rl_undo_heap_pop_last(struct rl_undo_heap *heap);

/* RL_NEVER: it is empty. */
static inline uint64_t rl_undo_heap_first_ns(const struct rl_undo_heap *heap)
{
    return heap->count != 0 ? heap->list[0].expires_ns : RL_NEVER;
}

/* After times in the list were changed. */
void rl_undo_heap_sort(struct rl_undo_heap *heap);

/* It is empty: gives back what only a crowd needed, or all. */
void rl_undo_heap_trim(struct rl_undo_heap *heap);
void rl_undo_heap_free(struct rl_undo_heap *heap);

#endif
