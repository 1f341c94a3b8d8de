/* SPDX-License-Identifier: MIT
 * An allocator for tests that fails after a number of allocations, counts its blocks, and notices
 * passwords that are freed without being wiped (in these tests every password begins with a Q). */
#ifndef TEST_FAILING_ALLOCATOR_H
#define TEST_FAILING_ALLOCATOR_H

#include <stdbool.h>
#include <stdlib.h>

/* The state of the allocator; `userdata` of its functions. */
struct heap {
    int left;         /* number of allocations until they fail */
    int live;         /* number of blocks that are allocated and not freed */
    bool has_secrets; /* a block was freed with a password in it */
};

/* Allocates, or fails when the allocations are used up. */
static inline void *heap_malloc(size_t size, void *userdata)
{
    struct heap *heap = userdata;
    if (heap->left-- <= 0)
        return NULL;
    heap->live++;
    return malloc(size);
}

/* Reallocates, or fails when the allocations are used up. */
static inline void *heap_realloc(void *ptr, size_t size, void *userdata)
{
    struct heap *heap = userdata;
    return heap->left-- <= 0 ? NULL : realloc(ptr, size);
}

/* Frees a block; a block that begins with a Q has an unwiped password. */
static inline void heap_free(void *ptr, void *userdata)
{
    struct heap *heap = userdata;
    heap->live--;
    if (*(char *)ptr == 'Q')
        heap->has_secrets = true;
    free(ptr);
}

#endif
