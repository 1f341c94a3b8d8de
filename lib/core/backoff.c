/* SPDX-License-Identifier: MIT
 * Exponential backoff: with full jitter for attempts, so that contenders that split the votes retry
 * at different times; with a quarter of jitter for connections. */
#include "core/backoff.h"

/* Returns value * factor, or UINT64_MAX if that overflows; factor > 0. */
static uint64_t times_sat(uint64_t value, unsigned factor)
{
    return value > UINT64_MAX / factor ? UINT64_MAX : value * factor;
}

/* Returns the smaller of value * 2^times and `limit`. */
static uint64_t double_up_to(uint64_t value, unsigned times, uint64_t limit)
{
    while (times > 0 && value < limit && value != 0) {
        value = times_sat(value, 2);
        times--;
    }
    return rl_min_u64(value, limit);
}

/* Returns a random pause in nanoseconds after `failures` failed attempts in a row, each value
 * between two bounds being equally likely. The lower bound is min_ns, but at least three round
 * trips. The upper bound doubles with each failure, up to max_ns. If three round trips are the
 * lower bound, the upper one is at least six after a failure, even above max_ns: without a random
 * part, two contenders could split the votes again and again. `random` is a random word. */
uint64_t rl_backoff_ns(const struct rl_backoff *bounds, unsigned failures, uint64_t round_trip_ns,
                       uint64_t random)
{
    uint64_t low = rl_max_u64(bounds->min_ns, times_sat(round_trip_ns, 3));
    uint64_t high = rl_max_u64(low, double_up_to(low, failures, bounds->max_ns));

    if (failures > 0 && low > bounds->min_ns)
        high = rl_max_u64(high, times_sat(low, 2));

    /* The divisor is never 0: it would be so for low = 0 and high = UINT64_MAX only, and a low of 0
     * is not doubled. The remainder favours small values by less than the size of the range / 2^64,
     * which is negligible for pauses. */
    return low + random % (high - low + 1);
}

/* Returns the delay in nanoseconds before the next connection after `failures` failed ones in a
 * row. It doubles from min_ns to max_ns, and a random part of up to a quarter is subtracted. */
uint64_t rl_backoff_connect_ns(const struct rl_backoff *bounds, unsigned failures, uint64_t random)
{
    uint64_t delay_ns = double_up_to(bounds->min_ns, failures, bounds->max_ns);

    return delay_ns - random % (delay_ns / 4 + 1);
}
