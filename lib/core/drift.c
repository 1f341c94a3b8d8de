/* SPDX-License-Identifier: MIT
 * Computes drift, usable time, deadlines and remaining time. Every rounding shortens the validity.
 */
#include "core/drift.h"

#define PPM            UINT64_C(1000000) /* divisor of parts per million */
#define LOSS_MARGIN_NS (5 * RL_MS)       /* least loss margin of any TTL */

/* Returns a * b, or UINT64_MAX if that overflows. */
static uint64_t mul_sat(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* Returns the drift of a TTL in nanoseconds: the part in ppm, rounded up, and the constant part. */
uint64_t rl_drift_ns(uint64_t ttl_ns, const struct rl_drift *drift)
{
    /* Multiplies quotient and remainder separately: ttl_ns * ppm may overflow. */
    uint64_t whole = mul_sat(ttl_ns / PPM, drift->ppm);
    uint64_t rest = ((ttl_ns % PPM) * drift->ppm + PPM - 1) / PPM;
    return rl_add_sat(rl_add_sat(whole, rest), drift->constant_us * RL_US);
}

/* Returns the loss margin of a TTL in nanoseconds: how long before the end of the validity the lock
 * counts as lost. It is a thousandth of the TTL, rounded up, but at least 5 ms. */
uint64_t rl_loss_margin_ns(uint64_t ttl_ns)
{
    uint64_t thousandth = ttl_ns / 1000 + (ttl_ns % 1000 != 0);
    return rl_max_u64(LOSS_MARGIN_NS, thousandth);
}

/* Returns the usable time of a TTL in nanoseconds: what is left without drift and loss margin; at
 * least 0. */
uint64_t rl_usable_ns(uint64_t ttl_ns, const struct rl_drift *drift)
{
    uint64_t left = rl_sub_sat(ttl_ns, rl_drift_ns(ttl_ns, drift));
    return rl_sub_sat(left, rl_loss_margin_ns(ttl_ns));
}

/* Returns the shortest TTL, in whole milliseconds but as nanoseconds, whose usable time is at least
 * `usable_ns`. */
uint64_t rl_ttl_for_ns(uint64_t usable_ns, const struct rl_drift *drift)
{
    uint64_t ttl_ns = usable_ns, before_ns;

    /* Iterates ttl = usable + drift(ttl) + margin(ttl) from below. Drift and margin grow by little
     * more than half of what the TTL grows by, so the distance to the fixed point shrinks by a
     * constant factor in each step. */
    do {
        before_ns = ttl_ns;
        ttl_ns = rl_add_sat(rl_add_sat(usable_ns, rl_drift_ns(before_ns, drift)),
                            rl_loss_margin_ns(before_ns));
    } while (ttl_ns > before_ns);
    uint64_t part_ns = ttl_ns % RL_MS;
    ttl_ns = part_ns != 0 ? rl_add_sat(ttl_ns, RL_MS - part_ns) : ttl_ns;
    /* Drift and margin round up separately, so a longer TTL may have a usable time that is shorter
     * by a nanosecond. One more millisecond makes up for that. */
    return rl_usable_ns(ttl_ns, drift) >= usable_ns ? ttl_ns : rl_add_sat(ttl_ns, RL_MS);
}

/* Returns the deadline of a lock whose keys have this TTL and were set at `t1` or later. */
struct rl_now rl_deadline(struct rl_now t1, uint64_t ttl_ns, const struct rl_drift *drift)
{
    return rl_later(t1, rl_usable_ns(ttl_ns, drift));
}

/* Returns the time in nanoseconds until one of the two clocks reaches `deadline`; 0 if one has. */
uint64_t rl_remaining_ns(struct rl_now deadline, struct rl_now now)
{
    uint64_t raw_ns = rl_sub_sat(deadline.raw_ns, now.raw_ns);

    return rl_min_u64(rl_sub_sat(deadline.boot_ns, now.boot_ns), raw_ns);
}

/* Returns the time in nanoseconds from `since` to `now`, on the clock that shows more of it. */
uint64_t rl_elapsed_ns(struct rl_now since, struct rl_now now)
{
    return rl_max_u64(rl_sub_sat(now.boot_ns, since.boot_ns), rl_sub_sat(now.raw_ns, since.raw_ns));
}

/* Returns the instant `ns` after `from`, on both clocks. */
struct rl_now rl_later(struct rl_now from, uint64_t ns)
{
    struct rl_now later = {
        .boot_ns = rl_add_sat(from.boot_ns, ns),
        .raw_ns = rl_add_sat(from.raw_ns, ns),
    };
    return later;
}
