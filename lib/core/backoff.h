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
    return rl_mix((random ^ salt) + count * RL_MIX_STEP);
}

#endif
