/* SPDX-License-Identifier: MIT
 * A binary heap of the pending undos of one node, ordered by when their keys expire. */
#ifndef RL_NODE_UNDO_HEAP_H
#define RL_NODE_UNDO_HEAP_H

#include "node/claim.h"

/* One pending undo. */
struct rl_undo {
    struct rl_claim *claim; /* the token and keys to remove; the heap holds a reference */
    uint64_t expires_ns; /* boot clock: when the key has expired on the server; RL_NEVER: not known,
                          * because the server may still create the key */
};

/* Number of undos that fit into the heap without an allocation. */
#define RL_UNDOS_INLINE 64

/* The heap. Owner: undo_heap.c; undo.c also walks `list` and may change expiry times, and then
 * calls rl_undo_heap_sort(). Invariants: no parent expires after its children (list[0] expires
 * first); count <= cap. The heap must not be moved, because `list` may point to
 * `own`. */
struct rl_undo_heap {
    const struct rl_mem *mem;            /* borrowed: allocates `list` */
    struct rl_undo *list;                /* `own`, or allocated with `mem` */
    size_t count;                        /* undos in the heap */
    size_t cap;                          /* elements of `list` */
    struct rl_undo own[RL_UNDOS_INLINE]; /* the first memory of `list` */
};

/* Prepares an empty heap. `mem` is borrowed. */
void rl_undo_heap_init(struct rl_undo_heap *heap, const struct rl_mem *mem);

/* Grows the heap to at least `count` elements. Returns false without memory; the heap is unchanged
 * then. */
bool rl_undo_heap_grow(struct rl_undo_heap *heap, size_t count);

/* Makes room for `count` undos in all. Returns false without memory. */
static inline bool rl_undo_heap_reserve(struct rl_undo_heap *heap, size_t count)
{
    return count <= heap->cap || rl_undo_heap_grow(heap, count);
}

/* Adds an undo of `claim`, whose key expires at `expires_ns`. There must be room. The claim
 * reference passes to the heap. */
void rl_undo_heap_push(struct rl_undo_heap *heap, struct rl_claim *claim, uint64_t expires_ns);
/* Removes the undo whose key expires first, and returns its claim. The heap must not be empty. The
 * claim reference passes to the caller. */
struct rl_claim *rl_undo_heap_pop_first(struct rl_undo_heap *heap);
/* Removes the last undo of `list`, which may expire at any time, and returns its claim. The heap
 * must not be empty. The claim reference passes to the caller. */
struct rl_claim *rl_undo_heap_pop_last(struct rl_undo_heap *heap);

/* Returns when the first key expires (boot clock); RL_NEVER: the heap is empty, or no expiry time
 * is known. */
static inline uint64_t rl_undo_heap_first_ns(const struct rl_undo_heap *heap)
{
    return heap->count != 0 ? heap->list[0].expires_ns : RL_NEVER;
}

/* Restores the order after expiry times in `list` were changed. */
void rl_undo_heap_sort(struct rl_undo_heap *heap);

/* Frees the memory of a large heap, in which no undo may be. */
void rl_undo_heap_trim(struct rl_undo_heap *heap);
/* Frees the memory and leaves the heap empty. The claim references of undos that are in the heap
 * are not dropped: the caller pops all undos before. */
void rl_undo_heap_free(struct rl_undo_heap *heap);

#endif
