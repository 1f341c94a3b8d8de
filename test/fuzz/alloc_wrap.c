/* SPDX-License-Identifier: MIT
 * Implements alloc_fail.h for programs built with libFuzzer. There the sanitizer's own malloc must
 * stay in place. So the linker redirects the calls of the program's objects (the library and a
 * static hiredis among them) to this file: -Wl,--wrap=malloc and so on. */
#include "alloc_fail.h"

#include <errno.h>
#include <stddef.h>

enum mode { OFF, COUNT, ONCE, FROM };

static enum mode mode;
static uint64_t target, seen;
static int64_t live;
static bool hit;
static int exempt_depth;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void __real_free(void *block);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
void __wrap_free(void *block);

/* Begins to count allocations for a failure at number `k`. */
static void start(enum mode next, uint64_t k)
{
    mode = next;
    target = k;
    seen = 0;
    hit = false;
}

/* Starts an injection in which no allocation fails and all are counted. Ignores the scope,
 * because there is only one thread. */
void alloc_fail_count(enum alloc_fail_scope scope)
{
    (void)scope;
    start(COUNT, 0);
}

/* Starts an injection in which only allocation number k (from 0) fails. Ignores the scope. */
void alloc_fail_once(uint64_t k, enum alloc_fail_scope scope)
{
    (void)scope;
    start(ONCE, k);
}

/* Starts an injection in which allocation number k (from 0) and all later ones fail. Ignores
 * the scope. */
void alloc_fail_from(uint64_t k, enum alloc_fail_scope scope)
{
    (void)scope;
    start(FROM, k);
}

/* Ends the injection. Returns true if an allocation has failed. */
bool alloc_fail_stop(void)
{
    mode = OFF;
    return hit;
}

/* Returns the number of allocations since the start of the injection, failed ones included. */
uint64_t alloc_fail_seen(void)
{
    return seen;
}

/* Exempts the calling thread: while `on`, its allocations are neither counted nor failed. Calls
 * nest. */
void alloc_fail_exempt(bool on)
{
    exempt_depth += on ? 1 : -1;
}

/* Returns the number of blocks of the whole process that are allocated and not freed, for
 * comparisons before and after. */
int64_t alloc_fail_live(void)
{
    return live;
}

/* Counts an allocation. Returns true if it must fail. */
static bool must_fail(void)
{
    if (mode == OFF || exempt_depth > 0)
        return false;
    uint64_t number = seen++;
    if (mode == COUNT || number < target || (mode == ONCE && number > target))
        return false;
    hit = true;
    errno = ENOMEM;
    return true;
}

/* Counts a block unless it is NULL, and returns it. */
static void *counted(void *block)
{
    live += block != NULL;
    return block;
}

/* Replaces malloc(): counts the allocation, and returns NULL if the injection says so. */
void *__wrap_malloc(size_t size)
{
    return must_fail() ? NULL : counted(__real_malloc(size));
}

/* Replaces calloc() in the same way. */
void *__wrap_calloc(size_t count, size_t size)
{
    return must_fail() ? NULL : counted(__real_calloc(count, size));
}

/* Replaces realloc() in the same way. A moved block stays one live block. */
void *__wrap_realloc(void *block, size_t size)
{
    if (must_fail())
        return NULL;
    void *moved = __real_realloc(block, size);
    return block == NULL ? counted(moved) : moved;
}

/* Replaces free(): no longer counts the block as live, unless it is NULL. */
void __wrap_free(void *block)
{
    live -= block != NULL;
    __real_free(block);
}
