/* SPDX-License-Identifier: MIT
 * The few types that every floor shares. Nothing here needs a clock, memory, a thread or a socket.
 */
#ifndef RL_CORE_TYPES_H
#define RL_CORE_TYPES_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RL_NODES_MAX    31
#define RL_SHARDS_MAX   16
#define RL_RESOURCE_MAX 512 /* bytes of a resource, without the prefix */
#define RL_KEYS_MAX     64  /* resources of one lock */
#define RL_PREFIX_MAX   256
#define RL_OWNER_MAX    128
#define RL_TOKEN_HEX    40                                /* 160 random bits */
#define RL_TOKEN_MAX    (RL_TOKEN_HEX + 1 + RL_OWNER_MAX) /* hex [ "@" owner ] */
#define RL_KEY_MAX      (RL_PREFIX_MAX + RL_RESOURCE_MAX)
#define RL_PERMITS_MAX  1024
#define RL_SUFFIX_MAX   8 /* bytes that a slot's key is longer than the name: {#1023} and a spare */
#define RL_NEVER        UINT64_MAX
#define RL_MS           UINT64_C(1000000)
#define RL_US           UINT64_C(1000)
#define RL_SECOND       UINT64_C(1000000000)

/* Stays on in release builds: a broken invariant in a lock library must stop, not continue. */
#define RL_ASSERT(condition) assert(condition)

/* A set of nodes: bit i is node i. Thirty-one nodes fit, so sets are copied and compared as one
 * word. */
typedef uint32_t rl_nodes;
#define RL_NODE(i) ((rl_nodes)1u << (i))

/* One reading of both clocks: CLOCK_BOOTTIME counts suspend, CLOCK_MONOTONIC_RAW is not slewed.
 * Whatever must hold in time must hold on both. */
struct rl_now {
    uint64_t boot_ns;
    uint64_t raw_ns;
};

#define RL_BUCKETS 32

/* Counts a duration in a histogram: bucket i holds those in [2^i, 2^(i+1)) us, the last one all
 * longer ones, the first one also 0. */
static inline void rl_count_us(uint64_t hist[RL_BUCKETS], uint64_t us)
{
    unsigned bucket = us == 0 ? 0 : 63u - (unsigned)__builtin_clzll(us);

    hist[bucket < RL_BUCKETS ? bucket : RL_BUCKETS - 1]++;
}

static inline unsigned rl_nodes_count(rl_nodes set)
{
    /* By hand: without -mpopcnt the compiler calls a function, several times for each vote. */
    set -= set >> 1 & 0x55555555u;
    set = (set & 0x33333333u) + (set >> 2 & 0x33333333u);
    set = (set + (set >> 4)) & 0x0f0f0f0fu;
    return set * 0x01010101u >> 24;
}

static inline rl_nodes rl_nodes_all(unsigned count)
{
    return (rl_nodes)((UINT64_C(1) << count) - 1u);
}

static inline uint64_t rl_sub_sat(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static inline uint64_t rl_add_sat(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Spreads a counter or a key over all bits: the output function of SplitMix64. Counters advance by
 * RL_MIX_STEP. */
#define RL_MIX_STEP UINT64_C(0x9e3779b97f4a7c15)
static inline uint64_t rl_mix(uint64_t word)
{
    word = (word ^ (word >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    word = (word ^ (word >> 27)) * UINT64_C(0x94d049bb133111eb);
    return word ^ (word >> 31);
}

static inline uint64_t rl_min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t rl_max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

#endif
