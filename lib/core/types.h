/* SPDX-License-Identifier: MIT
 * Limits, basic types and arithmetic that all layers share. Nothing here needs a clock, memory, a
 * thread or a socket. */
#ifndef RL_CORE_TYPES_H
#define RL_CORE_TYPES_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RL_NODES_MAX    31  /* nodes of one shard; they fit into rl_nodes */
#define RL_SHARDS_MAX   16  /* shards of one client */
#define RL_RESOURCE_MAX 512 /* bytes of a resource's name, without the prefix */
#define RL_KEYS_MAX     64  /* resources of one lock */
#define RL_PREFIX_MAX   256 /* bytes of the key prefix */
#define RL_OWNER_MAX    128 /* bytes of the owner label */
#define RL_TOKEN_HEX    40  /* hex digits of a token: 160 random bits */
#define RL_TOKEN_MAX    (RL_TOKEN_HEX + 1 + RL_OWNER_MAX) /* bytes: hex digits [ "@" owner ] */
#define RL_KEY_MAX      (RL_PREFIX_MAX + RL_RESOURCE_MAX) /* bytes of a key */
#define RL_PERMITS_MAX  1024                              /* permits of one semaphore */
#define RL_SUFFIX_MAX   8 /* bytes reserved for the suffix of a key; "{#1023}", a slot, needs 7 */
#define RL_LINE_SUFFIX  "{#q}"     /* what the key of a line has behind the key of the lock */
#define RL_NEVER        UINT64_MAX /* as a time or a duration in ns: no end, or not set */
#define RL_MS           UINT64_C(1000000)    /* nanoseconds of a millisecond */
#define RL_US           UINT64_C(1000)       /* nanoseconds of a microsecond */
#define RL_SECOND       UINT64_C(1000000000) /* nanoseconds of a second */

/* Bytes of the text of a waiter in a line: when its wait began, a blank, and the owner label. */
#define RL_LINE_TEXT_MAX (20 + 1 + RL_OWNER_MAX)

/* In place of a slot number: no particular slot. In a WAKE: the key of any slot may have changed.
 * In a claim (lib/node/claim.h): no slot was chosen yet. */
#define RL_SLOT_ANY UINT16_MAX

/* Aborts the process if an invariant is broken, in release builds, too: a lock library that
 * continues with a broken invariant can grant one lock twice. With -Dassertions=false the result of
 * the condition is ignored, and the compiler removes the test. */
#ifdef NDEBUG
#define RL_ASSERT(condition) ((void)(condition))
#else
#define RL_ASSERT(condition) assert(condition)
#endif

/* A function that is called rarely, by a frequent one. It is not inlined, so that the frequent one
 * does not save the registers that only the rare one needs. */
#define RL_RARE __attribute__((noinline, cold))

/* A set of nodes of one shard: bit i stands for node i, in the order of the configuration. */
typedef uint32_t rl_nodes;
/* The set that contains node `i` alone; `i` < RL_NODES_MAX. */
#define RL_NODE(i) ((rl_nodes)1u << (i))

/* An instant on two local clocks, both in nanoseconds. CLOCK_BOOTTIME counts the time of a suspend,
 * but is slewed by NTP. CLOCK_MONOTONIC_RAW is not slewed, but stops in a suspend. A deadline has
 * passed as soon as one of the two clocks has reached it. */
struct rl_now {
    uint64_t boot_ns; /* CLOCK_BOOTTIME */
    uint64_t raw_ns;  /* CLOCK_MONOTONIC_RAW */
};

/* Buckets of a histogram of durations. */
#define RL_BUCKETS 32

/* Counts a duration in a histogram. Bucket i counts durations in [2^i, 2^(i+1)) us. The first
 * bucket also counts 0, the last one all longer durations. */
static inline void rl_count_us(uint64_t hist[RL_BUCKETS], uint64_t us)
{
    unsigned bucket = 63u - (unsigned)__builtin_clzll(us | 1);

    hist[bucket < RL_BUCKETS ? bucket : RL_BUCKETS - 1]++;
}

/* Returns the number of nodes in `set`. */
static inline unsigned rl_nodes_count(rl_nodes set)
{
    /* Not __builtin_popcount(): without -mpopcnt that is a function call, and each vote needs
     * several counts. */
    set -= set >> 1 & 0x55555555u;
    set = (set & 0x33333333u) + (set >> 2 & 0x33333333u);
    set = (set + (set >> 4)) & 0x0f0f0f0fu;
    return set * 0x01010101u >> 24;
}

/* Returns the set of the nodes 0 to `count` - 1; `count` <= RL_NODES_MAX. */
static inline rl_nodes rl_nodes_all(unsigned count)
{
    return (rl_nodes)((UINT64_C(1) << count) - 1u);
}

/* Returns a - b, or 0 if that is negative. */
static inline uint64_t rl_sub_sat(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* Returns a + b, or UINT64_MAX if that overflows. */
static inline uint64_t rl_add_sat(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Returns `word` mixed so that each bit of it changes about half of the result's bits: the output
 * function of SplitMix64. A counter that advances by RL_MIX_STEP becomes a random sequence. Not for
 * secrets. */
#define RL_MIX_STEP UINT64_C(0x9e3779b97f4a7c15)
static inline uint64_t rl_mix(uint64_t word)
{
    word = (word ^ (word >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    word = (word ^ (word >> 27)) * UINT64_C(0x94d049bb133111eb);
    return word ^ (word >> 31);
}

/* Returns the smaller of the two. */
static inline uint64_t rl_min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Returns the larger of the two. */
static inline uint64_t rl_max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

#endif
