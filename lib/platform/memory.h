/* SPDX-License-Identifier: MIT
 * Memory from the allocator that the caller of the library has configured. A result of NULL always
 * means that there is no memory. */
#ifndef RL_PLATFORM_MEMORY_H
#define RL_PLATFORM_MEMORY_H

#include "core/types.h"

/* An allocator: the three functions behave like malloc, realloc and free of libc, with `userdata`
 * as last argument. The struct is never changed while memory of this allocator is in use. */
struct rl_mem {
    void *(*malloc_fn)(size_t size, void *userdata);
    void *(*realloc_fn)(void *ptr, size_t size, void *userdata);
    void (*free_fn)(void *ptr, void *userdata);
    void *userdata; /* last argument of the three functions */
};

/* Returns the allocator that uses malloc, realloc and free of libc. */
struct rl_mem rl_mem_libc(void);

/* Allocates `size` bytes and sets them to zero; a size of 0 allocates one byte. NULL: no memory. */
void *rl_alloc(const struct rl_mem *mem, size_t size);

/* Resizes `old`, which may be NULL, to an array of `count` elements of `size` bytes. Returns the
 * array; bytes after the old contents are undefined. NULL: no memory, or count * size overflows;
 * then `old` is unchanged. */
void *rl_realloc_array(const struct rl_mem *mem, void *old, size_t count, size_t size);

/* Returns a copy of `len` bytes of `text` with a NUL after them. NULL: no memory. The caller frees
 * it with rl_free(). */
char *rl_strdup_len(const struct rl_mem *mem, const char *text, size_t len);

/* Frees memory of this allocator. NULL is ignored. */
void rl_free(const struct rl_mem *mem, void *ptr);

/* Overwrites the `size` bytes of the memory at `ptr` with zeros, then frees it: for secrets. NULL
 * is ignored. */
void rl_free_wiped(const struct rl_mem *mem, void *ptr, size_t size);

#endif
