/* SPDX-License-Identifier: MIT
 * Memory: the caller's functions get every call that could allocate or free something, overflow is
 * refused, secrets are wiped before they are freed. */
#include "platform/memory.h"

#include <stdlib.h>
#include <string.h>

#include "suite.h"

/* An allocator that counts its calls, fills new memory of malloc with garbage, and can be made to
 * fail. */
struct heap {
    unsigned mallocs, reallocs, frees;
    bool broken;
    size_t last_size;
    unsigned char freed[32]; /* first bytes of the last block, as they were when it was freed */
};

/* Counts the call and allocates a block filled with 0xa5; NULL if the heap is broken. */
static void *heap_malloc(size_t size, void *userdata)
{
    struct heap *heap = userdata;
    heap->mallocs++;
    heap->last_size = size;
    if (heap->broken)
        return NULL;
    unsigned char *ptr = malloc(size < sizeof heap->freed ? sizeof heap->freed : size);
    ck_assert_ptr_nonnull(ptr);
    memset(ptr, 0xa5, size < sizeof heap->freed ? sizeof heap->freed : size);
    return ptr;
}

/* Counts the call and reallocates; NULL if the heap is broken. */
static void *heap_realloc(void *ptr, size_t size, void *userdata)
{
    struct heap *heap = userdata;
    heap->reallocs++;
    heap->last_size = size;
    return heap->broken ? NULL
                        : realloc(ptr, size < sizeof heap->freed ? sizeof heap->freed : size);
}

/* Counts the call, copies the block's first bytes into heap->freed, and frees the block. */
static void heap_free(void *ptr, void *userdata)
{
    struct heap *heap = userdata;
    heap->frees++;
    memcpy(heap->freed, ptr, sizeof heap->freed);
    free(ptr);
}

/* Resets the heap and returns an allocator that uses it. */
static struct rl_mem heap_mem(struct heap *heap)
{
    memset(heap, 0, sizeof *heap);
    return (struct rl_mem){heap_malloc, heap_realloc, heap_free, heap};
}

START_TEST(allocated_memory_is_zero)
{
    struct heap heap;
    struct rl_mem mem = heap_mem(&heap);
    static const unsigned char zeroes[100];

    unsigned char *ptr = rl_alloc(&mem, sizeof zeroes);
    ck_assert_ptr_nonnull(ptr);
    ck_assert_uint_eq(heap.last_size, sizeof zeroes);
    ck_assert_mem_eq(ptr, zeroes, sizeof zeroes);
    rl_free(&mem, ptr);
    ck_assert_uint_eq(heap.mallocs, 1);
    ck_assert_uint_eq(heap.frees, 1);

    ptr = rl_alloc(&mem, 0); /* not NULL, which would mean a failure */
    ck_assert_ptr_nonnull(ptr);
    ck_assert_uint_eq(heap.last_size, 1);
    rl_free(&mem, ptr);
}
END_TEST

START_TEST(array_keeps_contents_and_refuses_overflow)
{
    struct heap heap;
    struct rl_mem mem = heap_mem(&heap);

    uint32_t *array = rl_realloc_array(&mem, NULL, 10, sizeof *array);
    ck_assert_ptr_nonnull(array);
    ck_assert_uint_eq(heap.mallocs, 1); /* user functions need not know realloc(NULL) */
    ck_assert_uint_eq(heap.last_size, 40);
    for (uint32_t i = 0; i < 10; i++)
        array[i] = i * i;
    uint32_t *grown = rl_realloc_array(&mem, array, 1000, sizeof *array);
    ck_assert_ptr_nonnull(grown);
    ck_assert_uint_eq(heap.reallocs, 1);
    for (uint32_t i = 0; i < 10; i++)
        ck_assert_uint_eq(grown[i], i * i);

    ck_assert_ptr_null(rl_realloc_array(&mem, grown, SIZE_MAX / 4 + 1, 4));
    ck_assert_ptr_null(rl_realloc_array(&mem, grown, SIZE_MAX, SIZE_MAX));
    ck_assert_ptr_null(rl_realloc_array(&mem, NULL, SIZE_MAX, 2));
    ck_assert_uint_eq(heap.reallocs + heap.mallocs, 2);

    heap.broken = true;
    ck_assert_ptr_null(rl_realloc_array(&mem, grown, 2000, sizeof *grown));
    ck_assert_uint_eq(grown[9], 81); /* unchanged */
    heap.broken = false;
    grown = rl_realloc_array(&mem, grown, 0, sizeof *grown);
    ck_assert_ptr_nonnull(grown);
    ck_assert_uint_eq(heap.last_size, 1);
    rl_free(&mem, grown);
}
END_TEST

START_TEST(strdup_copies_exactly)
{
    struct heap heap;
    struct rl_mem mem = heap_mem(&heap);

    char *copy = rl_strdup_len(&mem, "redlock", 3);
    ck_assert_str_eq(copy, "red");
    ck_assert_uint_eq(heap.last_size, 4);
    rl_free(&mem, copy);
    copy = rl_strdup_len(&mem, NULL, 0);
    ck_assert_str_eq(copy, "");
    rl_free(&mem, copy);
    ck_assert_ptr_null(rl_strdup_len(&mem, "x", SIZE_MAX));
    ck_assert_uint_eq(heap.mallocs, 2);
}
END_TEST

START_TEST(wiped_memory_holds_nothing_when_freed)
{
    struct heap heap;
    struct rl_mem mem = heap_mem(&heap);
    static const unsigned char zeroes[16];

    char *secret = rl_strdup_len(&mem, "0123456789abcdef", 16);
    rl_free(&mem, secret);
    ck_assert_mem_eq(heap.freed, "0123456789abcdef", 16); /* without wiping */

    secret = rl_strdup_len(&mem, "0123456789abcdef", 16);
    rl_free_wiped(&mem, secret, 16);
    ck_assert_uint_eq(heap.frees, 2);
    ck_assert_mem_eq(heap.freed, zeroes, 16);
}
END_TEST

START_TEST(freeing_null_does_nothing)
{
    struct heap heap;
    struct rl_mem mem = heap_mem(&heap);
    rl_free(&mem, NULL);
    rl_free_wiped(&mem, NULL, 100);
    ck_assert_uint_eq(heap.frees, 0);
}
END_TEST

START_TEST(failures_return_null)
{
    struct heap heap;
    struct rl_mem mem = heap_mem(&heap);
    heap.broken = true;
    ck_assert_ptr_null(rl_alloc(&mem, 8));
    ck_assert_ptr_null(rl_realloc_array(&mem, NULL, 8, 8));
    ck_assert_ptr_null(rl_strdup_len(&mem, "x", 1));
    ck_assert_uint_eq(heap.mallocs, 3);
}
END_TEST

START_TEST(the_allocator_of_libc_works)
{
    struct rl_mem mem = rl_mem_libc();
    char *text = rl_strdup_len(&mem, "x", 1);
    ck_assert_ptr_nonnull(text);
    text = rl_realloc_array(&mem, text, 100, 100);
    ck_assert_ptr_nonnull(text);
    ck_assert_str_eq(text, "x");
    rl_free_wiped(&mem, text, 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("platform_memory");
    TCase *tcase = tcase_create("memory");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, allocated_memory_is_zero);
    tcase_add_test(tcase, array_keeps_contents_and_refuses_overflow);
    tcase_add_test(tcase, strdup_copies_exactly);
    tcase_add_test(tcase, wiped_memory_holds_nothing_when_freed);
    tcase_add_test(tcase, freeing_null_does_nothing);
    tcase_add_test(tcase, failures_return_null);
    tcase_add_test(tcase, the_allocator_of_libc_works);
    return suite_run(suite);
}
