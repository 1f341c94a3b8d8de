/* SPDX-License-Identifier: MIT
 * Validity arithmetic: integers only, saturating; drift rounds up, validity rounds down. */
#ifndef RL_CORE_DRIFT_H
#define RL_CORE_DRIFT_H

#include "core/types.h"

#define RL_DRIFT_PPM_MAX 500000u

struct rl_drift {
    uint32_t ppm;         /* bound of the difference between two clock rates, parts per million */
    uint32_t constant_us; /* constant part: expiry granularity of the servers and of small TTLs */
};

/* ceil(ttl * ppm / 10^6) + floor. */
uint64_t rl_drift_ns(uint64_t ttl_ns, const struct rl_drift *drift);

/* How long before the end of the validity a loss is announced: max(5 ms, ttl / 1000), rounded up.
 */
uint64_t rl_lost_margin_ns(uint64_t ttl_ns);

/* ttl - drift - lost margin, 0 if they eat it all up: what a lock granted in no time is good for.
 */
uint64_t rl_usable_ns(uint64_t ttl_ns, const struct rl_drift *drift);

/* Returns the shortest TTL of whole milliseconds whose usable time is at least `usable_ns`; the
 * inverse of rl_usable_ns(), for `drift->ppm` up to RL_DRIFT_PPM_MAX. UINT64_MAX if there is none.
 */
uint64_t rl_ttl_for_ns(uint64_t usable_ns, const struct rl_drift *drift);

/* The one deadline of a lock whose SETs left at `t1`: t1 + ttl - drift - lost margin, on both
 * clocks. */
struct rl_now rl_deadline(struct rl_now t1, uint64_t ttl_ns, const struct rl_drift *drift);

/* Time until the deadline on whichever clock reaches it first; 0 from there on. */
uint64_t rl_remaining_ns(struct rl_now deadline, struct rl_now now);

/* The larger of the two clocks' differences: how much time has passed at most. */
uint64_t rl_elapsed_ns(struct rl_now since, struct rl_now now);

/* `ns` later on both clocks, saturating. */
struct rl_now rl_later(struct rl_now from, uint64_t ns);

#endif
