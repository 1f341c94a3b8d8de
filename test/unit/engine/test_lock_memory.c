/* SPDX-License-Identifier: MIT
 * Room beside a lock: what its kind needs and no more; terms that several locks have in common. */
#include "engine/engine.h"

#include <stdlib.h>
#include <string.h>

#include "suite.h"

#define NODES 5

static struct rl_engine engine;

static struct rl_lease_params params_of(uint64_t ttl_ms)
{
    return (struct rl_lease_params){
        .terms = {.kind = RL_LEASE_ACQUIRE, .nodes = NODES, .quorum = 3, .ttl_ns = ttl_ms * RL_MS},
    };
}

struct held {
    struct rl_lease lease;
    struct rl_room room;
};

static void setup(void)
{
    memset(&engine, 0, sizeof engine);
}

/* A lock as its owner makes it: memory of exactly so much, which the sanitizers watch. */
static struct held hold(const struct rl_lease_params *params)
{
    struct held held = {.room = rl_room_for(&engine, params)};

    held.room.at = calloc(1, held.room.size);
    ck_assert_ptr_nonnull(held.room.at);
    const struct rl_lease_room parts = rl_room_parts(&held.room, params);
    rl_lease_init(&held.lease, params, &parts);
    return held;
}

static void let_go(struct held *held)
{
    rl_room_leave(&engine, &held->lease);
    free(held->room.at);
}

/* Writes all of a part, so that one that is too small, or lies over another, shows. */
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
    params.fence_number = (_i & 4) != 0 ? 77 : 0;
    params.wait_ns = (_i & 8) != 0 ? RL_SECOND : 0;
    struct held held = hold(&params);
    struct rl_lease *lease = &held.lease;
    bool fenced = (_i & 6) != 0;
    ck_assert_int_eq(lease->permit != NULL, (_i & 1) != 0);
    ck_assert_int_eq(lease->fence != NULL, fenced);
    ck_assert_uint_eq(rl_lease_fence_number(lease), params.fence_number);
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
        ck_assert_uint_eq(rl_lease_fence_number(lease), UINT64_C(0x0202020202020202));
    ck_assert_uint_eq(lease->terms->ttl_ns, RL_SECOND);
    let_go(&held);
}
END_TEST

START_TEST(equal_terms_are_kept_once)
{
    struct rl_lease_params first = params_of(1000), second = params_of(1000);

    second.wait_ns = RL_NEVER;
    second.keys = 3;
    second.salt = 5;
    struct held one = hold(&first), two = hold(&second);
    ck_assert_ptr_eq(one.lease.terms, two.lease.terms);
    ck_assert_uint_eq(one.room.size, NODES * 5);
    ck_assert_uint_eq(two.lease.wait_ns, RL_NEVER);
    ck_assert_uint_eq(one.lease.wait_ns, 0);
    ck_assert_uint_eq(two.lease.keys, 3);
    ck_assert_uint_eq(two.lease.salt, 5);
    let_go(&one);
    ck_assert_uint_eq(two.lease.terms->ttl_ns, RL_SECOND);
    let_go(&two);
}
END_TEST

/* Every single one of them makes other terms. */
START_TEST(terms_are_compared_as_a_whole)
{
    struct rl_lease_params params = params_of(1000);
    struct rl_lease_terms *terms = &params.terms;
    struct held held = hold(&params);

    switch (_i) {
    case 0:
        terms->kind = RL_LEASE_ADOPT;
        break;
    case 1:
        terms->quorum++;
        break;
    case 2:
        terms->auto_extend = true;
        break;
    case 3:
        terms->fence = true;
        break;
    case 4:
        terms->permits++;
        break;
    case 5:
        terms->extends_max++;
        break;
    case 6:
        terms->drift.ppm++;
        break;
    case 7:
        terms->drift.floor_us++;
        break;
    case 8:
        terms->backoff.min_ns++;
        break;
    case 9:
        terms->backoff.max_ns++;
        break;
    case 10:
        terms->ttl_ns++;
        break;
    case 11:
        terms->validity_min_ns++;
        break;
    case 12:
        terms->extend_at_ns++;
        break;
    case 13:
        terms->hold_max_ns++;
        break;
    case 14:
        terms->margin_ns++;
        break;
    case 15:
        terms->wall_slack_us++;
        break;
    default:
        terms->nodes = NODES + 1;
        break;
    }
    struct held other = hold(&params);
    ck_assert_ptr_ne(held.lease.terms, other.lease.terms);
    ck_assert_int_eq(memcmp(other.lease.terms, terms, sizeof *terms), 0);
    let_go(&held);
    let_go(&other);
}
END_TEST

/* Whoever finds no place keeps his own; a place is free again with its last lock. */
START_TEST(places_are_few)
{
    struct held held[RL_TERMS_MAX + 1];
    struct rl_lease_params params;

    for (unsigned i = 0; i <= RL_TERMS_MAX; i++) {
        params = params_of(1000 + i);
        held[i] = hold(&params);
        bool shares = i < RL_TERMS_MAX;
        ck_assert_int_eq(held[i].room.shared != NULL, shares);
        ck_assert_uint_eq(held[i].room.size,
                          NODES * 5 + (shares ? 0 : sizeof(struct rl_lease_terms)));
    }
    for (unsigned i = 0; i <= RL_TERMS_MAX; i++)
        ck_assert_uint_eq(held[i].lease.terms->ttl_ns, (1000 + i) * RL_MS);
    params = params_of(1001);
    struct held again = hold(&params);
    ck_assert_ptr_eq(again.lease.terms, held[1].lease.terms);
    let_go(&held[1]);
    params = params_of(5000);
    struct held other = hold(&params);
    ck_assert_ptr_null(other.room.shared); /* one still has it */
    let_go(&other);
    let_go(&again);
    other = hold(&params);
    ck_assert_ptr_nonnull(other.room.shared);
    let_go(&other);
    for (unsigned i = 0; i <= RL_TERMS_MAX; i++) {
        if (i != 1)
            let_go(&held[i]);
    }
}
END_TEST

START_TEST(two_kinds_by_turns_have_a_place_each)
{
    struct rl_lease_params params[] = {params_of(1000), params_of(2000)};
    const struct rl_lease_terms *places[2] = {NULL, NULL};

    for (unsigned i = 0; i < 6; i++) {
        struct held held = hold(&params[i % 2]);
        ck_assert(places[i % 2] == NULL || places[i % 2] == held.lease.terms);
        places[i % 2] = held.lease.terms;
        let_go(&held);
    }
    ck_assert_ptr_ne(places[0], places[1]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("engine_lock_memory");
    TCase *tcase = tcase_create("room");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, NULL);
    tcase_add_loop_test(tcase, each_kind_has_what_it_needs, 0, 16);
    tcase_add_test(tcase, equal_terms_are_kept_once);
    tcase_add_loop_test(tcase, terms_are_compared_as_a_whole, 0, 17);
    tcase_add_test(tcase, places_are_few);
    tcase_add_test(tcase, two_kinds_by_turns_have_a_place_each);
    return suite_run(suite);
}
