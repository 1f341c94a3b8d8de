/* SPDX-License-Identifier: MIT
 * Replaces the allocator's entry points and forwards to the next definition: libc, the sanitizer
 * runtime or valgrind. This file is built without instrumentation, because it runs before the
 * sanitizers are ready. */
#include "alloc_fail.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum mode { OFF, COUNT, ONCE, FROM };

static void *(*next_malloc)(size_t);
static void *(*next_calloc)(size_t, size_t);
static void *(*next_realloc)(void *, size_t);
static void (*next_free)(void *);
static int (*next_posix_memalign)(void **, size_t, size_t);
static void *(*next_aligned_alloc)(size_t, size_t);
static int (*next_getattr)(pthread_t, pthread_attr_t *);

/* dlsym() may allocate while it looks for malloc. Those few blocks come from this array and are
 * never freed. */
#define EARLY_SIZE 16384
static _Alignas(max_align_t) unsigned char early[EARLY_SIZE];
static size_t early_used;

static _Atomic int mode;
static _Atomic int scope_all;
static _Atomic uint64_t target;
static _Atomic uint64_t seen;
static _Atomic bool hit;
static _Atomic int64_t live;
static _Thread_local int exempt_depth;
static _Thread_local bool selected;

/* The code of libraries that are exempted. */
#define RANGES_MAX 4
static struct {
    uintptr_t begin, end;
} exempted[RANGES_MAX];
static unsigned ranges;

/* The address to which the function that contains this returns. */
#define CALLER() __builtin_return_address(0)

/* Returns a block of the array `early`, or NULL if the array is used up. */
static void *early_alloc(size_t size)
{
    const size_t align = sizeof(max_align_t);
    const size_t rounded = (size + align - 1) / align * align;
    if (size > EARLY_SIZE || rounded > EARLY_SIZE - early_used)
        return NULL;
    void *block = early + early_used;
    early_used += rounded;
    return block;
}

/* Returns whether the block is part of the array `early`. */
static bool is_early(const void *block)
{
    const unsigned char *byte = block;
    return byte >= early && byte < early + EARLY_SIZE;
}

/* Stores the next definition of the function `name` in *ret_function. Copies the address instead of
 * casting it, because ISO C has no cast from object to function pointer. */
static void find(void *ret_function, const char *name)
{
    void *symbol = dlsym(RTLD_NEXT, name);
    memcpy(ret_function, &symbol, sizeof symbol);
}

/* Finds the next allocator at the first call. Returns true once it is known, and false inside
 * dlsym() itself. */
static bool resolved(void)
{
    static bool resolving;
    if (next_aligned_alloc != NULL)
        return true;
    if (resolving)
        return false;
    resolving = true;
    find(&next_malloc, "malloc");
    find(&next_calloc, "calloc");
    find(&next_realloc, "realloc");
    find(&next_free, "free");
    find(&next_posix_memalign, "posix_memalign");
    find(&next_aligned_alloc, "aligned_alloc");
    resolving = false;
    return next_aligned_alloc != NULL;
}

/* Returns whether the code at this address belongs to a library that is exempted. */
static bool is_exempt(const void *caller)
{
    for (unsigned i = 0; i < ranges; i++)
        if ((uintptr_t)caller >= exempted[i].begin && (uintptr_t)caller < exempted[i].end)
            return true;
    return false;
}

/* Counts one allocation, which the code at `caller` makes, and returns whether it has to fail. */
static bool must_fail(const void *caller)
{
    const int now = atomic_load(&mode);
    if (now == OFF || exempt_depth > 0 || is_exempt(caller))
        return false;
    if (!atomic_load(&scope_all) && !selected)
        return false;
    const uint64_t number = atomic_fetch_add(&seen, 1);
    const uint64_t k = atomic_load(&target);
    const bool fails = (now == ONCE && number == k) || (now == FROM && number >= k);
    if (fails) {
        atomic_store(&hit, true);
        errno = ENOMEM;
    }
    return fails;
}

/* Counts the block as live unless it is NULL. Returns the block. */
static void *counted(void *block)
{
    if (block != NULL)
        atomic_fetch_add(&live, 1);
    return block;
}

/* Starts an injection in the mode `next_mode`, with allocation number `k` (from 0) as its
 * target. */
static void start(enum mode next_mode, uint64_t k, enum alloc_fail_scope scope)
{
    atomic_store(&mode, OFF);
    atomic_store(&target, k);
    atomic_store(&seen, 0);
    atomic_store(&hit, false);
    atomic_store(&scope_all, scope == ALLOC_FAIL_ALL_THREADS);
    selected = true;
    atomic_store(&mode, next_mode);
}

/* Starts an injection in which no allocation fails and all are counted. */
void alloc_fail_count(enum alloc_fail_scope scope)
{
    start(COUNT, 0, scope);
}

/* Starts an injection in which only allocation number k (from 0) fails. */
void alloc_fail_once(uint64_t k, enum alloc_fail_scope scope)
{
    start(ONCE, k, scope);
}

/* Starts an injection in which allocation number k (from 0) and all later ones fail. */
void alloc_fail_from(uint64_t k, enum alloc_fail_scope scope)
{
    start(FROM, k, scope);
}

/* Ends the injection. Returns true if an allocation has failed. */
bool alloc_fail_stop(void)
{
    atomic_store(&mode, OFF);
    selected = false;
    return atomic_load(&hit);
}

/* Returns the number of allocations since the start of the injection, failed ones included. */
uint64_t alloc_fail_seen(void)
{
    return atomic_load(&seen);
}

/* Exempts the calling thread: while `on`, its allocations are neither counted nor failed. Calls
 * nest. */
void alloc_fail_exempt(bool on)
{
    exempt_depth += on ? 1 : -1;
}

/* Adds the code of one loaded library, if its path contains one of the two names. */
static int add_range(struct dl_phdr_info *library, size_t size, void *names)
{
    const char *const *name = names;
    (void)size;
    if (strstr(library->dlpi_name, name[0]) == NULL && strstr(library->dlpi_name, name[1]) == NULL)
        return 0;
    for (unsigned i = 0; i < library->dlpi_phnum && ranges < RANGES_MAX; i++) {
        const ElfW(Phdr) *part = &library->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || (part->p_flags & PF_X) == 0)
            continue;
        exempted[ranges].begin = library->dlpi_addr + part->p_vaddr;
        exempted[ranges].end = exempted[ranges].begin + part->p_memsz;
        ranges++;
    }
    return 0;
}

/* Exempts the allocations of shared libraries whose path contains one of the two names. */
void alloc_fail_exempt_libraries(const char *name, const char *other)
{
    const char *names[] = {name, other};
    ranges = 0;
    dl_iterate_phdr(add_range, names);
}

/* Returns the number of blocks of the whole process that are allocated and not freed, for
 * comparisons before and after. */
int64_t alloc_fail_live(void)
{
    return atomic_load(&live);
}

/* Replaces malloc(): counts the allocation, and returns NULL if the injection says so. */
void *malloc(size_t size)
{
    if (!resolved())
        return early_alloc(size);
    return must_fail(CALLER()) ? NULL : counted(next_malloc(size));
}

/* Replaces calloc() in the same way as malloc() above. */
void *calloc(size_t count, size_t size)
{
    if (!resolved())
        return size != 0 && count > SIZE_MAX / size ? NULL : early_alloc(count * size);
    return must_fail(CALLER()) ? NULL : counted(next_calloc(count, size));
}

/* Replaces realloc(). A block of the array `early` is copied to a new block. */
void *realloc(void *block, size_t size)
{
    if (!resolved() || is_early(block)) {
        void *moved = malloc(size);
        if (moved != NULL && block != NULL) {
            const size_t room = (size_t)(early + EARLY_SIZE - (unsigned char *)block);
            memcpy(moved, block, size < room ? size : room);
        }
        return moved;
    }
    if (must_fail(CALLER()))
        return NULL;
    void *moved = next_realloc(block, size);
    if (block == NULL)
        return counted(moved);
    if (moved == NULL && size == 0)
        atomic_fetch_sub(&live, 1);
    return moved;
}

/* Replaces posix_memalign(). Returns ENOMEM if the injection says so. */
int posix_memalign(void **ret_block, size_t alignment, size_t size)
{
    if (!resolved() || must_fail(CALLER()))
        return ENOMEM;
    const int error = next_posix_memalign(ret_block, alignment, size);
    if (error == 0)
        counted(*ret_block);
    return error;
}

/* Replaces aligned_alloc(). Returns NULL if the injection says so. */
void *aligned_alloc(size_t alignment, size_t size)
{
    if (!resolved() || must_fail(CALLER()))
        return NULL;
    return counted(next_aligned_alloc(alignment, size));
}

/* Replaces free(): no longer counts the block as live. Blocks of the array `early` are not
 * freed. */
void free(void *block)
{
    if (block == NULL || is_early(block) || !resolved())
        return;
    atomic_fetch_sub(&live, 1);
    next_free(block);
}

/* Copies with the malloc() above. The address sanitizer's strdup() does not call malloc(), so that
 * alloc_fail_live() would only count how its blocks are freed. */
char *strndup(const char *text, size_t size)
{
    const size_t length = strnlen(text, size);
    char *copy = malloc(length + 1);
    if (copy == NULL)
        return NULL;
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

/* Replaces strdup() for the same reason as strndup() above. */
char *strdup(const char *text)
{
    return strndup(text, SIZE_MAX);
}

/* Exempts the allocation that this call makes. Sanitizers make the call in each new thread and
 * abort if it fails. */
int pthread_getattr_np(pthread_t thread, pthread_attr_t *ret_attr)
{
    alloc_fail_exempt(true);
    if (next_getattr == NULL)
        find(&next_getattr, "pthread_getattr_np");
    const int error = next_getattr(thread, ret_attr);
    alloc_fail_exempt(false);
    return error;
}
