/* SPDX-License-Identifier: MIT
 * Memory from the allocator that the caller of the library has configured. */
#include "platform/memory.h"

#include "platform/callback.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

/* Implements rl_mem.malloc_fn with malloc(). `userdata` is not used. */
static void *libc_malloc(size_t size, void *userdata)
{
    (void)userdata;
    return malloc(size);
}

/* Implements rl_mem.realloc_fn with realloc(). `userdata` is not used. */
static void *libc_realloc(void *ptr, size_t size, void *userdata)
{
    (void)userdata;
    return realloc(ptr, size);
}

/* Implements rl_mem.free_fn with free(). `userdata` is not used. */
static void libc_free(void *ptr, void *userdata)
{
    (void)userdata;
    free(ptr);
}

/* Returns the allocator that uses malloc, realloc and free of libc. */
struct rl_mem rl_mem_libc(void)
{
    struct rl_mem mem = {
        .malloc_fn = libc_malloc, .realloc_fn = libc_realloc, .free_fn = libc_free};
    return mem;
}

/* Allocates `size` bytes, at least one, and sets them to zero. NULL: no memory. */
void *rl_alloc(const struct rl_mem *mem, size_t size)
{
    size_t bytes = size == 0 ? 1 : size;
    void *ptr = rl_call_malloc(mem, bytes);
    if (ptr != NULL)
        memset(ptr, 0, bytes);
    return ptr;
}

/* Resizes `old`, which may be NULL, to `count` elements of `size` bytes; at least one byte. NULL:
 * no memory, or the product overflows; then `old` is unchanged. */
void *rl_realloc_array(const struct rl_mem *mem, void *old, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        return NULL;
    if (bytes == 0)
        bytes = 1; /* realloc() to 0 bytes may free and return NULL, which would look like a failure
                    */
    if (old == NULL)
        return rl_call_malloc(mem, bytes);
    return rl_call_realloc(mem, old, bytes);
}

/* Returns a copy of `len` bytes of `text` with a NUL after them. NULL: no memory. */
char *rl_strdup_len(const struct rl_mem *mem, const char *text, size_t len)
{
    size_t size;
    if (__builtin_add_overflow(len, (size_t)1, &size))
        return NULL;
    char *copy = rl_call_malloc(mem, size);
    if (copy == NULL)
        return NULL;
    if (len > 0)
        memcpy(copy, text, len);
    copy[len] = '\0';
    return copy;
}

/* Frees memory of this allocator. NULL is ignored. */
void rl_free(const struct rl_mem *mem, void *ptr)
{
    if (ptr != NULL)
        rl_call_free(mem, ptr);
}

/* Overwrites `size` bytes at `ptr` with zeros and frees the memory. NULL is ignored. */
void rl_free_wiped(const struct rl_mem *mem, void *ptr, size_t size)
{
    if (ptr == NULL)
        return;
    sodium_memzero(ptr, size);
    rl_call_free(mem, ptr);
}
