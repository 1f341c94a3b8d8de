/* SPDX-License-Identifier: MIT
 * Computes the pause before the next attempt of a lock, by exponential backoff with full jitter,
 * and the delay before the next connection. */
#ifndef RL_CORE_BACKOFF_H
#define RL_CORE_BACKOFF_H

#include "core/types.h"

/* Bounds of a pause, from the configuration; never changed afterwards. */
struct rl_backoff {
    uint64_t min_ns; /* lower bound */
    uint64_t max_ns; /* upper bound; round trips may exceed it, see rl_backoff_ns() */
};

/* Returns a pause in nanoseconds, uniform in [low, high], where low = max(min, 3 * round trip) and
 * high = max(low, min(max, low * 2^failures)); if low is above min, high is at least 2 * low after
 * a failure, so that the pause always has a random part. `failures` is the number of failed
 * attempts in a row, `random` one uniformly random word. Three round trips are the least, because
 * an attempt of another contender needs that long to end. */
uint64_t rl_backoff_ns(const struct rl_backoff *bounds, unsigned failures, uint64_t round_trip_ns,
                       uint64_t random);

/* Returns the delay in nanoseconds before the next connection: min_ns, doubled for each of the
 * `failures` failed connections in a row, at most max_ns; less a random part of up to a quarter, so
 * that clients that lost the same server do not connect together. `random` is a random word. */
uint64_t rl_backoff_connect_ns(const struct rl_backoff *bounds, unsigned failures, uint64_t random);

/* Returns a random word for one decision of one lease. `random` is the word that all leases of a
 * tick share, `salt` differs between leases, and `count` between the decisions of a lease. So
 * leases that fail in the same tick do not retry at the same time. */
static inline uint64_t rl_jitter(uint64_t random, uint64_t salt, uint64_t count)
{
    return rl_mix((random ^ salt) + count * RL_MIX_STEP);
}

#endif
