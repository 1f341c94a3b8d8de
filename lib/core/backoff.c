/* SPDX-License-Identifier: MIT
 * Full-jitter backoff: contenders that collided must not collide again in step. */
#include "core/backoff.h"

static uint64_t times_sat(uint64_t value, unsigned factor)
{
    return value > UINT64_MAX / factor ? UINT64_MAX : value * factor;
}

static uint64_t double_up_to(uint64_t value, unsigned times, uint64_t limit)
{
    while (times > 0 && value < limit && value != 0) {
        value = times_sat(value, 2);
        times--;
    }
    return rl_min_u64(value, limit);
}

uint64_t rl_backoff_ns(const struct rl_backoff *bounds, unsigned failures, uint64_t round_trip_ns,
                       uint64_t random)
{
    uint64_t low = rl_max_u64(bounds->min_ns, times_sat(round_trip_ns, 3));
    uint64_t high = rl_max_u64(low, double_up_to(low, failures, bounds->max_ns));

    /* high exceeds low only by doubling it, so low is not 0 then and the range has a size. The
     * remainder favours small values by less than that size / 2^64: nothing, for delays. */
    return low + random % (high - low + 1);
}
