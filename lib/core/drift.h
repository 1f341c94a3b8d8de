/* SPDX-License-Identifier: MIT
 * The validity arithmetic of Redlock: how long a lock may be relied on after its keys were set.
 *
 *   validity = ttl - elapsed - drift,  drift = ceil(ttl * ppm / 10^6) + constant
 *
 * `ttl` is the TTL of the keys. `elapsed` is the time since T1, the instant read before the first
 * SET was sent: no key can have been set before T1, so no key expires before T1 + ttl, measured on
 * its server's clock. `drift` covers that server's clock running faster than the local one. This
 * library also subtracts the loss margin, so that the caller learns of a loss before it happens.
 *
 * Integers only; overflows saturate. Drift rounds up and validity rounds down, because a validity
 * that is too short costs an early extension, and one that is too long breaks mutual exclusion. */
#ifndef RL_CORE_DRIFT_H
#define RL_CORE_DRIFT_H

#include "core/types.h"

/* Largest rl_drift.ppm that the configuration accepts: one half of the TTL. */
#define RL_DRIFT_PPM_MAX 500000u

/* The tolerated drift, from the configuration; never changed afterwards. */
struct rl_drift {
    uint32_t ppm; /* largest difference between the rates of two clocks, in parts per million; 0 to
                   * RL_DRIFT_PPM_MAX */
    uint32_t constant_us; /* constant part in microseconds: servers expire keys in whole
                           * milliseconds, and a share of a small TTL would not cover that */
};

/* Returns the drift of a TTL: ceil(ttl * ppm / 10^6) + the constant part. */
uint64_t rl_drift_ns(uint64_t ttl_ns, const struct rl_drift *drift);

/* Returns the loss margin of a TTL: how long before the end of the validity the library treats the
 * lock as lost. It is max(5 ms, ttl / 1000), rounded up. */
uint64_t rl_loss_margin_ns(uint64_t ttl_ns);

/* Returns the usable time of a TTL: ttl - drift - loss margin, at least 0. That is the validity of
 * a lock that was granted with no time elapsed. */
uint64_t rl_usable_ns(uint64_t ttl_ns, const struct rl_drift *drift);

/* Returns the shortest TTL of whole milliseconds whose usable time is at least `usable_ns`: the
 * inverse of rl_usable_ns(). `drift->ppm` is at most RL_DRIFT_PPM_MAX. UINT64_MAX: there is no such
 * TTL. */
uint64_t rl_ttl_for_ns(uint64_t usable_ns, const struct rl_drift *drift);

/* Returns the deadline of a lock whose requests were sent at `t1` or later: t1 + usable time, on
 * both clocks. */
struct rl_now rl_deadline(struct rl_now t1, uint64_t ttl_ns, const struct rl_drift *drift);

/* Returns the time until `deadline` on the clock that reaches it first; 0 once one clock has. */
uint64_t rl_remaining_ns(struct rl_now deadline, struct rl_now now);

/* Returns the time between two instants on the clock that shows the longer one; 0 if `now` is not
 * later on either. */
uint64_t rl_elapsed_ns(struct rl_now since, struct rl_now now);

/* Returns the instant `ns` after `from` on both clocks, saturating at RL_NEVER. */
struct rl_now rl_later(struct rl_now from, uint64_t ns);

#endif
