/* SPDX-License-Identifier: MIT
 * How long to wait before the next attempt. */
#ifndef RL_CORE_BACKOFF_H
#define RL_CORE_BACKOFF_H

#include "core/types.h"

struct rl_backoff {
    uint64_t min_ns; /* lower bound of a delay */
    uint64_t max_ns; /* upper bound of a delay */
};

/* Full jitter: uniform in [low, high], where low = max(min, 3 * round trip) and
 * high = min(max, low * 2^failures) but never below low. `random` is one uniformly random word.
 * The lower bound keeps a contender from asking again before an attempt could have ended. */
uint64_t rl_backoff_ns(const struct rl_backoff *bounds, unsigned failures, uint64_t round_trip_ns,
                       uint64_t random);

/* A word for one decision of one lease, out of the random word of the tick: leases that fail in the
 * same tick must not come back together. */
static inline uint64_t rl_jitter(uint64_t random, uint64_t salt, uint64_t count)
{
    uint64_t word = (random ^ salt) + count * UINT64_C(0x9e3779b97f4a7c15);
    word = (word ^ (word >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    word = (word ^ (word >> 27)) * UINT64_C(0x94d049bb133111eb);
    return word ^ (word >> 31);
}

#endif
