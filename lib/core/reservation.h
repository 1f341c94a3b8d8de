/* SPDX-License-Identifier: MIT
 * How a lock of several resources waits in the queues of its own client. Its first attempt begins
 * when no earlier entry is left in any of these queues. If it always reserved the resources that
 * are free, a caller that holds one of them and waits for another would cause a deadlock. If it
 * never reserved any, it might never begin where all resources are busy. So it alternates: it
 * reserves during one phase, and lets later queue entries pass in the next; each phase is twice as
 * long as the one before. */
#ifndef RL_CORE_RESERVATION_H
#define RL_CORE_RESERVATION_H

#include "core/types.h"

#define RL_RESERVATION_NS (300 * RL_MS) /* length of phase 0 */

/* Returns the number of the phase, from 0 on, after `waited_ns` of waiting. */
static inline unsigned rl_reservation_phase(uint64_t waited_ns)
{
    return 63u - (unsigned)__builtin_clzll(waited_ns / RL_RESERVATION_NS + 1);
}

/* Returns whether a lock that has waited for `waited_ns` reserves the resources that are free. */
static inline bool rl_reservation_is_on(uint64_t waited_ns)
{
    return rl_reservation_phase(waited_ns) % 2 == 0;
}

/* Returns the time in nanoseconds until the present phase ends. */
static inline uint64_t rl_reservation_left_ns(uint64_t waited_ns)
{
    unsigned phase = rl_reservation_phase(waited_ns);

    return ((UINT64_C(2) << phase) - 1) * RL_RESERVATION_NS - waited_ns;
}

#endif
