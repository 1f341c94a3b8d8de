/* SPDX-License-Identifier: MIT
 * The timer heap: random operations, compared with a list that is searched from end to end. */
#include "engine/heap.h"

#include <stdlib.h>
#include <string.h>

/* Saves the time of Check's note about each assertion; see suite.h. */
#define SUITE_MANY_ASSERTIONS
#include "suite.h"

#define LOCKS 300

static struct rl_mem libc;
static struct rl_lock locks[LOCKS];
static uint64_t word; /* state of the random generator */

/* Returns a random number below `below`. */
static uint64_t random_below(uint64_t below)
{
    word ^= word << 13;
    word ^= word >> 7;
    word ^= word << 17;
    return word % below;
}

/* Empties the heap, with memory for all locks, and takes all locks out. */
static void init(struct rl_heap *heap)
{
    libc = rl_mem_libc();
    *heap = (struct rl_heap){.mem = &libc};
    memset(locks, 0, sizeof locks);
    for (unsigned i = 0; i < LOCKS; i++) {
        locks[i].heap_at = RL_HEAP_NONE;
        locks[i].lease.wake_ns = RL_NEVER;
    }
    ck_assert(rl_heap_reserve(heap, LOCKS));
}

/* Sets the wake time of a lock; RL_NEVER takes it out of the heap. */
static void set(struct rl_heap *heap, unsigned lock, uint64_t wake_ns)
{
    locks[lock].lease.wake_ns = wake_ns;
    rl_heap_set(heap, &locks[lock]);
}

/* Checks that each lock with a wake time is in the heap once, at its `heap_at`, and that the first
 * lock is due first. */
static void check(const struct rl_heap *heap)
{
    uint64_t first_ns = RL_NEVER;
    unsigned members = 0;

    for (unsigned i = 0; i < LOCKS; i++) {
        uint64_t wake_ns = locks[i].lease.wake_ns;
        uint32_t at = locks[i].heap_at;
        bool fits = wake_ns == RL_NEVER ? at == RL_HEAP_NONE
                                        : at < heap->count && heap->list[at] == &locks[i] &&
                                              locks[i].due_ns == wake_ns;
        if (!fits)
            ck_abort_msg("lock %u is at %u of %u", i, at, heap->count);
        if (wake_ns == RL_NEVER)
            continue;
        members++;
        first_ns = wake_ns < first_ns ? wake_ns : first_ns;
    }
    ck_assert_uint_eq(heap->count, members);
    const struct rl_lock *first = rl_heap_first(heap);
    if (members == 0)
        ck_assert_ptr_null(first);
    else
        ck_assert_uint_eq(first->due_ns, first_ns);
}

START_TEST(random_operations_agree_with_a_search)
{
    struct rl_heap heap;

    init(&heap);
    word = 88172645463325252u + (uint64_t)_i;
    for (unsigned i = 0; i < 4000; i++) {
        /* Sometimes few locks, so that it runs empty; few times, so that many are equal. */
        unsigned lock = (unsigned)random_below(i % 1024 < 256 ? 4 : LOCKS);
        uint64_t range = _i % 2 == 0 ? 20 : UINT64_MAX - 1;
        set(&heap, lock, random_below(3) == 0 ? RL_NEVER : random_below(range));
        if (i % 16 == 0)
            check(&heap);
        if (random_below(8) == 0 && heap.count > 0) { /* as the engine does with the first lock */
            struct rl_lock *first = rl_heap_first(&heap);
            set(&heap, (unsigned)(first - locks),
                random_below(2) == 0 ? RL_NEVER
                                     : rl_add_sat(first->due_ns, random_below(50)) & ~UINT64_C(1));
        }
    }
    check(&heap);
    rl_heap_free(&heap);
}
END_TEST

START_TEST(locks_come_out_in_order)
{
    struct rl_heap heap;

    init(&heap);
    word = 42;
    for (unsigned i = 0; i < LOCKS; i++)
        set(&heap, i, random_below(1000));
    uint64_t last_ns = 0;
    for (unsigned left = LOCKS; left > 0; left--) {
        struct rl_lock *first = rl_heap_first(&heap);
        ck_assert_uint_eq(heap.count, left);
        ck_assert_uint_ge(first->due_ns, last_ns);
        last_ns = first->due_ns;
        set(&heap, (unsigned)(first - locks), RL_NEVER);
    }
    ck_assert_ptr_null(rl_heap_first(&heap));
    set(&heap, 7, RL_NEVER); /* a lock that is not in the heap stays out */
    ck_assert_ptr_null(rl_heap_first(&heap));
    rl_heap_free(&heap);
}
END_TEST

/* Fails, as an allocator without memory. */
static void *no_memory(void *ptr, size_t size, void *userdata)
{
    (void)ptr;
    (void)size;
    (void)userdata;
    return NULL;
}

/* Without memory the members stay, and a reserved place can still be used. */
START_TEST(without_memory_members_stay)
{
    struct rl_heap heap;
    struct rl_mem broken = rl_mem_libc();

    init(&heap);
    for (unsigned i = 0; i < LOCKS; i++)
        set(&heap, i, LOCKS - i);
    uint32_t cap = heap.cap;
    broken.malloc_fn = NULL;
    broken.realloc_fn = no_memory;
    heap.mem = &broken;
    ck_assert(rl_heap_reserve(&heap, cap));
    ck_assert(!rl_heap_reserve(&heap, cap + 1));
    ck_assert_uint_eq(heap.cap, cap);
    heap.mem = &libc;
    check(&heap);
    ck_assert(rl_heap_reserve(&heap, 10 * cap));
    ck_assert_uint_ge(heap.cap, 10 * cap);
    check(&heap);
    rl_heap_free(&heap);
    ck_assert_ptr_null(rl_heap_first(&heap));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("engine_heap");
    TCase *tcase = tcase_create("heap");
    tcase_set_timeout(tcase, 60);
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, random_operations_agree_with_a_search, 0, 4);
    tcase_add_test(tcase, locks_come_out_in_order);
    tcase_add_test(tcase, without_memory_members_stay);
    return suite_run(suite);
}
