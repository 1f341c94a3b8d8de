/* SPDX-License-Identifier: MIT
 * The memory next to a lock: as much as its kind needs, and no more. */
#include "engine/storage.h"

#include <stdlib.h>
#include <string.h>

#include "suite.h"

#define NODES 5

/* Returns the parameters of an acquisition with this TTL. */
static struct rl_lease_params params_of(uint64_t ttl_ms)
{
    return (struct rl_lease_params){
        .terms = {.kind = RL_LEASE_ACQUIRE, .nodes = NODES, .quorum = 3, .ttl_ns = ttl_ms * RL_MS},
    };
}

struct held {
    struct rl_lease lease;
    struct rl_storage room;
};

/* Creates a lease in a block of exactly the needed size, so that sanitizers detect overruns. */
static struct held hold(const struct rl_lease_params *params)
{
    struct held held = {.room = rl_storage_for(params)};

    held.room.at = calloc(1, held.room.size);
    ck_assert_ptr_nonnull(held.room.at);
    const struct rl_lease_storage parts = rl_storage_parts(&held.room, params);
    rl_lease_init(&held.lease, params, &parts);
    return held;
}

/* Frees the memory next to a lock. */
static void free_room(struct held *held)
{
    free(held->room.at);
}

/* Fills a part, so that a part that is too small or overlaps another one is detected. */
static void fill(void *part, int byte, size_t size)
{
    ck_assert_uint_eq((uintptr_t)part % (size >= 8 ? _Alignof(uint64_t) : 1), 0);
    memset(part, byte, size);
}

START_TEST(each_kind_has_what_it_needs)
{
    struct rl_lease_params params = params_of(1000);

    params.terms.permits = (_i & 1) != 0 ? 7 : 0;
    params.terms.fence = (_i & 2) != 0;
    params.fence = (_i & 4) != 0 ? 77 : 0;
    params.wait_ns = (_i & 8) != 0 ? RL_SECOND : 0;
    struct held held = hold(&params);
    struct rl_lease *lease = &held.lease;
    bool fenced = (_i & 6) != 0;
    ck_assert_int_eq(lease->permit != NULL, (_i & 1) != 0);
    ck_assert_int_eq(lease->fence != NULL, fenced);
    ck_assert_uint_eq(rl_lease_fence_chosen(lease), params.fence);
    ck_assert_uint_eq(rl_lease_slot(lease), 0);
    if (lease->permit != NULL)
        fill(lease->permit, 1, sizeof *lease->permit);
    if (fenced)
        fill(lease->fence, 2, sizeof *lease->fence);
    ck_assert_int_eq(lease->decided != NULL, (_i & 8) != 0);
    if (lease->decided != NULL) {
        fill(lease->decided->round.cause, 6, NODES);
        for (unsigned i = 0; i < NODES; i++)
            lease->decided->round.rtt_us[i] = 7;
        fill(lease->decided, 8, sizeof *lease->decided);
    }
    fill(lease->round.cause, 4, NODES);
    for (unsigned i = 0; i < NODES; i++)
        lease->round.rtt_us[i] = 5;
    for (unsigned i = 0; i < NODES; i++)
        ck_assert_uint_eq(lease->round.cause[i], 4);
    if (lease->permit != NULL)
        ck_assert_uint_eq(rl_lease_slot(lease), 0x101);
    if (fenced)
        ck_assert_uint_eq(rl_lease_fence_chosen(lease), UINT64_C(0x0202020202020202));
    ck_assert_uint_eq(lease->terms->ttl_ns, RL_SECOND);
    free_room(&held);
}
END_TEST

/* The lease keeps a copy, so the caller's parameters may change or be freed. */
START_TEST(terms_are_copied)
{
    struct rl_lease_params params = params_of(1000);
    const struct rl_lease_terms terms = params.terms;
    struct held held = hold(&params);

    memset(&params, 0xff, sizeof params);
    ck_assert_int_eq(memcmp(held.lease.terms, &terms, sizeof terms), 0);
    ck_assert_uint_eq(held.room.size, sizeof terms + NODES * 5);
    free_room(&held);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("engine_lock_memory");
    TCase *tcase = tcase_create("room");
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, each_kind_has_what_it_needs, 0, 16);
    tcase_add_test(tcase, terms_are_copied);
    return suite_run(suite);
}
