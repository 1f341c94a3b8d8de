/* SPDX-License-Identifier: MIT
 * Memory from the allocator that the user of the library chose. Every failure is a NULL. */
#ifndef RL_PLATFORM_MEMORY_H
#define RL_PLATFORM_MEMORY_H

#include "core/types.h"

struct rl_mem {
    void *(*malloc_fn)(size_t size, void *userdata);
    void *(*realloc_fn)(void *ptr, size_t size, void *userdata);
    void (*free_fn)(void *ptr, void *userdata);
    void *userdata;
};

/* malloc, realloc and free of libc. */
struct rl_mem rl_mem_libc(void);

/* `size` zeroed bytes. A size of 0 gives one byte, so that NULL always means failure. */
void *rl_alloc(const struct rl_mem *mem, size_t size);

/* `old` (may be NULL) as an array of `count` elements of `size` bytes; NULL, and `old` untouched,
 * if that overflows or there is no memory. What lies beyond the old contents is undefined. */
void *rl_realloc_array(const struct rl_mem *mem, void *old, size_t count, size_t size);

/* A terminated copy of `len` bytes. */
char *rl_strdup_len(const struct rl_mem *mem, const char *text, size_t len);

/* NULL: no-op. */
void rl_free(const struct rl_mem *mem, void *ptr);

/* As rl_free(), after `size` bytes were overwritten: for secrets. */
void rl_free_wiped(const struct rl_mem *mem, void *ptr, size_t size);

#endif
